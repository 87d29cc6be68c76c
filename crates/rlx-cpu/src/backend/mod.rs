//! The backend around the kernels: what is supported, how weights are laid out, and how a plan becomes thunks.
//!
//! - `support`: the table from ops to thunks, and what each takes;
//! - `weights`: preparing weights, packed or used in place from a mapped file;
//! - `executable` and `context`: thunks over a plan, and the memory of one run;
//! - `launch`: the one place where buffers become slices;
//! - `custom`: kernels of the user's own ops.

mod context;
mod custom;
mod executable;
pub(crate) mod launch;
pub(crate) mod support;
pub(crate) mod weights;

use std::num::NonZeroUsize;
use std::sync::Arc;

use rlx_compile::{Layout, OpFacts, Plan, Support, Target};
use rlx_runtime::weights::RowSource;
use rlx_runtime::{Backend, DeviceInfo, DeviceWeight, Executable, Strategy};

use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::simd::SimdLevel;

pub use custom::{CpuKernel, KernelCall};
use executable::CpuExecutable;

/// The CPU backend: a pool of threads, the instruction set, and the user's own kernels.
#[derive(Debug)]
pub struct CpuBackend {
    machine: Arc<Machine>,
}

/// What executables share.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) pool: Pool,
    pub(crate) level: SimdLevel,
    pub(crate) custom: Vec<Arc<dyn CpuKernel>>,
}

impl CpuBackend {
    /// A backend with `threads` threads; `None` takes the processors that this process may use.
    ///
    /// # Errors
    /// `Device` where threads cannot be started.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        Self::with_level(threads, SimdLevel::best())
    }

    /// A backend that uses no more than this instruction set.
    ///
    /// # Errors
    /// `Device` where threads cannot be started.
    pub fn with_level(threads: Option<NonZeroUsize>, level: SimdLevel) -> Result<Self> {
        let machine = Machine { pool: Pool::new(threads)?, level, custom: Vec::new() };
        Ok(Self { machine: Arc::new(machine) })
    }

    /// This backend with a kernel for a user's op, or for a built-in one. It comes before the built-in kernels, and fusion leaves
    /// alone what it runs.
    ///
    /// # Errors
    /// `InvalidArgument` where the backend is in use already.
    pub fn register_kernel(mut self, kernel: Arc<dyn CpuKernel>) -> Result<Self> {
        match Arc::get_mut(&mut self.machine) {
            Some(machine) => {
                machine.custom.push(kernel);
                Ok(self)
            }
            None => rlx_ir::bail!(InvalidArgument, "kernels are registered before a backend is used"),
        }
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.machine.pool.threads()
    }
}

impl Target for CpuBackend {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        self.machine.supports(facts)
    }

    fn has_own_kernel(&self, facts: &OpFacts<'_>) -> bool {
        self.machine.custom(facts).is_some()
    }

    fn weight_layout(&self, facts: &OpFacts<'_>, index: usize) -> Layout {
        self.machine.weight_layout(facts, index)
    }

    fn in_place(&self, facts: &OpFacts<'_>) -> Option<usize> {
        self.machine.in_place(facts)
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn device(&self) -> DeviceInfo {
        DeviceInfo {
            name: cpu_name(),
            memory_bytes: memory_bytes(),
            features: vec![self.machine.level.name().to_owned()],
            parallelism: self.threads(),
        }
    }

    fn strategies(&self) -> &'static [Strategy] {
        &[Strategy::Thunks]
    }

    fn prepare(&self, layout: &Layout, rows: &mut dyn RowSource) -> rlx_runtime::Result<DeviceWeight> {
        Ok(weights::prepare(&self.machine, layout, rows)?)
    }

    fn build(
        &self,
        plan: Arc<Plan>,
        weights: Vec<Arc<DeviceWeight>>,
        strategy: Strategy,
    ) -> rlx_runtime::Result<Arc<dyn Executable>> {
        Strategy::choose(self, strategy.name())?;
        Ok(Arc::new(CpuExecutable::new(self.machine.clone(), plan, weights)?))
    }
}

/// The processor's name as the system tells it; the architecture where it does not.
fn cpu_name() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|l| l.strip_prefix("model name").and_then(|r| r.split_once(':')));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, n)| n.trim().to_owned())
}

/// Memory of the machine in bytes, 0 where the system does not tell.
fn memory_bytes() -> u64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = info
        .lines()
        .find_map(|l| l.strip_prefix("MemTotal:"))
        .and_then(|r| r.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()));
    kib.unwrap_or(0) * 1024
}
