//! `rlx inspect`: what a file holds.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use rlx::gguf::{Gguf, Value as GgufValue};
use rlx::ir::bail;
use rlx::models::arch::{self, Family};
use rlx::models::embedding::shipped;
use rlx::models::encoder::Encoder;
use rlx::models::files::{HfConfig, ModelConfig, ModelFiles};
use rlx::models::hub;
use rlx::models::sentence_transformers::EmbeddingConfig;
use rlx::models::text::TokenizerConfig;
use rlx::runtime::weights::SafetensorsFile;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::model;
use crate::options::{Format, Global};
use crate::output::{Align, Stdout, Table, bytes, count, preview};

/// Shows what a GGUF or safetensors file holds.
#[derive(Args, Debug)]
pub struct Inspect {
    /// A .gguf or .safetensors file, a folder in the Hugging Face layout, or a hub id (org/name)
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Lists the tensors
    #[arg(long)]
    tensors: bool,
    /// Lists the metadata
    #[arg(long)]
    metadata: bool,
}

#[derive(Serialize)]
struct Report {
    path: String,
    format: String,
    architecture: Option<String>,
    /// Whether RLX can run it.
    supported: bool,
    parameters: u64,
    tensor_count: usize,
    tensor_bytes: u64,
    types: BTreeMap<String, TypeUse>,
    sizes: Map<String, Value>,
    embedding: Option<Embedding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tensors: Option<Vec<TensorLine>>,
}

#[derive(Default, Serialize)]
struct TypeUse {
    tensors: usize,
    bytes: u64,
}

#[derive(Clone, Serialize)]
struct TensorLine {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    shape: Vec<usize>,
    bytes: u64,
}

/// What follows the network of an embedding model, and which file or rule says so.
#[derive(Serialize)]
struct Embedding {
    pooling: Vec<&'static str>,
    pooling_from: String,
    /// Whether the tokens of a prompt are pooled too.
    pool_prompt: bool,
    dense_layers: usize,
    dense: Vec<Dense>,
    /// How many components are kept; `None` is all.
    dims: Option<usize>,
    normalize: bool,
    normalize_from: String,
    max_seq_length: Option<usize>,
    max_seq_length_from: String,
    /// What else limits the length of a text: the tokenizer and the positions of the network.
    tokenizer_limit: Option<usize>,
    positions: Option<usize>,
    /// The least of all limits.
    limit: Option<usize>,
    lowercase: bool,
    prompts: BTreeMap<String, String>,
    prompts_from: String,
    default_prompt: Option<String>,
}

/// A linear layer after pooling.
#[derive(Serialize)]
struct Dense {
    in_features: usize,
    out_features: usize,
    activation: &'static str,
}

