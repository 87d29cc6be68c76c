//! Rotary position embedding.

#[cfg(test)]
mod tests;

use rlx_ir::bail;

use super::Cpu;
use super::matmul::Element;
use super::scratch::with_scratch;
use crate::error::{Error, Result};
use crate::pool::chunks;
use crate::simd::{Kernel, LANES, Simd, math};

/// Which elements of a head are rotated together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RopeStyle {
    /// i and i + rot_dim / 2 (GPT-NeoX).
    Halves,
    /// 2 i and 2 i + 1 (the paper's).
    Interleaved,
}

/// Sizes and table of a rotation.
#[derive(Clone, Copy, Debug)]
pub struct Rope<'a> {
    /// Which elements are pairs.
    pub style: RopeStyle,
    /// Heads of a token.
    pub num_heads: usize,
    /// Elements of a head.
    pub head_dim: usize,
    /// `[rot_dim / 2]`: radians per position of each pair. Elements from rot_dim on are copied.
    pub inverse_frequencies: &'a [f32],
    /// What sines and cosines are multiplied with.
    pub attention_scale: f32,
}

/// Rotates pair (a, b) of the token at position p by `p * inverse_frequency`: `(a cos - b sin, b cos + a sin)`.
///
/// Shapes: x and out `[N, num_heads, head_dim]`, rows `stride` elements apart (for a part of a joint QKV row), positions
/// `[N]`; out has no gaps. Dtypes: f32, f16, bf16. Errors: `InvalidArgument` where lengths do not agree or rot_dim is
/// above head_dim.
pub fn rope<T: Element>(
    cpu: Cpu<'_>,
    rope: Rope<'_>,
    positions: &[i32],
    (x, stride): (&[T], usize),
    out: &mut [T],
) -> Result<()> {
    let width = rope.num_heads * rope.head_dim;
    let half = rope.inverse_frequencies.len();
    let needed =
        positions.len().checked_sub(1).map_or(Some(0), |n| n.checked_mul(stride)?.checked_add(width));
    if 2 * half > rope.head_dim
        || Some(out.len()) != positions.len().checked_mul(width)
        || needed.is_none_or(|n| n > x.len())
    {
        bail!(
            InvalidArgument,
            "rope of [{}, {}, {}] with {half} frequencies and stride {stride}: {} elements into {}",
            positions.len(),
            rope.num_heads,
            rope.head_dim,
            x.len(),
            out.len()
        );
    }
    if out.is_empty() {
        return Ok(());
    }
    let each = positions.len().div_ceil(cpu.parts(out.len() * 2));
    chunks(cpu.pool, out, each * width, |i, out| {
        with_scratch(2 * half, |table: &mut [f32]| {
            let (cos, sin) = table.split_at_mut(half);
            for (r, out) in out.chunks_mut(width).enumerate() {
                let token = i * each + r;
                let position = positions[token] as f32;
                cpu.level.dispatch(Table { rope, position, cos: &mut *cos, sin: &mut *sin });
                let x = &x[token * stride..][..width];
                for (x, out) in x.chunks(rope.head_dim).zip(out.chunks_mut(rope.head_dim)) {
                    cpu.level.dispatch(Rotate { style: rope.style, cos: &*cos, sin: &*sin, x, out });
                }
            }
        });
    })
}

struct Table<'a> {
    rope: Rope<'a>,
    position: f32,
    cos: &'a mut [f32],
    sin: &'a mut [f32],
}

impl Kernel for Table<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let scale = s.splat(self.rope.attention_scale);
        let parts = self.rope.inverse_frequencies.chunks(LANES);
        for ((f, cos), sin) in parts.zip(self.cos.chunks_mut(LANES)).zip(self.sin.chunks_mut(LANES)) {
            let angle = s.mul(f32::load(s, &crate::simd::tail(f, 0.0)), s.splat(self.position));
            let (sines, cosines) = math::sin_cos(s, angle);
            super::matmul::store_part(s, s.mul(cosines, scale), cos);
            super::matmul::store_part(s, s.mul(sines, scale), sin);
        }
    }
}

struct Rotate<'a, T> {
    style: RopeStyle,
    cos: &'a [f32],
    sin: &'a [f32],
    x: &'a [T],
    out: &'a mut [T],
}

/// One element as f32.
#[inline(always)]
fn wide<S: Simd, T: Element>(s: S, x: &[T]) -> [f32; LANES] {
    let mut values = [0.0; LANES];
    s.store(super::matmul::load_part(s, x), &mut values);
    values
}

/// The pair (a, b), turned.
#[inline(always)]
fn turn<S: Simd>(s: S, (a, b): (S::F, S::F), (cos, sin): (S::F, S::F)) -> (S::F, S::F) {
    (s.sub(s.mul(a, cos), s.mul(b, sin)), s.add(s.mul(b, cos), s.mul(a, sin)))
}

impl<T: Element> Kernel for Rotate<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        use super::matmul::{load_part, store_part};
        let half = self.cos.len();
        let Self { style, cos, sin, x, out } = self;
        out[2 * half..].copy_from_slice(&x[2 * half..]);
        for at in (0..half).step_by(LANES) {
            let count = LANES.min(half - at);
            let (cos, sin) = (load_part(s, &cos[at..at + count]), load_part(s, &sin[at..at + count]));
            match style {
                RopeStyle::Halves => {
                    let (a, b) = (load_part(s, &x[at..at + count]), load_part(s, &x[half + at..][..count]));
                    let (left, right) = turn(s, (a, b), (cos, sin));
                    store_part(s, left, &mut out[at..at + count]);
                    store_part(s, right, &mut out[half + at..][..count]);
                }
                RopeStyle::Interleaved => {
                    let pairs = &x[2 * at..][..2 * count];
                    let first = wide(s, &pairs[..pairs.len().min(LANES)]);
                    let second = wide(s, &pairs[pairs.len().min(LANES)..]);
                    let pick = |i: usize| if i < LANES { first[i] } else { second[i - LANES] };
                    let a: [f32; LANES] = std::array::from_fn(|i| pick(2 * i));
                    let b: [f32; LANES] = std::array::from_fn(|i| pick(2 * i + 1));
                    let (left, right) = turn(s, (s.load(&a), s.load(&b)), (cos, sin));
                    let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
                    s.store(left, &mut a);
                    s.store(right, &mut b);
                    let mixed: [f32; 2 * LANES] =
                        std::array::from_fn(|i| if i % 2 == 0 { a[i / 2] } else { b[i / 2] });
                    for (mixed, out) in mixed.chunks(LANES).zip(out[2 * at..][..2 * count].chunks_mut(LANES))
                    {
                        store_part(s, load_part(s, mixed), out);
                    }
                }
            }
        }
    }
}
