//! The embedding model.

use std::borrow::Cow;
use std::path::Path;

use rlx_ir::{ErrorKind, bail};
use rlx_runtime::Runtime;

use super::batch::batches;
use super::embeddings::{Embedded, Embeddings};
use super::network::open_network;
use super::options::{EmbedRequest, EmbeddingOptions, Prompt, Truncation};
use crate::arch::{EmbeddingHead, EncoderGraph, EncoderOutput, EncoderShape};
use crate::encoder::{EncoderMemory, EncoderSession, Packed};
use crate::files::{ModelConfig, ModelFiles};
use crate::hub;
use crate::sentence_transformers::EmbeddingConfig;
use crate::text::{EncodeOptions, GgufVocab, Tokenizer, TokenizerConfig};
use crate::{Error, Result};

/// The most texts of a batch.
const MAX_SEQUENCES: usize = 1024;
/// The most tokens of a batch that can be asked for.
const MAX_BATCH_TOKENS: usize = 1 << 20;

/// A model that turns texts into vectors. Can be used from several threads at once.
#[derive(Debug)]
pub struct EmbeddingModel {
    encoder: EncoderSession,
    tokenizer: Tokenizer,
    config: EmbeddingConfig,
    prompt: Prompt,
    limit: usize,
    truncation: Truncation,
    shape: EncoderShape,
    dim: usize,
    batch_tokens: usize,
}

/// A text as the network sees it.
struct Sequence {
    /// Its place among the texts.
    index: usize,
    ids: Vec<u32>,
    /// How many of the first tokens belong to the prompt.
    prompt: usize,
    truncated: bool,
}

impl EmbeddingModel {
    /// Loads a model as its files say: a folder in the Hugging Face layout, a `.safetensors` or `.gguf` file, a hub id that is
    /// in the Hugging Face cache ([`hub`]), or `all-MiniLM-L6-v2`, the one that ships with the project (a folder of that name is
    /// `./all-MiniLM-L6-v2`).
    ///
    /// # Errors
    /// `NotFound`, `InvalidFile`, `UnsupportedModel` naming file and what is wrong; errors of the backend.
    pub fn load(runtime: &Runtime, model: impl AsRef<Path>) -> Result<Self> {
        Self::load_with(runtime, model, &EmbeddingOptions::default())
    }

    /// [`load`](Self::load) with options.
    ///
    /// # Errors
    /// As [`load`](Self::load); `InvalidArgument` for options that do not fit the model.
    pub fn load_with(runtime: &Runtime, model: impl AsRef<Path>, options: &EmbeddingOptions) -> Result<Self> {
        Self::from_files(runtime, &hub::open(model.as_ref(), hub::VECTORS)?, options)
    }

    /// Loads the model in `files`.
    ///
    /// # Errors
    /// As [`load_with`](Self::load_with).
    pub fn from_files(runtime: &Runtime, files: &ModelFiles, options: &EmbeddingOptions) -> Result<Self> {
        let _span = tracing::debug_span!("load", model = %files.path().display()).entered();
        let (encoder, mut config) = open_network(files)?;
        let (tokenizer, tokenizer_limit) = beside(files)?;
        tokenizer.check_rows(encoder.shape().vocab_size).map_err(|e| e.context(files.path().display()))?;
        if let Some(mode) = options.pooling {
            config.pooling = vec![mode];
            config.sources.pooling = "asked for".into();
        }
        if let Some(normalize) = options.normalize {
            config.normalize = normalize;
            config.sources.normalize = "asked for".into();
        }
        if !(1..=MAX_BATCH_TOKENS).contains(&options.batch_tokens) {
            bail!(
                InvalidArgument,
                "batches of {} tokens: expected 1 to {MAX_BATCH_TOKENS}",
                options.batch_tokens
            );
        }
        let limit = config.limit(tokenizer_limit, Some(encoder.max_positions()));
        let limit =
            [limit, options.max_seq_length].into_iter().flatten().min().unwrap_or(encoder.max_positions());
        if limit == 0 {
            bail!(InvalidArgument, "texts cannot be cut to 0 tokens");
        }
        let max_tokens = options.batch_tokens.max(limit);
        let head = EmbeddingHead { config: config.clone(), dims: options.dims };
        let graph = encoder.graph(&EncoderGraph {
            max_tokens,
            max_sequences: MAX_SEQUENCES.min(max_tokens),
            weights: options.load.weights,
            output: EncoderOutput::Pooled(head),
        })?;
        let pooled = graph.ty(graph.outputs()[0]);
        let Some(dim) = pooled.shape.last().and_then(rlx_ir::Dim::as_usize) else {
            bail!(Bug, "vectors of {pooled} have no constant length");
        };
        let session = EncoderSession::new(runtime, &graph, encoder.weights(), &options.load)?;
        let model = Self {
            encoder: session,
            tokenizer,
            prompt: options.prompt.clone(),
            limit,
            truncation: options.truncation,
            shape: encoder.shape(),
            dim,
            batch_tokens: options.batch_tokens,
            config,
        };
        model.prefix(&model.prompt)?;
        Ok(model)
    }

