//! The tokens that end a generation, for files that name only one of them.

use super::{GgufVocab, TokenType};

/// Texts of tokens that end a text, a turn or a message.
const ENDS: [&str; 22] = [
    "<|eot_id|>",
    "<|eom_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "</s>",
];

/// Texts of tokens that a code model writes where a file ends or is cut off.
const FILE_ENDS: [&str; 11] = [
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
];

impl GgufVocab {
    /// All tokens that end a generation, ascending.
    ///
    /// A token of such a name counts whatever its type, but for `</s>`, which is ordinary text (a tag) in some
    /// vocabularies.
    pub(super) fn stop_set(&self) -> Vec<u32> {
        let mut stop: Vec<u32> = [self.eos, self.eot, self.eom].into_iter().flatten().collect();
        let (mut end, mut ends_messages) = (None, [false; 4]);
        for (id, token) in (0u32..).zip(self.tokens.iter()) {
            let is = |name: &&str| name.as_bytes() == token;
            if token == b"</s>" && self.token_type(id) != TokenType::Control {
                continue;
            }
            if ENDS.iter().chain(&FILE_ENDS).any(is) {
                stop.push(id);
            }
            if is(&"<|end|>") {
                end = Some(id);
            }
            for (found, name) in
                ends_messages.iter_mut().zip(["<|return|>", "<|call|>", "<|flush|>", "<|calls|>"])
            {
                *found |= is(&name);
            }
        }
        // Where messages have ends of their own, `<|end|>` only ends a part of an answer.
        if let Some(end) = end
            && (ends_messages[0] && ends_messages[1] || ends_messages[2] && ends_messages[3])
        {
            stop.retain(|&id| id != end);
        }
        stop.sort_unstable();
        stop.dedup();
        stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stop_set(tokens: &[(&str, i64)]) -> Vec<u32> {
        let vocab = GgufVocab {
            tokens: tokens.iter().map(|t| t.0).collect(),
            token_types: tokens.iter().map(|t| TokenType::from_gguf(t.1)).collect(),
            eos: Some(0),
            ..GgufVocab::default()
        };
        vocab.stop_set()
    }

    #[test]
    fn ends_are_known_by_name() {
        assert_eq!(
            stop_set(&[("x", 3), ("<|im_end|>", 1), ("y", 1), ("<|endoftext|>", 3), ("<|file_sep|>", 3)]),
            [0, 1, 3, 4]
        );
    }

    #[test]
    fn a_tag_is_no_end() {
        assert_eq!(stop_set(&[("<eos>", 3), ("</s>", 4)]), [0]);
        assert_eq!(stop_set(&[("<eos>", 3), ("</s>", 3)]), [0, 1]);
    }

    #[test]
    fn the_end_of_a_part_is_not_the_end_of_an_answer() {
        assert_eq!(stop_set(&[("x", 3), ("<|end|>", 3), ("<|return|>", 3), ("<|call|>", 3)]), [0, 2, 3]);
        assert_eq!(stop_set(&[("x", 3), ("<|end|>", 3), ("<|flush|>", 3), ("<|calls|>", 3)]), [0, 2, 3]);
        assert_eq!(stop_set(&[("x", 3), ("<|end|>", 3), ("<|return|>", 3)]), [0, 1, 2]);
    }
}
