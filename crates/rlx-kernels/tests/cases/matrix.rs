//! Matrices of simdgroups, in kernels of their own.

use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::{DType, Tensor};
use rlx_kernels::Kernel;
use rlx_kernels::args::{Args, CopyArgs};
use rlx_kernels::call::Work;
use rlx_kernels::manifest::{Access, Buffer, Scratch, cpp_type};

use crate::harness::{FLOATS, Placement, cases, check_kernel, compile, random, reference};

cases! {
    products_of_stacks,
}

/// The product of two stacks of 8 x 8 matrices, one simdgroup for each place in the stack, by way of threadgroup memory or
/// without. Rows are `x_strides[0]` apart in `a`, `x_strides[1]` in `b`; `out` is dense and holds float.
fn kernel(name: &str, dtype: DType, transpose_b: bool, staged: bool) -> Kernel {
    let cpp = cpp_type(dtype).unwrap();
    let load = if transpose_b { "matrix_load_transposed" } else { "matrix_load" };
    let (fill, sources) = if staged {
        let fill = "  for (uint i = ids.lane; i < 64; i += 32) {
    left[i] = a[i / 8 * a_row + i % 8];
    right[i] = b[i / 8 * b_row + i % 8];
  }
  simd_barrier();
";
        (fill, ["left, 8", "right, 8"])
    } else {
        ("", ["a, a_row", "b, b_row"])
    };
    let text = format!(
        "inline void {name}_body(device const CopyArgs* args, device const {cpp}* a, device const {cpp}* b, device float* out, \
         threadgroup {cpp}* left, threadgroup {cpp}* right, threadgroup float* result, Ids ids) {{
  uint a_row = args->x_strides[0];
  uint b_row = args->x_strides[1];
  a += ids.group * 8 * a_row;
  b += ids.group * 8 * b_row;
  out += ids.group * 64;
{fill}  simd_matrix<{cpp}> x;
  simd_matrix<{cpp}> y;
  simd_matrix<float> sum;
  matrix_load(x, {});
  {load}(y, {});
  matrix_fill(sum, 0.0f);
  matrix_multiply_accumulate(sum, x, y, sum);
  matrix_store(sum, result, 8);
  simd_barrier();
  for (uint i = ids.lane; i < 64; i += 32) out[i] = result[i];
}}
",
        sources[0], sources[1]
    );
    let buffer = |name: &str, dtype, access| Buffer { name: name.into(), dtype, access, optional: false };
    Kernel {
        name: name.into(),
        function: format!("{name}_body"),
        sources: Vec::new(),
        text: Some(text),
        args: CopyArgs::LAYOUT,
        buffers: vec![
            buffer("a", dtype, Access::Read),
            buffer("b", dtype, Access::Read),
            buffer("out", DType::F32, Access::Write),
        ],
        scratch: vec![
            Scratch { name: "left", dtype, elems: 64 },
            Scratch { name: "right", dtype, elems: 64 },
            Scratch { name: "result", dtype: DType::F32, elems: 64 },
        ],
    }
}

/// The same values as f32.
fn wide(x: &Tensor) -> Tensor {
    let values: Vec<f32> = x.to_f64().unwrap().iter().map(|v| *v as f32).collect();
    Tensor::f32(x.shape().to_vec(), &values).unwrap()
}

fn products_of_stacks() {
    let mut rng = SplitMix64::new(1);
    let mut kernels = Vec::new();
    let mut flags = Vec::new();
    for dtype in FLOATS {
        for transpose_b in [false, true] {
            for staged in [false, true] {
                kernels.push(kernel(&format!("product{}", kernels.len()), dtype, transpose_b, staged));
                flags.push((dtype, transpose_b));
            }
        }
    }
    let Some(library) = compile(&kernels) else { return };
    for (kernel, (dtype, transpose_b)) in kernels.iter().zip(flags) {
        let operands = [0; 2].map(|_| random(&mut rng, dtype, &[5, 8, 8], (-2.0, 2.0)));
        let op = MatMul { transpose_b };
        let expected = reference(Arc::new(op), &operands.each_ref().map(wide));
        for placement in [Placement::Dense, Placement::Gaps] {
            let args = |layouts: &[rlx_kernels::layout::Layout]| {
                let rows = [layouts[0].strides[1] as u32, layouts[1].strides[1] as u32];
                let args = CopyArgs { x_strides: [rows[0], rows[1], 0, 0, 0, 0], ..CopyArgs::default() };
                (args.bytes().to_vec(), Work::PerRow { rows: 5, width: 32 })
            };
            check_kernel(&library, kernel, args, (&expected, &operands), placement);
        }
    }
}
