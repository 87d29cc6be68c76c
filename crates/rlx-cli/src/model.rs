//! From the name of a model to its files, and how they are loaded.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use rlx::compile::CompileOptions;
use rlx::compile::precision::PrecisionPolicy;
use rlx::ir::{Graph, bail};
use rlx::models::arch::decoder::{self, Decoder, DecoderLimits};
use rlx::models::arch::weight_type::WeightType;
use rlx::models::arch::{EmbeddingHead, EncoderGraph, EncoderOutput, Family};
use rlx::models::embedding::{open_network, shipped};
use rlx::models::encoder::Encoder;
use rlx::models::files::ModelFiles;
use rlx::models::hub::{self, Hub, HubId};
use rlx::models::options::LoadOptions;
use rlx::prelude::*;

use crate::error::{Error, Result};
use crate::options::{Global, ModelArgs, Types};
use crate::progress::Bar;

/// Opens MODEL: the name of the one that ships with the project, a path, or a hub id. `wanted` is what it is needed for.
pub fn open(global: &Global, name: impl AsRef<Path>, wanted: &[&str]) -> Result<ModelFiles> {
    let name = name.as_ref();
    match shipped(name)? {
        Some(files) => Ok(files),
        None => Ok(ModelFiles::open(&locate(global, name, wanted)?)?),
    }
}

/// A path as it is; a hub id as the path of the model in the cache, into which it is downloaded if it is not there.
pub fn locate(global: &Global, model: &Path, wanted: &[&str]) -> Result<PathBuf> {
    let Some(id) = model.to_str().and_then(HubId::parse).filter(|_| !model.exists()) else {
        return Ok(model.to_owned());
    };
    let hub = Hub::from_env();
    let bar = Bar::bytes(global, "downloading");
    let is_first = Cell::new(true);
    let progress = |done, total| {
        if is_first.replace(false) {
            tracing::warn!("{id}: downloading what the cache lacks from {}", hub.options().endpoint);
        }
        bar.set(done, total);
    };
    let path = hub.resolve(&id, wanted, &progress);
    bar.clear();
    Ok(path?)
}

/// Says on stderr which model runs where.
pub fn tell(files: &ModelFiles, session: &Session) {
    let (backend, strategy) = (session.backend(), session.strategy().name());
    tracing::info!(
        "{} ({}) on {}: {}, run as {strategy}",
        files.path().display(),
        files.architecture(),
        backend.name(),
        backend.device().name
    );
}

/// How a model is loaded, with a bar for the weights.
pub fn load_options(global: &Global, types: Types) -> LoadOptions {
    let bar = load_bar(global);
    LoadOptions {
        weights: weight_type(types),
        kv_dtype: types.kv,
        compile: compile_options(types),
        progress: Some(std::sync::Arc::new(bar)),
        ..LoadOptions::default()
    }
}

/// How a language model is loaded, for a context of so many tokens.
pub fn language_options(types: Types, context: usize) -> LanguageOptions {
    let mut options = LanguageOptions {
        context,
        weights: weight_type(types),
        compile: compile_options(types),
        ..LanguageOptions::default()
    };
    if let Some(kv) = types.kv {
        options.kv_dtype = kv;
    }
    options
}

/// Loads a language model with a context of so many tokens.
pub fn language(
    runtime: &Runtime,
    global: &Global,
    args: &ModelArgs,
    context: usize,
) -> Result<LanguageModel> {
    let options = language_options(args.types.types(), context);
    let bar = load_bar(global);
    let model = LanguageModel::load_files(runtime, open(global, &args.model, hub::TEXT)?, &options, &bar)?;
    tell(model.files(), model.compiled());
    Ok(model)
}

fn weight_type(types: Types) -> WeightType {
    types.weights.map_or(WeightType::AsStored, WeightType::Convert)
}

fn compile_options(types: Types) -> CompileOptions {
    let mut options = CompileOptions::default();
    if let Some(compute) = types.compute {
        options.precision = PrecisionPolicy::new(compute);
    }
    options
}

