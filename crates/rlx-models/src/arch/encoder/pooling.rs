//! From the vectors of tokens to one for each sequence.

use rlx_ir::ops::pooling::pool::PoolMode;
use rlx_ir::{Builder, DType, Dim, Value};

use super::graph::{EncoderInputs, width_of};
use crate::Result;
use crate::sentence_transformers::PoolingMode;

/// What is pooled: whole sequences, or without the prompts before their texts.
pub(super) struct Pooling<'a> {
    pub(super) inputs: &'a EncoderInputs,
    /// Where the prompt and the text of each sequence begin, i32[2 R + 1].
    pub(super) text_starts: Option<Value>,
}

impl Pooling<'_> {
    /// Pools `hidden` f32[N, W]: f32[R, W].
    pub(super) fn emit(&self, b: &mut Builder, hidden: Value, mode: PoolingMode) -> Result<Value> {
        match mode {
            PoolingMode::Cls => self.ranges(b, hidden, PoolMode::Cls),
            PoolingMode::Max => self.ranges(b, hidden, PoolMode::Max),
            PoolingMode::Mean => self.ranges(b, hidden, PoolMode::Mean),
            // The last token is what it is, with or without a prompt before it.
            PoolingMode::LastToken => Ok(b.pool(hidden, self.inputs.starts, PoolMode::Last)?),
            PoolingMode::MeanSqrtLen => {
                // sum / sqrt(n) = mean * sqrt(n)
                let mean = self.ranges(b, hidden, PoolMode::Mean)?;
                let [_, text, end] = self.borders(b)?;
                let length = b.sub(end, text)?;
                let length = b.cast(length, DType::F32)?;
                let root = b.sqrt(length)?;
                Ok(b.mul(mean, root)?)
            }
            PoolingMode::WeightedMean => {
                // Weights are 1, 2, ... from the start of the sequence. With n tokens, p of them the prompt's, the sum of
                // those that count is (n - p) (n + p + 1) / 2, and the weighted mean is the mean of (i + 1) x_i times
                // 2 / (n + p + 1).
                let weighted = self.weighted(b, hidden)?;
                let mean = self.ranges(b, weighted, PoolMode::Mean)?;
                let [start, text, end] = self.borders(b)?;
                let (all, prompt) = (b.sub(end, start)?, b.sub(text, start)?);
                let sum = b.add(all, prompt)?;
                let sum = b.cast(sum, DType::F32)?;
                let (one, two) = (b.scalar(DType::F32, 1.0)?, b.scalar(DType::F32, 2.0)?);
                let sum = b.add(sum, one)?;
                let factor = b.div(two, sum)?;
                Ok(b.mul(mean, factor)?)
            }
        }
    }

    /// Pools whole sequences, or their texts.
    fn ranges(&self, b: &mut Builder, x: Value, mode: PoolMode) -> Result<Value> {
        let Some(text_starts) = self.text_starts else { return Ok(b.pool(x, self.inputs.starts, mode)?) };
        // Ranges alternate between prompt and text; the odd ones count.
        let width = width_of(b, x)?;
        let both = b.pool(x, text_starts, mode)?;
        let paired = b.reshape(both, [self.inputs.sequences.clone(), Dim::from(2 * width)])?;
        Ok(b.slice(paired, 1, Dim::from(width), Dim::from(width))?)
    }

    /// Each token's vector times its place in the sequence, from 1.
    fn weighted(&self, b: &mut Builder, hidden: Value) -> Result<Value> {
        let place = b.cast(self.inputs.positions, DType::F32)?;
        let from_one = b.scalar(DType::F32, 1.0 - self.inputs.first_position as f64)?;
        let place = b.add(place, from_one)?;
        let place = b.reshape(place, [self.inputs.tokens.clone(), Dim::constant(1)])?;
        Ok(b.mul(hidden, place)?)
    }

    /// Where each sequence and its text begin, and where both end, each i32[R, 1].
    fn borders(&self, b: &mut Builder) -> Result<[Value; 3]> {
        let (starts, sequences) = (self.inputs.starts, &self.inputs.sequences);
        let (zero, one, two) = (Dim::constant(0), Dim::constant(1), Dim::constant(2));
        let start = b.slice(starts, 0, zero.clone(), sequences.clone())?;
        let start = b.reshape(start, [sequences.clone(), one.clone()])?;
        let end = b.slice(starts, 0, one.clone(), sequences.clone())?;
        let end = b.reshape(end, [sequences.clone(), one.clone()])?;
        let Some(text_starts) = self.text_starts else { return Ok([start, start, end]) };
        let both = b.slice(text_starts, 0, zero, sequences.clone() * two.clone())?;
        let both = b.reshape(both, [sequences.clone(), two])?;
        let text = b.slice(both, 1, one.clone(), one)?;
        Ok([start, text, end])
    }
}