    /// The vectors of `texts`, in their order.
    ///
    /// # Errors
    /// The first error of a text, which is named by its index: `NonFinite` where its vector holds NaN or an infinity,
    /// `ContextExceeded` where it is too long and [`Truncation::Refuse`] was asked for. The model stays usable; [`embed_each`](Self::embed_each) gives the vectors of the other texts.
    pub fn embed<S: AsRef<str>>(&self, texts: impl IntoIterator<Item = S>) -> Result<Embeddings> {
        let texts: Vec<S> = texts.into_iter().collect();
        Embeddings::collect(self.embed_each(&texts, &EmbedRequest::default())?, self.dim)
    }

    /// [`embed`](Self::embed) with a prompt, progress or a way to stop.
    ///
    /// # Errors
    /// As [`embed`](Self::embed); `Cancelled`; `InvalidArgument` for a prompt that the model does not have.
    pub fn embed_with<S: AsRef<str>>(&self, texts: &[S], request: &EmbedRequest<'_>) -> Result<Embeddings> {
        Embeddings::collect(self.embed_each(texts, request)?, self.dim)
    }

    /// The vector of each text, or what was wrong with that text.
    ///
    /// # Errors
    /// `InvalidArgument` for a prompt that the model does not have.
    pub fn embed_each<S: AsRef<str>>(
        &self,
        texts: &[S],
        request: &EmbedRequest<'_>,
    ) -> Result<Vec<Result<Embedded>>> {
        let prefix = self.prefix(request.prompt.as_ref().unwrap_or(&self.prompt))?;
        let prompt_tokens = self.prompt_tokens(prefix)?;
        let mut results: Vec<Option<Result<Embedded>>> = Vec::with_capacity(texts.len());
        let mut sequences = Vec::with_capacity(texts.len());
        for (index, text) in texts.iter().enumerate() {
            match self.sequence(index, prefix, prompt_tokens, text.as_ref()) {
                Ok(sequence) => {
                    sequences.push(sequence);
                    results.push(None);
                }
                Err(e) => results.push(Some(Err(e))),
            }
        }
        sequences.sort_by_key(|s| s.ids.len());
        let lengths: Vec<usize> = sequences.iter().map(|s| s.ids.len()).collect();
        let mut done = texts.len() - sequences.len();
        let mut packed = Packed::default();
        for range in batches(&lengths, self.batch_tokens, MAX_SEQUENCES.min(self.batch_tokens)) {
            if request.cancel.is_cancelled() {
                for s in &sequences[range.start..] {
                    results[s.index] =
                        Some(Err(Error::new(ErrorKind::Cancelled, "cancelled before its batch")));
                }
                break;
            }
            let batch = &sequences[range];
            packed.clear();
            for s in batch {
                let positions = self.shape.positions.of_row(s.ids.iter().map(|&id| (i64::from(id), true)));
                packed.push(s.ids.iter().map(|&id| id as i32).zip(positions), s.prompt);
            }
            let vectors = self.encoder.run(&packed, |context| {
                let values = context.output::<f32>(0)?;
                Ok(values.get(..batch.len() * self.dim).map(<[f32]>::to_vec).unwrap_or_default())
            });
            for (i, s) in batch.iter().enumerate() {
                results[s.index] = Some(match &vectors {
                    Ok(vectors) => self.embedded(s, vectors.get(i * self.dim..(i + 1) * self.dim)),
                    Err(e) => Err(e.clone()),
                });
            }
            done += batch.len();
            if let Some(progress) = request.progress {
                progress(done, texts.len());
            }
        }
        let never = || Error::new(ErrorKind::Bug, "a text was in no batch");
        Ok(results.into_iter().map(|r| r.unwrap_or_else(|| Err(never()))).collect())
    }

