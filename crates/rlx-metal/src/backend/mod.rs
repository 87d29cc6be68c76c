//! The backend over a driver.
//!
//! - `support` and `recipe`: which kernel does a step, and what is not supported, from the table of `rlx_kernels`;
//! - `regions`: which regions of a plan are run as wholes;
//! - `weights`: rows on the device;
//! - `library`: kernels, compiled when they are first needed;
//! - `executable` and `context`: thunks over a plan, and the memory of one run;
//! - `encode`: thunks under bound sizes as commands, with barriers; `submit`: the thread that commits them;
//! - `checks`: conditions on inputs that kernels cannot report;
//! - `launch`: the one place where device memory becomes slices.

mod checks;
mod context;
mod encode;
mod executable;
mod launch;
mod library;
mod recipe;
mod regions;
mod submit;
mod support;
mod weights;

use std::sync::Arc;

use rlx_compile::{Layout, OpFacts, Plan, RegionFacts, Support, Target};
use rlx_runtime::weights::RowSource;
use rlx_runtime::{Backend, DeviceInfo, DeviceWeight, Executable, Strategy};

use crate::driver::Driver;
use crate::error::Result;
use executable::MetalExecutable;
use library::Pipelines;
use submit::Submitter;

/// The Metal backend on the device of a driver.
pub struct MetalBackend<D: Driver> {
    machine: Arc<Machine<D>>,
}

/// What executables share.
struct Machine<D: Driver> {
    driver: Arc<D>,
    pipelines: Pipelines<D>,
    submitter: Submitter<D>,
}

impl<D: Driver> MetalBackend<D> {
    /// A backend on this device.
    ///
    /// # Errors
    /// `Device` where the submission thread cannot be started.
    pub fn new(driver: D) -> Result<Self> {
        let driver = Arc::new(driver);
        let submitter = Submitter::new(driver.clone())?;
        Ok(Self { machine: Arc::new(Machine { driver, pipelines: Pipelines::default(), submitter }) })
    }

    /// The driver.
    pub fn driver(&self) -> &D {
        &self.machine.driver
    }
}

impl<D: Driver> Target for MetalBackend<D> {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        support::supports(facts)
    }

    fn claims(&self, facts: &RegionFacts<'_>) -> Support {
        regions::claims(facts)
    }
}

impl<D: Driver> Backend for MetalBackend<D> {
    fn name(&self) -> &'static str {
        "metal"
    }

    fn device(&self) -> DeviceInfo {
        let facts = self.machine.driver.facts();
        DeviceInfo {
            name: facts.name.clone(),
            memory_bytes: facts.memory_bytes,
            features: facts.features.clone(),
            parallelism: 0,
        }
    }

    fn strategies(&self) -> &'static [Strategy] {
        &[Strategy::Thunks]
    }

    fn prepare(&self, layout: &Layout, rows: &mut dyn RowSource) -> rlx_runtime::Result<DeviceWeight> {
        Ok(weights::prepare(&*self.machine.driver, layout, rows)?)
    }

    fn build(
        &self,
        plan: Arc<Plan>,
        weights: Vec<Arc<DeviceWeight>>,
        strategy: Strategy,
    ) -> rlx_runtime::Result<Arc<dyn Executable>> {
        Strategy::choose(self, strategy.name())?;
        Ok(Arc::new(MetalExecutable::new(self.machine.clone(), plan, weights)?))
    }
}
