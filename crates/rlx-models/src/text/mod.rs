//! Texts to tokens and back.
//!
//! [`Tokenizer`] is one type for `tokenizer.json` (through the `tokenizers` crate) and for the vocabulary in a GGUF
//! file: byte-level BPE, sentencepiece (BPE and unigram) and WordPiece, built here because they load in a fraction of the
//! time and keep their tokens as bytes. [`ChatTemplate`] makes one text of a conversation. [`StreamDecoder`] and
//! [`StopMatcher`] serve generation, token by token.
//!
//! Invariants: what a tokenizer cannot do exactly it refuses by name; encoding takes `n log n` time at most; no text
//! makes it panic.

pub(crate) mod base64;
mod bert_words;
mod bpe;
mod byte_level;
mod charsmap;
mod chat;
mod encoding;
mod gguf_tokenizer;
mod gguf_vocab;
mod hf;
mod merge;
mod piece_trie;
mod pre;
mod special;
mod spm;
mod stop;
mod stop_set;
mod stream;
mod style;
mod token_list;
mod tokenizer;
mod tokenizer_config;
mod unigram;
mod utf8;
mod vocab;
mod white_space;
mod wordpiece;

pub use chat::{ChatEnd, ChatMessage, ChatOptions, ChatTemplate};
pub use encoding::Encoding;
pub(crate) use pre::name_of as pre_tokenizer_name;
pub use stop::StopMatcher;
pub use stream::StreamDecoder;
pub use token_list::TokenList;
pub use tokenizer::{EncodeOptions, SpecialText, Tokenizer};
pub use tokenizer_config::TokenizerConfig;
pub use vocab::{GgufVocab, SpecialTokens, TokenType};
