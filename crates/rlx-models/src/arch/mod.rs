//! Architectures: for each one its config, its table of tensor names and its graph.

pub mod bert;
pub mod decoder;
mod encoder;
mod fit;
pub mod llama;
pub mod rope;
pub mod weight_type;

use rlx_ir::bail;

pub use encoder::{EmbeddingHead, EncoderGraph, EncoderOutput};
pub use fit::fit;

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
    /// Its name: `general.architecture` of a GGUF file, `model_type` of a `config.json`.
    pub name: &'static str,
    /// What it computes.
    pub family: Family,
    /// How the class names in `architectures` of a `config.json` without `model_type` start.
    class_prefix: &'static str,
}

/// Every architecture that RLX can run.
pub static SUPPORTED: [Architecture; 3] = [
    Architecture { name: "bert", family: Family::Encoder, class_prefix: "Bert" },
    Architecture { name: "llama", family: Family::Decoder, class_prefix: "Llama" },
    Architecture { name: "mistral", family: Family::Decoder, class_prefix: "Mistral" },
];

/// The architecture of that name.
///
/// # Errors
/// `UnsupportedModel` for a name that is not in [`SUPPORTED`], with the list of those that are.
pub fn find(name: &str) -> Result<&'static Architecture> {
    match SUPPORTED.iter().find(|a| a.name == name) {
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

/// The name of the architecture that a class name (`BertModel`, `LlamaForCausalLM`) belongs to.
pub(crate) fn name_of_class(class: &str) -> Option<&'static str> {
    let fits = |rest: &str| rest == "Model" || rest.starts_with("For") || rest.starts_with("LMHead");
    SUPPORTED.iter().find(|a| class.strip_prefix(a.class_prefix).is_some_and(fits)).map(|a| a.name)
}