fn load_bar(global: &Global) -> impl Fn(u64, u64) + Send + Sync + use<> {
    let bar = Bar::bytes(global, "loading");
    move |done, total| {
        bar.set(done, total);
        if done >= total {
            bar.clear();
        }
    }
}

/// Sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Sequences.
    pub batch: usize,
    /// Tokens of each.
    pub seq: usize,
}

/// A model's graph with what is needed to compile and run it, without a tokenizer.
pub struct Network {
    kind: Kind,
    graph: Graph,
    options: LoadOptions,
}

enum Kind {
    Encoder(Box<Encoder>),
    Decoder(Box<dyn Decoder>, DecoderLimits),
}

impl Network {
    /// The network of a model, with bounds as models are loaded, or larger where `sizes` needs that.
    pub fn open(files: &ModelFiles, global: &Global, types: Types, sizes: Option<&Sizes>) -> Result<Self> {
        let options = load_options(global, types);
        let (batch, seq) = sizes.map_or((1, 1), |s| (s.batch, s.seq));
        let (kind, graph) = match files.supported()?.family {
            Family::Encoder => {
                types.warn_without_cache();
                let (encoder, config) = open_network(files)?;
                if seq > encoder.max_positions() {
                    bail!(
                        InvalidArgument,
                        "sequences of {seq} tokens were asked for, but the model takes {} at most",
                        encoder.max_positions()
                    );
                }
                let defaults = EmbeddingOptions::default();
                let graph = encoder.graph(&EncoderGraph {
                    max_tokens: defaults.batch_tokens.max(batch * seq),
                    max_sequences: batch.max(1024),
                    weights: options.weights,
                    output: EncoderOutput::Pooled(EmbeddingHead { config, dims: None }),
                })?;
                (Kind::Encoder(Box::new(encoder)), graph)
            }
            Family::Decoder => {
                let decoder = decoder::open(files)?;
                let mut language = language_options(types, 0);
                if let Some(sizes) = sizes {
                    language.context = sizes.seq;
                    language.sequences = sizes.batch;
                    language.batch_tokens = sizes.batch * sizes.seq;
                }
                let limits = language.limits(&decoder.shape())?;
                let graph = decoder.graph(&limits)?;
                (Kind::Decoder(decoder, limits), graph)
            }
        };
        Ok(Self { kind, graph, options })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Passes and precision.
    pub fn compile_options(&self) -> &CompileOptions {
        &self.options.compile
    }

    /// Compiles it with the model's weights.
    pub fn compile(&self, runtime: &Runtime) -> Result<Session> {
        let weights = match &self.kind {
            Kind::Encoder(encoder) => encoder.weights(),
            Kind::Decoder(decoder, _) => decoder.weights(),
        };
        let progress = self.options.progress.clone();
        let told = |done, total| {
            if let Some(progress) = &progress {
                progress(done, total);
            }
        };
        let options = SessionOptions {
            compile: self.options.compile.clone(),
            progress: &told,
            ..SessionOptions::default()
        };
        Ok(Session::compile(runtime, &self.graph, weights, &options)?)
    }

    /// Fails for a network that predicts tokens.
    pub fn require_encoder(&self) -> Result<()> {
        match self.kind {
            Kind::Encoder(_) => Ok(()),
            Kind::Decoder(..) => bail!(
                UnsupportedModel,
                "{}: this model continues texts and gives no vectors: use `rlx bench decode`",
                self.graph.name()
            ),
        }
    }

    /// Tokens of the vocabulary.
    pub fn vocab_size(&self) -> usize {
        match &self.kind {
            Kind::Encoder(encoder) => encoder.vocab_size(),
            Kind::Decoder(decoder, _) => decoder.shape().vocab_size,
        }
    }

    /// Tokens of a page of the cache; `None` where there is no cache.
    pub fn page_len(&self) -> Option<usize> {
        match &self.kind {
            Kind::Encoder(_) => None,
            Kind::Decoder(_, limits) => Some(limits.page_len),
        }
    }

    /// Whether it wants to know which tokens are pooled.
    pub fn takes_pool_starts(&self) -> bool {
        self.graph.inputs().any(|(_, name)| name == "pool_starts")
    }
}
