//! The first tokens of a long text, without those of all of it: the `tokenizers` crate keeps more than 100 bytes for each byte.
//!
//! A part of the text gives the tokens of the whole but for those at its end, as long as the cut changes nothing far before it:
//!
//! - A cut before the space between two words ends a word in either text: normalizers compose nothing with a space,
//!   pre-tokenizers and pieces begin words with it. What looks further (a rule that takes spaces into words, an added token of
//!   several words, a limit on the length of words) reaches some words back, not [`MARGIN`] tokens.
//! - Where words are that long (Chinese, Japanese), a cut between two letters changes the merges of BPE and the word of WordPiece
//!   close to it. The best segmentation of a unigram model may change from the start of the word, so it is never cut there.
//! - A tokenizer that breaks with all this is likely to show it: two parts of different lengths must agree on the tokens that
//!   are wanted.
//!
//! Where no two parts agree, all of the text is encoded.

use tokenizers::ModelWrapper;

use super::{EncodeOptions, Encoding, HfTokenizer, MAX_BYTES};
use crate::Result;

/// Tokens before a cut that are not relied on.
const MARGIN: usize = 128;
/// Bytes of the first part, and the fewest for each token that is wanted.
const FIRST_BYTES: usize = 16 << 10;
const TOKEN_BYTES: usize = 16;

impl HfTokenizer {
    /// The tokens of `text`; where there are more than `limit`, these may be those of a part of it that begins with the same
    /// `limit` tokens and has more of them.
    pub(in crate::text) fn encode_start(
        &self,
        text: &str,
        options: EncodeOptions,
        limit: usize,
    ) -> Result<Encoding> {
        let first = FIRST_BYTES.max(limit.saturating_mul(TOKEN_BYTES));
        self.start_from(text, options, limit, first)
    }

    /// [`encode_start`](Self::encode_start) with a first part of about `bytes`.
    fn start_from(
        &self,
        text: &str,
        options: EncodeOptions,
        limit: usize,
        mut bytes: usize,
    ) -> Result<Encoding> {
        let within_words = !matches!(self.parsing.get_model(), ModelWrapper::Unigram(_));
        let enough = limit.saturating_add(MARGIN);
        let mut shorter: Option<Encoding> = None;
        while bytes < text.len().min(MAX_BYTES) {
            if let Some(part) = part(text, bytes, within_words) {
                let encoding = self.encode(part, options)?;
                if encoding.len() >= enough {
                    if shorter.is_some_and(|s| s.ids[..limit] == encoding.ids[..limit]) {
                        return Ok(encoding);
                    }
                    shorter = Some(encoding);
                }
            }
            bytes = bytes.saturating_mul(2);
        }
        self.encode(text, options)
    }
}

