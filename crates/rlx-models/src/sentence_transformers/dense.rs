//! A linear layer after pooling.

use std::fmt;
use std::path::{Path, PathBuf};

use rlx_ir::bail;
use serde_json::Value;

use crate::json;
use crate::{Error, Result};

/// What follows a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// `x * Phi(x)`.
    Gelu,
    /// `1 / (1 + exp(-x))`.
    Sigmoid,
    /// `x * sigmoid(x)`.
    Silu,
}

/// The largest number of components of a vector.
pub(super) const MAX_FEATURES: usize = 1 << 24;

impl Activation {
    /// Every activation with its name: the last part of that of its class in PyTorch.
    const NAMES: [(&'static str, Self); 6] = [
        ("Identity", Self::Identity),
        ("Tanh", Self::Tanh),
        ("ReLU", Self::Relu),
        ("GELU", Self::Gelu),
        ("Sigmoid", Self::Sigmoid),
        ("SiLU", Self::Silu),
    ];

    /// Its name, as PyTorch calls it.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// The activation whose name, or the last part of it, this is.
    pub(super) fn by_name(name: &str) -> Result<Self> {
        let last = name.rsplit('.').next().unwrap_or_default();
        match Self::NAMES.iter().find(|(known, _)| *known == last) {
            Some((_, of)) => Ok(*of),
            None => {
                let known = Self::NAMES.map(|(name, _)| name).join(", ");
                bail!(UnsupportedModel, "activation_function: \"{name}\" is not known; known are {known}")
            }
        }
    }
}

/// Where the weights of a Dense module are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DenseSource {
    /// A folder, which holds `model.safetensors` with `linear.weight` `[out_features, in_features]` and, with a bias,
    /// `linear.bias` `[out_features]`.
    Folder(PathBuf),
    /// Tensors of the model's own GGUF file, whose names go on with `.weight` and `.bias`.
    Gguf(String),
}

impl fmt::Display for DenseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Gguf(name) => f.write_str(name),
        }
    }
}

/// A Dense module: `activation(x W^T + b)`, x f32 `[texts, in_features]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenseConfig {
    /// Where its weights are.
    pub source: DenseSource,
    /// Components of a vector that comes in.
    pub in_features: usize,
    /// Components of a vector that goes out.
    pub out_features: usize,
    /// Whether there is a bias.
    pub bias: bool,
    /// What follows.
    pub activation: Activation,
}

impl DenseConfig {
    /// Reads `config.json` in the module's folder.
    pub(super) fn from_folder(folder: &Path) -> Result<Self> {
        let within = |e: Error| e.context(folder.join("config.json").display());
        let Some(config) = json::read_object(folder, "config.json")? else {
            bail!(
                NotFound,
                "{}: no such file, and its Dense module needs it",
                folder.join("config.json").display()
            );
        };
        refuse_variants(&config).map_err(within)?;
        let size = |key: &str| match json::count(&config, key).map_err(within)? {
            Some(n) if (1..=MAX_FEATURES as u64).contains(&n) => Ok(n as usize),
            Some(n) => Err(within(Error::new(
                rlx_ir::ErrorKind::InvalidFile,
                format!("{key}: {n} is no size of a vector"),
            ))),
            None => Err(within(Error::new(rlx_ir::ErrorKind::InvalidFile, format!("{key}: missing")))),
        };
        Ok(Self {
            source: DenseSource::Folder(folder.to_owned()),
            in_features: size("in_features")?,
            out_features: size("out_features")?,
            bias: config.get("bias").and_then(Value::as_bool).unwrap_or(true),
            activation: activation(&config).map_err(within)?,
        })
    }
}

/// What would change the result, and is not built.
fn refuse_variants(config: &Value) -> Result<()> {
    if config.get("use_residual").and_then(Value::as_bool) == Some(true) {
        bail!(UnsupportedModel, "use_residual is true, which is not supported; false is");
    }
    for key in ["module_input_name", "module_output_name"] {
        match config.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name == "sentence_embedding" => {}
            Some(other) => {
                bail!(UnsupportedModel, "{key} is {other}, which is not supported; \"sentence_embedding\" is")
            }
        }
    }
    Ok(())
}

/// The last part of a Python class name; a tangent where the key is absent.
fn activation(config: &Value) -> Result<Activation> {
    let name = match config.get("activation_function") {
        None | Some(Value::Null) => return Ok(Activation::Tanh),
        Some(Value::String(name)) => name,
        Some(other) => bail!(InvalidFile, "activation_function: {other} is no name"),
    };
    Activation::by_name(name)
}
