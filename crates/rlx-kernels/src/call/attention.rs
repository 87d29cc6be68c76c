//! Calls of the attention ops.

use rlx_ir::DType;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::attention::paged_attention::PagedAttention;

use super::{Bound, Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{Args, AttentionArgs};
use crate::error::{Error, Result};
use crate::geometry::{SimdRows, index};
use crate::layout::Layout;
use crate::manifest::find;

/// How the queries of an attention are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttentionBody {
    /// A threadgroup for each query and head.
    Rows,
    /// A threadgroup for each tile of up to 32 queries and each head, by products of matrices.
    Tiles,
}

/// The least number of queries for which tiles are used: with fewer, most rows of the matrices would be empty.
const TILES_FROM: usize = 16;

/// The least number of queries for each sequence for which tiles are used where keys lie in pages: the rows of a matrix
/// then share keys only within a sequence.
const PAGED_TILES_FROM: usize = 8;

/// The sizes of a head for which kernels are instantiated.
const HEAD_DIMS: [usize; 5] = [32, 64, 96, 128, 256];

pub(super) fn attention(op: &Attention, operands: &[Layout]) -> Result<Call> {
    let tokens = operands.first().and_then(|q| q.shape.first()).copied().unwrap_or(0);
    let body = if tokens < TILES_FROM { AttentionBody::Rows } else { AttentionBody::Tiles };
    attention_by(body, op, operands)
}

pub(super) fn paged_attention(op: &PagedAttention, operands: &[Layout]) -> Result<Call> {
    let size = |at: usize| operands.get(at).and_then(|o| o.shape.first()).copied().unwrap_or(0);
    let (tokens, sequences) = (size(0), size(4));
    let few = tokens < TILES_FROM || tokens < sequences.saturating_mul(PAGED_TILES_FROM);
    paged_attention_by(if few { AttentionBody::Rows } else { AttentionBody::Tiles }, op, operands)
}

/// `attention` by one body, whatever the sizes.
///
/// # Errors
/// `UnsupportedOnDevice` where no kernel does it, with the reason.
pub fn attention_by(body: AttentionBody, op: &Attention, operands: &[Layout]) -> Result<Call> {
    let [q, k, v, starts, mask @ ..] = operands else {
        rlx_ir::bail!(Bug, "attention of {} operands", operands.len());
    };
    check_dtype(0, q, FLOATS)?;
    check_dtype(1, k, &[q.dtype])?;
    check_dtype(2, v, &[q.dtype])?;
    check_integers(3, starts)?;
    let (mut args, class) = common([q, k, v], op.mask, op.scale, op.softcap)?;
    args.sequences = index(starts.elems().saturating_sub(1))?;
    if let Some(mask) = mask.first() {
        check_last_axis(4, mask)?;
        check_dtype(4, mask, if op.mask == Mask::Custom { &[DType::Bool] } else { FLOATS })?;
        args.mask_kind = match mask.dtype {
            DType::Bool => 1,
            DType::F32 => 2,
            _ => 3,
        };
        args.mask_head = index(if mask.shape[0] > 1 { mask.strides[0] } else { 0 })?;
        args.mask_row = index(mask.strides[1])?;
        args.mask_width = index(mask.shape[2])?;
    }
    let mask_at = |kind| if args.mask_kind == kind { Bound::Operand(4) } else { Bound::Nothing };
    let bindings = (0..4).map(Bound::Operand).chain([1, 2, 3].map(mask_at)).chain([Bound::Result(0)]);
    finish("attention", body, class, &[q.dtype], &args, bindings.collect(), q.shape[0])
}

/// `paged_attention` by one body, whatever the sizes.
///
/// # Errors
/// `UnsupportedOnDevice` where no kernel does it, with the reason.
pub fn paged_attention_by(body: AttentionBody, op: &PagedAttention, operands: &[Layout]) -> Result<Call> {
    let [q, k, v, starts, lengths, table] = operands else {
        rlx_ir::bail!(Bug, "paged_attention of {} operands", operands.len());
    };
    check_dtype(0, q, FLOATS)?;
    check_dtype(1, k, FLOATS)?;
    check_dtype(2, v, &[k.dtype])?;
    for (at, integers) in [(3, starts), (4, lengths), (5, table)] {
        check_integers(at, integers)?;
    }
    // Pages that lie behind each other are rows of keys.
    let rows = |at: usize| -> Result<Layout> {
        let state = &operands[at];
        check_dense(at, state)?;
        let (shape, strides) = (&state.shape, &state.strides);
        Ok(Layout {
            dtype: state.dtype,
            shape: vec![shape[0] * shape[1], shape[2], shape[3]],
            strides: strides[1..].to_vec(),
        })
    };
    let (mut args, class) = common([q, &rows(1)?, &rows(2)?], op.mask, op.scale, op.softcap)?;
    args.sequences = index(lengths.elems())?;
    args.pages = index(k.shape[0])?;
    args.page_len = index(k.shape[1])?;
    args.pages_each = index(table.shape[1])?;
    // Rows and entries are counted in 32 bits.
    index(k.shape[0] * k.shape[1])?;
    index(table.elems())?;
    let most_keys = table.shape[1].saturating_mul(k.shape[1]);
    index(most_keys)?;
    let bindings = (0..6).map(Bound::Operand).chain([Bound::Result(0)]);
    finish("paged_attention", body, class, &[q.dtype, k.dtype], &args, bindings.collect(), most_keys)
}

