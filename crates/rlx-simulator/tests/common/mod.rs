//! Kernels for tests: `out[..]` from `x[..]`, both f32, with 32 floats of threadgroup memory where nothing else is said.
#![allow(dead_code)]

use std::path::Path;
use std::sync::Arc;

use rlx_ir::DType;
use rlx_kernels::args::{Args, CastArgs};
use rlx_kernels::geometry::Geometry;
use rlx_kernels::manifest::{Access, Buffer, Kernel, Scratch, cpp_type};
use rlx_kernels::source::{Target, library};
use rlx_simulator::{BufferId, Compiler, Counts, Fault, Launch, Library, Mode, Simulator, Slice, or_skip};

/// The elements of each buffer: one for each thread of a dispatch.
pub const ELEMS: usize = 128;

/// Clang, if it is there.
pub fn compiler() -> Option<Compiler> {
    or_skip(Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR"))))
}

/// A kernel with this body.
pub fn kernel(name: &str, body: &str) -> Kernel {
    kernel_with(name, body, vec![Scratch { name: "scratch", dtype: DType::F32, elems: 32 }])
}

/// A kernel with this body and these arrays of threadgroup memory.
pub fn kernel_with(name: &str, body: &str, scratch: Vec<Scratch>) -> Kernel {
    let buffer =
        |name: &str, access| Buffer { name: name.into(), dtype: DType::F32, access, optional: false };
    let parameters: String =
        scratch.iter().map(|s| format!("threadgroup {}* {}, ", cpp_type(s.dtype).unwrap(), s.name)).collect();
    let text = format!(
        "inline void {name}_body(device const CastArgs* args, device const float* x, device float* out, {parameters}Ids \
         ids) {{\n  uint index = ids.group * ids.threads + ids.thread_index;\n  (void)index;\n{body}\n}}\n"
    );
    Kernel {
        name: name.into(),
        function: format!("{name}_body"),
        sources: Vec::new(),
        text: Some(text),
        args: CastArgs::LAYOUT,
        buffers: vec![buffer("x", Access::Read), buffer("out", Access::Write)],
        scratch,
    }
}

/// The text of a library.
pub fn text(kernels: &[Kernel]) -> String {
    library(Target::Host, kernels)
}

/// The parts of a launch that a test may change.
pub struct Parts {
    pub geometry: Geometry,
    pub args: Vec<u8>,
    pub bindings: Vec<Option<Slice>>,
}

/// Kernels, and four buffers of which all but one hold data.
pub struct Setup {
    pub sim: Simulator,
    pub buffers: [BufferId; 4],
    pub last: Counts,
    library: Arc<Library>,
    kernels: Vec<Kernel>,
}

/// 1, 2, 3, ...
pub fn data() -> Vec<f32> {
    (0..ELEMS).map(|i| i as f32 + 1.0).collect()
}

impl Setup {
    pub fn new(kernels: &[Kernel], mode: Mode) -> Option<Self> {
        let library = Arc::new(compiler()?.library(&text(kernels), mode).unwrap());
        Some(Self::with(library, kernels))
    }

    pub fn with(library: Arc<Library>, kernels: &[Kernel]) -> Self {
        let mut sim = Simulator::new();
        let bytes: Vec<u8> = data().iter().flat_map(|v| v.to_le_bytes()).collect();
        let full = |sim: &mut Simulator| sim.buffer_of(&bytes, 4).unwrap();
        let buffers = [full(&mut sim), full(&mut sim), full(&mut sim), sim.buffer(bytes.len(), 4).unwrap()];
        Self { sim, buffers, last: Counts::default(), library, kernels: kernels.to_vec() }
    }

    /// Two threadgroups of two simdgroups, from buffer 0 to the one that nobody has written.
    pub fn parts(&self) -> Parts {
        self.parts_between((0, 3))
    }

    /// As [`parts`](Self::parts), between two buffers.
    pub fn parts_between(&self, (from, to): (usize, usize)) -> Parts {
        Parts {
            geometry: Geometry { groups: [2, 1, 1], threads: 64 },
            args: CastArgs { elems: ELEMS as u32 }.bytes().to_vec(),
            bindings: vec![Some(self.sim.whole(self.buffers[from])), Some(self.sim.whole(self.buffers[to]))],
        }
    }

    pub fn dispatch_parts(&mut self, kernel: usize, parts: &Parts, seed: u64) -> Result<Counts, Fault> {
        let launch = Launch {
            kernel: &self.kernels[kernel],
            geometry: parts.geometry,
            args: &parts.args,
            bindings: &parts.bindings,
            seed,
        };
        let counts = self.sim.dispatch(&self.library, &launch)?;
        self.last = counts;
        Ok(counts)
    }

    /// Runs alone: ordered after all before, into a buffer that begins its life.
    pub fn dispatch(&mut self, kernel: usize, seed: u64) -> Result<Counts, Fault> {
        self.sim.barrier();
        let out = self.sim.whole(self.buffers[3]);
        self.sim.forget(out).unwrap();
        let parts = self.parts();
        self.dispatch_parts(kernel, &parts, seed)
    }

    /// Runs without a barrier, between two of the buffers that hold data.
    pub fn dispatch_between(&mut self, kernel: usize, pair: (usize, usize)) -> Result<Counts, Fault> {
        let parts = self.parts_between(pair);
        self.dispatch_parts(kernel, &parts, 0)
    }

    /// What the last dispatch wrote.
    pub fn out(&self) -> Vec<f32> {
        let bytes = self.sim.read(self.sim.whole(self.buffers[3])).unwrap();
        bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
}
