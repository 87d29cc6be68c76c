//! One task: some queries of one sequence against one head of keys, block after block.

use std::ops::Range;

use super::mask::RowMask;
use super::{Heads, Keys, Problem};
use crate::kernels::matmul::format::{lanes, lanes_mut};
use crate::kernels::matmul::{DEPTH, Element, Multiply, PANEL, PanelRow, Start, load_part, store_part};
use crate::kernels::memory::Convert;
use crate::kernels::scratch::with_scratch;
use crate::pool::TileMut;
use crate::simd::{Kernel, LANES, Simd, SimdLevel, math};

/// Keys of one block.
const BLOCK: usize = 64;
/// Head dims up to this keep q in short rows.
const SHORT: usize = 64;

/// What a row carries from block to block.
#[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct RowState {
    max: f32,
    sum: f32,
    /// The keys that it may see: from, to.
    range: [u32; 2],
    /// Those of the block at hand, counted from its first.
    seen: [u32; 2],
}

/// The result rows of `tokens` (of the whole batch) for the heads that share head `kv_head` of the keys.
pub(super) fn attend<Q: Element, T: Element, K: Keys<T>, Y: Element>(
    level: SimdLevel,
    problem: &Problem<'_, Q, K>,
    sequence: usize,
    kv_head: usize,
    tokens: Range<usize>,
    tile: &mut TileMut<'_, Y>,
) {
    let task = Task { level, problem, sequence, kv_head, tokens, group: problem.heads.group() };
    if problem.heads.head_dim <= SHORT {
        task.run::<T, Y, SHORT>(tile);
    } else {
        task.run::<T, Y, DEPTH>(tile);
    }
}

struct Task<'a, Q, K> {
    level: SimdLevel,
    problem: &'a Problem<'a, Q, K>,
    sequence: usize,
    kv_head: usize,
    tokens: Range<usize>,
    /// Heads of q for each head of the keys.
    group: usize,
}

/// Scratch of a task.
struct Buffers<'a, const A: usize> {
    /// `[stretch][row]`.
    q: &'a mut [[f32; A]],
    /// Keys turned: `[half of the block][element]`.
    k: &'a mut [PanelRow],
    /// Values: `[32 elements][key]`.
    v: &'a mut [PanelRow],
    /// `[half of the block][row]`.
    scores: &'a mut [PanelRow],
    weights: &'a mut [[f32; BLOCK]],
    /// `[32 elements][row]`.
    out: &'a mut [PanelRow],
    rows: &'a mut [RowState],
}

