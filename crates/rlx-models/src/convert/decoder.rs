//! What a decoder becomes in GGUF: its metadata, and what changes about its tensors.

use rlx_gguf::MetadataBuilder;
use rlx_ir::ops::position::rope::RopeStyle;
use rlx_ir::{DType, TensorType};
use rlx_runtime::weights::{WeightBytes, WeightData};

use super::tensors::Change;
use crate::Result;
use crate::arch::decoder::{self, DecoderArchitecture, DecoderConfig, DecoderLimits, Direction};
use crate::arch::weight_type::WeightType;
use crate::arch::{EncoderGraph, EncoderOutput};
use crate::encoder::Encoder;
use crate::files::{HfConfig, ModelFiles, NamedWeights};

/// A decoder to write.
pub(super) struct Converted {
    architecture: &'static DecoderArchitecture,
    config: DecoderConfig,
    /// What other programs make of the result, for people.
    pub(super) notes: Vec<String>,
}

/// Adds the sizes of the decoder in `files`.
pub(super) fn metadata(m: &mut MetadataBuilder, files: &ModelFiles, config: &HfConfig) -> Result<Converted> {
    // A model that cannot be run is refused before anything is written.
    let decoder = decoder::open(files)?;
    match decoder.shape().direction {
        Direction::Causal => decoder.graph(&DecoderLimits {
            tokens: 1,
            sequences: 1,
            rows: 1,
            context: 1,
            page_len: 1,
            kv_dtype: DType::F32,
            weights: WeightType::AsStored,
        })?,
        Direction::Bidirectional => Encoder::new(files)?.graph(&EncoderGraph {
            max_tokens: 1,
            max_sequences: 1,
            weights: WeightType::AsStored,
            output: EncoderOutput::Hidden,
        })?,
    };
    let architecture = decoder::architecture(files)?;
    let sizes = decoder::config_from_hf(architecture, config)?;
    let notes = decoder::write_gguf(architecture, &sizes, m).map_err(|e| config.locate(e))?;
    Ok(Converted { architecture, config: sizes, notes })
}

impl Converted {
    /// Tokens of the vocabulary.
    pub(super) fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    /// Adds the tensors that hold what a `config.json` says.
    pub(super) fn add_derived(&self, weights: &mut NamedWeights) {
        let rope = self.config.layers.first().map(|layer| layer.rope);
        if let Some(divisors) = rope.and_then(|rope| rope.divisors()) {
            let bytes: Vec<u8> = divisors.iter().flat_map(|d| d.to_le_bytes()).collect();
            let ty = TensorType::new(DType::F32, [divisors.len()]);
            weights.insert(decoder::ROPE_FACTORS, WeightData { ty, bytes: WeightBytes::owned(&bytes) });
        }
    }

    /// What becomes of the tensor `name`.
    pub(super) fn change(&self, name: &str) -> Change {
        let part = name.split('.').nth(2).unwrap_or_default();
        let in_pairs = self.architecture.gguf.rope_style == RopeStyle::Interleaved;
        match part {
            "attn_q" if in_pairs => Change::PairRows { heads: self.config.num_heads },
            "attn_k" if in_pairs => Change::PairRows { heads: self.config.num_kv_heads },
            _ if self.config.norm.unit_offset && name.ends_with("_norm.weight") => Change::AddOne,
            // The table of the tokens' vectors is the head, whatever else is there.
            _ if name == "output.weight" && self.config.tied_head == Some(true) => Change::LeaveOut,
            _ => Change::Keep,
        }
    }
}
