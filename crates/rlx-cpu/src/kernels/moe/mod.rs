//! Mixtures of gated experts.
//!
//! Tokens are grouped by the expert that was chosen for them, each expert's matrices are multiplied with its tokens together,
//! and a token's results are added up in the order of its choices. **A token has the same bits in every batch**: a row of a
//! packed product does not depend on the other rows, and neither does its sum.

#[cfg(test)]
mod tests;

use std::ops::Range;

use rlx_ir::bail;

use super::Cpu;
use super::elementwise::{Binary, Unary, binary, unary};
use super::matmul::{Activation, Element, Epilogue, PackedStack, Rows, load_part, packed, store_part};
use super::memory::Convert;
use super::scratch::with_scratch;
use crate::error::{Error, Result};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd};

/// Bytes that the results of all choices may take before they are added up.
const RESULT_BYTES: usize = 16 << 20;
/// Tokens that are taken together even where their results take more.
const LEAST_TOKENS: usize = 32;

/// The function of a gate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GateFunction {
    /// One that a product finishes with.
    Epilogue(Activation),
    /// One that runs after it.
    After(Unary),
}

/// The experts' matrices.
#[derive(Clone, Copy, Debug)]
pub struct Experts<'a> {
    /// The function of the gate.
    pub function: GateFunction,
    /// Gates, `[E, F, H]`.
    pub gate: PackedStack<'a>,
    /// What is gated, `[E, F, H]`.
    pub up: PackedStack<'a>,
    /// What leads back, `[E, H, F]`.
    pub down: PackedStack<'a>,
}

impl Experts<'_> {
    fn count(&self) -> usize {
        self.gate.count()
    }

    fn hidden(&self) -> usize {
        self.gate.shape().depth()
    }

    fn inner(&self) -> usize {
        self.gate.shape().columns()
    }

    fn check(&self) -> Result<()> {
        let sizes = |stack: &PackedStack<'_>| [stack.count(), stack.shape().columns(), stack.shape().depth()];
        let (count, hidden, inner) = (self.count(), self.hidden(), self.inner());
        if sizes(&self.up) != [count, inner, hidden] || sizes(&self.down) != [count, hidden, inner] {
            bail!(
                InvalidArgument,
                "moe: gate {:?}, up {:?} and down {:?} do not fit together",
                sizes(&self.gate),
                sizes(&self.up),
                sizes(&self.down)
            );
        }
        Ok(())
    }
}

/// `out[n] = Σ weights[n, k] * down_e · (function(gate_e · x[n]) * (up_e · x[n]))` over k ascending, with `e = chosen[n, k]`; a
/// choice of no expert adds nothing.
///
/// Shapes: x and out `[N, H]`, weights and chosen `[N, K]`. Dtypes: x and out f32, f16 or bf16; the matrices any packed ones,
/// used as their decoded values. Numerics: everything between is f32; the order of sums of [`matmul`](super::matmul), then
/// `fma(weight, y, sum)`. Errors: `InvalidArgument` where sizes do not agree.
pub fn moe<T: Element>(
    cpu: Cpu<'_>,
    experts: &Experts<'_>,
    x: &[T],
    weights: &[f32],
    chosen: &[i32],
    out: &mut [T],
) -> Result<()> {
    experts.check()?;
    let hidden = experts.hidden();
    let tokens = x.len().checked_div(hidden).unwrap_or(0);
    let each = weights.len().checked_div(tokens).unwrap_or(0);
    if tokens * hidden != x.len()
        || out.len() != x.len()
        || chosen.len() != weights.len()
        || (tokens > 0 && each * tokens != weights.len())
    {
        bail!(
            InvalidArgument,
            "moe: {} elements into {} with {hidden} a token, {} weights and {} choices",
            x.len(),
            out.len(),
            weights.len(),
            chosen.len()
        );
    }
    if x.is_empty() {
        return Ok(());
    }
    if each == 0 {
        out.fill(T::default());
        return Ok(());
    }
    let together = (RESULT_BYTES / (4 * each * hidden)).max(LEAST_TOKENS);
    for (i, out) in out.chunks_mut(together * hidden).enumerate() {
        let first = i * together;
        let count = out.len() / hidden;
        let choices = first * each..(first + count) * each;
        let part = Part { cpu, experts, each, x: &x[first * hidden..][..out.len()] };
        part.run(&weights[choices.clone()], &chosen[choices], out)?;
    }
    Ok(())
}

/// Some tokens.
struct Part<'a, T> {
    cpu: Cpu<'a>,
    experts: &'a Experts<'a>,
    /// Choices of a token.
    each: usize,
    x: &'a [T],
}

/// The choices, sorted by expert.
struct Groups {
    /// Where each expert's group begins; one more than there are experts.
    starts: Vec<usize>,
    /// The token of each place.
    tokens: Vec<usize>,
    /// The place of each choice, if it is one.
    places: Vec<Option<usize>>,
}

