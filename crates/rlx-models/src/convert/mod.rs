//! Conversion to GGUF: from the Hugging Face layout or GGUF, each tensor in the type asked for.
//!
//! Tensors are streamed in pieces, so that neither source nor result is resident as a whole. Names become canonical; what
//! sentence-transformers knows goes into `rlx.embedding.*`. What GGUF cannot hold is refused by name.

mod card;
mod decoder;
mod encoder;
mod imatrix;
mod options;
mod tensors;
mod types;
mod vocabulary;

use std::collections::BTreeMap;
use std::path::Path;

use rlx_gguf::{MetadataBuilder, OutputFile, Writer, same_file};
use rlx_ir::bail;

pub use imatrix::Imatrix;
pub use options::{Fallback, QuantizeOptions, Report};
use tensors::Change;

use crate::arch::Family;
use crate::embedding::shipped;
use crate::files::{ModelConfig, ModelFiles, NamedWeights};
use crate::{Error, Result};

/// Called for each tensor before it is written: its name, its number from 0, and how many there are.
pub type QuantizeProgress<'a> = dyn Fn(&str, usize, usize) + 'a;

/// Converts the model at `input` (a folder in the Hugging Face layout, a `.safetensors` or a `.gguf` file, or the name of the
/// [one that ships with the project](crate::embedding::BUNDLED_MODEL)) to the GGUF file `output`, which appears whole or not
/// at all.
///
/// Matrices get the type `options.ty`, or the nearest that their rows allow; norms, biases and other vectors, and the small
/// tables of positions and token types, are f32.
///
/// # Errors
/// `InvalidArgument` for a type that no file can hold, and for an output that is a file of the input (weights, config,
/// tokenizer) or the importance matrix, or no file; `UnsupportedModel` for what GGUF cannot hold; errors of reading and writing.
pub fn quantize(
    input: &Path,
    output: &Path,
    options: &QuantizeOptions,
    progress: &QuantizeProgress<'_>,
) -> Result<Report> {
    types::check(options.ty)?;
    let files = match shipped(input)? {
        Some(files) => files,
        None => ModelFiles::open(input)?,
    };
    quantize_files(&files, output, options, progress)
}

/// [`quantize`] of a model that is open.
///
/// # Errors
/// As [`quantize`].
pub fn quantize_files(
    files: &ModelFiles,
    output: &Path,
    options: &QuantizeOptions,
    progress: &QuantizeProgress<'_>,
) -> Result<Report> {
    types::check(options.ty)?;
    tensors::threads(options)?;
    files.refuse_output(output)?;
    if let Some(imatrix) = &options.imatrix
        && same_file(imatrix.path(), output)
    {
        bail!(
            InvalidArgument,
            "{}: it is the importance matrix: name another one to write",
            output.display()
        );
    }
    OutputFile::target(output)?;
    let mut notes = Vec::new();
    let mut weights = NamedWeights::of(files)?;
    let mut change: Box<dyn Fn(&str) -> Change> = Box::new(|_| Change::Keep);
    let mut metadata = match files.config() {
        ModelConfig::Gguf(gguf) => {
            let mut metadata = MetadataBuilder::new();
            metadata.extend(gguf.metadata());
            for key in ["split.no", "split.count", "split.tensors.count"] {
                metadata.remove(key);
            }
            metadata
        }
        ModelConfig::Hf(config) => {
            let folder = config.path().parent().unwrap_or(Path::new(""));
            let mut metadata = MetadataBuilder::new();
            card::metadata(&mut metadata, folder);
            let architecture = files.supported()?;
            let is_decoder = crate::arch::decoder::architecture(files).is_ok();
            match architecture.family {
                Family::Encoder if !is_decoder => {
                    let converted = encoder::metadata(&mut metadata, files, folder)?;
                    notes.extend(converted.notes);
                    converted.tensors.into_iter().for_each(|(name, data)| weights.insert(name, data));
                }
                family => {
                    let mut converted = decoder::metadata(&mut metadata, files, config)?;
                    notes.append(&mut converted.notes);
                    notes.extend(vocabulary::write(&mut metadata, folder, converted.vocab_size())?);
                    vocabulary::chat_template(&mut metadata, folder)?;
                    converted.add_derived(&mut weights);
                    // A language model is no embedding model unless it says so.
                    if family == Family::Encoder || folder.join("modules.json").exists() {
                        let tensors = encoder::of_decoder(&mut metadata, files)?;
                        tensors.into_iter().for_each(|(name, data)| weights.insert(name, data));
                    }
                    change = Box::new(move |name| converted.change(name));
                }
            }
            metadata
        }
    };
    if let Some(file_type) = types::file_type(options.ty) {
        metadata.set("general.file_type", file_type);
    }
    metadata.set("general.quantization_version", 2u32);
    let (list, skipped) = tensors::list(files, &weights, options, &change)?;
    let mut unweighted = 0;
    for tensor in &list {
        unweighted += usize::from(tensors::lacks_importance(&weights, tensor, options)?);
    }
    if unweighted > 0 {
        let ty = options.ty;
        let matrices = list.iter().filter(|tensor| tensor.dtype == ty).count();
        notes.push(format!(
            "there are no importances for {unweighted} of {matrices} matrices of type {ty}: with so few bits that costs \
             much of their quality, which an importance matrix would keep"
        ));
    }
    let mut before = BTreeMap::new();
    for tensor in &list {
        if let Some(stored) = tensors::lossy_before(&weights, tensor)? {
            *before.entry(stored.name()).or_insert(0usize) += 1;
        }
    }
    if !before.is_empty() {
        let stored: Vec<String> = before.iter().map(|(ty, n)| format!("{n} in {ty}")).collect();
        notes.push(format!(
            "matrices were quantised before ({}): what that lost stays lost, and the second loss comes on top; from the model \
             in floats the result would be nearer to it",
            stored.join(", ")
        ));
    }
    let mut writer = Writer::new(output, metadata)?;
    for tensor in &list {
        writer.declare(&tensor.name, tensor.dtype, &tensor.shape)?;
    }
    let bytes = writer.data_bytes();
    let mut data = writer.start()?;
    for (i, tensor) in list.iter().enumerate() {
        progress(&tensor.name, i, list.len());
        tensors::write(&mut data, &weights, tensor, options)?;
    }
    data.finish()?;
    let fallbacks = list.iter().filter_map(|t| t.fallback(options.ty)).collect();
    Ok(Report { tensors: list.len(), bytes, fallbacks, skipped, notes })
}
