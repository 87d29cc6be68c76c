//! The raw network on token ids: dense [B, S] in, dense out.
//!
//! Sequences are compacted by their mask at the edge, so padding costs nothing and cannot be seen; positions stay those of
//! the columns. Results are zero where masked.

mod decoder;
mod encoder;
mod input;
mod output;

use rlx_runtime::Runtime;

pub use input::ForwardInput;
pub use output::ForwardOutput;

use crate::Result;
use crate::arch::Family;
use crate::files::ModelFiles;
use crate::options::LoadOptions;

/// Runs the network of `files` on `input`: `last_hidden_state` f32 [B, S, H] of an encoder, `logits` f32 [B, S, V]
/// of a decoder.
///
/// # Errors
/// `InvalidArgument` for ids that the network does not have, `ContextExceeded` for rows that are longer than it takes, both
/// naming the row; errors of loading and of the backend; `NonFinite` naming the row whose result holds NaN or an infinity.
pub fn forward(
    runtime: &Runtime,
    files: &ModelFiles,
    options: &LoadOptions,
    input: &ForwardInput,
) -> Result<ForwardOutput> {
    let architecture = files.supported()?;
    match architecture.family {
        Family::Encoder => encoder::forward(runtime, files, options, input),
        Family::Decoder => decoder::forward(runtime, files, options, input),
    }
}