/// What queries `[N, Hq, D]`, keys `[M, Hkv, D]` and values `[M, Hkv, Dv]` say, and the size of a head for which there is a
/// kernel.
fn common(
    operands: [&Layout; 3],
    mask: Mask,
    scale: f64,
    softcap: Option<f64>,
) -> Result<(AttentionArgs, usize)> {
    for (at, operand) in operands.into_iter().enumerate() {
        check_last_axis(at, operand)?;
    }
    let [q, k, v] = operands;
    let (head_dim, v_dim) = (q.shape[2], v.shape[2]);
    let wider = head_dim.max(v_dim);
    let Some(class) = HEAD_DIMS.into_iter().find(|class| wider <= *class) else {
        let most = HEAD_DIMS[HEAD_DIMS.len() - 1];
        rlx_ir::bail!(UnsupportedOnDevice, "heads of {wider} elements; there are kernels for up to {most}");
    };
    let (before, after) = reach(mask);
    let args = AttentionArgs {
        tokens: index(q.shape[0])?,
        heads: index(q.shape[1])?,
        group_heads: index(q.shape[1] / k.shape[1].max(1))?,
        head_dim: index(head_dim)?,
        v_dim: index(v_dim)?,
        q_token: index(q.strides[0])?,
        q_head: index(q.strides[1])?,
        k_token: index(k.strides[0])?,
        k_head: index(k.strides[1])?,
        v_token: index(v.strides[0])?,
        v_head: index(v.strides[1])?,
        before,
        after,
        scale: scale as f32,
        softcap: cap(softcap),
        ..AttentionArgs::default()
    };
    Ok((args, class))
}

fn finish(
    op: &str,
    body: AttentionBody,
    class: usize,
    dtypes: &[DType],
    args: &AttentionArgs,
    bindings: Vec<Bound>,
    most_keys: usize,
) -> Result<Call> {
    let (tokens, heads) = (args.tokens as usize, args.heads as usize);
    let (word, work) = match body {
        // As many threads as there are keys, up to 256.
        AttentionBody::Rows => ("rows", Work::PerRow { rows: tokens * heads, width: most_keys.min(256) * 4 }),
        AttentionBody::Tiles => {
            let simds_per_rows = if class > 128 { 2 } else { 1 };
            let rows = SimdRows { rows: tokens, columns: heads, simd_rows: 8, simds_per_rows, most_rows: 32 };
            ("tiles", Work::SimdRows(rows))
        }
    };
    let dtypes: Vec<&str> = dtypes.iter().map(|d| d.name()).collect();
    let kernel = find(&format!("{op}_{word}_{class}_{}", dtypes.join("_")))?;
    Ok(Call { kernel, args: args.bytes().to_vec(), bindings, work })
}

fn check_integers(at: usize, layout: &Layout) -> Result<()> {
    check_dtype(at, layout, &[DType::I32])?;
    check_dense(at, layout)
}

fn check_last_axis(at: usize, layout: &Layout) -> Result<()> {
    if layout.shape[2] > 1 && layout.strides[2] != 1 {
        rlx_ir::bail!(UnsupportedOnDevice, "the last axis of operand {at} must be dense, but is {layout:?}");
    }
    Ok(())
}

/// How many keys before and after its own a query sees.
fn reach(mask: Mask) -> (u32, u32) {
    let window = |keys: usize| u32::try_from(keys).unwrap_or(u32::MAX);
    match mask {
        Mask::None | Mask::Custom | Mask::Bias => (u32::MAX, u32::MAX),
        Mask::Causal => (u32::MAX, 0),
        Mask::SlidingWindow { window: keys } => (window(keys.saturating_sub(1)), 0),
        Mask::Local { window: keys } => (window(keys), window(keys)),
    }
}

