//! Printing plans, for people and for tests. A plan prints; it does not parse.

use std::fmt;

use super::{Action, BufferId, Claim, Home, Operand, Plan, PlanRegion, Step};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds: Vec<String> =
            self.symbols.bounds().iter().map(|b| format!("{} <= {}", b.of, b.max)).collect();
        writeln!(f, "plan @{}({}) {{", self.name, bounds.join(", "))?;
        writeln!(
            f,
            "  arena {} bytes, peak {}, waste {}",
            self.arena.bytes,
            self.arena.peak_live,
            self.arena.waste()
        )?;
        for (low, high) in &self.conditions {
            writeln!(f, "  requires {low} <= {high}")?;
        }
        for (index, weight) in self.prepare.iter().enumerate() {
            writeln!(f, "  prepare w{index} = {}", weight.key())?;
        }
        for (index, buffer) in self.buffers.iter().enumerate() {
            if let Home::Arena { offset, reserved } = buffer.home {
                let bytes = self.sizes.dim(buffer.bytes);
                writeln!(f, "  buffer b{index} = arena[{offset}..{}] : {bytes} bytes", offset + reserved)?;
            }
        }
        for (index, step) in self.steps.iter().enumerate() {
            write!(f, "  {index}: ")?;
            self.write_step(f, step)?;
        }
        for (index, region) in self.regions.iter().enumerate() {
            write!(f, "  region {index} ")?;
            self.write_region(f, region)?;
        }
        for miss in &self.region_misses {
            writeln!(f, "  no {} at {}: {}", miss.kind, miss.step, miss.reason)?;
        }
        let outputs: Vec<String> = self.outputs.iter().map(|o| self.operand(o)).collect();
        writeln!(f, "  return {}\n}}", outputs.join(", "))
    }
}

impl Plan {
    fn write_step(&self, f: &mut fmt::Formatter<'_>, step: &Step) -> fmt::Result {
        let list = |operands: &[Operand]| {
            let parts: Vec<String> = operands.iter().map(|o| self.operand(o)).collect();
            parts.join(", ")
        };
        write!(f, "{} = {} {}", list(&step.results), step.action.name(), list(&step.operands))?;
        if let Action::Op(op) = &step.action {
            let attrs = op.attrs();
            if !attrs.is_empty() {
                write!(f, " {attrs}")?;
            }
        }
        if !step.scope.is_empty() {
            write!(f, " in {:?}", &*step.scope)?;
        }
        writeln!(f)
    }

    /// Kind, steps with their roles, what goes in and comes out, and what the target said.
    fn write_region(&self, f: &mut fmt::Formatter<'_>, region: &PlanRegion) -> fmt::Result {
        let roles: Vec<String> =
            region.kind.roles().iter().map(|(name, step)| format!("{name} {step}")).collect();
        let inputs: Vec<String> = region.inputs.iter().map(|&b| self.buffer_name(b)).collect();
        let results = region.outputs.iter().map(|o| &self.steps[o.step].results[o.index]);
        let outputs: Vec<String> = results.map(|r| self.buffer_name(r.buffer)).collect();
        write!(
            f,
            "{} steps {}..{} ({}) of {} to {}",
            region.kind.name(),
            region.steps.start,
            region.steps.end,
            roles.join(", "),
            inputs.join(", "),
            outputs.join(", ")
        )?;
        let scope = region.scope(&self.steps);
        if !scope.is_empty() {
            write!(f, " in {scope:?}")?;
        }
        match &region.claim {
            Claim::Claimed => writeln!(f, ", claimed"),
            Claim::Within(outer) => writeln!(f, ", within region {outer}"),
            Claim::Refused(reason) => writeln!(f, ", not claimed: {reason}"),
        }
    }

    fn buffer_name(&self, buffer: BufferId) -> String {
        match self.buffer(buffer).home {
            Home::Input(i) => format!("input {:?}", self.inputs[i as usize].name),
            Home::State(i) => format!("state {:?}", self.states[i as usize].name),
            Home::Weight(i) => format!("w{i}"),
            Home::Arena { .. } => format!("b{}", buffer.index()),
        }
    }

    /// A buffer's name, type, and strides and offset where they are not the plain ones.
    fn operand(&self, o: &Operand) -> String {
        let name = self.buffer_name(o.buffer);
        let offset = self.sizes.dim(o.offset);
        let at = if offset.as_const() == Some(0) { String::new() } else { format!(" at {offset}") };
        let strides = if o.dense {
            String::new()
        } else {
            let list: Vec<String> = o.strides.iter().map(|&s| self.sizes.dim(s).to_string()).collect();
            format!(" strides [{}]", list.join(", "))
        };
        format!("{name}: {}{strides}{at}", o.ty)
    }
}
