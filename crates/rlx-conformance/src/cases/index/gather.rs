//! `gather`.

use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use crate::Result;
use crate::cases::{Case, SIZES, Samples, blocks};

/// Tables of every dtype, other axes, other index dtypes, and indices out of range.
pub(crate) struct Gather;

impl Case for Gather {
    fn name(&self) -> &'static str {
        "gather"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS.into_iter().chain(blocks()) {
            let width = if dtype.is_block() { 2 * dtype.block_elems() } else { 5 };
            for origin in [
                format!("weight \"t\" : {dtype}[7, {width}] = seed 3"),
                format!("input \"t\" : {dtype}[7, {width}]"),
            ] {
                let body = format!(
                    "%t = {origin}\n%i = input \"i\" : i32[N]\n%y = gather %t, %i {{axis = 0}}\nreturn %y"
                );
                let kind = if origin.starts_with('w') { "weight" } else { "input" };
                let sizes = if dtype == DType::F32 { &SIZES[..] } else { &[0, 3] };
                for &n in sizes {
                    samples
                        .add(dtype, format!("{kind} n={n}"), ("N <= 65", &[("N", n)]), &body)?
                        .indices("i", 7)?;
                }
            }
        }
        for dtype in [DType::F32, DType::F16, DType::I8, DType::I64, DType::Bool] {
            for index in [DType::I32, DType::I64, DType::U32] {
                for (axis, shape) in
                    [(0, "[6]"), (0, "[6, 2, 2]"), (1, "[2, 6, 3]"), (2, "[2, 1, 6]"), (-1, "[3, 6]")]
                {
                    let body = format!(
                        "%t = input \"t\" : {dtype}{shape}\n%i = input \"i\" : {index}[N, 2]\n\
                         %y = gather %t, %i {{axis = {axis}}}\nreturn %y"
                    );
                    let label = format!("axis {axis} of {shape} by {index}");
                    samples.add(dtype, label, ("N <= 9", &[("N", 4)]), &body)?.indices("i", 6)?;
                }
            }
        }
        for index in [DType::I64, DType::U32] {
            for dtype in [DType::Block(BlockType::Q8_0), DType::Block(BlockType::Q4_K)] {
                let width = 2 * dtype.block_elems();
                let body = format!(
                    "%t = input \"t\" : {dtype}[7, {width}]\n%i = input \"i\" : {index}[N]\n%y = gather %t, %i {{axis = 0}}\nreturn %y"
                );
                samples.add(dtype, format!("by {index}"), ("N <= 9", &[("N", 4)]), &body)?.indices("i", 7)?;
            }
            for axis in [0, 1] {
                let body = format!(
                    "%t = input \"t\" : i16[4, 4]\n%i = input \"i\" : {index}[2]\n%y = gather %t, %i {{axis = {axis}}}\nreturn %y"
                );
                // As many bits of i32 would be row 1.
                let far = if index == DType::I64 { (1 << 32) + 1 } else { 1 << 31 };
                let label = format!("index {far} of axis {axis} by {index}");
                samples.add(DType::I16, label, ("", &[]), &body)?.ints("i", &[0, far])?.refuse();
            }
        }
        for dtype in [DType::F32, DType::F64] {
            for wrong in [-1, 4] {
                let body = format!(
                    "%t = input \"t\" : {dtype}[4, 3]\n%i = input \"i\" : i32[2]\n%y = gather %t, %i {{axis = 0}}\nreturn %y"
                );
                samples
                    .add(dtype, format!("index {wrong}"), ("", &[]), &body)?
                    .ints("i", &[0, wrong])?
                    .refuse();
            }
        }
        let body = "%t = input \"t\" : f32[6, N]\n%i = input \"i\" : i32[3]\n%p = transpose %t {perm = [1, 0]}\n\
                    %y = gather %p, %i {axis = 0}\nreturn %y";
        samples.add(DType::F32, "transposed", ("N <= 9", &[("N", 5)]), body)?.indices("i", 5)?;
        Ok(())
    }
}
