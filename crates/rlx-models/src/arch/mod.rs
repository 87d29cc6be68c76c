//! Architectures: for each one its config, its table of tensor names and its graph.

mod activation;
pub mod bert;
pub mod decoder;
mod encoder;
mod fit;
pub mod gemma3;
pub(crate) mod gguf_keys;
pub mod llama;
pub mod mistral;
pub mod modern_bert;
pub mod nomic_bert;
pub mod qwen2;
pub mod qwen3;
pub mod qwen3_moe;
pub mod rope;
mod unused;
pub mod weight_type;

use rlx_ir::bail;

pub(crate) use encoder::DecoderNetwork;
pub use encoder::{EmbeddingHead, EncoderGraph, EncoderNetwork, EncoderOutput, EncoderShape, Positions};
pub use fit::fit;
pub(crate) use unused::refuse_unused;

use crate::files::NameTable;
use crate::{Error, Result};

/// What a network computes from token ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// A vector per token, each seeing all tokens.
    Encoder,
    /// Logits per token, each seeing the tokens before it.
    Decoder,
}

/// An architecture that RLX can run.
#[derive(Debug, PartialEq, Eq)]
pub struct Architecture {
    /// Its name: `general.architecture` of a GGUF file where GGUF has the architecture, else `model_type` of a `config.json`.
    pub name: &'static str,
    /// What a `model_type` calls it besides.
    model_types: &'static [&'static str],
    /// What it computes.
    pub family: Family,
    /// What its tensors are called.
    pub names: &'static NameTable,
    /// How the class names in `architectures` of a `config.json` without `model_type` start.
    class_prefix: &'static str,
}

/// EmbeddingGemma's name in GGUF. A `config.json` calls it Gemma 3, with tokens that see both ways.
pub(crate) const EMBEDDING_GEMMA: &str = "gemma-embedding";

/// Every architecture that RLX can run. Those of the family of BERT that GGUF does not tell apart have its network.
pub static SUPPORTED: [Architecture; 13] = [
    Architecture {
        name: "bert",
        model_types: &[],
        family: Family::Encoder,
        names: &bert::NAMES,
        class_prefix: "Bert",
    },
    Architecture {
        name: "nomic-bert",
        model_types: &["nomic_bert"],
        family: Family::Encoder,
        names: &nomic_bert::NAMES,
        class_prefix: "NomicBert",
    },
    Architecture {
        name: "modern-bert",
        model_types: &["modernbert"],
        family: Family::Encoder,
        names: &modern_bert::NAMES,
        class_prefix: "ModernBert",
    },
    Architecture {
        name: "xlm-roberta",
        model_types: &[],
        family: Family::Encoder,
        names: &bert::NAMES,
        class_prefix: "XLMRoberta",
    },
    Architecture {
        name: "roberta",
        model_types: &[],
        family: Family::Encoder,
        names: &bert::NAMES,
        class_prefix: "Roberta",
    },
    Architecture {
        name: "camembert",
        model_types: &[],
        family: Family::Encoder,
        names: &bert::NAMES,
        class_prefix: "Camembert",
    },
    Architecture {
        name: "llama",
        model_types: &[],
        family: Family::Decoder,
        names: &llama::NAMES,
        class_prefix: "Llama",
    },
    Architecture {
        name: "mistral",
        model_types: &[],
        family: Family::Decoder,
        names: &decoder::names::NAMES,
        class_prefix: "Mistral",
    },
    Architecture {
        name: "qwen2",
        model_types: &[],
        family: Family::Decoder,
        names: &decoder::names::NAMES,
        class_prefix: "Qwen2",
    },
    Architecture {
        name: "qwen3",
        model_types: &[],
        family: Family::Decoder,
        names: &decoder::names::NAMES,
        class_prefix: "Qwen3",
    },
    Architecture {
        name: "qwen3moe",
        model_types: &["qwen3_moe"],
        family: Family::Decoder,
        names: &decoder::names::NAMES,
        class_prefix: "Qwen3Moe",
    },
    Architecture {
        name: "gemma3",
        model_types: &["gemma3_text"],
        family: Family::Decoder,
        names: &gemma3::NAMES,
        class_prefix: "Gemma3",
    },
    Architecture {
        name: EMBEDDING_GEMMA,
        model_types: &[],
        family: Family::Encoder,
        names: &gemma3::NAMES,
        class_prefix: "EmbeddingGemma",
    },
];

/// The architecture of that name.
///
/// # Errors
/// `UnsupportedModel` for a name that is not in [`SUPPORTED`], with the list of those that are.
pub fn find(name: &str) -> Result<&'static Architecture> {
    match SUPPORTED.iter().find(|a| a.name == name || a.model_types.contains(&name)) {
        Some(found) => Ok(found),
        None => {
            let known: Vec<&str> = SUPPORTED.iter().map(|a| a.name).collect();
            let name: String = name.chars().take(80).collect();
            bail!(
                UnsupportedModel,
                "the architecture \"{name}\" is not supported; supported are {}",
                known.join(", ")
            )
        }
    }
}

/// The name of the architecture that a `config.json` calls `model_type`: that word itself where it is not known.
pub(crate) fn name_of_model_type(model_type: &str) -> &str {
    let known = |a: &&Architecture| a.name == model_type || a.model_types.contains(&model_type);
    SUPPORTED.iter().find(known).map_or(model_type, |a| a.name)
}

/// The name of the architecture that a class name (`BertModel`, `LlamaForCausalLM`) belongs to.
pub(crate) fn name_of_class(class: &str) -> Option<&'static str> {
    let fits = |rest: &str| rest == "Model" || rest.starts_with("For") || rest.starts_with("LMHead");
    SUPPORTED.iter().find(|a| class.strip_prefix(a.class_prefix).is_some_and(fits)).map(|a| a.name)
}
