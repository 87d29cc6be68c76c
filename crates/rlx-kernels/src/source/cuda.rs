//! Entry points in CUDA C++.

use crate::manifest::{Kernel, Scratch, cpp_type};
use crate::source::{parameters, passed};

/// An `extern "C" __global__` function: a pointer to the arguments, then one for each buffer.
pub(super) fn entry(kernel: &Kernel) -> String {
    let mut list = vec![format!("device const {}* args", kernel.args.name)];
    list.extend(parameters(kernel).map(|(ty, name)| format!("{ty} {name}")));
    let shared = |scratch: &Scratch| {
        let cpp = cpp_type(scratch.dtype).unwrap_or("void");
        format!("  __shared__ {cpp} {}[{}];\n", scratch.name, scratch.elems)
    };
    let scratch: String = kernel.scratch.iter().map(shared).collect();
    format!(
        "extern \"C\" __global__ void {}({}) {{\n{scratch}  Ids ids = {{blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x, \
         threadIdx.x, blockDim.x, threadIdx.x % 32, threadIdx.x / 32, blockDim.x / 32}};\n  {}({}, ids);\n}}\n",
        kernel.name,
        list.join(", "),
        kernel.function,
        passed(kernel)
    )
}
