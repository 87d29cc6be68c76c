//! Kernels that are wrong on purpose, for `compute-sanitizer`: that it finds nothing in the others says something only where it
//! finds these.

use rlx_ir::{DType, Tensor, TensorType};
use rlx_kernels::Kernel;
use rlx_kernels::args::{Args, CastArgs};
use rlx_kernels::call::{Bound, Work};
use rlx_kernels::manifest::{Access, Buffer, Scratch};

use crate::device::Gpu;
use crate::harness::{Dispatch, Placed, Placement, Runner};

/// By the tool that finds it, a kernel's body for threadgroups of 64 threads.
pub const KERNELS: [(&str, &str); 3] = [
    ("memcheck", "out[index] = x[index + 1];"),
    ("racecheck", "scratch[ids.thread_index] = x[index];\n  out[index] = scratch[63 - ids.thread_index];"),
    ("synccheck", "if (ids.thread_index < 7) barrier_threadgroup();\n  out[index] = x[index];"),
];

const THREADGROUPS: usize = 2;
const ELEMS: usize = THREADGROUPS * 64;

/// Runs the kernel that `tool` is to find.
pub fn run(gpu: &Gpu, tool: &str) -> Result<(), String> {
    let (name, body) =
        KERNELS.into_iter().find(|k| k.0 == tool).ok_or_else(|| format!("no kernel for {tool}"))?;
    let buffer =
        |name: &str, access| Buffer { name: name.into(), dtype: DType::F32, access, optional: false };
    let kernel = Kernel {
        name: name.into(),
        function: format!("{name}_body"),
        sources: Vec::new(),
        text: Some(format!(
            "inline void {name}_body(device const CastArgs* args, device const float* x, device float* out, \
             threadgroup float* scratch, Ids ids) {{\n  uint index = ids.group * ids.threads + ids.thread_index;\n  {body}\n}}\n"
        )),
        args: CastArgs::LAYOUT,
        buffers: vec![buffer("x", Access::Read), buffer("out", Access::Write)],
        scratch: vec![Scratch { name: "scratch", dtype: DType::F32, elems: 64 }],
    };
    let module = gpu.compile(std::slice::from_ref(&kernel))?;
    let ty = TensorType::new(DType::F32, [ELEMS]);
    let x = Tensor::zeros(ty.clone()).map_err(|e| e.to_string())?;
    let dispatch = Dispatch {
        kernel: &kernel,
        args: CastArgs { elems: ELEMS as u32 }.bytes(),
        bindings: &[Bound::Operand(0), Bound::Result(0)],
        // Four elements of a row for each thread.
        work: Work::PerRow { rows: THREADGROUPS, width: 256 },
        operands: &[Placed::new(&x, Placement::Dense)],
        results: &[ty],
        before: &[],
        seed: 0,
    };
    let prepared = gpu.prepare(Some(&module), &dispatch)?;
    gpu.launch(&prepared).and_then(|()| gpu.stream.synchronize()).map_err(|e| e.to_string())
}
