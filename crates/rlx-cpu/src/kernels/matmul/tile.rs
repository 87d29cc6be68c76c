//! The register-blocked f32 product that everything with many rows ends in.

use super::PanelRow;
use super::format::{lanes, lanes_mut};
use crate::simd::Simd;

/// Where the sums of a tile start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// At 0.
    Zero,
    /// At what `sums` holds.
    Running,
}

/// `sums[r] = fma(x[r][k], panel[k], sums[r])` over `from <= k < from + panel.len()`, ascending, for every row.
///
/// `A` is the stretch of a row of x that lies together. `x` and `sums` have equally many rows.
#[inline(always)]
pub(crate) fn multiply<S: Simd, const A: usize>(
    s: S,
    x: &[[f32; A]],
    from: usize,
    panel: &[PanelRow],
    sums: &mut [PanelRow],
    start: Start,
) {
    let (mut x, mut sums) = (x, sums);
    while !sums.is_empty() {
        // Rounds of nearly equal height.
        let rounds = sums.len().div_ceil(S::TILE_ROWS);
        let height = sums.len().div_ceil(rounds);
        let (sums_now, sums_later) = sums.split_at_mut(height);
        let (x_now, x_later) = x.split_at(height);
        by_height(s, x_now, from, panel, sums_now, start);
        (x, sums) = (x_later, sums_later);
    }
}

// As a guard the constant would not keep its arm out of the program.
#[allow(clippy::collapsible_match)]
#[inline(always)]
fn by_height<S: Simd, const A: usize>(
    s: S,
    x: &[[f32; A]],
    from: usize,
    panel: &[PanelRow],
    sums: &mut [PanelRow],
    start: Start,
) {
    macro_rules! heights {
        ($($h:literal)*) => {
            match sums.len() {
                // Heights that a level never has are not even compiled.
                $($h => if const { $h <= S::TILE_ROWS } { rows::<S, A, $h>(s, x, from, panel, sums, start) },)*
                _ => {}
            }
        };
    }
    heights!(1 2 3 4 5 6 7 8 9 10 11 12);
}

#[inline(always)]
fn rows<S: Simd, const A: usize, const H: usize>(
    s: S,
    x: &[[f32; A]],
    from: usize,
    panel: &[PanelRow],
    sums: &mut [PanelRow],
    start: Start,
) {
    let (Some(x), Some(sums)) = (x.first_chunk::<H>(), sums.first_chunk_mut::<H>()) else { return };
    let panel = &panel[..panel.len().min(A - from.min(A))];
    let mut acc = [[s.zero(); 2]; H];
    if start == Start::Running {
        for r in 0..H {
            acc[r] = [s.load(lanes(&sums[r], 0)), s.load(lanes(&sums[r], 1))];
        }
    }
    for (k, w) in panel.iter().enumerate() {
        let w = [s.load(lanes(w, 0)), s.load(lanes(w, 1))];
        for r in 0..H {
            let x = s.splat(x[r][from + k]);
            acc[r][0] = s.fma(x, w[0], acc[r][0]);
            acc[r][1] = s.fma(x, w[1], acc[r][1]);
        }
    }
    for r in 0..H {
        s.store(acc[r][0], lanes_mut(&mut sums[r], 0));
        s.store(acc[r][1], lanes_mut(&mut sums[r], 1));
    }
}
