//! Activation functions: [`Activation`] is the one list of them, shared by `glu`, `linear` and the kernels.

pub mod gelu;
pub mod glu;
pub mod silu;

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, PI};

use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::op::OpDef;
use crate::ops::elementwise::unary::UnaryKind;

/// The rows of the op table.
pub(crate) const DEFS: &[OpDef] = &[gelu::DEF, glu::DEF, silu::DEF];

/// The coefficient of x^3 in the tanh form of gelu (Hendrycks and Gimpel 2016).
pub const GELU_TANH_CUBIC: f64 = 0.044715;

/// sqrt(2 / pi), the outer coefficient of the tanh form of gelu.
pub const GELU_TANH_SCALE: f64 = FRAC_2_SQRT_PI * FRAC_1_SQRT_2;

/// A function that is applied to each element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Activation {
    /// `x`
    #[default]
    None,
    /// `x / 2 * (1 + erf(x / sqrt(2)))`
    Gelu,
    /// `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))`
    GeluTanh,
    /// `x * sigmoid(x)`
    Silu,
    /// `max(x, 0)`; NaN stays NaN
    Relu,
    /// The hyperbolic tangent
    Tanh,
    /// `1 / (1 + exp(-x))`
    Sigmoid,
}

impl Activation {
    /// Every function with its word in the text form.
    pub const WORDS: &[(&str, Self)] = &[
        ("none", Self::None),
        ("gelu", Self::Gelu),
        ("gelu_tanh", Self::GeluTanh),
        ("silu", Self::Silu),
        ("relu", Self::Relu),
        ("tanh", Self::Tanh),
        ("sigmoid", Self::Sigmoid),
    ];

    /// The word in the text form.
    pub fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, a)| *a == self).map_or("none", |(w, _)| w)
    }

    /// The function in f64.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Self::None => x,
            // erfc keeps the digits that 1 + erf loses for negative x.
            Self::Gelu => 0.5 * x * libm::erfc(-x * FRAC_1_SQRT_2),
            // The same function as with tanh, without the cancellation in 1 + tanh.
            Self::GeluTanh => x * UnaryKind::Sigmoid.apply(2.0 * gelu_tanh_inner(x)),
            Self::Silu => x * UnaryKind::Sigmoid.apply(x),
            Self::Relu => UnaryKind::Relu.apply(x),
            Self::Tanh => UnaryKind::Tanh.apply(x),
            Self::Sigmoid => UnaryKind::Sigmoid.apply(x),
        }
    }

    /// The derivative; at the corner of `relu` the larger one.
    pub fn slope(self, x: f64) -> f64 {
        let sigmoid = |x| UnaryKind::Sigmoid.apply(x);
        match self {
            Self::None => 1.0,
            Self::Gelu => {
                0.5 * libm::erfc(-x * FRAC_1_SQRT_2) + x * libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt()
            }
            Self::GeluTanh => {
                let s = sigmoid(2.0 * gelu_tanh_inner(x));
                s + 2.0 * x * s * (1.0 - s) * GELU_TANH_SCALE * (1.0 + 3.0 * GELU_TANH_CUBIC * x * x)
            }
            Self::Silu => sigmoid(x) * (1.0 + x * (1.0 - sigmoid(x))),
            Self::Relu => f64::from(u8::from(x >= 0.0)),
            Self::Tanh => 1.0 - libm::tanh(x) * libm::tanh(x),
            Self::Sigmoid => sigmoid(x) * (1.0 - sigmoid(x)),
        }
    }

    /// The absolute terms of the function at `x`, where `x` itself is known up to roundings of `x_terms`: what comes
    /// through the slope, and what the function's own formula adds up.
    ///
    /// `relu` passes the error of its operand on even where it gives 0: the operand may round to the other side.
    pub fn abs_terms(self, x: f64, x_terms: f64) -> f64 {
        let through = match self {
            Self::Relu => x_terms,
            _ => finite(self.slope(x)).abs() * x_terms,
        };
        // Below the smallest normal f32 a factor has no relative precision, only an absolute one.
        let smallest = f64::from(f32::MIN_POSITIVE);
        let own = match self {
            Self::None | Self::Relu => 0.0,
            Self::Gelu => 0.5 * x.abs() * (1.0 + libm::erf(x * FRAC_1_SQRT_2).abs()),
            Self::GeluTanh => 0.5 * x.abs() * (1.0 + libm::tanh(gelu_tanh_inner(x)).abs()),
            Self::Silu => x.abs() * UnaryKind::Sigmoid.apply(x).max(smallest),
            Self::Tanh | Self::Sigmoid => self.apply(x).abs(),
        };
        through + own
    }

    /// Emits the function in core ops, in the dtype of `x`.
    ///
    /// # Errors
    /// `InvalidArgument` where `x` is no float.
    pub fn emit(self, b: &mut Builder, x: Value) -> Result<Value> {
        let dtype = b.ty(x).dtype;
        match self {
            Self::None => Ok(x),
            Self::Gelu => {
                let scale = b.scalar(dtype, FRAC_1_SQRT_2)?;
                let scaled = b.mul(x, scale)?;
                let erf = b.erf(scaled)?;
                half_of_one_plus(b, x, erf)
            }
            Self::GeluTanh => {
                let cubic = b.scalar(dtype, GELU_TANH_CUBIC * GELU_TANH_SCALE)?;
                let linear = b.scalar(dtype, GELU_TANH_SCALE)?;
                let square = b.mul(x, x)?;
                let bent = b.mul(square, cubic)?;
                let factor = b.add(bent, linear)?;
                let inner = b.mul(x, factor)?;
                let tanh = b.tanh(inner)?;
                half_of_one_plus(b, x, tanh)
            }
            Self::Silu => {
                let sigmoid = b.sigmoid(x)?;
                b.mul(x, sigmoid)
            }
            Self::Relu => b.relu(x),
            Self::Tanh => b.tanh(x),
            Self::Sigmoid => b.sigmoid(x),
        }
    }
}

fn gelu_tanh_inner(x: f64) -> f64 {
    GELU_TANH_SCALE * (x + GELU_TANH_CUBIC * x * x * x)
}

/// 0 where an infinite argument leaves no slope.
fn finite(slope: f64) -> f64 {
    if slope.is_finite() { slope } else { 0.0 }
}

/// `x / 2 * (1 + t)`
fn half_of_one_plus(b: &mut Builder, x: Value, t: Value) -> Result<Value> {
    let dtype = b.ty(x).dtype;
    let (one, half) = (b.scalar(dtype, 1.0)?, b.scalar(dtype, 0.5)?);
    let sum = b.add(t, one)?;
    let half_x = b.mul(x, half)?;
    b.mul(half_x, sum)
}
