//! The memory plan: offsets for buffers whose lifetimes are known, so that no two live buffers overlap.
//!
//! Buffers are placed from the largest to the smallest, each at the lowest offset where it fits between those that live
//! at the same time (greedy by size; Pisarchyk and Lee 2020). A pure function of lifetimes and sizes.

use crate::error::{Error, Result};

/// Every offset is a multiple of this many bytes: a cache line, and the widest vector.
const ALIGN: u64 = 64;

/// When a buffer is alive and how large it gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The step that writes it first.
    pub first: usize,
    /// The last step that reads or writes it, inclusive.
    pub last: usize,
    /// The most bytes that it uses.
    pub bytes: u64,
}

/// Where a buffer was put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Bytes from the arena's start.
    pub offset: u64,
    /// The bytes reserved for it.
    pub reserved: u64,
}

/// Size and quality of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArenaLayout {
    /// The arena's size in bytes.
    pub bytes: u64,
    /// The largest sum of bytes that are alive at one step: no arena can be smaller.
    pub peak_live: u64,
}

impl ArenaLayout {
    /// Bytes above what is alive at the worst step.
    pub fn waste(&self) -> u64 {
        self.bytes.saturating_sub(self.peak_live)
    }
}

/// No arena is larger: no allocation can be, and sums of two such sizes do not overflow.
const MAX_BYTES: u64 = i64::MAX as u64;

/// Whole lines, where they are no more than an arena can have.
fn rounded(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(ALIGN).filter(|&b| b <= MAX_BYTES)
}

/// The largest sum of bytes that are alive at one step. It is no more than an arena that holds them.
fn peak_live(lifetimes: &[Lifetime]) -> u64 {
    // At a step, what begins there is alive beside what ends there: an end takes effect at the step after.
    let bytes = |l: &Lifetime| l.bytes.next_multiple_of(ALIGN);
    let starts = lifetimes.iter().map(|l| (l.first, true, bytes(l)));
    let ends = lifetimes.iter().map(|l| (l.last.saturating_add(1), false, bytes(l)));
    let mut events: Vec<(usize, bool, u64)> = starts.chain(ends).collect();
    events.sort_unstable();
    let (mut live, mut peak) = (0u64, 0);
    for (_, starts, bytes) in events {
        live = if starts { live + bytes } else { live - bytes };
        peak = peak.max(live);
    }
    peak
}

/// A buffer that has its place: its lifetime, and its bytes from `offset` to `end`.
struct Placed {
    first: usize,
    last: usize,
    offset: u64,
    end: u64,
}

/// Places every buffer.
///
/// # Errors
/// `InvalidArgument` where the arena would be larger than any memory: than 2^63 - 1 bytes.
pub fn lay_out(lifetimes: &[Lifetime]) -> Result<(Vec<Placement>, ArenaLayout)> {
    let mut order: Vec<usize> = (0..lifetimes.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(lifetimes[i].bytes), lifetimes[i].first, i));
    let mut placed = vec![Placement { offset: 0, reserved: 0 }; lifetimes.len()];
    // Placed so far, by offset.
    let mut done: Vec<Placed> = Vec::with_capacity(lifetimes.len());
    let mut layout = ArenaLayout::default();
    for i in order {
        let Lifetime { first, last, bytes } = lifetimes[i];
        let Some(reserved) = rounded(bytes) else {
            rlx_ir::bail!(InvalidArgument, "a buffer of {bytes} bytes is more than any memory holds");
        };
        let mut offset = 0u64;
        for other in &done {
            if other.first > last || first > other.last {
                continue;
            }
            if other.offset >= offset + reserved {
                break;
            }
            offset = offset.max(other.end);
        }
        let end = offset + reserved;
        if end > MAX_BYTES {
            rlx_ir::bail!(
                InvalidArgument,
                "an arena of {end} bytes is more than any memory holds: a buffer of {bytes} bytes lies above {offset} others"
            );
        }
        placed[i] = Placement { offset, reserved };
        if reserved > 0 {
            let at = done.partition_point(|d| d.offset <= offset);
            done.insert(at, Placed { first, last, offset, end });
        }
        layout.bytes = layout.bytes.max(end);
    }
    layout.peak_live = peak_live(lifetimes);
    Ok((placed, layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rlx_ir::interp::SplitMix64;

    #[test]
    fn no_two_live_buffers_overlap_in_random_plans() {
        let mut random = SplitMix64::new(1);
        for _ in 0..300 {
            let lifetimes: Vec<Lifetime> = (0..random.below(40))
                .map(|_| {
                    let first = random.below(30);
                    let last = first + random.below(8);
                    Lifetime { first, last, bytes: random.below(5000) as u64 }
                })
                .collect();
            let (placed, layout) = lay_out(&lifetimes).unwrap();
            for (i, (a, p)) in lifetimes.iter().zip(&placed).enumerate() {
                assert!(p.offset % ALIGN == 0 && p.reserved >= a.bytes);
                assert!(p.offset + p.reserved <= layout.bytes);
                for (b, q) in lifetimes.iter().zip(&placed).skip(i + 1) {
                    let together = a.first <= b.last && b.first <= a.last;
                    let overlap = p.offset < q.offset + q.reserved && q.offset < p.offset + p.reserved;
                    assert!(!(together && overlap), "{a:?} at {p:?} and {b:?} at {q:?}");
                }
            }
            assert!(layout.bytes >= layout.peak_live);
        }
    }

    #[test]
    fn what_no_memory_holds_is_refused() {
        let of = |bytes: &[u64]| {
            let at_once: Vec<Lifetime> =
                bytes.iter().map(|&bytes| Lifetime { first: 0, last: 1, bytes }).collect();
            lay_out(&at_once).map(|(_, layout)| layout.bytes)
        };
        let most = i64::MAX as u64 - 63;
        assert_eq!(of(&[most]).unwrap(), most);
        assert_eq!(of(&[most - 64, 64, 0]).unwrap(), most);
        for too_large in [&[most, 1][..], &[most, most, most], &[most + 1], &[u64::MAX], &[u64::MAX - 63]] {
            let e = of(too_large).unwrap_err();
            assert!(
                e.kind() == rlx_ir::ErrorKind::InvalidArgument && e.message().contains("any memory"),
                "{e}"
            );
        }
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let chain: Vec<Lifetime> = (0..6).map(|i| Lifetime { first: i, last: i + 1, bytes: 100 }).collect();
        let (_, layout) = lay_out(&chain).unwrap();
        assert_eq!((layout.bytes, layout.peak_live, layout.waste()), (256, 256, 0));
    }
}
