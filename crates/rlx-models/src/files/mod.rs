//! The files of a model: config and weights, whatever the layout.
//!
//! [`ModelFiles`] opens a folder in the Hugging Face layout, a `.safetensors` beside its `config.json`, or a `.gguf`.
//! [`NamedWeights`] gives its tensors under canonical names, which are those of GGUF. Files are hostile: numbers are
//! bounded (see [`limits`]) before anything is sized by them, small files are read up to a limit, names lead to nothing outside
//! the folder, and a missing key, tensor or shard is named.

mod hf_config;
mod inside;
pub mod limits;
mod model_files;
mod named_weights;
mod own;
mod shards;
pub(crate) mod small;

pub use hf_config::HfConfig;
pub(crate) use inside::is_inside;
pub use model_files::{ModelConfig, ModelFiles};
pub use named_weights::{Alias, NameTable, NamedWeights};
pub(crate) use shards::shard_names;
