//! Reading the vocabulary of a GGUF file.

use rlx_gguf::Metadata;
use rlx_ir::bail;

use super::{GgufVocab, TokenList, TokenType};
use crate::{Error, Result};

impl GgufVocab {
    /// The `tokenizer.ggml.*` keys of a GGUF file.
    ///
    /// # Errors
    /// `NotFound` where there is no vocabulary; `InvalidFile`, naming the key, where `tokens` is missing or a key holds
    /// something of another type.
    pub fn from_metadata(metadata: &Metadata) -> Result<Self> {
        if !metadata.contains("tokenizer.ggml.model") {
            bail!(NotFound, "the file has no vocabulary, so it takes token ids only");
        }
        let key = |name: &str| format!("tokenizer.ggml.{name}");
        let id = |name: &str| Ok::<_, Error>(metadata.u32(&key(name))?);
        let flag = |name: &str| Ok::<_, Error>(metadata.bool(&key(name))?);
        let texts = |name: &str| {
            let texts = metadata.strs(&key(name))?;
            Ok::<_, Error>(texts.map(|t| t.map(str::as_bytes).collect::<TokenList>()).unwrap_or_default())
        };
        let types = metadata.i64s(&key("token_type"))?.unwrap_or_default();
        let mut vocab = Self {
            model: metadata.require_str(&key("model"))?.to_owned(),
            pre: metadata.str(&key("pre"))?.map(str::to_owned),
            tokens: metadata.require_strs(&key("tokens"))?.map(str::as_bytes).collect(),
            scores: metadata.f32s(&key("scores"))?.unwrap_or_default(),
            token_types: types.into_iter().map(TokenType::from_gguf).collect(),
            merges: texts("merges")?,
            bos: id("bos_token_id")?,
            eos: id("eos_token_id")?,
            eot: id("eot_token_id")?,
            eom: id("eom_token_id")?,
            unk: id("unknown_token_id")?,
            sep: id("seperator_token_id")?,
            pad: id("padding_token_id")?,
            cls: id("cls_token_id")?,
            mask: id("mask_token_id")?,
            add_bos: flag("add_bos_token")?,
            add_eos: flag("add_eos_token")?,
            add_space_prefix: flag("add_space_prefix")?,
            remove_extra_whitespaces: flag("remove_extra_whitespaces")?,
            precompiled_charsmap: charsmap(metadata, &key("precompiled_charsmap"))?,
            lowercase: metadata.bool("tokenizer.ggml.normalizer.lowercase")?,
            strip_accents: metadata.bool("tokenizer.ggml.normalizer.strip_accents")?,
            lstrip: Vec::new(),
            rstrip: Vec::new(),
        };
        let text = |key| Ok::<_, Error>(metadata.str(key)?.unwrap_or_default());
        vocab.set_white_space(text("general.name")?, text("general.architecture")?);
        Ok(vocab)
    }
}

/// Bytes, which files hold as u8 or as i8.
fn charsmap(metadata: &Metadata, key: &str) -> Result<Vec<u8>> {
    let bytes = metadata.i32s(key)?.unwrap_or_default();
    Ok(bytes.into_iter().map(|b| b as u8).collect())
}