impl Inspect {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let report = self.report(global)?;
        let mut out = Stdout::lock();
        match format {
            Format::Json => out.json_line(&report)?,
            _ => print(&mut out, &report)?,
        }
        out.flush()
    }

    fn report(&self, global: &Global) -> Result<Report> {
        if let Some(files) = shipped(&self.file)? {
            return self.model(&files);
        }
        let path = &model::locate(global, &self.file, hub::VECTORS)?;
        let has = |extension| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
        if path.is_dir() {
            return self.model(&ModelFiles::open(path)?);
        }
        if !path.exists() {
            bail!(NotFound, "{}: no such file or folder", path.display());
        }
        if has("safetensors") {
            return self.safetensors(path);
        }
        if has("gguf") {
            return self.gguf(&Gguf::open(path)?);
        }
        bail!(
            InvalidFile,
            "{}: expected a .gguf or .safetensors file, or a folder of a model",
            path.display()
        )
    }

    fn model(&self, files: &ModelFiles) -> Result<Report> {
        match files.config() {
            ModelConfig::Gguf(gguf) => self.gguf(gguf),
            ModelConfig::Hf(config) => self.folder(files, config),
        }
    }

    fn gguf(&self, gguf: &Gguf) -> Result<Report> {
        let metadata = gguf.metadata();
        let tensors = gguf.tensors().iter().map(|t| {
            let line = TensorLine {
                name: t.name().to_owned(),
                ty: t.ggml_type().name().to_owned(),
                shape: t.shape().to_vec(),
                bytes: t.bytes().len() as u64,
            };
            (line, t.elems() as u64)
        });
        let format = format!("GGUF version {}, alignment {}", gguf.version(), gguf.alignment());
        let mut report = self.collect(format, tensors);
        let Some(architecture) = metadata.str("general.architecture").ok().flatten() else {
            report.metadata = self.metadata.then(|| gguf_metadata(gguf));
            return Ok(report);
        };
        report.set_architecture(architecture);
        for key in GGUF_SIZES {
            if let Some(value) = metadata.get(&format!("{architecture}.{key}")) {
                report.sizes.insert((*key).to_owned(), gguf_value(&value));
            }
        }
        let says_how = |(key, _): (&str, GgufValue<'_>)| {
            key.starts_with("rlx.embedding.") || key.strip_prefix(architecture) == Some(".pooling_type")
        };
        if is_encoder(architecture) || metadata.iter().any(says_how) {
            let positions = metadata.usize(&format!("{architecture}.context_length")).ok().flatten();
            // What does not fit is an error of loading the model; here it is left out.
            report.embedding = EmbeddingConfig::from_metadata(metadata, architecture)
                .ok()
                .map(|config| Embedding::new(config, None, positions));
        }
        report.metadata = self.metadata.then(|| gguf_metadata(gguf));
        Ok(report)
    }

    fn folder(&self, files: &ModelFiles, config: &HfConfig) -> Result<Report> {
        let mut tensors = Vec::new();
        for name in files.tensor_names().iter() {
            let ty = files.source().weight(name)?.ty;
            let line = TensorLine {
                name: name.clone(),
                ty: ty.dtype.to_string(),
                shape: ty.shape.clone(),
                bytes: ty.bytes()? as u64,
            };
            tensors.push((line, ty.elems() as u64));
        }
        let mut report = self.collect("safetensors with config.json".to_owned(), tensors);
        report.set_architecture(files.architecture());
        let config = config.keys().clone();
        for key in HF_SIZES {
            if let Some(value) = config.get(*key) {
                report.sizes.insert((*key).to_owned(), value.clone());
            }
        }
        if let Some(folder) = files.folder()
            && (is_encoder(files.architecture()) || folder.join("modules.json").exists())
        {
            let config = EmbeddingConfig::from_folder(folder)?;
            let tokenizer = TokenizerConfig::from_folder(folder)?.model_max_length;
            // A network that cannot be run has no positions to show.
            let positions = Encoder::new(files).ok().map(|encoder| encoder.max_positions());
            report.embedding = Some(Embedding::new(config, tokenizer, positions));
        }
        report.metadata = self.metadata.then_some(config);
        Ok(report)
    }

    fn safetensors(&self, path: &Path) -> Result<Report> {
        let file = SafetensorsFile::open(path)?;
        let tensors = file.tensors().into_iter().map(|(name, dtype, shape)| {
            let elems = shape.iter().fold(1usize, |n, d| n.saturating_mul(*d));
            let (stored, bytes) = file.stored(name).unwrap_or_default();
            let line = TensorLine {
                name: name.to_owned(),
                ty: dtype.map_or_else(|| stored.to_lowercase(), |d| d.to_string()),
                shape: shape.to_vec(),
                bytes: bytes as u64,
            };
            (line, elems as u64)
        });
        let mut report = self.collect("safetensors".to_owned(), tensors);
        if self.metadata {
            let pairs = file.metadata().iter().map(|(k, v)| (k.clone(), Value::from(v.as_str())));
            report.metadata = Some(pairs.collect());
        }
        Ok(report)
    }

    fn collect(&self, format: String, tensors: impl IntoIterator<Item = (TensorLine, u64)>) -> Report {
        let mut report = Report {
            path: self.file.display().to_string(),
            format,
            architecture: None,
            supported: false,
            parameters: 0,
            tensor_count: 0,
            tensor_bytes: 0,
            types: BTreeMap::new(),
            sizes: Map::new(),
            embedding: None,
            metadata: None,
            tensors: self.tensors.then(Vec::new),
        };
        for (line, elems) in tensors {
            report.parameters = report.parameters.saturating_add(elems);
            report.tensor_count += 1;
            report.tensor_bytes = report.tensor_bytes.saturating_add(line.bytes);
            let ty = report.types.entry(line.ty.clone()).or_default();
            ty.tensors += 1;
            ty.bytes = ty.bytes.saturating_add(line.bytes);
            if let Some(list) = &mut report.tensors {
                list.push(line);
            }
        }
        report
    }
}

