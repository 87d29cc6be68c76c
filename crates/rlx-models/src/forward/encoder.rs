//! The raw network of an encoder.

use rlx_ir::bail;
use rlx_runtime::Runtime;

use super::{ForwardInput, ForwardOutput};
use crate::arch::{EncoderGraph, EncoderOutput, EncoderShape};
use crate::encoder::{Encoder, EncoderSession, Packed};
use crate::files::ModelFiles;
use crate::options::LoadOptions;
use crate::{Error, Result};

/// The most tokens of a run; one row may have more.
const BATCH_TOKENS: usize = 8192;
/// The most rows of a run.
const MAX_SEQUENCES: usize = 1024;

pub(super) fn forward(
    runtime: &Runtime,
    files: &ModelFiles,
    options: &LoadOptions,
    input: &ForwardInput,
) -> Result<ForwardOutput> {
    let load = tracing::debug_span!("load", model = %files.path().display()).entered();
    let encoder = Encoder::new(files)?;
    let rows = input.filled_rows().map(|row| tokens(input, row, &encoder.shape()));
    let rows = rows.collect::<Result<Vec<_>>>()?;
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0);
    let graph = encoder.graph(&EncoderGraph {
        max_tokens: BATCH_TOKENS.max(longest),
        max_sequences: MAX_SEQUENCES,
        weights: options.weights,
        output: EncoderOutput::Hidden,
    })?;
    let session = EncoderSession::new(runtime, &graph, encoder.weights(), options)?;
    drop(load);
    let hidden = encoder.hidden_size();
    let shape = [input.rows(), input.columns(), hidden];
    let mut values = Vec::new();
    match [input.columns(), hidden].iter().try_fold(rows.len(), |n, by| n.checked_mul(*by)) {
        Some(len) if values.try_reserve_exact(len).is_ok() => values.resize(len, 0f32),
        _ => bail!(InvalidArgument, "no memory for a result of {shape:?} f32"),
    }
    let mut start = 0;
    while start < rows.len() {
        let mut packed = Packed::default();
        let mut end = start;
        while end < rows.len()
            && (end == start || packed.tokens() + rows[end].len() <= BATCH_TOKENS)
            && end - start < MAX_SEQUENCES
        {
            packed.push(rows[end].iter().map(|t| (t.id, t.position)), 0);
            end += 1;
        }
        if packed.tokens() > 0 {
            session.run(&packed, |context| {
                let vectors = context.output::<f32>(0)?.chunks_exact(hidden);
                let places = (start..end).flat_map(|row| rows[row].iter().map(move |t| (row, t.column)));
                for ((row, column), vector) in places.zip(vectors) {
                    if !vector.iter().all(|v| v.is_finite()) {
                        bail!(NonFinite, "row {row}: the result holds NaN or an infinity");
                    }
                    let at = (row * input.columns() + column) * hidden;
                    values[at..at + hidden].copy_from_slice(vector);
                }
                Ok(())
            })?;
        }
        start = end;
    }
    Ok(ForwardOutput { name: "last_hidden_state", shape, values })
}

/// A token that counts.
struct Token {
    id: i32,
    column: usize,
    position: i32,
}

/// The tokens of a row that count.
fn tokens(input: &ForwardInput, row: usize, shape: &EncoderShape) -> Result<Vec<Token>> {
    let kept = input.kept(row, shape.vocab_size)?;
    let positions = shape.positions.of_row(input.row(row));
    let first = shape.positions.first();
    let place = |position: &i32| usize::try_from(*position).unwrap_or(0).saturating_sub(first);
    if let Some(far) = positions.iter().map(place).max()
        && far >= shape.max_positions
    {
        bail!(
            ContextExceeded,
            "row {row} has a token at position {far}, but the model has {} positions",
            shape.max_positions
        );
    }
    if let (Some(window), Some((_, from)), Some((_, to))) = (shape.window, kept.first(), kept.last())
        && to - from > window
        && to - from >= kept.len()
    {
        bail!(
            InvalidArgument,
            "row {row} has masked tokens between others: in layers where tokens see those up to {window} places away, \
             that is not supported"
        );
    }
    let token = |((id, column), position)| Token { id, column, position };
    Ok(kept.into_iter().zip(positions).map(token).collect())
}
