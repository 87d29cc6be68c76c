//! The words that a `config.json` has for activations.

use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::{Builder, Value, bail};

use crate::{Error, Result};

/// Words with what they mean; the first of an activation is the usual one.
const WORDS: &[(&str, Activation)] = &[
    ("gelu", Activation::Gelu),
    ("gelu_new", Activation::GeluTanh),
    ("gelu_pytorch_tanh", Activation::GeluTanh),
    ("relu", Activation::Relu),
    ("silu", Activation::Silu),
    ("swish", Activation::Silu),
];

/// The activation that `word`, the value of `key`, stands for.
///
/// # Errors
/// `UnsupportedModel` naming key and word, with the list of words.
pub(crate) fn activation(key: &str, word: &str) -> Result<Activation> {
    match WORDS.iter().find(|(known, _)| *known == word) {
        Some((_, activation)) => Ok(*activation),
        None => {
            let known: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
            let word: String = word.chars().take(80).collect();
            bail!(UnsupportedModel, "{key} \"{word}\" is not supported; supported are {}", known.join(", "))
        }
    }
}

/// The usual word for an activation that [`activation`] gave.
pub(crate) fn activation_word(activation: Activation) -> &'static str {
    WORDS.iter().find(|(_, known)| *known == activation).map_or("none", |(word, _)| word)
}

/// Emits the activation: as the op of its name where there is one.
///
/// # Errors
/// `InvalidArgument` where `x` is no float.
pub(crate) fn activate(b: &mut Builder, x: Value, activation: Activation) -> Result<Value> {
    Ok(match activation {
        Activation::Silu => b.silu(x)?,
        Activation::Gelu => b.gelu(x, Approximate::None)?,
        Activation::GeluTanh => b.gelu(x, Approximate::Tanh)?,
        other => other.emit(b, x)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_to_activations_and_back() {
        for (word, meant) in WORDS {
            assert_eq!(activation("hidden_act", word).unwrap(), *meant);
            assert_eq!(activation("hidden_act", activation_word(*meant)).unwrap(), *meant);
        }
        let e = activation("hidden_act", "mish").unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::UnsupportedModel);
        assert!(e.message().contains("hidden_act \"mish\"") && e.message().contains("gelu_new"), "{e}");
    }
}
