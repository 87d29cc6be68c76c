//! The alphabet of byte-level BPE (GPT-2): every byte has a visible character, so that a vocabulary is valid text.
//!
//! Printable bytes of Latin-1 stand for themselves; the other 68 bytes are, in order, U+0100 to U+0143.

/// The character of `byte`.
pub(crate) fn char_of_byte(byte: u8) -> char {
    match byte {
        b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => byte as char,
        0..=0x20 => shifted(u32::from(byte)),
        0x7F..=0xA0 => shifted(u32::from(byte) - 0x7F + 33),
        0xAD => shifted(67),
    }
}

/// The byte that `c` stands for, if it is in the alphabet.
pub(crate) fn byte_of_char(c: char) -> Option<u8> {
    match u32::from(c) {
        code @ (0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7F) as u8),
        0x143 => Some(0xAD),
        _ => None,
    }
}

/// The bytes that `token` stands for; its own UTF-8 if it has a character outside the alphabet (an added token).
pub(crate) fn decode(token: &str) -> Vec<u8> {
    token.chars().map(byte_of_char).collect::<Option<Vec<u8>>>().unwrap_or_else(|| token.as_bytes().to_vec())
}

/// Appends the characters that stand for `bytes`.
pub(crate) fn encode_into(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|&b| char_of_byte(b)));
}

fn shifted(n: u32) -> char {
    char::from_u32(0x100 + n).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_character_of_its_own() {
        let mut text = String::new();
        let all: Vec<u8> = (0..=255).collect();
        encode_into(&mut text, &all);
        assert_eq!(decode(&text), all);
        assert!(text.chars().all(|c| !c.is_whitespace() && !c.is_control()));
        assert_eq!(char_of_byte(b' '), 'Ġ');
        assert_eq!(char_of_byte(b'\n'), 'Ċ');
        assert_eq!(char_of_byte(0xAD), '\u{143}');
    }

    #[test]
    fn an_added_token_stays_as_it_is() {
        assert_eq!(decode("<｜end｜>"), "<｜end｜>".as_bytes());
    }
}
