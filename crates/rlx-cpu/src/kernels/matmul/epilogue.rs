//! What happens to a finished sum before it is stored: bias, activation, gate, residual, rounding to the result's
//! dtype.

use half::{bf16, f16};

use super::PanelRow;
use super::format::{lanes, lanes_mut};
use crate::simd::{Kernel, LANES, Simd, math};

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
    /// The slice itself, where it is f32.
    fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]>;
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
    fn as_f32_mut(x: &mut [Self]) -> Option<&mut [f32]> {
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
    fn as_f32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
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
    fn as_f32_mut(_: &mut [Self]) -> Option<&mut [f32]> {
        None
    }
}

/// Loads up to 16 elements; absent ones are 0.
#[inline(always)]
pub(crate) fn load_part<S: Simd, T: Element>(s: S, x: &[T]) -> S::F {
    match x.first_chunk::<LANES>() {
        Some(x) => T::load(s, x),
        None => T::load(s, &padded(x)),
    }
}

/// Not inlined: what is rare must not fill every loop.
#[inline(never)]
fn padded<T: Element>(x: &[T]) -> [T; LANES] {
    let mut padded = [T::default(); LANES];
    for (p, &x) in padded.iter_mut().zip(x) {
        *p = x;
    }
    padded
}

#[inline(never)]
fn copy_first<T: Element>(from: &[T; LANES], out: &mut [T]) {
    for (o, &x) in out.iter_mut().zip(from) {
        *o = x;
    }
}

/// Stores up to 16 elements.
#[inline(always)]
pub(crate) fn store_part<S: Simd, T: Element>(s: S, v: S::F, out: &mut [T]) {
    if let Some(out) = out.first_chunk_mut::<LANES>() {
        return T::store(s, v, out);
    }
    let mut padded = [T::default(); LANES];
    T::store(s, v, &mut padded);
    copy_first(&padded, out);
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

/// Bias, activation and gate: `sums` become what only the residual is added to.
pub(super) struct Activate<'a> {
    pub bias: Option<&'a [f32]>,
    pub activation: Activation,
    pub columns: Columns,
    /// One panel of rows, or the gates.
    pub sums: &'a mut [PanelRow],
    /// The rows that the gates belong to, or none.
    pub ups: &'a [PanelRow],
}

impl Kernel for Activate<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        // One loop for each activation, so that the choice is outside of it.
        macro_rules! each {
            ($($name:ident)*) => {
                match self.activation {
                    $(Activation::$name => self.with(s, Activation::$name),)*
                }
            };
        }
        each!(None Relu Gelu GeluTanh Silu);
    }
}

impl Activate<'_> {
    #[inline(always)]
    fn with<S: Simd>(self, s: S, activation: Activation) {
        let Columns { first, count, up_bias } = self.columns;
        for half in 0..2 {
            let (from, to) = (half * LANES, count.min((half + 1) * LANES));
            if from >= to {
                return;
            }
            let part = |at: usize| self.bias.map_or(&[][..], |bias| &bias[at + from..at + to]);
            let bias = load_part(s, part(first));
            let bias_up = load_part(s, up_bias.map_or(&[][..], |up| part(up + first)));
            for (r, sum) in self.sums.iter_mut().enumerate() {
                let sum = lanes_mut(sum, half);
                let mut y = s.load(sum);
                // Adding an absent bias as 0 would make a positive zero of a negative one.
                if self.bias.is_some() {
                    y = s.add(y, bias);
                }
                y = activation.apply(s, y);
                if let Some(up) = self.ups.get(r) {
                    let mut up = s.load(lanes(up, half));
                    if self.bias.is_some() {
                        up = s.add(up, bias_up);
                    }
                    y = s.mul(y, up);
                }
                s.store(y, sum);
            }
        }
    }
}

/// Adds the residual and stores one row of one panel: `out` is the result's columns.
#[inline(always)]
pub(super) fn store_row<S: Simd, T: Element>(
    s: S,
    sum: &PanelRow,
    residual: Residual<'_, T>,
    row: usize,
    columns: Columns,
    out: &mut [T],
) {
    for half in 0..2 {
        let from = half * LANES;
        let to = columns.count.min(from + LANES);
        if from >= to {
            return;
        }
        let mut y = s.load(lanes(sum, half));
        match residual {
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
