//! The raw network of a decoder.

use rlx_ir::{DType, bail};
use rlx_runtime::Runtime;

use super::{ForwardInput, ForwardOutput};
use crate::arch::decoder;
use crate::files::ModelFiles;
use crate::language::{LanguageModel, LanguageOptions};
use crate::options::LoadOptions;
use crate::{Error, Result};

pub(super) fn forward(
    runtime: &Runtime,
    files: &ModelFiles,
    options: &LoadOptions,
    input: &ForwardInput,
) -> Result<ForwardOutput> {
    let shape = decoder::open(files)?.shape();
    let mut longest = 1;
    for row in input.filled_rows() {
        let tokens = input.kept(row, shape.vocab_size)?.len();
        if tokens > shape.context_length {
            bail!(
                ContextExceeded,
                "row {row} has {tokens} tokens, but the model takes {} at most",
                shape.context_length
            );
        }
        longest = longest.max(tokens);
    }
    let language = LanguageOptions {
        context: longest,
        weights: options.weights,
        // Keys and values as they were computed, unless asked for: no cache of a later step has to be small.
        kv_dtype: options.kv_dtype.unwrap_or(DType::F32),
        compile: options.compile.clone(),
        device: options.device.clone(),
        strategy: options.strategy,
        ..LanguageOptions::default()
    };
    let progress = |done, total| {
        if let Some(progress) = &options.progress {
            progress(done, total);
        }
    };
    let model = LanguageModel::load_files(runtime, files.clone(), &language, &progress)?;
    let vocab_size = shape.vocab_size;
    let ids = input.ids_below(vocab_size)?;
    let values = model.forward(&ids, [input.rows(), input.columns()], input.mask())?;
    Ok(ForwardOutput { name: "logits", shape: [input.rows(), input.columns(), vocab_size], values })
}
