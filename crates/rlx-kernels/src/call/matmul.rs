//! Calls of `matmul` and `linear`.

use rlx_ir::DType;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;

use super::activation::number;
use super::{Bound, Call, FLOATS, Work, check_dense, check_dtype};
use crate::args::{Args, MatMulArgs};
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::{Joined, Layout};
use crate::manifest::find;

/// What is added to a product, by its place among the operands.
#[derive(Clone, Copy, Default)]
struct Added {
    bias: Option<usize>,
    residual: Option<usize>,
}

pub(super) fn matmul(op: MatMul, operands: &[Layout]) -> Result<Call> {
    product(op, Activation::None, Added::default(), operands)
}

pub(super) fn linear(op: Linear, operands: &[Layout]) -> Result<Call> {
    let (bias, residual) = op.operand_positions();
    product(MatMul { transpose_b: true }, op.activation, Added { bias, residual }, operands)
}

/// How a product is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Variant {
    /// Tiles of so many rows and columns.
    Tiles(usize),
    /// A simdgroup for four columns of up to so many rows.
    FewRows(usize),
}

/// The simdgroups of a threadgroup, in every variant.
const SIMDS: usize = 4;
/// The columns that a simdgroup takes where there are few rows.
const COLUMNS: usize = 4;

impl Variant {
    /// The variant for `batches` products of `[m, k]` by `[k, n]`; `k_neighbours` says whether elements along the sum are
    /// neighbours in both operands.
    fn of(batches: usize, m: usize, n: usize, k_neighbours: bool) -> Self {
        /// So many threadgroups keep the cores of a small GPU busy, two or three on each.
        const ENOUGH_GROUPS: usize = 24;
        if k_neighbours && m <= 4 {
            return Self::FewRows(if m == 1 { 1 } else { 4 });
        }
        let groups = batches.saturating_mul(m.div_ceil(64)).saturating_mul(n.div_ceil(64));
        // A large tile reads each operand half as often, but is worth it only where it is not mostly empty.
        Self::Tiles(if m > 32 && n > 32 && groups >= ENOUGH_GROUPS { 64 } else { 32 })
    }

    /// Tiles along rows and columns.
    fn tiles(self, m: usize, n: usize) -> (usize, usize) {
        match self {
            Self::Tiles(side) => (m.div_ceil(side), n.div_ceil(side)),
            Self::FewRows(_) => (1, n.div_ceil(SIMDS * COLUMNS)),
        }
    }
}

fn product(op: MatMul, activation: Activation, added: Added, operands: &[Layout]) -> Result<Call> {
    let (a, b) = (&operands[0], &operands[1]);
    check_dtype(0, a, FLOATS)?;
    check_dtype(1, b, FLOATS)?;
    let (bias, residual) = (added.bias.map(|at| &operands[at]), added.residual.map(|at| &operands[at]));
    if let (Some(at), Some(bias)) = (added.bias, bias) {
        check_dtype(at, bias, FLOATS)?;
        check_dense(at, bias)?;
    }
    if let (Some(at), Some(residual)) = (added.residual, residual) {
        check_dtype(at, residual, &[a.dtype])?;
    }
    let [.., _, k] = a.shape[..] else { rlx_ir::bail!(Bug, "a product of {a:?}") };
    let [.., b_outer, b_inner] = b.strides[..] else { rlx_ir::bail!(Bug, "a product with {b:?}") };
    let (b_row, b_step) = if op.transpose_b { (b_outer, b_inner) } else { (b_inner, b_outer) };
    let n = b.shape[b.shape.len() - if op.transpose_b { 2 } else { 1 }];
    let rows = Rows::new(a, b, residual)?;
    let a_step = a.strides[a.strides.len() - 1];
    let variant = Variant::of(rows.batches, rows.m, n, k <= 1 || a_step == 1 && b_step == 1);
    let (row_tiles, column_tiles) = variant.tiles(rows.m, n);
    let args = MatMulArgs {
        m: index(rows.m)?,
        n: index(n)?,
        k: index(k)?,
        row_tiles: index(row_tiles)?,
        column_tiles: index(column_tiles)?,
        a_row: index(rows.strides[0])?,
        a_step: index(a_step)?,
        b_row: index(b_row)?,
        b_step: index(b_step)?,
        residual_row: index(rows.strides[2])?,
        residual_step: index(residual.and_then(|r| r.strides.last().copied()).unwrap_or(0))?,
        has_bias: bias.is_some().into(),
        has_residual: residual.is_some().into(),
        activation: number(activation),
        batch_rank: index(rows.outer.sizes.len())?,
        batch_sizes: rows.outer.sizes_arg()?,
        a_batch: rows.outer.strides_arg(0)?,
        b_batch: rows.outer.strides_arg(1)?,
        residual_batch: rows.outer.strides_arg(2)?,
    };
    // Indices of results have 32 bits.
    index(rows.batches.saturating_mul(rows.m).saturating_mul(n))?;
    let types = format!("{}_{}_{}", a.dtype, b.dtype, bias.map_or(b.dtype, |bias| bias.dtype));
    let name = match variant {
        Variant::Tiles(side) => format!("matmul_tile{side}_{types}_{}", tile_type(a.dtype, b.dtype)),
        Variant::FewRows(rows) => format!("matmul_few_rows_{rows}_{types}"),
    };
    let groups = if rows.m == 0 || n == 0 { 0 } else { rows.batches * row_tiles * column_tiles };
    let operand = |at: Option<usize>| at.map_or(Bound::Nothing, Bound::Operand);
    Ok(Call {
        kernel: find(&name)?,
        args: args.bytes().to_vec(),
        bindings: vec![
            Bound::Operand(0),
            Bound::Operand(1),
            operand(added.bias),
            operand(added.residual),
            Bound::Result(0),
        ],
        work: Work::Tiles { groups, simds: SIMDS },
    })
}

