//! One op as an expression over its operands.

use rlx_ir::ops::activation::gelu::{Approximate, Gelu};
use rlx_ir::ops::activation::silu::Silu;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::elementwise::compare::{Compare, CompareKind};
use rlx_ir::ops::elementwise::select::Select;
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::{DType, Op};

use super::register_type;
use crate::error::{Error, Result};

/// The value of `op`; operands are expressions without side effects, with their dtypes.
pub(super) fn of(op: &dyn Op, operands: &[(&str, DType)], result: DType) -> Result<String> {
    let at = |i: usize| operands.get(i).map_or("", |o| o.0);
    let dtype = operands.first().map_or(result, |o| o.1);
    let (a, b, c) = (at(0), at(1), at(2));
    if let Some(op) = op.downcast::<Unary>() {
        unary(op.kind, a, dtype)
    } else if let Some(op) = op.downcast::<Binary>() {
        binary(op.kind, a, b, dtype)
    } else if let Some(op) = op.downcast::<Compare>() {
        Ok(format!("{a} {} {b}", comparison(op.kind)))
    } else if op.is::<Select>() {
        Ok(format!("{a} ? {b} : {c}"))
    } else if let Some(op) = op.downcast::<Cast>() {
        Ok(format!("convert<{}>({a})", register_type(op.to)?))
    } else if let Some(op) = op.downcast::<Gelu>() {
        Ok(match op.approximate {
            Approximate::None => format!("gelu({a})"),
            Approximate::Tanh => format!("gelu_tanh({a})"),
        })
    } else if op.is::<Silu>() {
        Ok(format!("silu({a})"))
    } else {
        rlx_ir::bail!(UnsupportedOnDevice, "fused_region: no expression for {}", op.name())
    }
}

fn unary(kind: UnaryKind, x: &str, dtype: DType) -> Result<String> {
    let float = dtype.is_float();
    Ok(match kind {
        UnaryKind::Neg if float => format!("-{x}"),
        UnaryKind::Neg => format!("wrap_neg({x})"),
        UnaryKind::Abs if float => format!("fabs({x})"),
        UnaryKind::Abs => format!("int_abs({x})"),
        UnaryKind::Sign if float => format!("{x} > 0.0f ? 1.0f : {x} < 0.0f ? -1.0f : {x}"),
        UnaryKind::Sign => format!("int_sign({x})"),
        UnaryKind::Relu if float => format!("relu({x})"),
        UnaryKind::Relu => format!("int_max({x}, {}(0))", register_type(dtype)?),
        UnaryKind::Rsqrt => format!("1.0f / sqrt({x})"),
        UnaryKind::Recip => format!("1.0f / {x}"),
        UnaryKind::Erf => format!("erf_f32({x})"),
        UnaryKind::Round => format!("rint({x})"),
        UnaryKind::Not => format!("!{x}"),
        UnaryKind::Exp
        | UnaryKind::Log
        | UnaryKind::Sqrt
        | UnaryKind::Sin
        | UnaryKind::Cos
        | UnaryKind::Tanh
        | UnaryKind::Sigmoid
        | UnaryKind::Floor
        | UnaryKind::Ceil => format!("{}({x})", kind.name()),
    })
}

fn binary(kind: BinaryKind, a: &str, b: &str, dtype: DType) -> Result<String> {
    let (float, bool) = (dtype.is_float(), dtype == DType::Bool);
    let bits = |sign: &str| -> Result<String> { Ok(format!("{}({a} {sign} {b})", register_type(dtype)?)) };
    Ok(match kind {
        BinaryKind::Add if float => format!("{a} + {b}"),
        BinaryKind::Sub if float => format!("{a} - {b}"),
        BinaryKind::Mul if float => format!("{a} * {b}"),
        BinaryKind::Div if float => format!("{a} / {b}"),
        BinaryKind::Rem if float => format!("fmod({a}, {b})"),
        BinaryKind::Pow => format!("pow({a}, {b})"),
        BinaryKind::Max if float => format!("max_or_nan({a}, {b})"),
        BinaryKind::Min if float => format!("min_or_nan({a}, {b})"),
        BinaryKind::Add => format!("wrap_add({a}, {b})"),
        BinaryKind::Sub => format!("wrap_sub({a}, {b})"),
        BinaryKind::Mul => format!("wrap_mul({a}, {b})"),
        BinaryKind::Div => format!("safe_div({a}, {b})"),
        BinaryKind::Rem => format!("safe_rem({a}, {b})"),
        BinaryKind::Max => format!("int_max({a}, {b})"),
        BinaryKind::Min => format!("int_min({a}, {b})"),
        BinaryKind::And if bool => format!("{a} && {b}"),
        BinaryKind::Or if bool => format!("{a} || {b}"),
        BinaryKind::Xor if bool => format!("{a} != {b}"),
        BinaryKind::And => bits("&")?,
        BinaryKind::Or => bits("|")?,
        BinaryKind::Xor => bits("^")?,
    })
}

fn comparison(kind: CompareKind) -> &'static str {
    match kind {
        CompareKind::Eq => "==",
        CompareKind::Ne => "!=",
        CompareKind::Lt => "<",
        CompareKind::Le => "<=",
        CompareKind::Gt => ">",
        CompareKind::Ge => ">=",
    }
}
