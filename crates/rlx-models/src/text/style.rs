//! How the texts of tokens join into a text.

use super::{byte_level, spm};

/// The way a tokenizer writes bytes, spaces and word borders within its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Tokens are spelled in the alphabet of byte-level BPE.
    ByteLevel,
    /// U+2581 is a space, `<0xAB>` a byte; `strip_space`: a text loses the space that encoding put in front.
    Sentencepiece { strip_space: bool },
    /// A token starts a word, or goes on with one after `prefix`, mostly `##` (`tokenizer.json`).
    WordPiecePrefix { prefix: String, close_up: bool },
    /// A token starts a word after U+2581, or goes on with one (GGUF).
    WordPieceStart,
    /// Tokens are what they say, one after the other.
    Plain,
}

/// The unknown token of sentencepiece, as it decodes.
pub(super) const UNKNOWN: &str = " \u{2047} ";

impl Style {
    /// The bytes that an ordinary token stands for. Tokens that start a word bring their space with them.
    pub(super) fn bytes(&self, token: &[u8]) -> Vec<u8> {
        let Ok(text) = std::str::from_utf8(token) else { return token.to_vec() };
        match self {
            Self::ByteLevel => byte_level::decode(text),
            Self::Sentencepiece { .. } => match spm::byte_of(token) {
                Some(byte) => vec![byte],
                None => text.replace('\u{2581}', " ").into_bytes(),
            },
            Self::WordPiecePrefix { prefix, close_up } => match text.strip_prefix(prefix) {
                Some(rest) => rest.as_bytes().to_vec(),
                None if *close_up => close_up_word(text).into_bytes(),
                None => format!(" {text}").into_bytes(),
            },
            Self::WordPieceStart => match text.strip_prefix('\u{2581}') {
                Some(word) => close_up_word(word).into_bytes(),
                None => token.to_vec(),
            },
            Self::Plain => token.to_vec(),
        }
    }

    /// Whether the first space of a text is none of its own.
    pub(super) fn strips_space(&self) -> bool {
        match self {
            Self::Sentencepiece { strip_space } => *strip_space,
            Self::WordPiecePrefix { .. } | Self::WordPieceStart => true,
            Self::ByteLevel | Self::Plain => false,
        }
    }
}

/// A word with the space before it, unless it is a mark or a short form that closes up to the word before, as the
/// `tokenizers` crate has it.
fn close_up_word(word: &str) -> String {
    let closes_up = matches!(word, "." | "?" | "!" | "," | "n't" | "'m" | "'s" | "'ve" | "'re");
    if closes_up { word.to_owned() } else { format!(" {word}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_style_spells_spaces_its_own_way() {
        let spm = Style::Sentencepiece { strip_space: true };
        assert_eq!(Style::ByteLevel.bytes("Ġhi".as_bytes()), b" hi");
        assert_eq!(spm.bytes("▁hi".as_bytes()), b" hi");
        assert_eq!(spm.bytes(b"<0xF0>"), [0xF0]);
        let hash = Style::WordPiecePrefix { prefix: "##".into(), close_up: true };
        assert_eq!(hash.bytes(b"hi"), b" hi");
        assert_eq!(hash.bytes(b"##hi"), b"hi");
        assert_eq!(Style::WordPieceStart.bytes("▁hi".as_bytes()), b" hi");
        assert_eq!(Style::WordPieceStart.bytes(b"hi"), b"hi");
        assert_eq!(Style::Plain.bytes(b"<0xF0>"), b"<0xF0>");
    }

    #[test]
    fn marks_close_up_to_the_word_before() {
        assert_eq!(Style::WordPieceStart.bytes("▁,".as_bytes()), b",");
        assert_eq!(Style::WordPieceStart.bytes("▁(".as_bytes()), b" (");
        let apart = Style::WordPiecePrefix { prefix: "##".into(), close_up: false };
        assert_eq!(apart.bytes(b","), b" ,");
    }
}