impl Groups {
    fn new(chosen: &[i32], each: usize, experts: usize) -> Self {
        let expert = |&e: &i32| usize::try_from(e).ok().filter(|&e| e < experts);
        let mut starts = vec![0; experts + 1];
        for e in chosen.iter().filter_map(expert) {
            starts[e + 1] += 1;
        }
        for e in 0..experts {
            starts[e + 1] += starts[e];
        }
        let mut next = starts.clone();
        let mut tokens = vec![0; starts[experts]];
        let mut place = |(i, e): (usize, &i32)| {
            let e = expert(e)?;
            let place = next[e];
            next[e] += 1;
            tokens[place] = i / each;
            Some(place)
        };
        let places = chosen.iter().enumerate().map(&mut place).collect();
        Self { starts, tokens, places }
    }

    fn largest(&self) -> usize {
        self.starts.windows(2).map(|s| s[1] - s[0]).max().unwrap_or(0)
    }
}

impl<T: Element> Part<'_, T> {
    fn run(&self, weights: &[f32], chosen: &[i32], out: &mut [T]) -> Result<()> {
        let (hidden, inner) = (self.experts.hidden(), self.experts.inner());
        let groups = Groups::new(chosen, self.each, self.experts.count());
        let most = groups.largest();
        with_scratch(groups.tokens.len() * hidden, |results: &mut [f32]| {
            with_scratch(most * (hidden + 2 * inner), |scratch: &mut [f32]| {
                for e in 0..self.experts.count() {
                    let group = groups.starts[e]..groups.starts[e + 1];
                    if !group.is_empty() {
                        let out = &mut results[group.start * hidden..group.end * hidden];
                        self.expert(e, &groups.tokens[group], scratch, out)?;
                    }
                }
                Ok::<(), Error>(())
            })?;
            let results = &*results;
            let tokens = out.len() / hidden;
            let rows = tokens.div_ceil(self.cpu.parts(tokens * self.each * hidden * 2));
            chunks(self.cpu.pool, out, rows * hidden, |i, out| {
                for (r, out) in out.chunks_exact_mut(hidden).enumerate() {
                    let choices: Range<usize> = (i * rows + r) * self.each..(i * rows + r + 1) * self.each;
                    let (weights, places) = (&weights[choices.clone()], &groups.places[choices]);
                    self.cpu.level.dispatch(Sum { results, weights, places, out });
                }
            })
        })
    }

    /// The results of one expert for some tokens.
    fn expert(&self, e: usize, tokens: &[usize], scratch: &mut [f32], out: &mut [f32]) -> Result<()> {
        let Experts { function, gate, up, down } = self.experts;
        let (cpu, rows) = (self.cpu, tokens.len());
        let (hidden, inner) = (self.experts.hidden(), self.experts.inner());
        let (x, rest) = scratch.split_at_mut(rows * hidden);
        let (gated, rest) = rest.split_at_mut(rows * inner);
        let raised = &mut rest[..rows * inner];
        for (x, &token) in x.chunks_exact_mut(hidden).zip(tokens) {
            cpu.level.dispatch(Convert { x: &self.x[token * hidden..][..hidden], out: x });
        }
        let x = Rows { data: &*x, rows, stride: hidden };
        let plain = Epilogue::default();
        let finish = match function {
            GateFunction::Epilogue(activation) => Epilogue { activation: *activation, ..plain },
            GateFunction::After(_) => plain,
        };
        packed(cpu, x, &gate.get(e)?, &finish, gated, inner)?;
        packed(cpu, x, &up.get(e)?, &plain, raised, inner)?;
        if let GateFunction::After(function) = function {
            with_scratch(gated.len(), |before: &mut [f32]| {
                before.copy_from_slice(gated);
                unary(cpu, *function, before, gated)
            })?;
        }
        with_scratch(gated.len(), |product: &mut [f32]| {
            binary(cpu, Binary::Mul, gated, raised, product)?;
            let product = Rows { data: &*product, rows, stride: inner };
            packed(cpu, product, &down.get(e)?, &plain, out, hidden)
        })
    }
}

/// Adds up what a token's choices gave.
struct Sum<'a, T> {
    results: &'a [f32],
    weights: &'a [f32],
    places: &'a [Option<usize>],
    out: &'a mut [T],
}

impl<T: Element> Kernel for Sum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let hidden = self.out.len();
        for (i, out) in self.out.chunks_mut(LANES).enumerate() {
            let mut sum = s.zero();
            for (&weight, place) in self.weights.iter().zip(self.places) {
                if let Some(place) = place {
                    let y = load_part(s, &self.results[place * hidden + i * LANES..][..out.len()]);
                    sum = s.fma(s.splat(weight), y, sum);
                }
            }
            store_part(s, sum, out);
        }
    }
}
