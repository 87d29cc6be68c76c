//! Vocabularies: from the files of a Hugging Face tokenizer to the `tokenizer.ggml.*` keys.

mod bpe;
mod chat_template;
mod entries;
mod merges;
mod roles;
mod sentencepiece;
mod unigram;
mod wordpiece;

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;

use crate::json;
use crate::text::TokenizerConfig;
use crate::{Error, Result};

pub(super) use chat_template::chat_template;

const TOKENIZER: &str = "tokenizer.json";
/// What only a model for texts has: without `tokenizer.json` its vocabulary would be lost.
const SIGNS_OF_TEXT: [&str; 7] = [
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spiece.model",
    "modules.json",
];

/// Adds the vocabulary of the model in `folder`, whose network has `vocab_size` tokens. A folder without any file of a
/// tokenizer has none: what that means is returned.
pub(super) fn write(m: &mut MetadataBuilder, folder: &Path, vocab_size: usize) -> Result<Vec<String>> {
    let path = folder.join(TOKENIZER);
    let Some(tokenizer) = json::read_object(folder, TOKENIZER)? else {
        if let Some(sign) = SIGNS_OF_TEXT.iter().find(|name| folder.join(name).exists()) {
            bail!(
                NotFound,
                "{}: no such file, and the model needs its tokenizer: there is a {sign}",
                path.display()
            );
        }
        return Ok(vec![format!("there is no {TOKENIZER}, so the result takes token ids only, no texts")]);
    };
    let config = TokenizerConfig::from_folder(folder)?;
    let written = match tokenizer["model"]["type"].as_str() {
        // Files from before the key.
        None | Some("WordPiece") => wordpiece::write(m, &tokenizer, &config, vocab_size).map(|()| Vec::new()),
        Some("BPE") if tokenizer["model"]["byte_fallback"] == true => {
            sentencepiece::write(m, folder, &tokenizer, &config, vocab_size)
        }
        Some("BPE") => bpe::write(m, folder, &tokenizer, &config, vocab_size),
        Some("Unigram") => unigram::write(m, &tokenizer, &config, vocab_size).map(|()| Vec::new()),
        Some(other) => {
            let other: String = other.chars().take(80).collect();
            bail!(
                UnsupportedModel,
                "{}: model.type \"{other}\" cannot be converted; WordPiece, Unigram and BPE can",
                path.display()
            )
        }
    };
    written.map_err(|e| e.context(path.display()))
}
