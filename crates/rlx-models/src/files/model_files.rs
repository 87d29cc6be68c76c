//! Opening a model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlx_gguf::{Gguf, TensorInfo};
use rlx_ir::bail;
use rlx_runtime::WeightSource;
use rlx_runtime::weights::{GgufWeights, SafetensorsFile, SafetensorsWeights};

use super::hf_config::HfConfig;
use super::own::is_gguf;
use super::shards;
use crate::arch::{self, Architecture};
use crate::{Error, Result};

/// What a model says about itself.
#[derive(Clone, Debug)]
pub enum ModelConfig {
    /// A `config.json`.
    Hf(HfConfig),
    /// The metadata of a GGUF file.
    Gguf(Arc<Gguf>),
}

/// A model that was opened: config and tensors under the names that its files give them. Cheap to clone.
#[derive(Clone)]
pub struct ModelFiles {
    path: PathBuf,
    architecture: String,
    config: ModelConfig,
    source: Arc<dyn WeightSource>,
    weight_files: Arc<[PathBuf]>,
    names: Arc<BTreeSet<String>>,
}

impl ModelFiles {
    /// Opens a folder in the Hugging Face layout, a `.safetensors` file beside its `config.json`, or a `.gguf` file (one
    /// shard of a split one stands for all). No data of tensors is read.
    ///
    /// # Errors
    /// `NotFound` for a file, shard or path that is not there, by name; `InvalidFile` for damage and for a file of
    /// another kind; `UnsupportedModel` for tensor types that RLX cannot read; `Io`.
    pub fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            if !path.join("config.json").exists()
                && let Some(gguf) = only_gguf(path)
            {
                return Self::open_gguf(&gguf);
            }
            return Self::open_hf(path, &path.join("config.json"), || shards::open_folder(path));
        }
        if !path.exists() {
            bail!(NotFound, "{}: no such file or folder", path.display());
        }
        if shards::is_safetensors(path) {
            let single = || Ok(SafetensorsWeights::new(vec![SafetensorsFile::open(path)?]));
            return Self::open_hf(path, &path.with_file_name("config.json"), single);
        }
        if is_gguf(path) {
            return Self::open_gguf(path);
        }
        bail!(
            InvalidFile,
            "{}: expected a folder with config.json, a .safetensors file or a .gguf file",
            path.display()
        )
    }

    fn open_gguf(path: &Path) -> Result<Self> {
        Self::from_gguf(Arc::new(Gguf::open(path)?), path)
    }

    /// The model in an open GGUF file that is called `path` in messages.
    ///
    /// # Errors
    /// `InvalidFile` where `general.architecture` is missing or no string.
    pub fn from_gguf(gguf: Arc<Gguf>, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let architecture = gguf.metadata().require_str("general.architecture");
        let architecture = architecture.map_err(|e| e.context(path.display()))?.to_owned();
        let names = gguf.tensors().iter().map(|t: &TensorInfo| t.name().to_owned()).collect();
        Ok(Self {
            path,
            architecture,
            source: Arc::new(GgufWeights::new(gguf.clone())),
            weight_files: gguf.files().map(Path::to_owned).collect(),
            config: ModelConfig::Gguf(gguf),
            names: Arc::new(names),
        })
    }

    fn open_hf(
        path: &Path,
        config_path: &Path,
        weights: impl FnOnce() -> Result<SafetensorsWeights>,
    ) -> Result<Self> {
        let config = HfConfig::open(config_path)?;
        let architecture = hf_architecture(&config)?;
        let weights = weights()?;
        let weight_files = weights.files().iter().map(|file| file.path().to_owned()).collect();
        let names =
            weights.files().iter().flat_map(SafetensorsFile::tensors).map(|t| t.0.to_owned()).collect();
        Ok(Self {
            path: path.to_owned(),
            architecture,
            config: ModelConfig::Hf(config),
            source: Arc::new(weights),
            weight_files,
            names: Arc::new(names),
        })
    }

    /// The path that was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder with the files beside the weights (`tokenizer.json`, `modules.json`); `None` for GGUF, which needs none.
    pub fn folder(&self) -> Option<&Path> {
        match &self.config {
            ModelConfig::Hf(config) => config.path().parent(),
            ModelConfig::Gguf(_) => None,
        }
    }

    /// The architecture's name, known to RLX or not: `bert`, `llama`. Of a `config.json` it is the name in GGUF, where that
    /// has one.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The architecture, which RLX can run.
    ///
    /// # Errors
    /// `UnsupportedModel` naming it and listing those that are supported.
    pub fn supported(&self) -> Result<&'static Architecture> {
        arch::find(&self.architecture).map_err(|e| e.context(self.path.display()))
    }

    /// What the model says about itself.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// The tensors, by the files' own names.
    pub fn source(&self) -> &Arc<dyn WeightSource> {
        &self.source
    }

    /// The files that hold the tensors.
    pub fn weight_files(&self) -> &[PathBuf] {
        &self.weight_files
    }

    /// The files' own names of all tensors.
    pub fn tensor_names(&self) -> &Arc<BTreeSet<String>> {
        &self.names
    }
}

impl std::fmt::Debug for ModelFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelFiles")
            .field("path", &self.path)
            .field("architecture", &self.architecture)
            .field("tensors", &self.names.len())
            .finish_non_exhaustive()
    }
}

/// What `model_type` says, or what the class in `architectures` stands for, or the class itself.
fn hf_architecture(config: &HfConfig) -> Result<String> {
    if let Some(name) = config.str("model_type")? {
        let text = config.section("text_config")?;
        let both_ways = text.as_ref().unwrap_or(config).bool("use_bidirectional_attention")? == Some(true);
        return Ok(match arch::name_of_model_type(name) {
            "gemma3" if both_ways => arch::EMBEDDING_GEMMA,
            name => name,
        }
        .to_owned());
    }
    let class = config.get("architectures").and_then(|a| a.get(0)).and_then(serde_json::Value::as_str);
    match class {
        Some(class) => Ok(arch::name_of_class(class).unwrap_or(class).to_owned()),
        None => bail!(
            InvalidFile,
            "{}: neither \"model_type\" nor \"architectures\" says what the model is",
            config.path().display()
        ),
    }
}

/// The `.gguf` file of a folder that holds no other one.
fn only_gguf(folder: &Path) -> Option<PathBuf> {
    let mut found = std::fs::read_dir(folder).ok()?.flatten().map(|e| e.path()).filter(|p| is_gguf(p));
    let first = found.next()?;
    found.next().is_none().then_some(first)
}
