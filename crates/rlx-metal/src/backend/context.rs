//! Contexts: the memory of one run at a time, and its command buffer.

use std::sync::{Arc, Mutex, PoisonError};

use rlx_compile::Plan;
use rlx_compile::plan::{Home, Sizes};
use rlx_ir::{Bindings, bail};
use rlx_runtime::{Context, MemoryUse, Pending, Timing};

use super::encode::{commands, range};
use super::executable::Shared;
use super::launch::{bytes, bytes_mut};
use super::submit::Submitted;
use crate::driver::{CommandList, Driver, Memory as _, Range};
use crate::error::{Error, Result};

/// The buffers of a context.
pub(super) struct Memory<D: Driver> {
    pub(super) arena: Range<D>,
    pub(super) inputs: Vec<Range<D>>,
    pub(super) states: Vec<Range<D>>,
    pub(super) args: Range<D>,
}

/// One place to run an executable in.
pub(super) struct MetalContext<D: Driver> {
    shared: Arc<Shared<D>>,
    memory: Memory<D>,
    /// A run on its way, also where its `Pending` was leaked: nobody touches the memory before it has ended.
    flight: Mutex<Option<Submitted<D>>>,
    state_sizes: Bindings,
    bindings: Option<Bindings>,
    sizes: Sizes,
    list: Arc<CommandList<D>>,
    timing: Timing,
    timings: Vec<u64>,
}

impl<D: Driver> MetalContext<D> {
    pub(super) fn new(shared: Arc<Shared<D>>, state_sizes: &Bindings) -> Result<Self> {
        let (plan, driver) = (&shared.plan, &shared.machine.driver);
        let region = |bytes: u64, element: usize| -> Result<Range<D>> {
            let Ok(bytes) = usize::try_from(bytes) else {
                bail!(Device, "{bytes} bytes are more than this machine addresses")
            };
            Ok(Range { buffer: Arc::new(driver.buffer(bytes, element)?), offset: 0, bytes })
        };
        let element = |dtype: rlx_ir::DType| if dtype.is_block() { 1 } else { dtype.block_bytes() };
        let written = plan.steps.iter().flat_map(|s| &s.results).map(|r| element(r.ty.dtype));
        let mut inputs = Vec::new();
        for port in &plan.inputs {
            inputs.push(region(plan.input_bytes(port)?, element(port.ty.dtype))?);
        }
        let mut states = Vec::new();
        for port in &plan.states {
            states.push(region(plan.state_bytes(port, state_sizes)?, element(port.ty.dtype))?);
        }
        let memory = Memory {
            arena: region(plan.arena.bytes, written.min().unwrap_or(4))?,
            inputs,
            states,
            args: region(shared.args_bytes as u64, 4)?,
        };
        Ok(Self {
            shared,
            memory,
            flight: Mutex::default(),
            state_sizes: state_sizes.clone(),
            bindings: None,
            sizes: Sizes::default(),
            list: Arc::default(),
            timing: Timing::Off,
            timings: Vec::new(),
        })
    }

    /// Waits for the run that is on its way, if there is one.
    fn land(&self) -> Result<()> {
        let submitted = self.flight.lock().unwrap_or_else(PoisonError::into_inner).take();
        submitted.map_or(Ok(()), |s| s.wait().map(|_| ()))
    }

    fn check_bound(&self) -> Result<()> {
        match self.bindings {
            Some(_) => Ok(()),
            None => bail!(InvalidArgument, "symbols are not bound: call bind first"),
        }
    }

    fn bind_sizes(&mut self, bindings: &Bindings) -> Result<()> {
        if self.bindings.as_ref() == Some(bindings) {
            return Ok(());
        }
        // Where something fails from here on, nothing is bound: what is there may be half of the sizes.
        self.bindings = None;
        let plan = &self.shared.plan;
        plan.check(bindings)?;
        plan.check_states(&self.state_sizes, bindings)?;
        plan.sizes.bind_into(bindings, &mut self.sizes)?;
        let list = commands(&self.shared, &mut self.memory, &self.shared.thunks, &self.sizes)?;
        self.list = Arc::new(list);
        self.bindings = Some(bindings.clone());
        Ok(())
    }

    /// Input `index` at its bound size.
    fn input_range(&self, index: usize) -> Result<Range<D>> {
        self.check_bound()?;
        let Some(port) = self.shared.plan.inputs.get(index) else {
            bail!(InvalidArgument, "no input {index}; there are {}", self.shared.plan.inputs.len());
        };
        let bytes = self.sizes.get(self.shared.plan.buffer(port.buffer).bytes);
        Ok(Range { bytes, ..self.memory.inputs[index].clone() })
    }