/// What tiles of both operands are held in.
fn tile_type(a: DType, b: DType) -> DType {
    if a == DType::F16 && b == DType::F16 { DType::F16 } else { DType::F32 }
}

/// The rows of a product, and batches of them.
struct Rows {
    batches: usize,
    m: usize,
    /// The distance between rows of `a`, of `b` (which is 0) and of the residual.
    strides: [usize; 3],
    /// The axes of batches, with the strides of the three.
    outer: Joined,
}

impl Rows {
    /// All axes of the result but the last. Those at the end that are rows of the same `b` are rows of one product.
    fn new(a: &Layout, b: &Layout, residual: Option<&Layout>) -> Result<Self> {
        let a_rank = a.shape.len();
        let (a_outer, b_outer) = (without(a, 2), without(b, 2));
        let mut shape = broadcast(&a_outer.shape, &b_outer.shape);
        let a_batch = a_outer.broadcast_strides(&shape);
        let b_batch = b_outer.broadcast_strides(&shape);
        shape.push(a.shape[a_rank - 2]);
        let a_strides: Vec<usize> = a_batch.into_iter().chain([a.strides[a_rank - 2]]).collect();
        let b_strides: Vec<usize> = b_batch.into_iter().chain([0]).collect();
        let residual = residual.map_or(vec![0; shape.len()], |r| without(r, 1).strides);
        let mut outer = Joined::new(&shape, &[&a_strides, &b_strides, &residual]);
        // The last axis is a batch where each of its products has a `b` of its own: then there is one row in each.
        let is_rows = outer.strides[1].last() == Some(&0);
        let mut rows = Self { batches: 1, m: 1, strides: [0; 3], outer: Joined::new(&[], &[]) };
        if is_rows {
            rows.m = outer.sizes.pop().unwrap_or(1);
            for (own, strides) in rows.strides.iter_mut().zip(&mut outer.strides) {
                *own = strides.pop().unwrap_or(0);
            }
        }
        rows.batches = outer.sizes.iter().product();
        rows.outer = outer;
        Ok(rows)
    }
}

/// The layout without its last `count` axes.
fn without(layout: &Layout, count: usize) -> Layout {
    let rank = layout.shape.len().saturating_sub(count);
    Layout {
        dtype: layout.dtype,
        shape: layout.shape[..rank].to_vec(),
        strides: layout.strides[..rank].to_vec(),
    }
}

/// The shape that two broadcast to, which the op has checked that they do.
fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let at =
        |shape: &[usize], axis: usize| (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis]);
    (0..rank).map(|axis| if at(a, axis) == 1 { at(b, axis) } else { at(a, axis) }).collect()
}
