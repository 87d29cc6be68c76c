//! The cases: for each op a generator of samples, which vary one thing at a time around a plain one.
//!
//! [`TABLE`] lists each case once; a test fails when a built-in op is in none.

mod activation;
mod attention;
mod elementwise;
mod embedding;
mod fused;
mod index;
mod matmul;
mod moe;
mod norm;
mod pooling;
mod position;
mod quant;
mod reduce;
mod region;
mod sample;
mod shape;
mod state;

use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use crate::Result;

pub use sample::{Sample, Samples};

/// The samples of one op, or of ops of one shape.
pub trait Case: Sync {
    /// The case's name: the op's, or the family's where it covers several ops.
    fn name(&self) -> &'static str;

    /// The ops that it covers.
    fn ops(&self) -> Vec<&'static str> {
        vec![self.name()]
    }

    /// Adds the samples.
    ///
    /// # Errors
    /// `InvalidArgument` where a sample's text is wrong.
    fn generate(&self, samples: &mut Samples) -> Result<()>;
}

/// Every case.
pub const TABLE: &[&dyn Case] = &[
    &elementwise::unary::Unary,
    &elementwise::binary::Binary,
    &elementwise::compare::Compare,
    &elementwise::select::Select,
    &elementwise::cast::Cast,
    &reduce::reduce::Reduce,
    &index::gather::Gather,
    &index::scatter::Scatter,
    &index::iota::Iota,
    &index::argmax::ArgMax,
    &index::top_k::TopK,
    &shape::reshape::Reshape,
    &shape::transpose::Transpose,
    &shape::broadcast::Broadcast,
    &shape::slice::Slice,
    &shape::concat::Concat,
    &shape::pad::Pad,
    &quant::quantize::Quantize,
    &quant::dequantize::Dequantize,
    &matmul::matmul::MatMul,
    &matmul::linear::Linear,
    &moe::moe::Moe,
    &activation::gelu::Gelu,
    &activation::silu::Silu,
    &activation::glu::Glu,
    &norm::softmax::Softmax,
    &norm::layer_norm::LayerNorm,
    &norm::rms_norm::RmsNorm,
    &norm::add_layer_norm::AddLayerNorm,
    &norm::add_rms_norm::AddRmsNorm,
    &pooling::pool::Pool,
    &pooling::l2_normalize::L2Normalize,
    &position::rope::Rope,
    &attention::attention::Attention,
    &attention::paged_attention::PagedAttention,
    &embedding::embedding::Embedding,
    &state::kv_write::KvWrite,
    &fused::fused_region::FusedRegion,
    &region::embedding_block::EmbeddingBlock,
    &region::pooling_head::PoolingHead,
];

/// The float dtypes.
pub(crate) const FLOATS: [DType; 4] = [DType::F32, DType::F16, DType::BF16, DType::F64];

/// The float dtypes that weights and activations of models have.
pub(crate) const SMALL_FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// The integer dtypes.
pub(crate) const INTS: [DType; 6] = [DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U32];

/// Sizes around the widths of vectors and tiles.
pub(crate) const SIZES: [usize; 9] = [0, 1, 2, 15, 16, 17, 31, 33, 65];

/// The block dtypes.
pub(crate) fn blocks() -> impl Iterator<Item = DType> {
    BlockType::ALL.into_iter().map(DType::Block)
}

/// Floats and integers.
pub(crate) fn numbers() -> impl Iterator<Item = DType> {
    FLOATS.into_iter().chain(INTS)
}

/// The ends of an integer dtype, and what is next to them and to 0; `i64` has more digits than f64.
pub(crate) fn ends(dtype: DType) -> Vec<i64> {
    let (low, high) = match dtype {
        DType::I8 => (i8::MIN.into(), i8::MAX.into()),
        DType::I16 => (i16::MIN.into(), i16::MAX.into()),
        DType::I32 => (i32::MIN.into(), i32::MAX.into()),
        DType::U8 => (0, u8::MAX.into()),
        DType::U32 => (0, u32::MAX.into()),
        _ => (i64::MIN, i64::MAX),
    };
    let signed = if low < 0 { -1 } else { high / 2 + 1 };
    vec![low, low + 1, signed, 0, 1, high - 1, high]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rlx_ir::OpSet;

    use super::*;

    #[test]
    fn every_built_in_op_has_a_case_whose_samples_use_it() {
        let (mut used, mut twice) = (BTreeSet::new(), Vec::new());
        for case in TABLE {
            let mut samples = Samples::new(case.name(), 1);
            case.generate(&mut samples).unwrap();
            let samples = samples.into_list();
            let own: BTreeSet<String> =
                samples.iter().flat_map(|s| s.graph.nodes()).map(|n| n.op.name().to_owned()).collect();
            for op in case.ops() {
                assert!(own.contains(op), "no sample of {} uses {op}", case.name());
                used.insert(op);
            }
            let mut names = BTreeSet::new();
            for s in samples.iter().filter(|s| !names.insert((s.dtype, &s.label))) {
                twice.push(format!("{} {} {:?}", s.case, s.dtype, s.label));
            }
        }
        assert!(twice.is_empty(), "these samples stand twice: {twice:#?}");
        let missing: Vec<&str> =
            OpSet::builtin().iter().map(|d| d.name).filter(|n| !used.contains(n)).collect();
        assert!(missing.is_empty(), "these ops have no conformance case: {missing:?}");
    }

    #[test]
    fn a_seed_gives_the_same_samples_and_another_seed_others() {
        let inputs = |seed: u64| {
            let mut samples = Samples::new("softmax", seed);
            norm::softmax::Softmax.generate(&mut samples).unwrap();
            samples.into_list().into_iter().map(|s| s.inputs).collect::<Vec<_>>()
        };
        assert!(inputs(1) == inputs(1));
        assert!(inputs(1) != inputs(2));
    }
}
