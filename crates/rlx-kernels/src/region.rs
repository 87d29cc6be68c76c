//! Kernels for fused elementwise ops, written when a region is compiled.
//!
//! One thread computes one element of every result. Each op rounds to its dtype, as the region's meaning says, so that
//! putting ops into a region changes no result; floats are computed in f32. Operands may have any strides that
//! broadcast to the results' shape; results are dense.

mod expression;

use std::collections::HashMap;
use std::fmt::Write;

use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::{DType, Def, Tensor, Value};

use crate::args::{Args, MAX_RANK, MAX_REGION_OPERANDS, RegionArgs};
use crate::call::Work;
use crate::error::{Error, Result};
use crate::geometry::index;
use crate::layout::{Joined, Layout};
use crate::manifest::{Access, Buffer, Kernel, cpp_type};
use crate::source::{CONVERT, IDS, INTEGER, MATH};

/// Writes the kernel of a region; `name` becomes its entry point and must be unique within a library.
///
/// # Errors
/// `UnsupportedOnDevice` where the region holds a dtype or a constant that no kernel takes, or too many operands.
pub fn kernel(region: &FusedRegion, name: &str) -> Result<Kernel> {
    let body = &region.body;
    let inputs: Vec<(Value, &str)> = body.inputs().collect();
    if inputs.len() > MAX_REGION_OPERANDS {
        rlx_ir::bail!(
            UnsupportedOnDevice,
            "fused_region: {} operands, at most {MAX_REGION_OPERANDS} fit",
            inputs.len()
        );
    }
    let buffer = |name: String, dtype: DType, access| -> Result<Buffer> {
        memory_type(dtype)?;
        Ok(Buffer { name, dtype, access, optional: false })
    };
    let mut buffers = Vec::new();
    for (i, (value, _)) in inputs.iter().enumerate() {
        buffers.push(buffer(format!("in{i}"), body.ty(*value).dtype, Access::Read)?);
    }
    for (i, value) in body.outputs().iter().enumerate() {
        buffers.push(buffer(format!("out{i}"), body.ty(*value).dtype, Access::Write)?);
    }
    let mut names: HashMap<Value, String> = HashMap::new();
    let mut text = String::new();
    for (i, (value, _)) in inputs.iter().enumerate() {
        let ty = register_type(body.ty(*value).dtype)?;
        let _ = writeln!(text, "  {ty} x{i} = {ty}(in{i}[at[{i}]]);");
        names.insert(*value, format!("x{i}"));
    }
    for value in body.value_ids() {
        if let Def::Const(tensor) = &body.value(value).def {
            names.insert(value, literal(tensor)?);
        }
    }
    for (i, node) in body.nodes().iter().enumerate() {
        let operands: Vec<(&str, DType)> = node
            .operands
            .iter()
            .map(|v| (names.get(v).map_or("", String::as_str), body.ty(*v).dtype))
            .collect();
        let result = node.results[0];
        let dtype = body.ty(result).dtype;
        let value = expression::of(node.op.as_ref(), &operands, dtype)?;
        let rounded = if dtype == DType::F16 { format!("round_to_half({value})") } else { value };
        let _ = writeln!(text, "  {} v{i} = {rounded};", register_type(dtype)?);
        names.insert(result, format!("v{i}"));
    }
    for (i, value) in body.outputs().iter().enumerate() {
        let ty = memory_type(body.ty(*value).dtype)?;
        let _ = writeln!(text, "  out{i}[index] = {ty}({});", names.get(value).map_or("", String::as_str));
    }
    let function = format!("{name}_body");
    Ok(Kernel {
        name: name.to_owned(),
        text: Some(whole(&function, &buffers, inputs.len(), &text)),
        function,
        sources: vec![&IDS, &MATH, &CONVERT, &INTEGER],
        args: RegionArgs::LAYOUT,
        buffers,
        scratch: Vec::new(),
    })
}