    /// Components of a vector.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// The most tokens of a text; what is beyond is cut off or refused, see [`Truncation`].
    pub fn max_seq_length(&self) -> usize {
        self.limit
    }

    /// Pooling, layers, prompts, and where each of these facts came from.
    pub fn config(&self) -> &EmbeddingConfig {
        &self.config
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// What it keeps in memory.
    ///
    /// # Errors
    /// `Device` where memory for a run cannot be had.
    pub fn memory(&self) -> Result<EncoderMemory> {
        self.encoder.memory()
    }

    /// The compiled network.
    pub fn encoder(&self) -> &EncoderSession {
        &self.encoder
    }

    fn prefix<'a>(&'a self, prompt: &'a Prompt) -> Result<&'a str> {
        match prompt {
            Prompt::Default => self.config.prompt(None),
            Prompt::Named(name) => self.config.prompt(Some(name)),
            Prompt::Prefix(text) => Ok(text),
        }
    }

    /// How many first tokens are left out of pooling.
    fn prompt_tokens(&self, prefix: &str) -> Result<usize> {
        if self.config.pool_prompt || prefix.is_empty() {
            return Ok(0);
        }
        let encoding = self.tokenizer.encode(&self.fold(prefix), EncodeOptions::default())?;
        Ok(encoding.len() - encoding.num_suffix.min(encoding.len()))
    }

    fn fold<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.config.lowercase { Cow::Owned(text.to_lowercase()) } else { Cow::Borrowed(text) }
    }

    fn sequence(&self, index: usize, prefix: &str, prompt: usize, text: &str) -> Result<Sequence> {
        let text = match prefix {
            "" => Cow::Borrowed(text),
            prefix => Cow::Owned(format!("{prefix}{text}")),
        };
        let text = self.fold(&text);
        let options = EncodeOptions::default();
        let mut encoding = self.tokenizer.encode_start(&text, options, self.limit)?;
        if self.truncation == Truncation::Refuse && encoding.len() > self.limit {
            let encoding = self.tokenizer.encode(&text, options)?;
            bail!(
                ContextExceeded,
                "it has {} tokens, and the model takes {} at most; shorten it, or let it be cut",
                encoding.len(),
                self.limit
            );
        }
        let truncated = encoding.truncate(self.limit);
        self.tokenizer.check_ids(&encoding.ids, self.shape.vocab_size)?;
        if encoding.is_empty() {
            bail!(InvalidArgument, "the text has no tokens, and the model adds none");
        }
        Ok(Sequence { index, ids: encoding.ids, prompt, truncated })
    }

    fn embedded(&self, sequence: &Sequence, vector: Option<&[f32]>) -> Result<Embedded> {
        let Some(vector) = vector else { bail!(Bug, "the network returned too few vectors") };
        if !vector.iter().all(|v| v.is_finite()) {
            bail!(NonFinite, "its vector holds NaN or an infinity");
        }
        Ok(Embedded { vector: vector.to_vec(), tokens: sequence.ids.len(), truncated: sequence.truncated })
    }
}

/// The tokenizer and its own limit.
fn beside(files: &ModelFiles) -> Result<(Tokenizer, Option<usize>)> {
    match files.config() {
        ModelConfig::Hf(config) => {
            let folder = config.path().parent().unwrap_or(Path::new(""));
            let limit = TokenizerConfig::from_folder(folder)?.model_max_length;
            Ok((Tokenizer::from_folder(folder)?, limit))
        }
        ModelConfig::Gguf(gguf) => {
            let within = |e: Error| e.context(files.path().display());
            let vocab = GgufVocab::from_metadata(gguf.metadata()).map_err(within)?;
            Ok((Tokenizer::from_gguf(vocab).map_err(within)?, None))
        }
    }
}