impl<Q: Element, K> Task<'_, Q, K> {
    fn row_count(&self) -> usize {
        self.tokens.len() * self.group
    }

    /// Token and head of q of a row.
    fn place(&self, row: usize) -> (usize, usize) {
        (self.tokens.start + row / self.group, self.kv_head * self.group + row % self.group)
    }

    /// The keys that a row may see.
    fn range(&self, row: usize) -> Range<usize> {
        let sequence = self.problem.sequences[self.sequence];
        let query = self.place(row).0 - sequence.start;
        self.problem.mask.range(sequence.keys - sequence.queries + query, sequence.keys)
    }

    fn mask(&self, row: usize) -> RowMask<'_> {
        if !self.problem.mask.is_table() {
            return RowMask::All;
        }
        let (token, head) = self.place(row);
        self.problem.mask.row(head, self.problem.tokens, token)
    }

    fn run<T: Element, Y: Element, const A: usize>(self, tile: &mut TileMut<'_, Y>)
    where
        K: Keys<T>,
    {
        let (rows, dim) = (self.row_count(), self.problem.heads.head_dim);
        let panels = dim.div_ceil(PANEL);
        with_scratch(rows * dim.div_ceil(A) * A, |q: &mut [f32]| {
            with_scratch(2 * dim + panels * BLOCK + 2 * rows + panels * rows, |all: &mut [PanelRow]| {
                with_scratch(rows * BLOCK, |weights: &mut [f32]| {
                    with_scratch(rows, |states: &mut [RowState]| {
                        let (k, rest) = all.split_at_mut(2 * dim);
                        let (v, rest) = rest.split_at_mut(panels * BLOCK);
                        let (scores, out) = rest.split_at_mut(2 * rows);
                        let (q, weights) = (q.as_chunks_mut::<A>().0, weights.as_chunks_mut::<BLOCK>().0);
                        self.blocks(Buffers { q, k, v, scores, weights, out, rows: states }, tile);
                    });
                });
            });
        });
    }

    fn blocks<T: Element, Y: Element, const A: usize>(&self, mut b: Buffers<'_, A>, tile: &mut TileMut<'_, Y>)
    where
        K: Keys<T>,
    {
        let rows = self.row_count();
        let dim = self.problem.heads.head_dim;
        for row in 0..rows {
            let (token, head) = self.place(row);
            let q = self.problem.q;
            let source = &q.data[token * q.stride + head * dim..][..dim];
            for (stretch, source) in source.chunks(A).enumerate() {
                let out = &mut b.q[stretch * rows + row][..source.len()];
                self.level.dispatch(Convert { x: source, out });
            }
        }
        b.out.fill([0.0; PANEL]);
        for (row, state) in b.rows.iter_mut().enumerate() {
            let Range { start, end } = self.range(row);
            let range = [start as u32, end as u32];
            *state = RowState { max: f32::NEG_INFINITY, sum: 0.0, range, seen: [0, 0] };
        }
        // Ranges move forward with the position: the first row's and the last row's bound all others.
        let (first, last) = (self.range(0), self.range(rows - 1));
        for block in first.start / BLOCK..first.end.max(last.end).div_ceil(BLOCK) {
            let start = block * BLOCK;
            let mut active = rows..0;
            for (row, state) in b.rows.iter_mut().enumerate() {
                let seen = state.range.map(|j| j.clamp(start as u32, (start + BLOCK) as u32) - start as u32);
                state.seen = seen;
                if seen[0] < seen[1] {
                    active = active.start.min(row)..row + 1;
                }
            }
            if !active.is_empty() {
                self.block::<T, A>(&mut b, start, active);
            }
        }
        for row in 0..rows {
            let (token, head) = self.place(row);
            let at = head * dim - tile.col();
            let out = &mut tile.row_mut(token - tile.row())[at..at + dim];
            self.level.dispatch(Store { parts: &*b.out, rows, row, sum: b.rows[row].sum, out });
        }
    }

    fn block<T: Element, const A: usize>(&self, b: &mut Buffers<'_, A>, start: usize, active: Range<usize>)
    where
        K: Keys<T>,
    {
        let rows = self.row_count();
        let dim = self.problem.heads.head_dim;
        let count = BLOCK.min(self.problem.sequences[self.sequence].keys - start);
        let offsets: [usize; BLOCK] = std::array::from_fn(|j| {
            self.problem.keys.offset(self.sequence, self.kv_head, start + j.min(count - 1))
        });
        let (k, v) = self.problem.keys.data();
        self.level.dispatch(TurnKeys { k, offsets: &offsets[..count], dim, out: &mut *b.k });
        self.level.dispatch(SpreadValues { v, offsets: &offsets[..count], dim, out: &mut *b.v });
        for half in 0..count.div_ceil(PANEL) {
            for (stretch, from) in (0..dim).step_by(A).enumerate() {
                let panel = &b.k[half * dim + from..half * dim + dim.min(from + A)];
                let x = &b.q[stretch * rows..][active.clone()];
                let sums = &mut b.scores[half * rows..][active.clone()];
                let start = if stretch == 0 { Start::Zero } else { Start::Running };
                self.level.dispatch(Multiply { x, from: 0, panel, sums, start });
            }
        }
        self.level.dispatch(Weigh {
            heads: &self.problem.heads,
            mask: |row| self.mask(row),
            active: active.clone(),
            scores: &*b.scores,
            start,
            states: &mut *b.rows,
            weights: &mut *b.weights,
            out: &mut *b.out,
        });
        self.accumulate(b, start, active);
    }

    /// Adds the weighted values: each row takes its visible keys only, in ascending order.
    fn accumulate<const A: usize>(&self, b: &mut Buffers<'_, A>, start: usize, active: Range<usize>) {
        let rows = self.row_count();
        let panels = self.problem.heads.head_dim.div_ceil(PANEL);
        let tables = self.problem.mask.is_table();
        let mut add = |rows_now: Range<usize>, keys: Range<usize>| {
            if keys.is_empty() {
                return;
            }
            for p in 0..panels {
                self.level.dispatch(Multiply {
                    x: &b.weights[rows_now.clone()],
                    from: keys.start,
                    panel: &b.v[p * BLOCK..][keys.clone()],
                    sums: &mut b.out[p * rows..][rows_now.clone()],
                    start: Start::Running,
                });
            }
        };
        let seen = |row: usize| {
            let [from, to] = b.rows[row].seen;
            from as usize..to as usize
        };
        if tables {
            for row in active {
                let (mask, range) = (self.mask(row), seen(row));
                let mut from = range.start;
                while from < range.end {
                    let sees = mask.sees(start + from);
                    let run = (from..range.end).take_while(|&j| mask.sees(start + j) == sees).count();
                    if sees {
                        add(row..row + 1, from..from + run);
                    }
                    from += run;
                }
            }
            return;
        }
        let mut row = active.start;
        while row < active.end {
            // Rows of one range go together; so do up to 12 rows of different ranges, for what they share.
            let same = (row..active.end).take_while(|&r| seen(r) == seen(row)).count();
            let together = row..if same >= 12 { row + same } else { active.end.min(row + 12) };
            let shared =
                together.clone().map(seen).fold(0..BLOCK, |a, r| a.start.max(r.start)..a.end.min(r.end));
            if shared.is_empty() {
                together.clone().for_each(|r| add(r..r + 1, seen(r)));
            } else {
                together.clone().for_each(|r| add(r..r + 1, seen(r).start..shared.start));
                add(together.clone(), shared.clone());
                together.clone().for_each(|r| add(r..r + 1, shared.end..seen(r).end));
            }
            row = together.end;
        }
    }
}

/// Keys of a block as columns of panels; columns past the last key are 0.
struct TurnKeys<'a, T> {
    k: &'a [T],
    offsets: &'a [usize],
    dim: usize,
    out: &'a mut [PanelRow],
}

