//! What must hold of the regions of a plan.

use super::super::{Home, Plan};
use super::dataflow::Dataflow;
use super::{Claim, PlanRegion, Role};
use crate::error::{Error, Result};

impl Plan {
    /// Checks the invariants of [`regions`](Plan::regions): ranges, nesting, roles, what goes in and comes out, claims,
    /// and that claimed regions leave alone what goes into them.
    ///
    /// # Errors
    /// `Bug` naming the region and what is wrong with it.
    pub fn verify_regions(&self) -> Result<()> {
        let flow = Dataflow::new(&self.steps, &self.outputs, self.buffers.len());
        let mut open: Vec<&PlanRegion> = Vec::new();
        for (index, region) in self.regions.iter().enumerate() {
            let check = || -> std::result::Result<(), String> {
                self.check_place(&open, region)?;
                if (region.inputs.clone(), region.outputs.clone()) != flow.boundary(&region.steps) {
                    return Err("inputs and outputs are not what the steps read and give".to_owned());
                }
                self.check_claim(index, region)
            };
            if let Err(reason) = check() {
                rlx_ir::bail!(Bug, "region {index}, {}: {reason}", region.kind.name());
            }
            open.retain(|outer| outer.steps.end > region.steps.start);
            open.push(region);
        }
        Ok(())
    }

    fn check_place(&self, before: &[&PlanRegion], region: &PlanRegion) -> std::result::Result<(), String> {
        let steps = &region.steps;
        if steps.is_empty() || steps.end > self.steps.len() {
            return Err(format!("there are no steps {}..{}", steps.start, steps.end));
        }
        if !region.kind.roles().iter().map(|(_, step)| *step).eq(steps.clone()) {
            return Err("its roles do not cover its steps, each once".to_owned());
        }
        for other in before.iter().filter(|o| o.steps.end > steps.start) {
            if other.steps.start > steps.start || other.steps.end < steps.end {
                return Err("it neither lies within an earlier region nor apart from it".to_owned());
            }
        }
        Ok(())
    }

    fn check_claim(&self, index: usize, region: &PlanRegion) -> std::result::Result<(), String> {
        let outer =
            self.regions[..index].iter().rposition(|o| o.is_claimed() && o.steps.end > region.steps.start);
        match (&region.claim, outer) {
            (Claim::Within(said), found) if found != Some(*said) => {
                return Err(format!("it does not lie within the claimed region {said}"));
            }
            (Claim::Claimed | Claim::Refused(_), Some(outer)) => {
                return Err(format!("it was offered though region {outer} is claimed"));
            }
            _ => {}
        }
        if !region.is_claimed() {
            return Ok(());
        }
        let arena = |buffer: super::BufferId| match self.buffer(buffer).home {
            Home::Arena { offset, reserved } => Some(offset..offset + reserved),
            _ => None,
        };
        for step in region.steps.clone() {
            for result in self.steps[step].results.iter().filter(|r| r.role != Role::State) {
                let Some(written) = arena(result.buffer) else { continue };
                for &input in &region.inputs {
                    let Some(read) = arena(input) else { continue };
                    if written.start < read.end && read.start < written.end {
                        return Err(format!("step {step} writes into what goes into the region"));
                    }
                }
            }
        }
        let outputs = || region.outputs.iter().map(|o| &self.steps[o.step].results[o.index]);
        for (at, a) in outputs().enumerate() {
            for b in outputs().skip(at + 1).filter(|b| b.buffer != a.buffer) {
                let (Some(x), Some(y)) = (arena(a.buffer), arena(b.buffer)) else { continue };
                if x.start < y.end && y.start < x.end {
                    return Err("two of its results share memory".to_owned());
                }
            }
        }
        Ok(())
    }
}
