//! Weights on the device: rows as in files, uploaded once; not even copied where memory is shared and pages allow it.

use std::sync::Arc;

use rlx_compile::Layout;
use rlx_ir::bail;
use rlx_runtime::DeviceWeight;
use rlx_runtime::weights::{RowSource, WeightBytes};

use super::launch::bytes_mut;
use crate::driver::{Driver, Range};
use crate::error::{Error, Result};

/// Bytes that are read at a time.
const READ_BYTES: usize = 1 << 20;

/// The fewest bytes of a tensor that is used where its file is mapped.
const IN_PLACE_BYTES: usize = 1 << 16;

/// A weight's range of a buffer.
pub(super) struct Weight<D: Driver>(pub(super) Range<D>);

/// Brings a weight to the device.
pub(super) fn prepare<D: Driver>(
    driver: &D,
    layout: &Layout,
    rows: &mut dyn RowSource,
) -> Result<DeviceWeight> {
    if *layout != Layout::ROWS {
        bail!(Bug, "the Metal backend has no layout {layout}");
    }
    let ty = rows.ty().clone();
    let align = if ty.dtype.is_block() { 1 } else { ty.dtype.block_bytes() };
    let fits = |b: &WeightBytes| b.is_aligned(align) && b.len() >= IN_PLACE_BYTES;
    if let Some(bytes) = rows.whole().filter(fits)
        && let Some((buffer, offset)) = driver.buffer_over(&bytes)?
    {
        let range = Range { buffer: Arc::new(buffer), offset, bytes: bytes.len() };
        return Ok(DeviceWeight::new(ty, layout.clone(), 0, Arc::new(Weight::<D>(range))));
    }
    let bytes = ty.bytes()?;
    let mut range = Range { buffer: Arc::new(driver.buffer(bytes, align)?), offset: 0, bytes };
    let row_bytes = rows.row_bytes()?;
    let (count, group) = (rows.rows(), (READ_BYTES / row_bytes.max(1)).max(1));
    let memory = bytes_mut(&mut range)?;
    for first in (0..count).step_by(group) {
        let end = (first + group).min(count);
        rows.read(first..end, &mut memory[first * row_bytes..end * row_bytes])?;
    }
    driver.host_wrote(&range);
    Ok(DeviceWeight::new(ty, layout.clone(), bytes as u64, Arc::new(Weight::<D>(range))))
}

/// The weights of a plan, in its order.
pub(super) fn unwrap<D: Driver>(weights: &[Arc<DeviceWeight>]) -> Result<Vec<Arc<Weight<D>>>> {
    let own = weights.iter().map(|w| match w.data::<Arc<Weight<D>>>() {
        Some(weight) => Ok(weight.clone()),
        None => bail!(Bug, "{w:?} was prepared by another backend"),
    });
    own.collect()
}