impl<T: Element> Kernel for TurnKeys<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (half, out) in self.out.chunks_mut(self.dim).enumerate() {
            for sixteen in 0..2 {
                let offsets = self.offsets.get(half * PANEL + sixteen * LANES..).unwrap_or_default();
                for (i, out) in out.chunks_mut(LANES).enumerate() {
                    let mut square = [s.zero(); LANES];
                    for (row, &offset) in square.iter_mut().zip(offsets) {
                        *row = load_part(s, &self.k[offset + i * LANES..][..out.len()]);
                    }
                    s.transpose(&mut square);
                    for (row, out) in square.iter().zip(out) {
                        s.store(*row, lanes_mut(out, sixteen));
                    }
                }
            }
        }
    }
}

/// Values of a block as rows of panels of 32 elements; elements past the last are 0.
struct SpreadValues<'a, T> {
    v: &'a [T],
    offsets: &'a [usize],
    dim: usize,
    out: &'a mut [PanelRow],
}

impl<T: Element> Kernel for SpreadValues<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for (p, out) in self.out.chunks_mut(BLOCK).enumerate() {
            for (out, &offset) in out.iter_mut().zip(self.offsets) {
                for half in 0..2 {
                    let from = p * PANEL + half * LANES;
                    let count = LANES.min(self.dim.saturating_sub(from));
                    let x = &self.v[offset + from.min(self.dim)..][..count];
                    s.store(load_part(s, x), lanes_mut(out, half));
                }
            }
        }
    }
}

/// Scores of a block become weights; the running maximum, sum and result of each row follow.
struct Weigh<'a, M> {
    heads: &'a Heads,
    /// What each row sees.
    mask: M,
    /// The rows: those of them that see nothing of the block are left alone.
    active: Range<usize>,
    /// `[half of the block][row]`.
    scores: &'a [PanelRow],
    /// The first key of the block.
    start: usize,
    states: &'a mut [RowState],
    weights: &'a mut [[f32; BLOCK]],
    /// `[32 elements][row]`.
    out: &'a mut [PanelRow],
}