/// The softcap as kernels take it: 0 for none. One that is far above every score that matters bends nothing.
fn cap(softcap: Option<f64>) -> f32 {
    match softcap {
        Some(cap) if cap < 2f64.powi(60) => (cap as f32).max(f32::MIN_POSITIVE),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::{ErrorKind, Op, TensorType};

    use super::*;
    use crate::call::call;

    const CAUSAL: Attention = Attention { mask: Mask::Causal, scale: 1.0, softcap: None };
    const PAGED: PagedAttention = PagedAttention { mask: Mask::Causal, scale: 1.0, softcap: None };

    fn layouts(types: &[(DType, &[usize])]) -> Vec<Layout> {
        types.iter().map(|(dtype, shape)| Layout::dense(&TensorType::new(*dtype, *shape))).collect()
    }

    /// Queries, keys and values of `dtype`, and the starts of one sequence.
    fn ragged(dtype: DType, tokens: usize, dim: usize, v_dim: usize) -> Vec<Layout> {
        layouts(&[
            (dtype, &[tokens, 4, dim]),
            (dtype, &[tokens, 2, dim]),
            (dtype, &[tokens, 2, v_dim]),
            (DType::I32, &[2]),
        ])
    }

    fn paged(state: DType, tokens: usize, sequences: usize) -> Vec<Layout> {
        layouts(&[
            (DType::F32, &[tokens, 4, 64]),
            (state, &[9, 16, 2, 64]),
            (state, &[9, 16, 2, 64]),
            (DType::I32, &[sequences + 1]),
            (DType::I32, &[sequences]),
            (DType::I32, &[sequences, 3]),
        ])
    }

    #[test]
    fn the_body_follows_from_the_sizes() {
        let name = |op: &dyn Op, layouts: &[Layout]| call(op, layouts).unwrap().kernel.name.clone();
        assert_eq!(name(&CAUSAL, &ragged(DType::F16, 15, 20, 20)), "attention_rows_32_f16");
        assert_eq!(name(&CAUSAL, &ragged(DType::F16, 16, 20, 20)), "attention_tiles_32_f16");
        assert_eq!(name(&CAUSAL, &ragged(DType::F32, 16, 65, 20)), "attention_tiles_96_f32");
        assert_eq!(name(&CAUSAL, &ragged(DType::F32, 1, 20, 129)), "attention_rows_256_f32");
        assert_eq!(name(&PAGED, &paged(DType::F16, 15, 1)), "paged_attention_rows_64_f32_f16");
        assert_eq!(name(&PAGED, &paged(DType::F16, 16, 2)), "paged_attention_tiles_64_f32_f16");
        assert_eq!(name(&PAGED, &paged(DType::F32, 23, 3)), "paged_attention_rows_64_f32_f32");
    }

    /// Threadgroup memory has room for no more.
    #[test]
    fn a_query_has_at_most_eight_simdgroups() {
        use crate::geometry::DeviceLimits;
        let threads = |tokens| {
            let call = attention_by(AttentionBody::Rows, &CAUSAL, &ragged(DType::F32, tokens, 8, 8)).unwrap();
            call.work.geometry(DeviceLimits::APPLE, 1024).unwrap().map(|g| g.threads)
        };
        assert_eq!([0, 1, 33, 100_000].map(threads), [None, Some(32), Some(64), Some(256)]);
    }

    #[test]
    fn what_no_kernel_does_is_refused_with_the_reason() {
        let refused = |op: &dyn Op, layouts: &[Layout], reason: &str| {
            let error = call(op, layouts).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnsupportedOnDevice);
            assert!(error.message().contains(reason), "{error}");
        };
        refused(&CAUSAL, &ragged(DType::F16, 4, 257, 8), "up to 256");
        refused(&CAUSAL, &ragged(DType::BF16, 4, 8, 8), "operand 0 is bf16");
        let mut mixed = ragged(DType::F16, 4, 8, 8);
        mixed[2].dtype = DType::F32;
        refused(&CAUSAL, &mixed, "operand 2 is f32");
        let mut sparse = ragged(DType::F16, 4, 8, 8);
        sparse[1].strides = vec![32, 16, 2];
        refused(&CAUSAL, &sparse, "last axis of operand 1");
        let mut biased = ragged(DType::F16, 4, 8, 8);
        biased.extend(layouts(&[(DType::BF16, &[1, 4, 4])]));
        refused(&Attention { mask: Mask::Bias, ..CAUSAL }, &biased, "operand 4 is bf16");
        refused(&PAGED, &paged(DType::BF16, 1, 1), "operand 1 is bf16");
    }
}
