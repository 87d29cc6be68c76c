//! Preparing weights.
//!
//! Layout `rows` is dense row-major: a large tensor of a mapped file that holds the wanted dtype is used in place. Layout
//! `packed` is the panels of the matrix kernels. What is read is read piece by piece, straight to where it stays, and the
//! source's pages are given back: no weight is resident twice.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use rlx_compile::Layout;
use rlx_ir::bail;
use rlx_runtime::DeviceWeight;
use rlx_runtime::weights::{RowSource, WeightBytes, zeros};

use super::Machine;
use crate::error::{Error, Result};
use crate::kernels::matmul::{Arrangement, Line, Packed, PackedShape, PackedStack};
use crate::pool::chunks;

/// Bytes of rows, or of packed panels, that are filled at a time.
const READ_BYTES: usize = 1 << 20;

/// The fewest bytes of a tensor that is used where its file is mapped.
const IN_PLACE_BYTES: usize = 1 << 20;

/// The layout of weights that matrix products take.
pub(crate) const PACKED: Layout = Layout(Cow::Borrowed("packed"));

/// A weight as thunks use it.
#[derive(Debug)]
pub(crate) enum CpuWeight {
    /// Dense row-major bytes.
    Rows(WeightBytes),
    /// Panels.
    Packed(PackedWeight),
}

/// The panels of one matrix, or of several of one shape.
#[derive(Debug)]
pub(crate) struct PackedWeight {
    shape: PackedShape,
    count: usize,
    lines: Vec<Line>,
}

impl PackedWeight {
    /// The panels of the only matrix, as kernels take them.
    pub(crate) fn view(&self) -> Result<Packed<'_>> {
        match self.count {
            1 => self.stack()?.get(0),
            count => bail!(Bug, "{count} packed matrices where the kernel wants one"),
        }
    }

    /// All matrices.
    pub(crate) fn stack(&self) -> Result<PackedStack<'_>> {
        let bytes = self.count * self.shape.bytes();
        PackedStack::new(self.shape, self.count, &bytemuck::cast_slice(&self.lines)[..bytes])
    }
}

impl CpuWeight {
    /// The bytes of rows.
    pub(crate) fn rows(&self) -> Option<&[u8]> {
        match self {
            Self::Rows(bytes) => Some(bytes),
            Self::Packed(_) => None,
        }
    }
}

/// Brings a weight into `layout`.
pub(crate) fn prepare(machine: &Machine, layout: &Layout, rows: &mut dyn RowSource) -> Result<DeviceWeight> {
    let ty = rows.ty().clone();
    let (weight, resident) = if *layout == Layout::ROWS {
        let align = if ty.dtype.is_block() { 1 } else { ty.dtype.block_bytes() };
        // A small tensor in place would keep a whole piece of the page cache resident.
        let in_place = |b: &WeightBytes| b.is_aligned(align) && b.len() >= IN_PLACE_BYTES;
        let bytes = match rows.whole().filter(in_place) {
            Some(bytes) => bytes,
            None => WeightBytes::filled(ty.bytes()?, |bytes| read_rows(rows, bytes))?,
        };
        let resident = bytes.resident_bytes();
        (CpuWeight::Rows(bytes), resident)
    } else if *layout == PACKED {
        let [outer @ .., n, k] = &ty.shape[..] else { bail!(Bug, "packed weights are matrices, not {ty}") };
        let shape = PackedShape::new(ty.dtype, *n, *k, Arrangement::Plain)?;
        let weight = pack(machine, shape, outer.iter().product(), rows)?;
        let resident = (weight.count * shape.bytes()) as u64;
        (CpuWeight::Packed(weight), resident)
    } else {
        bail!(Bug, "the CPU backend has no layout {layout}");
    };
    Ok(DeviceWeight::new(ty, layout.clone(), resident, Arc::new(weight)))
}

/// Reads all rows, some at a time: the source gives back what was read before more of it is there.
fn read_rows(rows: &mut dyn RowSource, bytes: &mut [u8]) -> Result<()> {
    let row_bytes = rows.row_bytes()?.max(1);
    let step = (READ_BYTES / row_bytes).max(1);
    for (i, piece) in bytes.chunks_mut(step * row_bytes).enumerate() {
        rows.read(i * step..i * step + piece.len() / row_bytes, piece)?;
    }
    Ok(())
}

