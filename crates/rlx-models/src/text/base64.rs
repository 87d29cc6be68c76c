//! Base64 (RFC 4648), which `tokenizer.json` holds bytes in.

/// The bytes that `text` stands for; `None` where it is no base64.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=').as_bytes();
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 || digits.len() % 4 == 1 {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    for group in digits.chunks(4) {
        let mut bits = 0u32;
        for i in 0..4 {
            bits = bits << 6 | group.get(i).map_or(Some(0), |digit| value(*digit))?;
        }
        // Bits that stand for no byte are zero.
        if bits & (0x00FF_FFFF >> (8 * (group.len() - 1))) != 0 {
            return None;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

fn value(digit: u8) -> Option<u32> {
    Some(u32::from(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_decode() {
        for (text, bytes) in [
            ("", ""),
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        assert_eq!(decode("//79").as_deref(), Some(&[0xff, 0xfe, 0xfd][..]));
    }

    #[test]
    fn what_is_no_base64_is_none() {
        for text in ["Z", "Zg", "Zm9", "Zg===", "Zh==", "Zm9=", "Zm9v!", "Zm9*", "====", "A==="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
