//! Logits of whole inputs: for comparing with other implementations, and for scoring texts.

use rlx_ir::bail;
use rlx_runtime::pages::Sequence;

use super::model::LanguageModel;
use super::session::{DecodeSession, Request, Wanted};
use crate::{Error, Result};

impl LanguageModel {
    /// The logits after each of `ids`, f32 `[ids.len(), vocab_size]`.
    ///
    /// # Errors
    /// `ContextExceeded` where the ids do not fit; `InvalidArgument` where one is beyond the vocabulary; `NonFinite`; errors of
    /// the device.
    pub fn logits(&self, ids: &[u32]) -> Result<Vec<f32>> {
        self.forward(ids, [1, ids.len()], None)
    }

    /// The logits of a dense input `ids`, `[B, S]`, as f32 `[B, S, vocab_size]`. Where `mask`, `[B, S]`, is false the token is
    /// left out, and its logits are 0; what is left of a row is one sequence, without a hole.
    ///
    /// # Errors
    /// As [`logits`](Self::logits); `InvalidArgument` where lengths do not fit the shape, or the mask has holes.
    pub fn forward(&self, ids: &[u32], shape: [usize; 2], mask: Option<&[bool]>) -> Result<Vec<f32>> {
        let [batch, seq] = shape;
        if batch.checked_mul(seq) != Some(ids.len()) || mask.is_some_and(|m| m.len() != ids.len()) {
            bail!(
                InvalidArgument,
                "{} ids and a mask of {} for an input of {batch} x {seq}",
                ids.len(),
                mask.map_or(ids.len(), <[bool]>::len)
            );
        }
        let vocab_size = self.shape().vocab_size;
        let Some(len) = ids.len().checked_mul(vocab_size) else {
            bail!(InvalidArgument, "the logits of {} tokens are too many", ids.len());
        };
        let mut out = Vec::new();
        if out.try_reserve_exact(len).is_err() {
            bail!(InvalidArgument, "no memory for the logits of {} tokens", ids.len());
        }
        out.resize(len, 0f32);
        if ids.is_empty() {
            return Ok(out);
        }
        let mut session = self.check_out()?;
        for (row, (ids, out)) in ids.chunks(seq).zip(out.chunks_mut(seq * vocab_size)).enumerate() {
            let kept: Vec<usize> = (0..seq).filter(|i| mask.is_none_or(|m| m[row * seq + i])).collect();
            if kept.first().zip(kept.last()).is_some_and(|(first, last)| last - first + 1 != kept.len()) {
                bail!(
                    InvalidArgument,
                    "row {row} of the mask has a hole; tokens are left out at either end only"
                );
            }
            let mut sequence = Sequence::default();
            sequence_logits(&mut session, &mut sequence, ids, &kept, out, vocab_size)
                .map_err(|e| e.context(format!("row {row} of the input")))?;
        }
        self.check_in(session);
        Ok(out)
    }
}

/// Runs the tokens `kept` of `ids` as one sequence, and writes their logits to their places in `out`.
fn sequence_logits(
    session: &mut DecodeSession,
    sequence: &mut Sequence,
    ids: &[u32],
    kept: &[usize],
    out: &mut [f32],
    vocab_size: usize,
) -> Result<()> {
    let limits = session.limits();
    if kept.len() > limits.context {
        bail!(ContextExceeded, "{} tokens, but the context holds {}", kept.len(), limits.context);
    }
    let batch = limits.tokens.min(limits.rows);
    for places in kept.chunks(batch) {
        let tokens: Vec<u32> = places.iter().map(|&i| ids[i]).collect();
        let logits = session.step_one(Request { sequence, tokens: &tokens, logits: Wanted::All })?;
        for (&place, logits) in places.iter().zip(logits.chunks_exact(vocab_size)) {
            out[place * vocab_size..][..vocab_size].copy_from_slice(logits);
        }
    }
    Ok(())
}
