//! The files of a model: config and weights, whatever the layout.
//!
//! [`ModelFiles`] opens a folder in the Hugging Face layout, a `.safetensors` beside its `config.json`, or a `.gguf`.
//! [`NamedWeights`] gives its tensors under canonical names, which are those of GGUF. Files are hostile: numbers are
//! bounded (see [`limits`]) before anything is sized by them, and a missing key, tensor or shard is named.

mod hf_config;
pub mod limits;
mod model_files;
mod named_weights;
mod own;
mod read;
mod shards;

pub use hf_config::HfConfig;
pub use model_files::{ModelConfig, ModelFiles};
pub use named_weights::{Alias, NameTable, NamedWeights};
pub(crate) use read::{MAX_SIDE_FILE, read_bounded, read_start, read_text};
pub(crate) use shards::shard_names;