impl Report {
    fn set_architecture(&mut self, architecture: &str) {
        self.supported = arch::find(architecture).is_ok();
        self.architecture = Some(architecture.to_owned());
    }
}

/// The keys of an architecture that say how large it is, after its name and a point.
const GGUF_SIZES: &[&str] = &[
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "rope.freq_base",
    "vocab_size",
];

/// The keys of a `config.json` that say how large it is.
const HF_SIZES: &[&str] = &[
    "max_position_embeddings",
    "hidden_size",
    "num_hidden_layers",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "rope_theta",
    "vocab_size",
];

fn is_encoder(architecture: &str) -> bool {
    arch::find(architecture).is_ok_and(|a| a.family == Family::Encoder)
}

impl Embedding {
    fn new(config: EmbeddingConfig, tokenizer_limit: Option<usize>, positions: Option<usize>) -> Self {
        let dense = config.dense.iter().map(|layer| Dense {
            in_features: layer.in_features,
            out_features: layer.out_features,
            activation: layer.activation.name(),
        });
        Self {
            pooling: config.pooling.iter().map(|p| p.name()).collect(),
            pool_prompt: config.pool_prompt,
            dense_layers: config.dense.len(),
            dense: dense.collect(),
            dims: config.dims,
            normalize: config.normalize,
            max_seq_length: config.max_seq_length,
            tokenizer_limit,
            positions,
            limit: config.limit(tokenizer_limit, positions),
            lowercase: config.lowercase,
            pooling_from: config.sources.pooling,
            normalize_from: config.sources.normalize,
            max_seq_length_from: config.sources.max_seq_length,
            prompts_from: config.sources.prompts,
            prompts: config.prompts,
            default_prompt: config.default_prompt,
        }
    }
}

fn gguf_metadata(gguf: &Gguf) -> Map<String, Value> {
    gguf.metadata().iter().map(|(key, value)| (key.to_owned(), gguf_value(&value))).collect()
}

fn gguf_value(value: &GgufValue<'_>) -> Value {
    match value {
        GgufValue::U8(v) => (*v).into(),
        GgufValue::I8(v) => (*v).into(),
        GgufValue::U16(v) => (*v).into(),
        GgufValue::I16(v) => (*v).into(),
        GgufValue::U32(v) => (*v).into(),
        GgufValue::I32(v) => (*v).into(),
        GgufValue::U64(v) => (*v).into(),
        GgufValue::I64(v) => (*v).into(),
        GgufValue::F32(v) => f64::from(*v).into(),
        GgufValue::F64(v) => (*v).into(),
        GgufValue::Bool(v) => (*v).into(),
        GgufValue::Str(v) => (*v).into(),
        GgufValue::Array(items) => items.iter().map(|item| gguf_value(&item)).collect::<Vec<_>>().into(),
    }
}

