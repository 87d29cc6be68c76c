//! `rope`, `attention`, `paged_attention`.

use half::{bf16, f16};
use rlx_compile::{OpFacts, OperandFacts, Support};
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask as MaskKind;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::position::rope::{Rope as RopeOp, RopeStyle as Style};
use rlx_ir::{DType, bail};

use super::{StepCall, Thunk, token_stride};
use crate::backend::support::{Entry, is_small_float, require, token_rows};
use crate::error::{Error, Result};
use crate::kernels::attention::{Heads, Mask, MaskTable, Pages, Tokens, paged, ragged};
use crate::kernels::matmul::Element;
use crate::kernels::rope::{Rope, RopeStyle, rope};

/// The entries of this family.
pub(crate) static ENTRIES: &[Entry] = &[
    Entry::new("rope", supports_rope, build_rope),
    Entry::new("attention", supports_attention, build_attention),
    Entry::new("paged_attention", supports_paged, build_paged),
];

fn supports_rope(facts: &OpFacts<'_>) -> Support {
    require(&[
        (is_small_float(facts.results[0].dtype), "f32, f16 or bf16"),
        (facts.operands[1].ty.dtype == DType::I32, "i32 positions"),
        (facts.operands[2].ty.dtype == DType::F32, "f32 frequencies"),
        (token_rows(&facts.operands[0]), "tokens without gaps inside"),
        (facts.operands[1..].iter().all(|o| o.strides.is_none()), "dense positions and frequencies"),
    ])
}

fn build_rope(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(&op) = facts.op.downcast::<RopeOp>() else { bail!(Bug, "{} is not rope", facts.op.name()) };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Rotate::<f16>(op, Default::default())),
        DType::BF16 => Box::new(Rotate::<bf16>(op, Default::default())),
        _ => Box::new(Rotate::<f32>(op, Default::default())),
    })
}

#[derive(Debug)]
struct Rotate<T>(RopeOp, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Rotate<T> {
    fn kernel(&self) -> &str {
        "rope"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let shape = call.shape(0);
        let rotation = Rope {
            style: match self.0.style {
                Style::Half => RopeStyle::Halves,
                Style::Interleaved => RopeStyle::Interleaved,
            },
            num_heads: shape[1],
            head_dim: shape[2],
            inverse_frequencies: call.read::<f32>(2)?,
            attention_scale: self.0.scale as f32,
        };
        let stride = token_stride(call, 0);
        rope(call.cpu, rotation, call.read::<i32>(1)?, (call.read::<T>(0)?, stride), call.write::<T>(0)?)
    }
}

/// Scale and softcap, and the kind of mask.
#[derive(Clone, Copy, Debug)]
struct Scoring {
    scale: f32,
    softcap: Option<f32>,
    mask: MaskKind,
}

impl Scoring {
    fn heads(self, call: &StepCall<'_>, key_axis: usize) -> Heads {
        let (q, k) = (call.shape(0), call.shape(1));
        Heads {
            num_heads: q[1],
            num_kv_heads: k[key_axis],
            head_dim: q[2],
            scale: self.scale,
            softcap: self.softcap,
        }
    }

    fn mask<'a>(self, call: &StepCall<'a>, operand: usize) -> Result<Mask<'a>> {
        let sizes = || {
            let shape = call.shape(operand);
            (shape[0], shape[2])
        };
        Ok(match self.mask {
            MaskKind::None => Mask::None,
            MaskKind::Causal => Mask::Causal,
            MaskKind::SlidingWindow { window } => Mask::SlidingWindow(window),
            MaskKind::Local { window } => Mask::Local(window),
            MaskKind::Custom => {
                let (heads, keys) = sizes();
                Mask::Custom(MaskTable { data: call.read::<u8>(operand)?, heads, keys })
            }
            MaskKind::Bias => {
                let (heads, keys) = sizes();
                Mask::Bias(MaskTable { data: call.read::<f32>(operand)?, heads, keys })
            }
        })
    }
}

fn tokens<'a, T: bytemuck::Pod>(call: &StepCall<'a>, index: usize) -> Result<Tokens<'a, T>> {
    Ok(Tokens { data: call.read::<T>(index)?, stride: token_stride(call, index) })
}

/// Whether the tokens of both lie equally far apart.
fn same_stride(a: &OperandFacts, b: &OperandFacts) -> bool {
    let first = |o: &OperandFacts| match &o.strides {
        Some(strides) => strides.first().cloned(),
        None => rlx_ir::View::dense(&o.ty.shape).strides.first().cloned(),
    };
    first(a) == first(b)
}

