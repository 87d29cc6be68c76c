//! Reading a sentence-transformers folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rlx_ir::bail;
use serde::Deserialize;
use serde_json::Value;

use super::{DenseConfig, EmbeddingConfig, PoolingMode, Sources};
use crate::files::is_inside;
use crate::json;
use crate::{Error, Result};

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    class: String,
}

impl Module {
    /// The class name, if it is one of sentence-transformers' own.
    fn kind(&self) -> &str {
        match self.class.split_once('.') {
            Some(("sentence_transformers", rest)) => rest.rsplit('.').next().unwrap_or_default(),
            _ => "",
        }
    }

    /// Its folder, which is the model's or lies in it.
    fn folder(&self, model: &Path) -> Result<PathBuf> {
        let path = self.path.strip_prefix("./").unwrap_or(&self.path).trim_end_matches('/');
        // A slash alone is the root of the file system.
        if self.path.starts_with('/') || !path.is_empty() && !is_inside(path) {
            bail!(InvalidFile, "the path {:?} of a module leads out of the model's folder", self.path);
        }
        Ok(model.join(path))
    }
}

/// Names that the file with the length limit has had.
const TRANSFORMER_CONFIGS: [&str; 7] = [
    "sentence_bert_config.json",
    "sentence_roberta_config.json",
    "sentence_distilbert_config.json",
    "sentence_camembert_config.json",
    "sentence_albert_config.json",
    "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
];

impl EmbeddingConfig {
    /// Reads `modules.json`, the modules' own files and `config_sentence_transformers.json`.
    ///
    /// A folder without `modules.json` gets what sentence-transformers does with it: raw vectors, pooled by the mean, or for a
    /// language model the last token's.
    ///
    /// # Errors
    /// `UnsupportedModel` for a module, a pooling or an activation that is not known, and for an order of modules that
    /// cannot be run; `InvalidFile` for a damaged file; `NotFound` for a module's missing file.
    pub fn from_folder(folder: &Path) -> Result<Self> {
        let modules_path = folder.join("modules.json");
        let mut config = match json::read_optional::<Vec<Module>>(folder, "modules.json")? {
            Some(modules) => from_modules(folder, &modules_path, &modules)?,
            None => without_modules(folder)?,
        };
        read_prompts(folder, &mut config)?;
        Ok(config)
    }
}

fn without_modules(folder: &Path) -> Result<EmbeddingConfig> {
    let network = json::read_object(folder, "config.json")?.unwrap_or(Value::Null);
    let class = network["architectures"][0].as_str().unwrap_or_default();
    let causal = class.ends_with("ForCausalLM") && network["is_causal"] != false;
    let (mode, name) = match causal {
        true => (PoolingMode::LastToken, "last token of a language model"),
        false => (PoolingMode::Mean, "mean"),
    };
    let mut config = EmbeddingConfig {
        pooling: vec![mode],
        pool_prompt: true,
        sources: Sources {
            pooling: format!("{name}, because there is no modules.json"),
            normalize: "raw, because there is no modules.json".into(),
            ..Sources::default()
        },
        ..EmbeddingConfig::default()
    };
    read_limit(folder, &mut config)?;
    Ok(config)
}

fn from_modules(folder: &Path, file: &Path, modules: &[Module]) -> Result<EmbeddingConfig> {
    let file = file.display();
    let mut config = EmbeddingConfig { pool_prompt: true, ..EmbeddingConfig::default() };
    config.sources.normalize = "raw, because modules.json has no Normalize".into();
    for (at, module) in modules.iter().enumerate() {
        let path = module.folder(folder).map_err(|e| e.context(&file))?;
        let name = &module.class;
        match (module.kind(), at) {
            ("Transformer", 0) => read_limit(&path, &mut config)?,
            ("Pooling", 1) => read_pooling(&path, &module.path, &mut config)?,
            ("Normalize", 2..) => {
                config.normalize = true;
                config.sources.normalize = "modules.json".into();
            }
            // It does something while a model is trained only.
            ("Dropout", 2..) => {}
            ("Dense", 2..) if !config.normalize => config.dense.push(DenseConfig::from_folder(&path)?),
            ("Transformer" | "Pooling" | "Normalize" | "Dense", _) => bail!(
                UnsupportedModel,
                "{file}: module {at} ({name}) is in a place where it cannot be run: modules must be a Transformer, a Pooling, \
                 then any number of Dense, then Normalize"
            ),
            _ => bail!(
                UnsupportedModel,
                "{file}: module {at} ({name}) is not known, and without it the vectors would be wrong; known are Transformer, \
                 Pooling, Dense, Normalize of sentence_transformers"
            ),
        }
    }
    if config.pooling.is_empty() {
        bail!(UnsupportedModel, "{file}: there is no Pooling module, so there is no vector of a text");
    }
    check_sizes(&config.dense)?;
    Ok(config)
}

