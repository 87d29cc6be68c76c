//! Rows into paged state.

use rlx_ir::bail;

use super::gather::Convert;
use super::index;
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::Element;

/// `pages[slots[i]] = x[i]`: slot s is position `s % page_len` of page `s / page_len`; a negative slot is skipped.
/// Later rows win over earlier ones with the same slot.
///
/// Shapes: x `[N, width]`, rows `stride` elements apart; pages `[pages, page_len, num_kv_heads, head_dim]` with
/// `width = num_kv_heads * head_dim`; slots `[N]`. Dtypes: f32, f16, bf16, each. Errors: `InvalidArgument` where sizes do
/// not agree or a slot is past the last page; nothing is written then.
pub fn kv_write<X: Element, T: Element>(
    cpu: Cpu<'_>,
    width: usize,
    slots: &[i32],
    (x, stride): (&[X], usize),
    pages: &mut [T],
) -> Result<()> {
    let needed = slots.len().checked_sub(1).map_or(Some(0), |n| n.checked_mul(stride)?.checked_add(width));
    if needed.is_none_or(|n| n > x.len()) || (width == 0 && !slots.is_empty()) {
        bail!(
            InvalidArgument,
            "kv_write of {} rows of {width} with stride {stride} from {} elements",
            slots.len(),
            x.len()
        );
    }
    let count = pages.len().checked_div(width).unwrap_or(0);
    for (place, &slot) in slots.iter().enumerate().filter(|(_, slot)| **slot >= 0) {
        index("kv_write", place, slot, count)?;
    }
    for (i, &slot) in slots.iter().enumerate() {
        if let Ok(slot) = usize::try_from(slot) {
            let out = &mut pages[slot * width..][..width];
            cpu.level.dispatch(Convert { x: &x[i * stride..][..width], out });
        }
    }
    Ok(())
}
