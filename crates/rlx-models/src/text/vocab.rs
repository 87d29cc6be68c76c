//! A vocabulary as GGUF stores it.

use super::TokenList;

/// What a token is for (`tokenizer.ggml.token_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenType {
    /// Ordinary text.
    #[default]
    Normal = 1,
    /// Stands for what the vocabulary cannot write.
    Unknown = 2,
    /// Steers the model; is no text (BOS, EOS, turn marks).
    Control = 3,
    /// Text that is always one token.
    UserDefined = 4,
    /// Reserved.
    Unused = 5,
    /// One byte, written `<0xAB>`.
    Byte = 6,
}

impl TokenType {
    /// The type with GGUF's number `id`; numbers that GGUF does not define count as [`TokenType::Normal`].
    pub fn from_gguf(id: i64) -> Self {
        match id {
            2 => Self::Unknown,
            3 => Self::Control,
            4 => Self::UserDefined,
            5 => Self::Unused,
            6 => Self::Byte,
            _ => Self::Normal,
        }
    }
}

/// The ids of tokens with a role. `None`: the model has no such token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpecialTokens {
    /// Begin of text.
    pub bos: Option<u32>,
    /// End of text.
    pub eos: Option<u32>,
    /// End of a turn.
    pub eot: Option<u32>,
    /// End of a message.
    pub eom: Option<u32>,
    /// What the vocabulary cannot write.
    pub unk: Option<u32>,
    /// Separator of two texts.
    pub sep: Option<u32>,
    /// Padding.
    pub pad: Option<u32>,
    /// Stands for the whole text.
    pub cls: Option<u32>,
    /// Stands for a hidden token.
    pub mask: Option<u32>,
    /// All tokens that end a generation, ascending: end of text, of turn, of message.
    pub stop: Vec<u32>,
}

/// The `tokenizer.ggml.*` metadata of a GGUF file. `None`: the key is absent.
///
/// Built by [`GgufVocab::from_metadata`] or by hand; turned into a [`super::Tokenizer`] by
/// [`super::Tokenizer::from_gguf`].
#[derive(Clone, Debug, Default)]
pub struct GgufVocab {
    /// `model`: `gpt2` (byte-level BPE), `gemma4` (BPE over characters), `llama` (sentencepiece's BPE), `t5` (sentencepiece's
    /// unigram model) or `bert` (WordPiece).
    pub model: String,
    /// `pre`: the name of the pre-tokenizer of a byte-level BPE.
    pub pre: Option<String>,
    /// `tokens`.
    pub tokens: TokenList,
    /// `scores`, one per token, or empty.
    pub scores: Vec<f32>,
    /// `token_type`, one per token, or empty (all normal).
    pub token_types: Vec<TokenType>,
    /// `merges`: pairs of tokens with a space between, best first.
    pub merges: TokenList,
    /// `bos_token_id`.
    pub bos: Option<u32>,
    /// `eos_token_id`.
    pub eos: Option<u32>,
    /// `eot_token_id`.
    pub eot: Option<u32>,
    /// `eom_token_id`.
    pub eom: Option<u32>,
    /// `unknown_token_id`.
    pub unk: Option<u32>,
    /// `seperator_token_id` (spelt so).
    pub sep: Option<u32>,
    /// `padding_token_id`.
    pub pad: Option<u32>,
    /// `cls_token_id`.
    pub cls: Option<u32>,
    /// `mask_token_id`.
    pub mask: Option<u32>,
    /// `add_bos_token`.
    pub add_bos: Option<bool>,
    /// `add_eos_token`.
    pub add_eos: Option<bool>,
    /// `add_space_prefix`.
    pub add_space_prefix: Option<bool>,
    /// `remove_extra_whitespaces`.
    pub remove_extra_whitespaces: Option<bool>,
    /// `precompiled_charsmap`: sentencepiece's normaliser.
    pub precompiled_charsmap: Vec<u8>,
    /// `normalizer.lowercase`, for WordPiece.
    pub lowercase: Option<bool>,
    /// `normalizer.strip_accents`, for WordPiece.
    pub strip_accents: Option<bool>,
    /// Special tokens that take the white space before them along, where they are found in a text.
    pub lstrip: Vec<u32>,
    /// Special tokens that take the white space after them along.
    pub rstrip: Vec<u32>,
}

impl GgufVocab {
    /// The type of token `id`.
    pub fn token_type(&self, id: u32) -> TokenType {
        self.token_types.get(id as usize).copied().unwrap_or_default()
    }
}
