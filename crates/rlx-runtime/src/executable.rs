//! Executables and contexts: what was compiled, and one place to run it in.

use std::sync::Arc;

use rlx_compile::Plan;
use rlx_ir::Bindings;

use crate::backend::Strategy;
use crate::error::Result;

/// A plan built for a device. Immutable; shared by any number of contexts.
pub trait Executable: Send + Sync {
    /// The plan.
    fn plan(&self) -> &Arc<Plan>;

    /// The strategy that it was built under.
    fn strategy(&self) -> Strategy;

    /// The name of the kernel behind each step, in the plan's order.
    fn kernels(&self) -> Vec<String>;

    /// Makes a context: arena, input buffers and states. `state_sizes` binds the symbols in the shapes of states; they
    /// keep these sizes for the context's life.
    ///
    /// # Errors
    /// `InvalidArgument` where a state's symbol is not bound; `Device` where memory cannot be had.
    fn context(&self, state_sizes: &Bindings) -> Result<Box<dyn Context>>;
}

/// Arena, arguments and states of one run at a time.
///
/// The order of calls: [`bind`](Self::bind), fill every [`input`](Self::input), [`submit`](Self::submit) (or
/// [`run`](Self::run)), read each [`output`](Self::output). Binding the same sizes again is free. That inputs are filled before
/// a run, and outputs read only after one, is up to the caller: [`RunContext`](crate::RunContext) sees to it.
pub trait Context: Send {
    /// The plan.
    fn plan(&self) -> &Arc<Plan>;

    /// Binds the symbols to sizes: evaluates sizes, which takes microseconds. The memory of arena, inputs and states is there
    /// already; a backend that chooses kernels by sizes may compile one that no earlier sizes chose.
    ///
    /// # Errors
    /// `InvalidArgument` for what [`Plan::check`] refuses (implementations call it), or where a state's size would change.
    /// Nothing is bound then.
    fn bind(&mut self, bindings: &Bindings) -> Result<()>;

    /// The memory of input `index`, at its bound size: writing there is all it takes to pass it.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown index, or before the first bind.
    fn input(&mut self, index: usize) -> Result<&mut [u8]>;

    /// Starts a run.
    ///
    /// # Errors
    /// `InvalidArgument` before the first bind; what kernels report (an index out of range, say); `Device`.
    fn submit(&mut self) -> Result<Pending<'_>>;

    /// The memory of output `index` after a run, at its bound size.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown index, or before the first bind.
    fn output(&self, index: usize) -> Result<&[u8]>;

    /// The memory of state `index`.
    ///
    /// # Errors
    /// `InvalidArgument` for an unknown index.
    fn state(&mut self, index: usize) -> Result<&mut [u8]>;

    /// Measures each step in the next runs, in nanoseconds; `None` turns it off. [`timings`](Self::timings) has the sums.
    fn set_timing(&mut self, timing: Timing);

    /// Nanoseconds per step of the last run, in the plan's order; empty while timing is off.
    fn timings(&self) -> &[u64];

    /// The memory of this context.
    fn memory(&self) -> MemoryUse;

    /// Runs and waits.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    fn run(&mut self) -> Result<()> {
        self.submit()?.wait()
    }
}

/// Whether a context measures its steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// No clock is read.
    #[default]
    Off,
    /// Each step is timed by itself.
    PerStep,
}

/// The memory of a context, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The arena, planned at the bounds; pages that were never touched take no memory.
    pub arena: u64,
    /// Buffers of inputs at the bounds.
    pub inputs: u64,
    /// Address space of states; committed as it is used.
    pub states: u64,
}

/// A run that was started. The context is borrowed until it ends.
pub struct Pending<'a>(Option<Box<dyn FnOnce() -> Result<()> + 'a>>);

impl<'a> Pending<'a> {
    /// A run that has already ended.
    pub fn ready() -> Self {
        Self(None)
    }

    /// A run that `wait` waits for.
    pub fn new(wait: impl FnOnce() -> Result<()> + 'a) -> Self {
        Self(Some(Box::new(wait)))
    }

    /// Waits for the run to end.
    ///
    /// # Errors
    /// What the run reports; `Device`.
    pub fn wait(mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), |wait| wait())
    }
}

impl Drop for Pending<'_> {
    /// A run that nobody waits for is waited for here: its buffers are free only then.
    fn drop(&mut self) {
        if let Some(wait) = self.0.take() {
            let _ = wait();
        }
    }
}

impl std::fmt::Debug for Pending<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Pending" } else { "Pending(ready)" })
    }
}
