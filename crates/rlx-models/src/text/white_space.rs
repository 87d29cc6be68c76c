//! Which special tokens take the white space beside them along.
//!
//! `tokenizer.json` says so for each token; GGUF has no key for it, so it follows from the model's name.

use super::{GgufVocab, TokenType};

impl GgufVocab {
    /// Sets `lstrip` and `rstrip` for models that are known to need them, by `general.name` and `general.architecture`.
    pub(super) fn set_white_space(&mut self, name: &str, architecture: &str) {
        let pre = self.pre.as_deref().unwrap_or_default();
        let name = name.to_lowercase();
        let roberta = matches!(pre, "jina-v2-de" | "jina-v2-es" | "jina-v2-code" | "roberta-bpe");
        let xlm_roberta = self.model == "t5" || matches!(architecture, "nomic-bert-moe" | "jina-bert-v3");
        if roberta || xlm_roberta {
            self.lstrip = self.named(&["<mask>"]);
        } else if pre == "modern-bert" || name.contains("modern-bert") {
            self.lstrip = self.named(&["[MASK]"]);
        } else if name.contains("phi-3") || name.contains("phi3") {
            let keep = self.named(&["<unk>", "<s>", "<|endoftext|>"]);
            let end = self.named(&["</s>"]);
            let ids = 0..self.tokens.len() as u32;
            let special = |id: &u32| {
                let named = matches!(
                    self.token_type(*id),
                    TokenType::Control | TokenType::UserDefined | TokenType::Unknown
                );
                (named && !keep.contains(id)) || end.contains(id)
            };
            self.rstrip = ids.filter(special).collect();
        }
    }

    fn named(&self, names: &[&str]) -> Vec<u32> {
        let ids = (0u32..).zip(self.tokens.iter());
        ids.filter(|(_, token)| names.iter().any(|n| n.as_bytes() == *token)).map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocab() -> GgufVocab {
        GgufVocab {
            tokens: ["<unk>", "<s>", "</s>", "<|user|>", "a", "<mask>", "[MASK]"].into_iter().collect(),
            token_types: [2, 3, 1, 3, 1, 3, 3].map(TokenType::from_gguf).to_vec(),
            ..GgufVocab::default()
        }
    }

    #[test]
    fn the_models_name_decides() {
        let strips = |vocab: GgufVocab, name, architecture| {
            let mut vocab = vocab;
            vocab.set_white_space(name, architecture);
            (vocab.lstrip, vocab.rstrip)
        };
        assert_eq!(strips(vocab(), "Phi3", "phi3"), (vec![], vec![2, 3, 5, 6]));
        assert_eq!(strips(vocab(), "Llama", "llama"), (vec![], vec![]));
        assert_eq!(strips(vocab(), "", "nomic-bert-moe"), (vec![5], vec![]));
        let with = |pre: &str| GgufVocab { pre: Some(pre.into()), ..vocab() };
        assert_eq!(strips(with("roberta-bpe"), "", ""), (vec![5], vec![]));
        assert_eq!(strips(with("modern-bert"), "", ""), (vec![6], vec![]));
    }
}
