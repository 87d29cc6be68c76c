//! Decoding token by token.

use std::ops::Deref;

use super::utf8::Utf8Stream;
use super::{SpecialText, Tokenizer};

/// Decodes one token at a time, for streaming: what comes out is final.
///
/// Incomplete UTF-8 (an emoji spread over tokens) is held back until it is complete. `T` is `&Tokenizer`,
/// `Arc<Tokenizer>` or the like.
///
/// ```
/// # use rlx_models::text::{GgufVocab, StreamDecoder, Tokenizer, TokenType};
/// # let tokenizer = Tokenizer::from_gguf(GgufVocab {
/// #     model: "llama".into(),
/// #     tokens: ["<unk>", "▁", "<0xC3>", "<0xA9>"].into_iter().collect(),
/// #     token_types: [2, 1, 6, 6].map(TokenType::from_gguf).to_vec(),
/// #     scores: vec![0.0; 4],
/// #     add_bos: Some(false),
/// #     ..GgufVocab::default()
/// # })?;
/// let mut decoder = StreamDecoder::continuation(&tokenizer);
/// let pieces: Vec<String> = [1, 2, 3].map(|id| decoder.push(id)).to_vec();
/// assert_eq!(pieces, [" ", "", "é"]);
/// assert_eq!(decoder.finish(), "");
/// # Ok::<(), rlx_models::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StreamDecoder<T> {
    tokenizer: T,
    utf8: Utf8Stream,
    special: SpecialText,
    /// The next text is the first, and loses the space that encoding put in front.
    strip_space: bool,
}

impl<T: Deref<Target = Tokenizer>> StreamDecoder<T> {
    /// A decoder of a whole text: loses the space that sentencepiece puts before the first word.
    pub fn new(tokenizer: T) -> Self {
        let strip_space = tokenizer.style().strips_space();
        Self { strip_space, ..Self::continuation(tokenizer) }
    }

    /// A decoder of what follows a prompt: its first space is its own.
    pub fn continuation(tokenizer: T) -> Self {
        Self { tokenizer, utf8: Utf8Stream::default(), special: SpecialText::Skip, strip_space: false }
    }

    /// The same, but special tokens are skipped or written as `special` says.
    #[must_use]
    pub fn with_special(mut self, special: SpecialText) -> Self {
        self.special = special;
        self
    }

    /// The text that is certain once `id` has come; often empty. Ids beyond the vocabulary are nothing.
    pub fn push(&mut self, id: u32) -> String {
        let mut text = String::new();
        if self.special == SpecialText::Keep || !self.tokenizer.is_special(id) {
            let bytes = self.tokenizer.token_bytes(id).unwrap_or_default();
            let mut rest = bytes.as_slice();
            if self.strip_space && !rest.is_empty() {
                rest = rest.strip_prefix(b" ").unwrap_or(rest);
                self.strip_space = false;
            }
            self.utf8.push(rest, &mut text);
        }
        text
    }

    /// Ends the text. A character that never came to its end is U+FFFD.
    pub fn finish(mut self) -> String {
        let mut text = String::new();
        self.utf8.finish(&mut text);
        text
    }
}
