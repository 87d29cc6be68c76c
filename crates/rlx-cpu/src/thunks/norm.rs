//! `layer_norm`, `rms_norm`, both with a residual sum, `softmax`, `l2_normalize`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, is_small_float, require};
use crate::error::{Error, Result};
use crate::kernels::matmul::Element;
use crate::kernels::norm::{self, AddFirst};

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &[
    Entry::new("layer_norm", supports, build),
    Entry::new("add_layer_norm", supports, build),
    Entry::new("rms_norm", supports, build),
    Entry::new("add_rms_norm", supports, build),
    Entry::new("softmax", supports, build),
    Entry::new("l2_normalize", supports, build),
];

/// What is done with a row.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Layer(f32),
    /// Epsilon, and what is added to the weight.
    Rms(f32, f32),
    Softmax(f32),
    L2(f32),
}

fn rms(norm: RmsNorm) -> Kind {
    Kind::Rms(norm.eps as f32, if norm.unit_offset { 1.0 } else { 0.0 })
}

/// The kind, and whether a residual is added first.
fn kind(facts: &OpFacts<'_>) -> Option<(Kind, bool)> {
    let op = facts.op;
    if let Some(n) = op.downcast::<LayerNorm>() {
        return Some((Kind::Layer(n.eps as f32), false));
    }
    if let Some(n) = op.downcast::<AddLayerNorm>() {
        return Some((Kind::Layer(n.eps as f32), true));
    }
    if let Some(n) = op.downcast::<RmsNorm>() {
        return Some((rms(*n), false));
    }
    if let Some(n) = op.downcast::<AddRmsNorm>() {
        return Some((rms(n.norm), true));
    }
    if let Some(s) = op.downcast::<Softmax>() {
        let rank = i64::try_from(facts.operands[0].ty.rank()).unwrap_or(0);
        return (s.axis == -1 || s.axis == rank - 1).then_some((Kind::Softmax(s.scale as f32), false));
    }
    op.downcast::<L2Normalize>().map(|n| (Kind::L2(n.eps as f32), false))
}

fn supports(facts: &OpFacts<'_>) -> Support {
    let adds = kind(facts).is_some_and(|k| k.1);
    let vectors = facts.operands.iter().skip(1 + usize::from(adds)).all(|o| o.ty.dtype == DType::F32);
    require(&[
        (kind(facts).is_some(), "the last axis"),
        (is_small_float(facts.results[0].dtype), "f32, f16 or bf16"),
        (vectors, "f32 weights and biases"),
        (all_dense(facts), "dense operands"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some((kind, adds)) = kind(facts) else { bail!(Bug, "no kernel for {}", facts.op.name()) };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Run::<f16> { kind, adds, element: Default::default() }),
        DType::BF16 => Box::new(Run::<bf16> { kind, adds, element: Default::default() }),
        _ => Box::new(Run::<f32> { kind, adds, element: Default::default() }),
    })
}

#[derive(Debug)]
struct Run<T> {
    kind: Kind,
    adds: bool,
    element: std::marker::PhantomData<T>,
}

impl<T: Element + bytemuck::Pod> Thunk for Run<T> {
    fn kernel(&self) -> &str {
        match (self.kind, self.adds) {
            (Kind::Layer(_), false) => "layer_norm",
            (Kind::Layer(_), true) => "add_layer_norm",
            (Kind::Rms(..), false) => "rms_norm",
            (Kind::Rms(..), true) => "add_rms_norm",
            (Kind::Softmax(_), _) => "softmax",
            (Kind::L2(_), _) => "l2_normalize",
        }
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let cols = call.shape(0).last().copied().unwrap_or(1);
        let (cpu, x) = (call.cpu, call.read::<T>(0)?);
        let vectors = 1 + usize::from(self.adds);
        let vector = |index: usize| {
            if index < call.reads.len() { call.read::<f32>(index).map(Some) } else { Ok(None) }
        };
        let (weight, bias) = match self.kind {
            Kind::Layer(_) | Kind::Rms(..) => (vector(vectors)?, vector(vectors + 1)?),
            Kind::Softmax(_) | Kind::L2(_) => (None, None),
        };
        let residual = if self.adds { Some(call.read::<T>(1)?) } else { None };
        let add = match residual {
            Some(residual) => Some(AddFirst { residual, sum: call.write::<T>(0)? }),
            None => None,
        };
        let out = call.write::<T>(usize::from(self.adds))?;
        match self.kind {
            Kind::Layer(eps) => norm::layer_norm(cpu, cols, eps, (weight, bias), x, add, out),
            Kind::Rms(eps, offset) => norm::rms_norm(cpu, cols, eps, (weight, offset), x, add, out),
            Kind::Softmax(scale) => norm::softmax(cpu, cols, scale, x, out),
            Kind::L2(eps) => norm::l2_normalize(cpu, cols, eps, x, out),
        }
    }
}
