//! The pre-tokenizers of byte-level BPE, by the names that GGUF gives them (`tokenizer.ggml.pre`).
//!
//! A vocabulary was learned on words cut in one way, and gives other tokens when they are cut in another, so a
//! name that is not in the table is refused.

mod definition;
mod patterns;
mod split;

use rlx_ir::bail;

use crate::{Error, Result};
pub(crate) use definition::name_of;
use patterns::TABLE;
use split::Splitter;

/// A named way to cut a text into words, and what else follows from the name.
pub(crate) struct PreTokenizer {
    splitter: Splitter,
    /// A word that is a token is that token, whatever the merges say.
    pub(crate) ignore_merges: bool,
    /// Whether BOS is added where the file does not say.
    pub(crate) add_bos: bool,
    /// Whether BOS is added even where the file says that it is not.
    pub(crate) always_bos: bool,
    /// Merges start from characters, spaces being marked as sentencepiece marks them; else from bytes.
    pub(crate) by_char: bool,
}

impl PreTokenizer {
    /// The pre-tokenizer of that name.
    ///
    /// # Errors
    /// `UnsupportedModel`, naming it, if it is not in the table.
    pub(crate) fn by_name(name: &str) -> Result<Self> {
        let Some(entry) = TABLE.iter().find(|e| e.names.contains(&name)) else {
            bail!(
                UnsupportedModel,
                "tokenizer.ggml.pre: the pre-tokenizer \"{name}\" is not known, and another one would give wrong \
                 tokens; known are {}",
                known().join(", ")
            );
        };
        Ok(Self {
            splitter: Splitter::new(entry.stages)?,
            ignore_merges: entry.ignore_merges,
            add_bos: entry.add_bos,
            always_bos: entry.always_bos,
            by_char: entry.by_char,
        })
    }

    /// Hands the words of `text` to `word`, in order; together they are `text`.
    pub(crate) fn split<'t, E>(
        &self,
        text: &'t str,
        word: &mut impl FnMut(&'t str) -> Result<(), E>,
    ) -> Result<(), E> {
        self.splitter.split(text, word)
    }
}

/// The names of all pre-tokenizers that are known.
pub(crate) fn known() -> Vec<&'static str> {
    TABLE.iter().flat_map(|e| e.names.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    fn words<'t>(name: &str, text: &'t str) -> Vec<&'t str> {
        let mut words = Vec::new();
        let pre = PreTokenizer::by_name(name).unwrap();
        pre.split(text, &mut |w| {
            words.push(w);
            Ok::<_, Error>(())
        })
        .unwrap();
        words
    }

    #[test]
    fn gpt_2_keeps_one_space_with_the_word() {
        assert_eq!(
            words("gpt-2", "I'll go  there 123\n\n x "),
            ["I", "'ll", " go", " ", " there", " 123", "\n\n", " x", " "]
        );
        assert_eq!(words("gpt-2", "a\tb"), ["a", "\t", "b"]);
        assert_eq!(words("gpt-2", "a\n\nb"), ["a", "\n", "\n", "b"]);
    }

    #[test]
    fn llama_3_cuts_numbers_by_three_and_keeps_line_breaks_together() {
        assert_eq!(
            words("llama-bpe", "1234567 I'LL\n\n  x"),
            ["123", "456", "7", " I", "'LL", "\n\n", " ", " x"]
        );
        assert_eq!(words("llama-bpe", "a \n\n b"), ["a", " \n\n", " b"]);
    }

    #[test]
    fn qwen_and_smollm_cut_numbers_into_digits() {
        assert_eq!(words("qwen2", "x 12"), ["x", " ", "1", "2"]);
        assert_eq!(words("smollm", "x 12"), ["x", " ", "1", "2"]);
    }

    #[test]
    fn stages_cut_the_pieces_of_the_stage_before() {
        assert_eq!(words("default", "a, 12345!"), ["a", ",", " ", "123", "45", "!"]);
        assert_eq!(words("deepseek-v3", "1234中文 a.b"), ["123", "4", "中文", " a", ".b"]);
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        for name in ["afmoe", "tiny_aya", "superbpe"] {
            assert_eq!(words(name, "1234567"), ["1", "234", "567"], "{name}");
            assert_eq!(words(name, "123"), ["123"], "{name}");
        }
        assert_eq!(words("afmoe", "x 1234y"), ["x", " ", "1", "234", "y"]);
        assert_eq!(words("tiny_aya", "x 1234y"), ["x", " ", "123", "4", "y"], "no border after the digits");
        assert_eq!(words("tiny_aya", "x1234"), ["x", "1", "234"]);
        assert_eq!(
            words("superbpe", "12½3456 a b"),
            ["12½3", "456", " a b"],
            "what is no digit is not cut off"
        );
    }

    #[test]
    fn jais_2_cuts_runs_of_spaces_by_powers_of_two() {
        let lens = |text: &str| words("jais-2", text).into_iter().map(str::len).collect::<Vec<_>>();
        assert_eq!(lens(&" ".repeat(13)), [8, 4, 1]);
        assert_eq!(lens(&format!("{}x", " ".repeat(14))), [8, 4, 1, 2]);
        assert_eq!(lens(&format!("{}x", " ".repeat(5))), [4, 2]);
        assert_eq!(lens("  "), [2]);
        assert_eq!(lens("  x"), [1, 2]);
        assert_eq!(words("jais-2", "a  \n  b"), ["a", "  \n", " ", " b"]);
    }

    #[test]
    fn kimi_keeps_han_apart_from_other_letters() {
        assert_eq!(words("kimi-k2", "abc中文def 1234"), ["abc", "中文", "def", " ", "123", "4"]);
        assert_eq!(words("kimi-k2", "Don't"), ["Don't"]);
    }

    #[test]
    fn lines_are_words_where_merges_cross_spaces() {
        assert_eq!(words("gemma4", "a b\n\nc"), ["a b", "\n\n", "c"]);
        assert_eq!(words("exaone-moe", "a b  c"), ["a b", " ", " c"]);
    }

    #[test]
    fn words_always_add_up_to_the_text() {
        let text = "\u{0} \u{85}a\u{301}'S ſ\r\n\r\n\t\tx ５６ 🇩🇪 ,,/\n/ ﷺ \u{2028}\u{2029}  ";
        for name in known() {
            assert_eq!(words(name, text).concat(), text, "{name}");
            assert!(words(name, text).iter().all(|w| !w.is_empty()), "{name}");
            assert!(words(name, "").is_empty());
        }
    }

    #[test]
    fn an_unknown_name_is_refused_by_name() {
        let e = PreTokenizer::by_name("qwen9").err().unwrap();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
        assert!(e.to_string().contains("\"qwen9\""), "{e}");
    }

    #[test]
    fn no_name_is_listed_twice() {
        let mut names = known();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), known().len());
    }
}
