//! BERT's basic tokenizer: cleans a text and cuts it into words and punctuation marks.
//!
//! The character classes are those of the `tokenizers` crate, taken from the same Unicode tables, so that a GGUF
//! file and the `tokenizer.json` that it came from give the same words.

use unicode_categories::UnicodeCategories;
use unicode_normalization_alignments::UnicodeNormalization;

/// What is done to the letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BertWords {
    pub(super) lowercase: bool,
    pub(super) strip_accents: bool,
}

impl BertWords {
    /// Hands each word to `word`, in order. Words are not empty.
    pub(super) fn split(self, text: &str, word: &mut impl FnMut(&str)) {
        let mut run = String::new();
        for c in text.chars() {
            if c == '\0' || c == '\u{FFFD}' || is_control(c) {
                // Cleaned away, even where it counts as white space (U+0085): the letters around it belong together.
            } else if c.is_whitespace() {
                self.finish(&mut run, word);
            } else if is_cjk(c) {
                self.finish(&mut run, word);
                run.push(c);
                self.finish(&mut run, word);
            } else {
                run.push(c);
            }
        }
        self.finish(&mut run, word);
    }

    /// Changes the letters of a run without white space, cuts it at punctuation and empties it.
    fn finish(self, run: &mut String, word: &mut impl FnMut(&str)) {
        if run.is_ascii() {
            if self.lowercase {
                run.make_ascii_lowercase();
            }
        } else {
            if self.strip_accents {
                *run = run.nfd().map(|(c, _)| c).filter(|c| !c.is_mark_nonspacing()).collect();
            }
            if self.lowercase {
                *run = run.chars().flat_map(char::to_lowercase).collect();
            }
        }
        let mut start = 0;
        for (at, c) in run.char_indices() {
            if is_punctuation(c) {
                if start < at {
                    word(&run[start..at]);
                }
                start = at + c.len_utf8();
                word(&run[at..start]);
            }
        }
        if start < run.len() {
            word(&run[start..]);
        }
        run.clear();
    }
}

fn is_control(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => false,
        _ if c.is_ascii() => c.is_ascii_control(),
        _ => c.is_other(),
    }
}

fn is_punctuation(c: char) -> bool {
    if c.is_ascii() { c.is_ascii_punctuation() } else { c.is_punctuation() }
}

/// The ideographs that stand alone.
fn is_cjk(c: char) -> bool {
    matches!(
        u32::from(c),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x2_0000..=0x2_A6DF
            | 0x2_A700..=0x2_B73F
            | 0x2_B740..=0x2_B81F
            | 0x2_B920..=0x2_CEAF
            | 0xF900..=0xFAFF
            | 0x2_F800..=0x2_FA1F
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tokenizers::normalizers::BertNormalizer;
    use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
    use tokenizers::{
        NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer,
    };

    use super::*;

    const UNCASED: BertWords = BertWords { lowercase: true, strip_accents: true };
    const CASED: BertWords = BertWords { lowercase: false, strip_accents: false };

    fn words(rule: BertWords, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        rule.split(text, &mut |w| words.push(w.to_owned()));
        words
    }

    fn reference(rule: BertWords, text: &str) -> Vec<String> {
        let mut text = NormalizedString::from(text);
        BertNormalizer::new(true, true, Some(rule.strip_accents), rule.lowercase)
            .normalize(&mut text)
            .unwrap();
        let mut text = PreTokenizedString::from(text);
        BertPreTokenizer.pre_tokenize(&mut text).unwrap();
        let splits = text.get_splits(OffsetReferential::Original, OffsetType::Byte);
        splits.into_iter().map(|(w, _, _)| w.to_owned()).collect()
    }

    #[test]
    fn letters_are_folded_and_marks_stand_alone() {
        assert_eq!(words(UNCASED, "Héllo, WÖRLD!"), ["hello", ",", "world", "!"]);
        assert_eq!(words(UNCASED, "日本go\u{0}od"), ["日", "本", "good"]);
        assert_eq!(words(CASED, "Ça va?"), ["Ça", "va", "?"]);
        assert_eq!(words(UNCASED, "a\u{85}b\u{b}c\td"), ["abc", "d"]);
        assert!(words(UNCASED, " \t\u{301}\u{0}").is_empty());
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_reference(text in "(\\PC|\\pC|[ a-zA-Zéß\u{301}\u{130}\u{FFFD}\u{0}\u{AD}\u{2003}\u{85}\u{b}\t.,])*") {
            for rule in [UNCASED, CASED] {
                prop_assert_eq!(words(rule, &text), reference(rule, &text));
            }
        }
    }
}
