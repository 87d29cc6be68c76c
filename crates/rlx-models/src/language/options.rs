//! What can be asked of a language model.

use rlx_compile::CompileOptions;
use rlx_ir::{DType, bail};
use rlx_runtime::Strategy;

use crate::arch::decoder::{DecoderLimits, DecoderShape};
use crate::arch::weight_type::WeightType;
use crate::cancel::CancelToken;
use crate::sampling::SamplingParams;
use crate::{Error, Result};

/// The longest context that is taken without being asked for, in tokens.
const DEFAULT_CONTEXT: usize = 4096;
/// Tokens of a page of the cache.
const PAGE_LEN: usize = 32;
/// The most rows of logits of one step, where there are not more sequences.
const LOGIT_ROWS: usize = 64;

/// How a language model is loaded.
#[derive(Clone, Debug)]
pub struct LanguageOptions {
    /// Tokens of one sequence, prompt and continuation together; 0 takes the model's own, up to 4096.
    pub context: usize,
    /// New tokens of one step: a longer prompt takes several.
    pub batch_tokens: usize,
    /// Sequences of one step.
    pub sequences: usize,
    /// The type of the matrices.
    pub weights: WeightType,
    /// The type of keys and values in the cache: f16, bf16 or f32.
    pub kv_dtype: DType,
    /// Passes and precision.
    pub compile: CompileOptions,
    /// The device; `None` takes the runtime's setting.
    pub device: Option<String>,
    /// The strategy; `None` takes the runtime's setting.
    pub strategy: Option<Strategy>,
}

impl Default for LanguageOptions {
    /// The model's own context up to 4096 tokens, steps of 512, one sequence, weights as stored, keys and values in f16.
    fn default() -> Self {
        Self {
            context: 0,
            batch_tokens: 512,
            sequences: 1,
            weights: WeightType::AsStored,
            kv_dtype: DType::F16,
            compile: CompileOptions::default(),
            device: None,
            strategy: None,
        }
    }
}

impl LanguageOptions {
    /// The bounds of a step of a model with these sizes.
    ///
    /// # Errors
    /// `InvalidArgument` for a context beyond the model's, and for what is no type of keys and values.
    pub fn limits(&self, shape: &DecoderShape) -> Result<DecoderLimits> {
        if self.context > shape.context_length {
            bail!(
                InvalidArgument,
                "a context of {} tokens was asked for, but the model takes {} at most",
                self.context,
                shape.context_length
            );
        }
        if !matches!(self.kv_dtype, DType::F16 | DType::BF16 | DType::F32) {
            bail!(InvalidArgument, "keys and values in {}: f16, bf16 and f32 go", self.kv_dtype);
        }
        if self.batch_tokens == 0 || self.sequences == 0 {
            bail!(InvalidArgument, "a step needs at least one token and one sequence");
        }
        let context = match self.context {
            0 => shape.context_length.min(DEFAULT_CONTEXT),
            context => context,
        };
        let tokens = self.batch_tokens.min(context.saturating_mul(self.sequences)).max(self.sequences);
        Ok(DecoderLimits {
            tokens,
            sequences: self.sequences,
            rows: LOGIT_ROWS.min(tokens).max(self.sequences),
            context,
            page_len: PAGE_LEN,
            kv_dtype: self.kv_dtype,
            weights: self.weights,
        })
    }
}

/// How a continuation is made.
#[derive(Clone, Debug)]
pub struct GenerateOptions {
    /// The most tokens; -1 goes on until a stop token or the end of the context.
    pub max_tokens: i64,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Texts that end the continuation, and are no part of it.
    pub stop: Vec<String>,
    /// Stops it from another thread.
    pub cancel: CancelToken,
}

impl Default for GenerateOptions {
    fn default() -> Self {
        Self {
            max_tokens: -1,
            sampling: SamplingParams::default(),
            stop: Vec::new(),
            cancel: CancelToken::default(),
        }
    }
}
