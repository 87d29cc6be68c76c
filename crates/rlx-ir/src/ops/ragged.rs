//! The ragged token axis: sequences lie behind each other, and `starts` says where each begins.
//!
//! Sequence `r` holds the tokens `starts[r] .. starts[r + 1]`; it may be empty. Tokens before the first start and from
//! the last one on belong to no sequence.

use std::ops::Range;

use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::operand_error;
use crate::ops::composite::check_i32_vector;
use crate::ops::reduce::reduce::KeepDims;
use crate::tensor::Tensor;
use crate::types::Type;

/// Checks that operand `index` holds starts; gives the number of sequences.
pub(crate) fn check_starts(index: usize, ty: &Type) -> Result<Dim> {
    check_i32_vector(index, ty, "the starts of the sequences and the end of the last")?;
    let sequences = ty.shape[0].clone() - Dim::constant(1);
    if sequences.as_const().is_some_and(|r| r < 0) {
        return Err(operand_error(index, "at least one start", ty));
    }
    Ok(sequences)
}

/// The tokens of each sequence.
///
/// # Errors
/// `InvalidArgument` where starts descend or leave `0..=tokens`.
pub(crate) fn sequences(starts: &Tensor, tokens: usize) -> Result<Vec<Range<usize>>> {
    let starts = starts.to_i64()?;
    let mut ranges = Vec::with_capacity(starts.len());
    let mut last = 0;
    for (r, &start) in starts.iter().enumerate() {
        let at = usize::try_from(start).ok().filter(|s| *s >= last && *s <= tokens);
        let Some(at) = at else {
            crate::bail!(
                InvalidArgument,
                "starts[{r}] is {start}, but starts must ascend within 0 to {tokens}"
            );
        };
        if r > 0 {
            ranges.push(last..at);
        }
        last = at;
    }
    Ok(ranges)
}

/// What decompositions need to know of each token, all i32.
pub(crate) struct TokenPlaces {
    /// [N]: the token's index.
    pub(crate) token: Value,
    /// [N]: the token's sequence, or -1.
    pub(crate) sequence: Value,
    /// [R]: the first token of each sequence.
    pub(crate) first: Value,
    /// [R]: the token after the last of each sequence.
    pub(crate) end: Value,
}

/// Emits the sequence of each of `tokens` tokens.
pub(crate) fn token_places(b: &mut Builder, starts: Value, tokens: &Dim) -> Result<TokenPlaces> {
    let sequences = b.shape(starts)[0].clone() - Dim::constant(1);
    let first = b.slice(starts, 0, Dim::constant(0), sequences.clone())?;
    let end = b.slice(starts, 0, Dim::constant(1), sequences)?;
    let token = b.iota([tokens.clone()], 0, DType::I32)?;
    let column = b.reshape(token, [tokens.clone(), Dim::constant(1)])?;
    let mut count = |bound: Value| {
        let reached = b.le(bound, column)?;
        let reached = b.cast(reached, DType::I32)?;
        b.reduce_sum(reached, &[1], KeepDims::No)
    };
    // Inside a sequence, one more has begun than has ended; as many have ended as lie before it.
    let (begun, ended) = (count(first)?, count(end)?);
    let inside = b.gt(begun, ended)?;
    let nowhere = b.scalar(DType::I32, -1.0)?;
    let sequence = b.select(inside, ended, nowhere)?;
    Ok(TokenPlaces { token, sequence, first, end })
}