impl<'m, M: Fn(usize) -> RowMask<'m>> Kernel for Weigh<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { heads, mask, active, scores, start, states, weights, out } = self;
        let rows = states.len();
        for row in active {
            let state = &mut states[row];
            if state.seen[0] >= state.seen[1] {
                continue;
            }
            let scores = [&scores[row], &scores[rows + row]];
            let weights = &mut weights[row];
            // Half a block has half the work.
            let fade = if state.seen[1] as usize > PANEL {
                weigh::<S, { BLOCK / LANES }>(s, heads, scores, mask(row), start, state, weights)
            } else {
                weigh::<S, { PANEL / LANES }>(s, heads, scores, mask(row), start, state, weights)
            };
            if let Some(fade) = fade {
                for out in out.iter_mut().skip(row).step_by(rows) {
                    for half in 0..2 {
                        let faded = s.mul(s.load(lanes(out, half)), fade);
                        s.store(faded, lanes_mut(out, half));
                    }
                }
            }
        }
    }
}

/// The weights of one row, which sees keys of the first vectors only; the factor for what the row has summed up so far, unless that is 1 or there is nothing yet.
#[inline(always)]
fn weigh<S: Simd, const VECTORS: usize>(
    s: S,
    heads: &Heads,
    halves: [&PanelRow; 2],
    mask: RowMask<'_>,
    start: usize,
    state: &mut RowState,
    weights: &mut [f32; BLOCK],
) -> Option<S::F> {
    let lowest = s.splat(f32::NEG_INFINITY);
    let [from, to] = state.seen.map(|j| j as usize);
    let mut scores = [s.zero(); VECTORS];
    let mut seen = [s.lanes(0, 0); VECTORS];
    let mut largest = lowest;
    for i in 0..VECTORS {
        let first = i * LANES;
        let inside = s.lanes(from.saturating_sub(first).min(LANES), to.saturating_sub(first).min(LANES));
        let mut score = s.mul(s.load(lanes(halves[i / 2], i % 2)), s.splat(heads.scale));
        if let Some(cap) = heads.softcap {
            score = s.mul(math::tanh(s, s.div(score, s.splat(cap))), s.splat(cap));
        }
        let at = start + first;
        seen[i] = match mask {
            RowMask::All => inside,
            RowMask::Custom(mask) => {
                let mut bytes = [0; LANES];
                for (b, &m) in bytes.iter_mut().zip(mask.get(at..).unwrap_or_default()) {
                    *b = m;
                }
                s.and_m(inside, s.mask_bytes(&bytes))
            }
            RowMask::Bias(bias) => {
                let bias = load_part(s, bias.get(at..).unwrap_or_default());
                score = s.add(score, bias);
                let visible = s.or_m(s.lt(lowest, bias), s.is_nan(bias));
                s.and_m(inside, visible)
            }
        };
        scores[i] = s.select(seen[i], score, lowest);
        largest = s.max(largest, scores[i]);
    }
    let largest = s.fold_max(largest);
    let before = state.max;
    let max = if before > largest || before.is_nan() { before } else { largest };
    // Where every score is negative infinity so far, nothing is subtracted.
    let base = s.splat(if max == f32::NEG_INFINITY { 0.0 } else { max });
    let mut sum = s.zero();
    for i in 0..VECTORS {
        let weight = s.select(seen[i], math::exp(s, s.sub(scores[i], base)), s.zero());
        sum = s.add(sum, weight);
        s.store(weight, &mut weights.as_chunks_mut::<LANES>().0[i]);
    }
    let sum = s.sum(sum);
    state.max = max;
    // Without a finite score before, sum and result are zero, or NaN from an infinite value: no factor changes them.
    if max == before || before == f32::NEG_INFINITY {
        state.sum += sum;
        return None;
    }
    let fade = math::exp(s, s.sub(s.splat(before), base));
    let mut fades = [0.0; LANES];
    s.store(fade, &mut fades);
    state.sum = state.sum * fades[0] + sum;
    Some(fade)
}

/// Divides a row by its sum and stores it.
struct Store<'a, Y> {
    /// `[32 elements][row]`.
    parts: &'a [PanelRow],
    rows: usize,
    row: usize,
    sum: f32,
    out: &'a mut [Y],
}

impl<Y: Element> Kernel for Store<'_, Y> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let sum = s.splat(self.sum);
        let parts = self.parts.iter().skip(self.row).step_by(self.rows);
        for (part, out) in parts.zip(self.out.chunks_mut(PANEL)) {
            for (half, out) in out.chunks_mut(LANES).enumerate() {
                let value = s.load(lanes(part, half));
                let value = if self.sum == 0.0 { s.zero() } else { s.div(value, sum) };
                store_part(s, value, out);
            }
        }
    }
}
