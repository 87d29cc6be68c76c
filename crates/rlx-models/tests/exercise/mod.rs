//! What must hold for any bytes as a `tokenizer.json`. Shared by the corpus test and by the fuzz target.

use rlx_ir::ErrorKind;
use rlx_models::text::{EncodeOptions, SpecialText, StreamDecoder, Tokenizer};

/// Texts in which white space, marks, scripts and names of tokens meet.
const TEXTS: [&str; 6] = ["", "a", "a b  c", "X   ", " \u{301}é日▁😀\n", "<s>[CLS]##a<0x41>"];

/// Loads `bytes`, and encodes and decodes with what comes of them; `true` where the file was accepted.
pub fn exercise(bytes: &[u8]) -> bool {
    let tokenizer = match Tokenizer::from_json(bytes) {
        Ok(tokenizer) => tokenizer,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::InvalidFile, "{e}");
            assert!(e.message().starts_with("tokenizer.json: "), "{e}");
            return false;
        }
    };
    let mut ids: Vec<u32> = (0..20).chain([u32::MAX]).collect();
    for text in TEXTS {
        for (add_special, parse_special) in [(true, true), (true, false), (false, true), (false, false)] {
            match tokenizer.encode(text, EncodeOptions { add_special, parse_special }) {
                Ok(encoding) => {
                    assert!(encoding.num_prefix + encoding.num_suffix <= encoding.len() || !add_special);
                    ids.extend(encoding.ids.into_iter().take(100));
                }
                Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidFile, "{e}"),
            }
        }
    }
    for special in [SpecialText::Skip, SpecialText::Keep] {
        if let Err(e) = tokenizer.decode(&ids, special) {
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{e}");
        }
    }
    let mut decoder = StreamDecoder::new(&tokenizer);
    ids.iter().for_each(|&id| drop(decoder.push(id)));
    decoder.finish();
    true
}
