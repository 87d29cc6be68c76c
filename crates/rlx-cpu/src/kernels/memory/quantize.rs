//! To and from block types.

use std::sync::Mutex;

use rlx_ir::quant::{BlockType, q8_f32};
use rlx_ir::{DType, bail};

use super::gather::Convert;
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::{Element, load_part};
use crate::kernels::scratch::with_scratch;
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd};

fn row_bytes(what: &str, block: BlockType, cols: usize, elems: usize, bytes: usize) -> Result<usize> {
    let row = DType::Block(block).row_bytes(cols);
    let rows = elems.checked_div(cols).unwrap_or(0);
    match row {
        Some(row) if rows * cols == elems && rows.checked_mul(row) == Some(bytes) => Ok(row),
        _ => bail!(
            InvalidArgument,
            "{what} {}: {elems} elements in rows of {cols} and {bytes} bytes do not agree",
            block.name()
        ),
    }
}

/// Encodes rows, each as [`BlockType::encode`] does (bit for bit): `q8_f32` for activations.
///
/// Shapes: x `[rows, cols]`, out the rows' blocks. Dtypes: x f32, f16 or bf16. Errors: `InvalidArgument` where sizes do
/// not agree; those of the encoder (`q8_f32` has none).
pub fn quantize<T: Element>(
    cpu: Cpu<'_>,
    block: BlockType,
    cols: usize,
    x: &[T],
    out: &mut [u8],
) -> Result<()> {
    let bytes = row_bytes("quantize to", block, cols, x.len(), out.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let failed = Mutex::new(None);
    let each = (out.len() / bytes).div_ceil(cpu.parts(x.len() * 4));
    chunks(cpu.pool, out, each * bytes, |i, out| {
        with_scratch(cols, |row: &mut [f32]| {
            for (r, out) in out.chunks_mut(bytes).enumerate() {
                let x = &x[(i * each + r) * cols..][..cols];
                if block == BlockType::Q8_F32 {
                    cpu.level.dispatch(EncodeQ8F32 { x, out });
                    continue;
                }
                cpu.level.dispatch(Convert { x, out: &mut *row });
                let encoded = block.encode(row, None, out);
                if let (Err(e), Ok(mut failed)) = (encoded, failed.lock()) {
                    failed.get_or_insert(e.context(format!("row {}", i * each + r)));
                }
            }
        });
    })?;
    match failed.into_inner() {
        Ok(Some(e)) => Err(e.into()),
        _ => Ok(()),
    }
}

/// Decodes rows of blocks.
///
/// Shapes: x the rows' blocks, out `[rows, cols]`. Dtypes: out f32, f16 or bf16. Errors: `InvalidArgument` where sizes
/// do not agree.
pub fn dequantize<T: Element>(
    cpu: Cpu<'_>,
    block: BlockType,
    cols: usize,
    x: &[u8],
    out: &mut [T],
) -> Result<()> {
    let bytes = row_bytes("dequantize", block, cols, out.len(), x.len())?;
    if out.is_empty() {
        return Ok(());
    }
    let each = (out.len() / cols).div_ceil(cpu.parts(out.len() * 2));
    chunks(cpu.pool, out, each * cols, |i, out| {
        with_scratch(cols, |row: &mut [f32]| {
            for (r, out) in out.chunks_mut(cols).enumerate() {
                // The lengths were made to agree above.
                if block.decode(&x[(i * each + r) * bytes..][..bytes], row).is_ok() {
                    cpu.level.dispatch(Convert { x: &*row, out });
                }
            }
        });
    })
}

/// A row to `q8_f32`, by the rule of [`q8_f32`].
struct EncodeQ8F32<'a, T> {
    x: &'a [T],
    out: &'a mut [u8],
}

impl<T: Element> Kernel for EncodeQ8F32<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let blocks = self.out.as_chunks_mut::<{ q8_f32::BYTES }>().0;
        for (x, out) in self.x.chunks_exact(q8_f32::ELEMS).zip(blocks) {
            let x = [load_part(s, &x[..LANES]), load_part(s, &x[LANES..])];
            let largest = s.fold_max(s.max(s.abs(x[0]), s.abs(x[1])));
            if !largest.is_finite() {
                out.fill(0);
                out[q8_f32::SCALE..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
                continue;
            }
            let d = largest / 127.0;
            let inverse = s.splat(if d > 0.0 { 1.0 / d } else { 0.0 });
            out[q8_f32::SCALE..][..4].copy_from_slice(&d.to_le_bytes());
            for (i, out) in out[q8_f32::QUANTS..].as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                let q = s.mul(x[i], inverse);
                // Only a zero with an infinite inverse gives NaN.
                let q = s.select(s.is_nan(q), s.zero(), q);
                let q = s.clamp(q, -127.0, 127.0);
                s.store_i8(s.round_i(q), out);
            }
        }
    }
}
