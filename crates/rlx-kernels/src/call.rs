//! From an op and the layouts of its operands to a kernel, its arguments, its bindings and its work.
//!
//! What a kernel cannot do is an error that says why, so that a backend's answer to "is this supported" is this very
//! function. Results are dense.

mod activation;
mod attention;
mod elementwise;
mod embedding;
mod matmul;
mod norm;
mod pooling;
mod position;
mod reduce;
mod shape;
mod state;

use rlx_ir::Op;
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::Pool;
use rlx_ir::ops::position::rope::Rope;
use rlx_ir::ops::reduce::reduce::Reduce;
use rlx_ir::ops::state::kv_write::KvWrite;

use crate::args::Args;
use crate::error::{Error, Result};
use crate::geometry::{self, DeviceLimits, Geometry, SimdRows};
use crate::layout::Layout;
use crate::manifest::{Kernel, find};

pub use attention::{AttentionBody, attention_by, paged_attention_by};
pub use embedding::{EmbeddingLayerNorm, EmbeddingPart, embedding_layer_norm};
pub use pooling::pool_l2_normalize;
pub use shape::copy;

/// What a buffer of a kernel is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// The operand at this place.
    Operand(usize),
    /// The result at this place.
    Result(usize),
    /// Nothing: the buffer is optional.
    Nothing,
}

/// What is shared out among threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A thread for each of this many elements.
    PerElement(usize),
    /// A threadgroup for each row.
    PerRow {
        /// The number of rows.
        rows: usize,
        /// The elements of a row.
        width: usize,
    },
    /// Threadgroups of a fixed size.
    Tiles {
        /// The number of threadgroups.
        groups: usize,
        /// The simdgroups of each.
        simds: usize,
    },
    /// Rows for each simdgroup, and as many threadgroups beside each other as there are columns.
    SimdRows(SimdRows),
}

impl Work {
    /// What to launch; `None` where there is nothing to do.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where the device cannot launch so much.
    pub fn geometry(self, limits: DeviceLimits, pipeline_threads: u32) -> Result<Option<Geometry>> {
        match self {
            Self::PerElement(elems) => geometry::per_element(elems, limits, pipeline_threads),
            Self::PerRow { rows, width } => geometry::per_row(rows, width, limits, pipeline_threads),
            Self::Tiles { groups, simds } => geometry::tiles(groups, simds, limits, pipeline_threads),
            Self::SimdRows(rows) => rows.geometry(limits, pipeline_threads),
        }
    }
}

impl Kernel {
    /// What to launch for `work`; `None` where there is nothing to do.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where the device cannot launch so much, or has too little threadgroup memory.
    pub fn geometry(
        &self,
        work: Work,
        limits: DeviceLimits,
        pipeline_threads: u32,
    ) -> Result<Option<Geometry>> {
        let bytes = self.scratch_bytes();
        if bytes > limits.threadgroup_bytes {
            rlx_ir::bail!(
                UnsupportedOnDevice,
                "{}: {bytes} bytes of threadgroup memory, but the device has {}",
                self.name,
                limits.threadgroup_bytes
            );
        }
        work.geometry(limits, pipeline_threads)
    }
}

/// A kernel with all that a dispatch needs but the buffers themselves.
#[derive(Clone, Debug)]
pub struct Call {
    /// The kernel.
    pub kernel: &'static Kernel,
    /// The bytes of its argument struct.
    pub args: Vec<u8>,
    /// What each of its buffers is bound to.
    pub bindings: Vec<Bound>,
    /// What is shared out among threads.
    pub work: Work,
}

impl Call {
    /// What to launch; `None` where there is nothing to do.
    ///
    /// # Errors
    /// As [`Kernel::geometry`].
    pub fn geometry(&self, limits: DeviceLimits, pipeline_threads: u32) -> Result<Option<Geometry>> {
        self.kernel.geometry(self.work, limits, pipeline_threads)
    }

    /// A call whose buffers are the operands in order, then the results.
    fn new(name: &str, args: &impl Args, operands: usize, work: Work) -> Result<Self> {
        let kernel = find(name)?;
        let bindings = (0..kernel.buffers.len())
            .map(|at| if at < operands { Bound::Operand(at) } else { Bound::Result(at - operands) })
            .collect();
        Ok(Self { kernel, args: args.bytes().to_vec(), bindings, work })
    }
}

/// The call for `op` on operands of these layouts.
///
/// # Errors
/// `UnsupportedOnDevice` where no kernel does it, with the reason.
pub fn call(op: &dyn Op, operands: &[Layout]) -> Result<Call> {
    let called = if let Some(op) = op.downcast::<Softmax>() {
        norm::softmax(op, operands)
    } else if let Some(op) = op.downcast::<LayerNorm>() {
        norm::layer_norm(op, operands)
    } else if let Some(op) = op.downcast::<AddLayerNorm>() {
        norm::add_layer_norm(op, operands)
    } else if let Some(op) = op.downcast::<RmsNorm>() {
        norm::rms_norm(op, operands)
    } else if let Some(op) = op.downcast::<AddRmsNorm>() {
        norm::add_rms_norm(op, operands)
    } else if let Some(op) = op.downcast::<Cast>() {
        elementwise::cast(op, operands)
    } else if let Some(op) = op.downcast::<Reduce>() {
        reduce::reduce(op, operands)
    } else if let Some(op) = op.downcast::<Embedding>() {
        embedding::embedding(op, operands)
    } else if let Some(op) = op.downcast::<MatMul>() {
        matmul::matmul(*op, operands)
    } else if let Some(op) = op.downcast::<Linear>() {
        matmul::linear(*op, operands)
    } else if let Some(op) = op.downcast::<Rope>() {
        position::rope(op, operands)
    } else if let Some(op) = op.downcast::<Glu>() {
        activation::glu(op, operands)
    } else if let Some(op) = op.downcast::<Attention>() {
        attention::attention(op, operands)
    } else if let Some(op) = op.downcast::<PagedAttention>() {
        attention::paged_attention(op, operands)
    } else if op.downcast::<KvWrite>().is_some() {
        state::kv_write(operands)
    } else if let Some(op) = op.downcast::<L2Normalize>() {
        pooling::l2_normalize(op, operands)
    } else if let Some(op) = op.downcast::<Pool>() {
        pooling::pool(op, operands)
    } else {
        rlx_ir::bail!(UnsupportedOnDevice, "no kernel");
    };
    called.map_err(|e: Error| e.context(op.name()))
}

/// Refuses dtypes for which a kernel is not instantiated.
fn check_dtype(operand: usize, layout: &Layout, fits: &[rlx_ir::DType]) -> Result<()> {
    if fits.contains(&layout.dtype) {
        return Ok(());
    }
    let names: Vec<&str> = fits.iter().map(|d| d.name()).collect();
    rlx_ir::bail!(
        UnsupportedOnDevice,
        "operand {operand} is {}; there are kernels for {}",
        layout.dtype,
        names.join(", ")
    )
}

const FLOATS: &[rlx_ir::DType] = &[rlx_ir::DType::F32, rlx_ir::DType::F16];

/// Refuses operands with gaps.
fn check_dense(operand: usize, layout: &Layout) -> Result<()> {
    if layout.is_dense() {
        return Ok(());
    }
    rlx_ir::bail!(UnsupportedOnDevice, "operand {operand} must be dense, but is {layout:?}")
}
