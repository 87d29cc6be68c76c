//! Executables: one thunk per step.

use std::sync::Arc;

use rlx_compile::Plan;
use rlx_compile::plan::Action;
use rlx_ir::{Bindings, bail};
use rlx_runtime::{Context, DeviceWeight, Executable, Strategy};

use super::Machine;
use super::context::CpuContext;
use super::weights::CpuWeight;
use crate::error::{Error, Result};
use crate::thunks::{Thunk, copy::Copy};

/// A plan with a thunk for each step.
pub(crate) struct CpuExecutable {
    pub(crate) shared: Arc<Shared>,
}

/// What contexts share.
pub(crate) struct Shared {
    pub(crate) machine: Arc<Machine>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) weights: Vec<Arc<CpuWeight>>,
    pub(crate) thunks: Vec<Box<dyn Thunk>>,
    /// The weights as the store knows them: it shares what somebody holds.
    _prepared: Vec<Arc<DeviceWeight>>,
}

impl CpuExecutable {
    pub(crate) fn new(
        machine: Arc<Machine>,
        plan: Arc<Plan>,
        prepared: Vec<Arc<DeviceWeight>>,
    ) -> Result<Self> {
        let mut thunks: Vec<Box<dyn Thunk>> = Vec::with_capacity(plan.steps.len());
        for step in &plan.steps {
            thunks.push(match &step.action {
                Action::Copy => Box::new(Copy),
                Action::Op(op) => machine.thunk(op, step, &plan)?,
            });
        }
        let weights = prepared.iter().map(|w| match w.data::<Arc<CpuWeight>>() {
            Some(weight) => Ok(weight.clone()),
            None => bail!(Bug, "{w:?} was prepared by another backend"),
        });
        let weights = weights.collect::<Result<Vec<_>>>()?;
        Ok(Self { shared: Arc::new(Shared { machine, plan, weights, thunks, _prepared: prepared }) })
    }
}

impl Executable for CpuExecutable {
    fn plan(&self) -> &Arc<Plan> {
        &self.shared.plan
    }

    fn strategy(&self) -> Strategy {
        Strategy::Thunks
    }

    fn kernels(&self) -> Vec<String> {
        self.shared.thunks.iter().map(|t| t.kernel().to_owned()).collect()
    }

    fn context(&self, state_sizes: &Bindings) -> rlx_runtime::Result<Box<dyn Context>> {
        Ok(Box::new(CpuContext::new(self.shared.clone(), state_sizes)?))
    }
}
