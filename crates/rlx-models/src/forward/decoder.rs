//! The raw network of a decoder.

use rlx_ir::DType;
use rlx_runtime::Runtime;

use super::{ForwardInput, ForwardOutput};
use crate::Result;
use crate::files::ModelFiles;
use crate::language::{LanguageModel, LanguageOptions};
use crate::options::LoadOptions;

pub(super) fn forward(
    runtime: &Runtime,
    files: &ModelFiles,
    options: &LoadOptions,
    input: &ForwardInput,
) -> Result<ForwardOutput> {
    let language = LanguageOptions {
        context: input.columns().max(1),
        weights: options.weights,
        // Keys and values as they were computed: no cache of a later step has to be small.
        kv_dtype: DType::F32,
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
    let vocab_size = model.shape().vocab_size;
    let ids = input.ids_below(vocab_size)?;
    let values = model.forward(&ids, [input.rows(), input.columns()], input.mask())?;
    Ok(ForwardOutput { name: "logits", shape: [input.rows(), input.columns(), vocab_size], values })
}
