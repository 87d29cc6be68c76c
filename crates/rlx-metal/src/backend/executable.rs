//! Executables: one thunk for each step, and what contexts share.

use std::ops::Range;
use std::sync::Arc;

use rlx_compile::plan::{Action, Operand, Step, Unit};
use rlx_compile::{Plan, plan::Sizes};
use rlx_ir::{Bindings, Op, OpRef};
use rlx_kernels::layout::Layout;
use rlx_runtime::{Context, DeviceWeight, Executable, Strategy};

use super::checks::{self, Check};
use super::context::MetalContext;
use super::encode::ARGS_ALIGN;
use super::recipe::{Prepared, Recipe};
use super::weights::{self, Weight};
use super::{Machine, regions, support};
use crate::driver::{Driver, KernelRef, Pipeline as _};
use crate::error::{Error, Result};

/// A plan with a thunk for each step.
pub(super) struct MetalExecutable<D: Driver> {
    shared: Arc<Shared<D>>,
}

/// What contexts share.
pub(super) struct Shared<D: Driver> {
    pub(super) machine: Arc<Machine<D>>,
    pub(super) plan: Arc<Plan>,
    pub(super) weights: Vec<Arc<Weight<D>>>,
    pub(super) thunks: Vec<Thunk>,
    pub(super) checks: Vec<Check>,
    /// Bytes that arguments take, as far as sizes are known to choose kernels.
    pub(super) args_bytes: usize,
    /// Kernels that were written for this plan.
    _own: Vec<Arc<D::Pipeline>>,
    /// The weights as the store knows them: it shares what somebody holds.
    _prepared: Vec<Arc<DeviceWeight>>,
}

/// One launch of a plan, before sizes are bound.
#[derive(Clone, Debug)]
pub(super) struct Thunk {
    op: Option<OpRef>,
    recipe: Recipe,
    pub(super) operands: Vec<Operand>,
    pub(super) results: Vec<Operand>,
    /// The label of the group that it belongs to.
    pub(super) group: Arc<str>,
    /// The steps that it stands for.
    pub(super) steps: Range<usize>,
}

impl Thunk {
    /// A launch for several steps.
    pub(super) fn new(
        recipe: Recipe,
        operands: Vec<Operand>,
        results: Vec<Operand>,
        group: Arc<str>,
        steps: Range<usize>,
    ) -> Self {
        Self { op: None, recipe, operands, results, group, steps }
    }

    /// The launch of one step.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where it takes a kernel that cannot be written.
    pub(super) fn of_step(index: usize, step: &Step, group: Arc<str>) -> Result<Self> {
        let (op, recipe) = match &step.action {
            Action::Copy => (None, Recipe::Copy),
            Action::Op(op) => {
                let dtypes: Vec<_> = step.operands.iter().map(|o| o.ty.dtype).collect();
                (Some(op.clone()), Recipe::of(op.as_ref(), &dtypes)?)
            }
        };
        Ok(Self {
            op,
            recipe,
            operands: step.operands.clone(),
            results: step.results.clone(),
            group,
            steps: index..index + 1,
        })
    }

    /// The launch under these sizes.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where sizes do not fit the device.
    pub(super) fn prepare(&self, sizes: &Sizes) -> Result<Prepared> {
        let layouts = |list: &[Operand]| list.iter().map(|o| layout(o, sizes)).collect::<Vec<_>>();
        let op = self.op.as_deref().map(|op| op as &dyn Op);
        self.recipe.prepare(op, &layouts(&self.operands), &layouts(&self.results))
    }
}

fn layout(operand: &Operand, sizes: &Sizes) -> Layout {
    Layout {
        dtype: operand.ty.dtype,
        shape: operand.shape.iter().map(|&s| sizes.get(s)).collect(),
        strides: operand.strides.iter().map(|&s| sizes.get(s)).collect(),
    }
}

/// The launches of a plan in order: of claimed regions as wholes, of all other steps one by one.
fn thunks(plan: &Plan) -> Result<Vec<Thunk>> {
    let mut thunks = Vec::with_capacity(plan.steps.len());
    for unit in plan.units() {
        match unit {
            Unit::Region(region) => thunks.extend(regions::thunks(region, &plan.steps)?),
            Unit::Step(at) => {
                let step = &plan.steps[at];
                thunks.push(Thunk::of_step(at, step, step.scope.clone())?);
            }
        }
    }
    Ok(thunks)
}

impl<D: Driver> MetalExecutable<D> {
    pub(super) fn new(
        machine: Arc<Machine<D>>,
        plan: Arc<Plan>,
        prepared: Vec<Arc<DeviceWeight>>,
    ) -> Result<Self> {
        let thunks = thunks(&plan)?;
        // Kernels are made ready now; sizes may still choose others of the same libraries later.
        let (mut own, mut args_bytes) = (Vec::new(), 0);
        for bindings in support::choosing(&plan.symbols) {
            let Ok(sizes) = plan.sizes.bind(&bindings) else { continue };
            let mut bytes = 0;
            for thunk in &thunks {
                let Prepared { kernel, work, args, .. } = thunk.prepare(&sizes)?;
                bytes += args.len().next_multiple_of(ARGS_ALIGN);
                let pipeline = machine.pipelines.get(&machine.driver, &kernel)?;
                // Only the compiled kernel says how many threads it takes.
                kernel.geometry(work, machine.driver.facts().limits, pipeline.max_threads()).map_err(
                    |e| Error::from(e).context(format!("step {}, {}", thunk.steps.start, kernel.name)),
                )?;
                if matches!(kernel, KernelRef::Own(_)) {
                    own.push(pipeline);
                }
            }
            args_bytes = args_bytes.max(bytes);
        }
        let (weights, checks) = (weights::unwrap(&prepared)?, checks::of_plan(&plan));
        Ok(Self {
            shared: Arc::new(Shared {
                machine,
                plan,
                weights,
                thunks,
                checks,
                args_bytes,
                _own: own,
                _prepared: prepared,
            }),
        })
    }
}

impl<D: Driver> Executable for MetalExecutable<D> {
    fn plan(&self) -> &Arc<Plan> {
        &self.shared.plan
    }

    fn strategy(&self) -> Strategy {
        Strategy::Thunks
    }

    /// The kernels under the largest sizes, since sizes choose among them.
    fn kernels(&self) -> Vec<String> {
        let largest = support::representatives(&self.shared.plan.symbols).pop().unwrap_or_default();
        let sizes = self.shared.plan.sizes.bind(&largest);
        let name = |thunk: &Thunk| match &sizes {
            Ok(sizes) => thunk.prepare(sizes).map_or_else(|e| e.to_string(), |p| p.kernel.name.clone()),
            Err(e) => e.to_string(),
        };
        let thunks = self.shared.thunks.iter();
        thunks.flat_map(|t| std::iter::repeat_n(name(t), t.steps.len())).collect()
    }

    fn context(&self, state_sizes: &Bindings) -> rlx_runtime::Result<Box<dyn Context>> {
        Ok(Box::new(MetalContext::new(self.shared.clone(), state_sizes)?))
    }
}