/// The start of `text`, of `bytes / 2` to `bytes`, that ends at a word's end, or else within a word where that is allowed.
fn part(text: &str, bytes: usize, within_words: bool) -> Option<&str> {
    let window = text.as_bytes().get(bytes / 2..bytes)?;
    let after = |at: usize| text.get(at..)?.chars().next();
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let ends_word = |at: usize| is_word(text[..at].chars().next_back()) && is_word(after(at + 1));
    let spaces = (bytes / 2..bytes).rev().zip(window.iter().rev()).filter(|(_, b)| **b == b' ');
    if let Some((at, _)) = { spaces }.find(|(at, _)| ends_word(*at)) {
        return Some(&text[..at]);
    }
    let is_within = |at: &usize| text.is_char_boundary(*at) && is_word(text[..*at].chars().next_back());
    let mut places = (bytes / 2..bytes).rev().filter(is_within);
    let at = places.find(|at| is_word(after(*at)))?;
    within_words.then(|| &text[..at])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPM: &str = r#"{
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [
            {"id": 0, "content": "<unk>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
            {"id": 1, "content": "the cat", "single_word": false, "lstrip": true, "rstrip": true, "normalized": true, "special": false}
        ],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "pre_tokenizer": null, "post_processor": null, "decoder": null,
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false, "dropout": null,
            "continuing_subword_prefix": null, "end_of_word_suffix": null,
            "vocab": {"<unk>": 0, "the cat": 1, "▁": 2, "a": 3, "b": 4, "t": 5, "▁a": 6, "aa": 7, "ab": 8, "▁▁": 9, "aaaa": 10,
                "日": 11, "本": 12, "日本": 13, "a▁": 14, "ba": 15, "bab": 16},
            "merges": [["b", "a"], ["▁", "a"], ["a", "a"], ["a", "b"], ["▁", "▁"], ["aa", "aa"], ["日", "本"], ["ba", "b"], ["a", "▁"]]}
    }"#;

    fn tokenizers() -> Vec<(String, HfTokenizer)> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");
        let names = ["bpe_tokenizer.json", "unigram_tokenizer.json", "wordpiece_tokenizer.json"];
        let files = names.map(|n| (n.to_owned(), std::fs::read(format!("{folder}{n}")).unwrap()));
        let spm = ("spm".to_owned(), SPM.as_bytes().to_vec());
        files.into_iter().chain([spm]).map(|(n, json)| (n, HfTokenizer::new(&json).unwrap())).collect()
    }

    /// A text of words, with a taste of its own: which alphabet, how long the words are, what is between them.
    fn random_text(seed: u64, bytes: usize) -> String {
        const PARTS: [&[&str]; 6] = [
            &["a", "b", "t", "the", "cat", "A", "é", "e\u{301}", "ß", "Σ"],
            &["日", "本", "日本", "語", "。", "ｶﾞ", "가", "각"],
            &["a", "aa", "b", "ab"],
            &["\u{301}", "a", "\u{323}", "क", "ा", "ि", "्", "ि", "\u{200d}", "👩‍👩‍👧", "🇩🇪"],
            &["1", "23", "x", "_", "-", "...", "'s", "<unk>", "[SEP]", "</s>", "▁", "the cat"],
            &["\u{fb01}", "Ⅷ", "\u{1d49c}", "\u{a0}", "\u{3000}", "\u{ad}", "\0", "\u{fffd}"],
        ];
        const GAPS: [&[&str]; 5] =
            [&[" "], &[" ", "  ", "\n", "\t ", " \n "], &["\n"], &[""], &["\u{a0}", " "]];
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut draw = |n: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as usize % n
        };
        let (own, gaps, word, mixed) = (draw(6), GAPS[draw(5)], [3, 12, 400][draw(3)], draw(3) == 0);
        let mut text = String::new();
        while text.len() < bytes {
            for _ in 0..=draw(word) {
                let parts = PARTS[if mixed { draw(6) } else { own }];
                text.push_str(parts[draw(parts.len())]);
            }
            text.push_str(gaps[draw(gaps.len())]);
        }
        text
    }

    #[test]
    fn a_start_has_the_tokens_of_the_whole() {
        let mut shortened = 0;
        for (name, tokenizer) in tokenizers() {
            for seed in 0..300 {
                let text = random_text(seed, 6000);
                let options = EncodeOptions { add_special: seed % 3 != 0, parse_special: seed % 2 == 0 };
                let whole = tokenizer.encode(&text, options).unwrap();
                for limit in [0, 1, 7, 64] {
                    let start = tokenizer.start_from(&text, options, limit, 128).unwrap();
                    shortened += usize::from(start.len() < whole.len());
                    let (mut start, mut whole) = (start, whole.clone());
                    assert_eq!(
                        (start.truncate(limit), &start.ids),
                        (whole.truncate(limit), &whole.ids),
                        "{name}: {limit} tokens of the text of seed {seed}"
                    );
                }
            }
        }
        assert!(shortened > 2000, "{shortened} texts only were shortened");
    }

    #[test]
    fn parts_end_where_words_do() {
        assert_eq!(part("ab cd ef gh", 8, false), Some("ab cd"));
        assert_eq!(part("ab cd, ef gh", 9, false), None, "a comma is no word");
        assert_eq!(part("abcdefgh", 6, false), None);
        assert_eq!(part("abcdefgh", 6, true), Some("abcde"));
        assert_eq!(part("日本語日本語", 8, true), Some("日本"));
        assert_eq!(part("e\u{301}\u{301}\u{301}\u{301}", 8, true), None);
    }

    #[test]
    fn a_text_beyond_the_most_is_refused_where_no_start_will_do() {
        let (_, unigram) = tokenizers().remove(1);
        let options = EncodeOptions::default();
        let long = "cat ".repeat(MAX_BYTES / 4 + 1);
        assert!(unigram.encode_start(&long, options, 8).unwrap().len() > 8);
        let e = unigram.encode(&long, options).unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::InvalidArgument);
        assert!(e.message().contains(&long.len().to_string()), "{e}");
    }
}