/// Each layer takes what the one before it gives.
pub(super) fn check_sizes(dense: &[DenseConfig]) -> Result<()> {
    for pair in dense.windows(2) {
        if pair[0].out_features != pair[1].in_features {
            bail!(
                InvalidFile,
                "{}: in_features is {}, and the Dense before it has out_features {}",
                pair[1].source,
                pair[1].in_features,
                pair[0].out_features
            );
        }
    }
    Ok(())
}

fn read_pooling(path: &Path, name: &str, config: &mut EmbeddingConfig) -> Result<()> {
    let file = path.join("config.json");
    let within = |e: Error| e.context(file.display());
    let Some(json) = json::read_object(path, "config.json")? else {
        bail!(NotFound, "{}: no such file, so it is not known how to pool", file.display());
    };
    config.pooling = PoolingMode::from_config(&json).map_err(within)?;
    config.pool_prompt = json.get("include_prompt").and_then(Value::as_bool).unwrap_or(true);
    config.sources.pooling = format!("{name}/config.json");
    if config.pooling.is_empty() {
        // As sentence-transformers does.
        config.pooling.push(PoolingMode::Mean);
        config.sources.pooling = format!("the mean, because {name}/config.json asks for no mode");
    }
    Ok(())
}

fn read_limit(path: &Path, config: &mut EmbeddingConfig) -> Result<()> {
    for name in TRANSFORMER_CONFIGS {
        let Some(json) = json::read_object(path, name)? else { continue };
        let max = json::count(&json, "max_seq_length").map_err(|e| e.context(path.join(name).display()))?;
        config.max_seq_length = max.and_then(|n| usize::try_from(n).ok());
        if config.max_seq_length == Some(0) {
            bail!(InvalidFile, "{}: max_seq_length is 0", path.join(name).display());
        }
        config.lowercase = json.get("do_lower_case").and_then(Value::as_bool).unwrap_or(false);
        if config.max_seq_length.is_some() {
            config.sources.max_seq_length = name.into();
        }
        return Ok(());
    }
    Ok(())
}

fn read_prompts(folder: &Path, config: &mut EmbeddingConfig) -> Result<()> {
    const NAME: &str = "config_sentence_transformers.json";
    let Some(json) = json::read_object(folder, NAME)? else { return Ok(()) };
    let file = folder.join(NAME);
    if let Some(other) =
        json.get("model_type").and_then(Value::as_str).filter(|ty| *ty != "SentenceTransformer")
    {
        bail!(
            UnsupportedModel,
            "{}: model_type is \"{other}\", which is no embedding model; SentenceTransformer is",
            file.display()
        );
    }
    if let Some(prompts) = json.get("prompts").filter(|p| !p.is_null()) {
        match serde_json::from_value::<BTreeMap<String, Option<String>>>(prompts.clone()) {
            Ok(prompts) => {
                let text = |(name, text): (String, Option<String>)| (name, text.unwrap_or_default());
                config.prompts = prompts.into_iter().map(text).collect();
            }
            Err(e) => bail!(InvalidFile, "{}: prompts: {e}", file.display()),
        }
        config.sources.prompts = NAME.into();
    }
    let dims = json::count(&json, "truncate_dim").map_err(|e| e.context(file.display()))?;
    config.dims = dims.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    if config.dims == Some(0) {
        bail!(InvalidFile, "{}: truncate_dim is 0", file.display());
    }
    config.default_prompt = json.get("default_prompt_name").and_then(Value::as_str).map(str::to_owned);
    if let Some(name) = &config.default_prompt
        && !config.prompts.contains_key(name)
    {
        bail!(
            InvalidFile,
            "{}: default_prompt_name is \"{name}\", which is none of the prompts",
            file.display()
        );
    }
    Ok(())
}