    fn check_inputs(&self) -> Result<()> {
        for check in &self.shared.checks {
            let part = |operand| range(&self.shared, &self.memory, operand, &self.sizes);
            let ranges = check.operands.iter().map(part).collect::<Result<Vec<_>>>()?;
            let values = ranges.iter().map(bytes).collect::<Result<Vec<_>>>()?;
            check.run(&values, &self.sizes)?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<Pending<'_>> {
        self.check_bound()?;
        self.check_inputs()?;
        self.timings.clear();
        if self.timing == Timing::PerStep {
            self.run_step_by_step()?;
            return Ok(Pending::ready());
        }
        let submitted = self.shared.machine.submitter.submit(&self.list)?;
        *self.flight.get_mut().unwrap_or_else(PoisonError::into_inner) = Some(submitted);
        Ok(Pending::new(|| Ok(self.land()?)))
    }

    /// One command buffer for each launch, so that each is timed by itself.
    fn run_step_by_step(&mut self) -> Result<()> {
        let done = self.run_each_step();
        // Arguments were overwritten, also where a step failed.
        let list = commands(&self.shared, &mut self.memory, &self.shared.thunks, &self.sizes)?;
        self.list = Arc::new(list);
        done
    }

    fn run_each_step(&mut self) -> Result<()> {
        let shared = self.shared.clone();
        for thunk in &shared.thunks {
            let thunks = std::slice::from_ref(thunk);
            let list = commands(&shared, &mut self.memory, thunks, &self.sizes)?;
            let submitted = shared.machine.submitter.submit(&Arc::new(list))?;
            // What one launch does for several steps is counted at the first.
            self.timings.push(submitted.wait()?);
            self.timings.extend(std::iter::repeat_n(0, thunk.steps.len() - 1));
        }
        Ok(())
    }

    fn output_range(&self, index: usize) -> Result<Range<D>> {
        self.check_bound()?;
        let plan = &self.shared.plan;
        match plan.outputs.get(index) {
            Some(operand) => range(&self.shared, &self.memory, operand, &self.sizes),
            None => bail!(InvalidArgument, "no output {index}; there are {}", plan.outputs.len()),
        }
    }
}

impl<D: Driver> Context for MetalContext<D> {
    fn plan(&self) -> &Arc<Plan> {
        &self.shared.plan
    }

    fn bind(&mut self, bindings: &Bindings) -> rlx_runtime::Result<()> {
        self.land()?;
        Ok(self.bind_sizes(bindings)?)
    }

    fn input(&mut self, index: usize) -> rlx_runtime::Result<&mut [u8]> {
        self.land()?;
        let bound = self.input_range(index)?;
        self.shared.machine.driver.host_wrote(&bound);
        Ok(&mut bytes_mut(&mut self.memory.inputs[index])?[..bound.bytes])
    }

    fn submit(&mut self) -> rlx_runtime::Result<Pending<'_>> {
        self.land()?;
        Ok(self.start()?)
    }

    fn output(&self, index: usize) -> rlx_runtime::Result<&[u8]> {
        self.land()?;
        let plan = &self.shared.plan;
        let found = self.output_range(index)?;
        // The range that outlives this call is that of the memory it lies in.
        let whole = match plan.buffer(plan.outputs[index].buffer).home {
            Home::Arena { .. } => &self.memory.arena,
            Home::Input(i) => &self.memory.inputs[i as usize],
            Home::State(i) => &self.memory.states[i as usize],
            Home::Weight(i) => &self.shared.weights[i as usize].0,
        };
        let first = found.offset - whole.offset;
        Ok(&bytes(whole)?[first..first + found.bytes])
    }

    fn state(&mut self, index: usize) -> rlx_runtime::Result<&mut [u8]> {
        self.land()?;
        match self.memory.states.get_mut(index) {
            Some(range) => {
                self.shared.machine.driver.host_wrote(range);
                Ok(bytes_mut(range)?)
            }
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
        let sum = |ranges: &[Range<D>]| ranges.iter().map(|r| r.buffer.bytes() as u64).sum();
        MemoryUse {
            arena: self.memory.arena.buffer.bytes() as u64,
            inputs: sum(&self.memory.inputs),
            states: sum(&self.memory.states),
        }
    }
}