/// The function around the statements of a body.
fn whole(function: &str, buffers: &[Buffer], operands: usize, body: &str) -> String {
    let mut text = format!("inline void {function}(device const RegionArgs* args");
    for buffer in buffers {
        let constness = if buffer.access == Access::Read { "const " } else { "" };
        let cpp = cpp_type(buffer.dtype).unwrap_or("void");
        let _ = write!(text, ", device {constness}{cpp}* {}", buffer.name);
    }
    text.push_str(", Ids ids) {\n  uint index = ids.group * ids.threads + ids.thread_index;\n");
    text.push_str("  if (index >= args->elems) return;\n");
    if operands > 0 {
        let _ = writeln!(text, "  ulong at[{operands}];");
        // Where all operands are dense or scalars there is one axis, and nothing to divide.
        let _ = writeln!(
            text,
            "  for (uint i = 0; i < {operands}; i++) at[i] = 0;\n  \
             uint rest = index;\n  \
             for (uint axis = args->rank; axis > 0; axis--) {{\n    \
             uint size = args->sizes[axis - 1];\n    \
             uint here = axis > 1 ? rest % size : rest;\n    \
             for (uint i = 0; i < {operands}; i++) at[i] += ulong(here) * args->strides[i * {MAX_RANK} + axis - 1];\n    \
             if (axis > 1) rest /= size;\n  \
             }}"
        );
    }
    text.push_str(body);
    text.push_str("}\n");
    text
}

/// The arguments of a region's kernel, and its work: `shape` is that of the results.
///
/// # Errors
/// `UnsupportedOnDevice` where there are too many axes or elements.
pub fn args(operands: &[Layout], shape: &[usize]) -> Result<(RegionArgs, Work)> {
    let strides: Vec<Vec<usize>> = operands.iter().map(|o| o.broadcast_strides(shape)).collect();
    let joined = Joined::new(shape, &strides.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let elems: usize = shape.iter().product();
    let mut args = RegionArgs {
        elems: index(elems)?,
        rank: index(joined.sizes.len())?,
        sizes: joined.sizes_arg()?,
        ..RegionArgs::default()
    };
    for at in 0..operands.len() {
        match args.strides.get_mut(at * MAX_RANK..(at + 1) * MAX_RANK) {
            Some(slot) => slot.copy_from_slice(&joined.strides_arg(at)?),
            None => rlx_ir::bail!(UnsupportedOnDevice, "{} operands of a region", operands.len()),
        }
    }
    Ok((args, Work::PerElement(elems)))
}

/// The type of elements in memory.
fn memory_type(dtype: DType) -> Result<&'static str> {
    match cpp_type(dtype) {
        Some(cpp) => Ok(cpp),
        None => rlx_ir::bail!(UnsupportedOnDevice, "fused_region: no kernel takes {dtype}"),
    }
}

/// The type that a value is computed in.
fn register_type(dtype: DType) -> Result<&'static str> {
    Ok(if dtype == DType::F16 { "float" } else { memory_type(dtype)? })
}

/// A constant, exactly.
fn literal(tensor: &Tensor) -> Result<String> {
    let dtype = tensor.dtype();
    if tensor.elems() != 1 {
        rlx_ir::bail!(UnsupportedOnDevice, "fused_region: a constant of {} elements", tensor.elems());
    }
    let ty = register_type(dtype)?;
    if dtype.is_float() {
        let value = tensor.to_f64()?.first().copied().unwrap_or(0.0) as f32;
        return Ok(format!("as_float_bits(0x{:08x}u)", value.to_bits()));
    }
    let value = tensor.to_i64()?.first().copied().unwrap_or(0);
    Ok(match dtype {
        DType::Bool => format!("{}", value != 0),
        DType::U32 => format!("{value}u"),
        // The lowest value has no literal.
        DType::I64 if value == i64::MIN => "(-9223372036854775807L - 1L)".to_owned(),
        DType::I64 => format!("{ty}({value}L)"),
        DType::I32 if value == i64::from(i32::MIN) => "(-2147483647 - 1)".to_owned(),
        _ => format!("{ty}({value})"),
    })
}
