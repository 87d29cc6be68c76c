//! What happens to a finished sum before it is stored: bias, activation, gate, residual, rounding to the result's
//! dtype.

use half::{bf16, f16};

use super::PANEL;
use super::format::lanes;
use crate::simd::{LANES, Simd, math};

/// A function of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Activation {
    /// x.
    #[default]
    None,
    /// max(x, 0); NaN stays NaN.
    Relu,
    /// x Φ(x), with the exact normal distribution function.
    Gelu,
    /// Its approximation by tanh.
    GeluTanh,
    /// x / (1 + exp(-x)).
    Silu,
}

impl Activation {
    /// Applies it to a vector.
    #[inline(always)]
    pub fn apply<S: Simd>(self, s: S, x: S::F) -> S::F {
        match self {
            Self::None => x,
            Self::Relu => s.max(x, s.zero()),
            Self::Gelu => math::gelu(s, x),
            Self::GeluTanh => math::gelu_tanh(s, x),
            Self::Silu => math::silu(s, x),
        }
    }
}

/// What is added last.
#[derive(Clone, Copy, Debug, Default)]
pub enum Residual<'a, T> {
    /// Nothing.
    #[default]
    None,
    /// What the result buffer holds already.
    InPlace,
    /// A matrix of the result's size, its rows `stride` elements apart.
    From {
        /// The elements.
        data: &'a [T],
        /// Elements from row to row.
        stride: usize,
    },
}

/// `y = activation(sum + bias) + residual`; with a gate (see [`Arrangement::GateUp`](super::Arrangement)),
/// `y = activation(gate_sum + gate_bias) * (up_sum + up_bias) + residual`.
#[derive(Clone, Copy, Debug)]
pub struct Epilogue<'a, T> {
    /// One value per row of the weight, in the weight's own order (all gates, then all ups).
    pub bias: Option<&'a [f32]>,
    /// The activation.
    pub activation: Activation,
    /// The residual.
    pub residual: Residual<'a, T>,
}

impl<T> Default for Epilogue<'_, T> {
    fn default() -> Self {
        Self { bias: None, activation: Activation::None, residual: Residual::None }
    }
}

/// The dtype of a result or of a left operand: f32, f16 or bf16.
pub trait Element: Copy + Send + Sync + Default + std::fmt::Debug + 'static {
    /// Sixteen values as f32, exactly.
    fn load<S: Simd>(s: S, x: &[Self; LANES]) -> S::F;
    /// Sixteen values, each rounded once.
    fn store<S: Simd>(s: S, v: S::F, out: &mut [Self; LANES]);
    /// The slice itself, where it is f32.
    fn as_f32(x: &[Self]) -> Option<&[f32]>;
}

impl Element for f32 {
    #[inline(always)]
    fn load<S: Simd>(s: S, x: &[Self; LANES]) -> S::F {
        s.load(x)
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F, out: &mut [Self; LANES]) {
        s.store(v, out);
    }
    fn as_f32(x: &[Self]) -> Option<&[f32]> {
        Some(x)
    }
}

impl Element for f16 {
    #[inline(always)]
    fn load<S: Simd>(s: S, x: &[Self; LANES]) -> S::F {
        s.load_f16(bytemuck::cast_ref(x))
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F, out: &mut [Self; LANES]) {
        s.store_f16(v, bytemuck::cast_mut(out));
    }
    fn as_f32(_: &[Self]) -> Option<&[f32]> {
        None
    }
}

impl Element for bf16 {
    #[inline(always)]
    fn load<S: Simd>(s: S, x: &[Self; LANES]) -> S::F {
        s.load_bf16(bytemuck::cast_ref(x))
    }
    #[inline(always)]
    fn store<S: Simd>(s: S, v: S::F, out: &mut [Self; LANES]) {
        s.store_bf16(v, bytemuck::cast_mut(out));
    }
    fn as_f32(_: &[Self]) -> Option<&[f32]> {
        None
    }
}

/// Loads up to 16 elements; absent ones are 0.
#[inline(always)]
pub(crate) fn load_part<S: Simd, T: Element>(s: S, x: &[T]) -> S::F {
    if let Some(x) = x.first_chunk::<LANES>() {
        return T::load(s, x);
    }
    let mut padded = [T::default(); LANES];
    for (p, &x) in padded.iter_mut().zip(x) {
        *p = x;
    }
    T::load(s, &padded)
}

/// Stores up to 16 elements.
#[inline(always)]
pub(crate) fn store_part<S: Simd, T: Element>(s: S, v: S::F, out: &mut [T]) {
    if let Some(out) = out.first_chunk_mut::<LANES>() {
        return T::store(s, v, out);
    }
    let mut padded = [T::default(); LANES];
    T::store(s, v, &mut padded);
    for (o, p) in out.iter_mut().zip(padded) {
        *o = p;
    }
}

/// Converts a row of any element type to f32.
#[inline(always)]
pub(crate) fn to_f32<S: Simd, T: Element>(s: S, x: &[T], out: &mut [f32]) {
    if let Some(x) = T::as_f32(x) {
        out.copy_from_slice(x);
        return;
    }
    for (x, out) in x.chunks(LANES).zip(out.chunks_mut(LANES)) {
        store_part(s, load_part(s, x), out);
    }
}

/// The columns of one panel of the result: where their biases lie.
#[derive(Clone, Copy)]
pub(crate) struct Columns {
    /// First column of the result.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Where the biases of the ups begin, if the weight is gated.
    pub up_bias: Option<usize>,
}

impl<T: Element> Epilogue<'_, T> {
    /// Finishes one row of one panel, or of a gate panel with its `up`; `out` is the result's columns.
    #[inline(always)]
    pub(crate) fn finish<S: Simd>(
        &self,
        s: S,
        sum: &[f32; PANEL],
        up: Option<&[f32; PANEL]>,
        row: usize,
        columns: Columns,
        out: &mut [T],
    ) {
        for half in 0..2 {
            let from = half * LANES;
            if from >= columns.count {
                return;
            }
            let to = columns.count.min(from + LANES);
            let biased = |sum: &[f32; PANEL], at: usize| {
                let sum = s.load(lanes(sum, half));
                match self.bias {
                    Some(bias) => s.add(sum, load_part(s, &bias[at + from..at + to])),
                    None => sum,
                }
            };
            let mut y = self.activation.apply(s, biased(sum, columns.first));
            if let (Some(up_bias), Some(up)) = (columns.up_bias, up) {
                y = s.mul(y, biased(up, up_bias + columns.first));
            }
            match self.residual {
                Residual::None => {}
                Residual::InPlace => y = s.add(y, load_part(s, &out[from..to])),
                Residual::From { data, stride } => {
                    let at = row * stride + columns.first;
                    y = s.add(y, load_part(s, &data[at + from..at + to]));
                }
            }
            store_part(s, y, &mut out[from..to]);
        }
    }
}