fn supports_attention(facts: &OpFacts<'_>) -> Support {
    let [q, k, v] = [0, 1, 2].map(|i| &facts.operands[i].ty);
    let bias = facts.op.downcast::<Attention>().is_some_and(|a| a.mask == MaskKind::Bias);
    require(&[
        (
            is_small_float(q.dtype) && k.dtype == q.dtype && v.dtype == q.dtype,
            "one dtype of f32, f16 or bf16",
        ),
        (q.shape.last() == v.shape.last(), "values as wide as keys"),
        (facts.operands[3].ty.dtype == DType::I32, "i32 starts"),
        (!bias || facts.operands.get(4).is_some_and(|b| b.ty.dtype == DType::F32), "an f32 bias"),
        (facts.operands[..3].iter().all(token_rows), "tokens without gaps inside"),
        (same_stride(&facts.operands[1], &facts.operands[2]), "keys and values of one stride"),
        (facts.operands[3..].iter().all(|o| o.strides.is_none()), "dense starts and mask"),
    ])
}

fn build_attention(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    let Some(op) = facts.op.downcast::<Attention>() else {
        bail!(Bug, "{} is not attention", facts.op.name())
    };
    let scoring = Scoring { scale: op.scale as f32, softcap: op.softcap.map(|c| c as f32), mask: op.mask };
    Ok(match facts.results[0].dtype {
        DType::F16 => Box::new(Ragged::<f16>(scoring, Default::default())),
        DType::BF16 => Box::new(Ragged::<bf16>(scoring, Default::default())),
        _ => Box::new(Ragged::<f32>(scoring, Default::default())),
    })
}

#[derive(Debug)]
struct Ragged<T>(Scoring, std::marker::PhantomData<T>);

impl<T: Element + bytemuck::Pod> Thunk for Ragged<T> {
    fn kernel(&self) -> &str {
        "ragged attention"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let heads = self.0.heads(call, 1);
        let mask = self.0.mask(call, 4)?;
        let (q, kv) = (tokens::<T>(call, 0)?, (tokens::<T>(call, 1)?, tokens::<T>(call, 2)?));
        ragged(call.cpu, heads, q, kv, call.read::<i32>(3)?, mask, call.write::<T>(0)?)
    }
}

fn supports_paged(facts: &OpFacts<'_>) -> Support {
    let [q, k, v] = [0, 1, 2].map(|i| &facts.operands[i].ty);
    let mask = facts.op.downcast::<PagedAttention>().map(|a| a.mask);
    require(&[
        (is_small_float(q.dtype), "an f32, f16 or bf16 query"),
        (is_small_float(k.dtype) && v.dtype == k.dtype, "states of f32, f16 or bf16"),
        (q.shape.last() == v.shape.last(), "values as wide as keys"),
        (!matches!(mask, Some(MaskKind::Custom | MaskKind::Bias)), "a mask without an operand"),
        (facts.operands[3..].iter().all(|o| o.ty.dtype == DType::I32), "i32 starts, lengths and table"),
        (token_rows(&facts.operands[0]), "tokens without gaps inside"),
        (facts.operands[1..].iter().all(|o| o.strides.is_none()), "dense states and tables"),
    ])
}

fn build_paged(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    fn of<Q: Element + bytemuck::Pod>(state: DType, scoring: Scoring) -> Box<dyn Thunk> {
        match state {
            DType::F16 => Box::new(Paged::<Q, f16>(scoring, Default::default())),
            DType::BF16 => Box::new(Paged::<Q, bf16>(scoring, Default::default())),
            _ => Box::new(Paged::<Q, f32>(scoring, Default::default())),
        }
    }
    let Some(op) = facts.op.downcast::<PagedAttention>() else {
        bail!(Bug, "{} is not paged_attention", facts.op.name())
    };
    let scoring = Scoring { scale: op.scale as f32, softcap: op.softcap.map(|c| c as f32), mask: op.mask };
    let state = facts.operands[1].ty.dtype;
    Ok(match facts.operands[0].ty.dtype {
        DType::F16 => of::<f16>(state, scoring),
        DType::BF16 => of::<bf16>(state, scoring),
        _ => of::<f32>(state, scoring),
    })
}

#[derive(Debug)]
struct Paged<Q, T>(Scoring, std::marker::PhantomData<(Q, T)>);

impl<Q: Element + bytemuck::Pod, T: Element + bytemuck::Pod> Thunk for Paged<Q, T> {
    fn kernel(&self) -> &str {
        "paged attention"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let heads = self.0.heads(call, 2);
        let mask = self.0.mask(call, 6)?;
        let pages = Pages {
            k: call.read::<T>(1)?,
            v: call.read::<T>(2)?,
            page_len: call.shape(1)[1],
            block_table: call.read::<i32>(5)?,
            table_width: call.shape(5)[1],
        };
        let (starts, lengths) = (call.read::<i32>(3)?, call.read::<i32>(4)?);
        paged(call.cpu, heads, tokens::<Q>(call, 0)?, starts, lengths, pages, mask, call.write::<Q>(0)?)
    }
}