fn pack(
    machine: &Machine,
    shape: PackedShape,
    count: usize,
    rows: &mut dyn RowSource,
) -> Result<PackedWeight> {
    let Some(bytes) = shape.bytes().checked_mul(count) else {
        bail!(InvalidArgument, "{count} matrices of {} bytes are too large", shape.bytes());
    };
    let mut lines: Vec<Line> = zeros(bytes.div_ceil(size_of::<Line>()))?;
    let bytes = &mut bytemuck::cast_slice_mut::<Line, u8>(&mut lines)[..bytes];
    for (i, bytes) in bytes.chunks_exact_mut(shape.bytes().max(1)).enumerate() {
        pack_matrix(machine, shape, (rows, i * shape.rows()), bytes)?;
    }
    Ok(PackedWeight { shape, count, lines })
}

/// Packs the matrix whose rows begin at `first_row` of the source.
fn pack_matrix(
    machine: &Machine,
    shape: PackedShape,
    (rows, first_row): (&mut dyn RowSource, usize),
    bytes: &mut [u8],
) -> Result<()> {
    let row_bytes = rows.row_bytes()?;
    // Some panels are read at a time, then packed by all threads: the piece of the source stays in cache.
    let group = (READ_BYTES / (shape.panel_bytes().max(1))).clamp(1, 256);
    let mut raw = Vec::new();
    for (i, out) in bytes.chunks_mut((group * shape.panel_bytes()).max(1)).enumerate() {
        let first = i * group;
        let count = out.len() / shape.panel_bytes().max(1);
        let span = shape.panel_rows(first).start..shape.panel_rows(first + count - 1).end;
        raw.resize(span.len() * row_bytes, 0);
        rows.read(first_row + span.start..first_row + span.end, &mut raw)?;
        let raw = &raw;
        let failed = Mutex::new(None);
        chunks(&machine.pool, out, shape.panel_bytes(), |index, panel| {
            let own = shape.panel_rows(first + index);
            let source = &raw[(own.start - span.start) * row_bytes..(own.end - span.start) * row_bytes];
            if let Err(e) = shape.pack_panel(first + index, source, panel) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            }
        })?;
        if let Some(e) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(e);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use rlx_ir::{DType, TensorType};

    use super::*;
    use crate::pool::Pool;
    use crate::simd::SimdLevel;

    /// Rows of their own numbers, with what was read of them.
    struct Counted {
        ty: TensorType,
        reads: Vec<Range<usize>>,
    }

    impl RowSource for Counted {
        fn ty(&self) -> &TensorType {
            &self.ty
        }

        fn read(&mut self, rows: Range<usize>, out: &mut [u8]) -> rlx_runtime::Result<()> {
            let row_bytes = self.row_bytes()?;
            assert_eq!(out.len(), rows.len() * row_bytes);
            for (row, out) in rows.clone().zip(out.chunks_mut(row_bytes)) {
                out.fill(row as u8);
            }
            self.reads.push(rows);
            Ok(())
        }
    }

    #[test]
    fn rows_are_read_once_and_piece_by_piece() {
        let machine = Machine {
            pool: Pool::new(std::num::NonZeroUsize::new(1)).unwrap(),
            level: SimdLevel::portable(),
            custom: Vec::new(),
        };
        for (shape, most) in [(vec![1000, 1000], 262), (vec![3, 600_000], 1), (vec![7], 1), (vec![0, 5], 1)] {
            let mut rows = Counted { ty: TensorType::new(DType::F32, shape.clone()), reads: Vec::new() };
            let count = rows.rows();
            let weight = prepare(&machine, &Layout::ROWS, &mut rows).unwrap();
            assert!(rows.reads.iter().all(|r| r.len() <= most), "{shape:?}: {:?}", rows.reads);
            assert!(rows.reads.iter().cloned().flatten().eq(0..count), "{shape:?}: {:?}", rows.reads);
            let bytes = weight.data::<Arc<CpuWeight>>().unwrap().rows().unwrap();
            let row_bytes = rows.row_bytes().unwrap();
            assert_eq!(bytes.len(), count * row_bytes);
            assert!(bytes.iter().enumerate().all(|(i, b)| *b == (i / row_bytes) as u8));
        }
    }
}
