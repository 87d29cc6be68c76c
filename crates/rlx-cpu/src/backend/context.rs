//! Contexts: memory, bound sizes, and the loop over thunks.

use std::sync::Arc;

use rlx_compile::Plan;
use rlx_compile::plan::{Home, Sizes};
use rlx_ir::{Bindings, Tick, bail};
use rlx_runtime::{Context, MemoryUse, Pending, Timing};

use super::executable::Shared;
use super::launch::{Memory, Region};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::thunks::StepCall;

/// One place to run an executable in.
pub(crate) struct CpuContext {
    shared: Arc<Shared>,
    memory: Memory,
    state_sizes: Bindings,
    bindings: Bindings,
    sizes: Sizes,
    bound: bool,
    timing: Timing,
    timings: Vec<u64>,
}

impl CpuContext {
    pub(crate) fn new(shared: Arc<Shared>, state_sizes: &Bindings) -> Result<Self> {
        let plan = &shared.plan;
        let mut inputs = Vec::new();
        for port in &plan.inputs {
            inputs.push(Region::new(plan.input_bytes(port)?)?);
        }
        let mut states = Vec::new();
        for port in &plan.states {
            states.push(Region::new(plan.state_bytes(port, state_sizes)?)?);
        }
        let memory = Memory { arena: Region::new(plan.arena.bytes)?, inputs, states };
        let (sizes, timings) = (Sizes::default(), Vec::new());
        let state_sizes = state_sizes.clone();
        let bindings = Bindings::new();
        Ok(Self { shared, memory, state_sizes, bindings, sizes, bound: false, timing: Timing::Off, timings })
    }

    fn check_bound(&self) -> Result<()> {
        if self.bound {
            return Ok(());
        }
        bail!(InvalidArgument, "symbols are not bound: call bind first")
    }

    fn run_steps(&mut self) -> Result<()> {
        self.check_bound()?;
        let shared = &*self.shared;
        let cpu = Cpu { pool: &shared.machine.pool, level: shared.machine.level };
        self.timings.clear();
        for (index, (step, thunk)) in shared.plan.steps.iter().zip(&shared.thunks).enumerate() {
            let tick = (self.timing == Timing::PerStep).then(Tick::now);
            let opened = self.memory.open(&shared.plan, step, &self.sizes, &shared.weights)?;
            let mut call = StepCall {
                cpu,
                bindings: &self.bindings,
                sizes: &self.sizes,
                step,
                reads: opened.reads,
                writes: opened.writes,
            };
            thunk.run(&mut call).map_err(|e| {
                let scope = if step.scope.is_empty() { String::new() } else { format!(" in {}", step.scope) };
                e.context(format!("step {index}, {}{scope}", step.action.name()))
            })?;
            if let Some(tick) = tick {
                self.timings.push(tick.elapsed_ns());
            }
        }
        Ok(())
    }

    fn input_bytes(&mut self, index: usize) -> Result<&mut [u8]> {
        self.check_bound()?;
        let Some(port) = self.shared.plan.inputs.get(index) else {
            bail!(InvalidArgument, "no input {index}; there are {}", self.shared.plan.inputs.len());
        };
        let bytes = self.sizes.get(self.shared.plan.buffer(port.buffer).bytes);
        match self.memory.inputs[index].bytes_mut().get_mut(..bytes) {
            Some(memory) => Ok(memory),
            None => bail!(Bug, "input {index} takes {bytes} bytes, more than its buffer"),
        }
    }

    fn output_bytes(&self, index: usize) -> Result<&[u8]> {
        self.check_bound()?;
        let plan = &self.shared.plan;
        let Some(operand) = plan.outputs.get(index) else {
            bail!(InvalidArgument, "no output {index}; there are {}", plan.outputs.len());
        };
        if let Home::Weight(weight) = plan.buffer(operand.buffer).home {
            return match self.shared.weights.get(weight as usize).and_then(|w| w.rows()) {
                Some(bytes) => Ok(bytes),
                None => bail!(Bug, "output {index} is a weight that was not prepared as rows"),
            };
        }
        self.memory.output(plan, operand, &self.sizes)
    }
}

impl Context for CpuContext {
    fn plan(&self) -> &Arc<Plan> {
        &self.shared.plan
    }

    fn bind(&mut self, bindings: &Bindings) -> rlx_runtime::Result<()> {
        // Where something fails from here on, nothing is bound: what is there may be half of the sizes.
        self.bound = false;
        let plan = &self.shared.plan;
        plan.check(bindings)?;
        plan.check_states(&self.state_sizes, bindings)?;
        plan.sizes.bind_into(bindings, &mut self.sizes)?;
        self.bindings = bindings.clone();
        self.bound = true;
        Ok(())
    }

    fn input(&mut self, index: usize) -> rlx_runtime::Result<&mut [u8]> {
        Ok(self.input_bytes(index)?)
    }

    fn submit(&mut self) -> rlx_runtime::Result<Pending<'_>> {
        self.run_steps()?;
        Ok(Pending::ready())
    }

    fn output(&self, index: usize) -> rlx_runtime::Result<&[u8]> {
        Ok(self.output_bytes(index)?)
    }

    fn state(&mut self, index: usize) -> rlx_runtime::Result<&mut [u8]> {
        match self.memory.states.get_mut(index) {
            Some(region) => Ok(region.bytes_mut()),
            None => Err(Error::new(rlx_ir::ErrorKind::InvalidArgument, format!("no state {index}")).into()),
        }
    }

    fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
        self.timings.clear();
    }

    fn timings(&self) -> &[u64] {
        &self.timings
    }

    fn memory(&self) -> MemoryUse {
        let sum = |regions: &[Region]| regions.iter().map(|r| r.len() as u64).sum();
        MemoryUse {
            arena: self.memory.arena.len() as u64,
            inputs: sum(&self.memory.inputs),
            states: sum(&self.memory.states),
        }
    }
}