fn print(out: &mut Stdout, report: &Report) -> Result<()> {
    out.line(&report.path)?;
    out.line(format_args!("  format        {}", report.format))?;
    if let Some(architecture) = &report.architecture {
        let supported = if report.supported { "" } else { " (RLX cannot run it)" };
        out.line(format_args!("  architecture  {}{supported}", plain(architecture)))?;
    }
    out.line(format_args!(
        "  parameters    {} in {} tensors, {}",
        count(report.parameters),
        report.tensor_count,
        bytes(report.tensor_bytes)
    ))?;
    for (name, ty) in &report.types {
        out.line(format_args!("  type {name:<8} {} tensors, {}", ty.tensors, bytes(ty.bytes)))?;
    }
    for (name, value) in &report.sizes {
        out.line(format_args!("  {name} = {}", short(value)))?;
    }
    if let Some(embedding) = &report.embedding {
        print_embedding(out, embedding)?;
    }
    if let Some(metadata) = &report.metadata {
        out.line("metadata")?;
        for (key, value) in metadata {
            out.line(format_args!("  {} = {}", plain(key), short(value)))?;
        }
    }
    if let Some(tensors) = &report.tensors {
        let columns = [
            ("tensors", Align::Left),
            ("type", Align::Left),
            ("shape", Align::Left),
            ("bytes", Align::Right),
        ];
        let mut table = Table::new(columns);
        for t in tensors {
            table.row([plain(&t.name), t.ty.clone(), format!("{:?}", t.shape), t.bytes.to_string()]);
        }
        out.line(table)?;
    }
    Ok(())
}

fn print_embedding(out: &mut Stdout, embedding: &Embedding) -> Result<()> {
    let from = |source: &str| if source.is_empty() { String::new() } else { format!(" ({})", plain(source)) };
    let pooling =
        if embedding.pooling.is_empty() { "none".to_owned() } else { embedding.pooling.join(" + ") };
    let prompt = if embedding.pool_prompt { "" } else { ", without the prompt" };
    out.line(format_args!("  pooling = {pooling}{prompt}{}", from(&embedding.pooling_from)))?;
    for layer in &embedding.dense {
        let Dense { in_features, out_features, activation } = layer;
        out.line(format_args!("  dense = {in_features} to {out_features}, {activation}"))?;
    }
    if let Some(dims) = embedding.dims {
        out.line(format_args!("  dims = {dims}"))?;
    }
    out.line(format_args!("  normalize = {}{}", embedding.normalize, from(&embedding.normalize_from)))?;
    let limit = |limit: Option<usize>| limit.map_or("none".to_owned(), |n| n.to_string());
    let own = limit(embedding.max_seq_length);
    out.line(format_args!("  max_seq_length = {own}{}", from(&embedding.max_seq_length_from)))?;
    out.line(format_args!(
        "  limit = {} (of max_seq_length {own}, the tokenizer's {}, positions {})",
        limit(embedding.limit),
        limit(embedding.tokenizer_limit),
        limit(embedding.positions)
    ))?;
    if embedding.lowercase {
        out.line("  lowercase = true")?;
    }
    for (name, prompt) in &embedding.prompts {
        let default = if embedding.default_prompt.as_ref() == Some(name) { ", default" } else { "" };
        let source = from(&embedding.prompts_from);
        out.line(format_args!("  prompt {} = {prompt:?}{default}{source}", plain(name)))?;
    }
    Ok(())
}

/// A name from a file, without characters that move the cursor.
fn plain(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// A value on one line: of lists the length and the first items, of texts the start.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => preview(text, 100),
        Value::Array(items) => {
            let first: Vec<String> = items.iter().take(4).map(short).collect();
            let more = if items.len() > 4 { format!(", … {} items", items.len()) } else { String::new() };
            format!("[{}{more}]", first.join(", "))
        }
        other => preview_json(other),
    }
}

fn preview_json(value: &Value) -> String {
    let text = value.to_string();
    let short: String = text.chars().take(100).collect();
    if short.len() < text.len() { short + "…" } else { short }
}
