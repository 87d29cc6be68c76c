//! How the texts of tokens join into a text.

use super::{byte_level, spm};

/// The way a tokenizer writes bytes, spaces and word borders within its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Tokens are spelled in the alphabet of byte-level BPE.
    ByteLevel,
    /// U+2581 is a space, `<0xAB>` a byte; `strip_space`: a text loses the space that encoding put in front.
    Sentencepiece { strip_space: bool },
    /// A token starts a word, or goes on with one after `##` (`tokenizer.json`).
    WordPieceHash,
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
            Self::WordPieceHash => match text.strip_prefix("##") {
                Some(rest) => rest.as_bytes().to_vec(),
                None => format!(" {text}").into_bytes(),
            },
            Self::WordPieceStart => match text.strip_prefix('\u{2581}') {
                Some(word) => format!(" {word}").into_bytes(),
                None => token.to_vec(),
            },
            Self::Plain => token.to_vec(),
        }
    }

    /// Whether the first space of a text is none of its own.
    pub(super) fn strips_space(&self) -> bool {
        match self {
            Self::Sentencepiece { strip_space } => *strip_space,
            Self::WordPieceHash | Self::WordPieceStart => true,
            Self::ByteLevel | Self::Plain => false,
        }
    }
}

/// Takes away the spaces that WordPiece leaves before punctuation and short forms, as the `tokenizers` crate does.
pub(super) fn clean_word_pieces(text: &str) -> String {
    const RULES: [(&str, &str); 11] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" do not", " don't"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    RULES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
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
        assert_eq!(Style::WordPieceHash.bytes(b"hi"), b" hi");
        assert_eq!(Style::WordPieceHash.bytes(b"##hi"), b"hi");
        assert_eq!(Style::WordPieceStart.bytes("▁hi".as_bytes()), b" hi");
        assert_eq!(Style::WordPieceStart.bytes(b"hi"), b"hi");
        assert_eq!(Style::Plain.bytes(b"<0xF0>"), b"<0xF0>");
    }

    #[test]
    fn word_pieces_are_closed_up() {
        assert_eq!(clean_word_pieces("it 's fine , is n't it ?"), "it's fine, isn't it?");
    }
}
