//! Loading a language model.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rlx_ir::ErrorKind;
use rlx_runtime::weights::LoadProgress;
use rlx_runtime::{Runtime, Session, SessionOptions};

use super::options::LanguageOptions;
use super::session::DecodeSession;
use crate::arch::decoder::{self, DecoderLimits, DecoderShape};
use crate::files::{ModelConfig, ModelFiles};
use crate::hub;
use crate::text::{ChatTemplate, GgufVocab, Tokenizer, TokenizerConfig};
use crate::{Error, Result};

/// What a language model keeps in memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LanguageMemory {
    /// Prepared weights that were allocated; those that are used in place from a mapped file are not among them.
    pub weights: u64,
    /// The arena of one generation, planned at the largest step; pages that were never touched take no memory.
    pub arena: u64,
    /// Inputs of one generation.
    pub inputs: u64,
    /// Address space of keys and values for the whole context; memory is taken as it fills.
    pub kv_reserved: u64,
}

/// A language model, ready to run. Threads may share it: each generation has its own cache.
#[derive(Debug)]
pub struct LanguageModel {
    files: ModelFiles,
    session: Session,
    limits: DecoderLimits,
    shape: DecoderShape,
    tokenizer: OnceLock<Arc<Tokenizer>>,
    /// See [`LanguageModel::known_ids`].
    known_ids: OnceLock<(usize, Vec<u32>)>,
    chat_template: OnceLock<Arc<ChatTemplate>>,
    /// The memory of the last generation, for the next one.
    idle: Mutex<Option<DecodeSession>>,
}

impl LanguageModel {
    /// Loads a model from a folder in the Hugging Face layout, a `.safetensors` file beside its `config.json`, a `.gguf`, or a
    /// hub id that is in the Hugging Face cache ([`hub`]).
    ///
    /// ```no_run
    /// # fn main() -> rlx_models::Result<()> {
    /// # let runtime = rlx_runtime::Runtime::new(vec![], rlx_ir::env::Settings::defaults());
    /// use std::ops::ControlFlow;
    ///
    /// use rlx_models::language::{GenerateEvent, GenerateOptions, LanguageModel, LanguageOptions};
    ///
    /// let model = LanguageModel::load(&runtime, "model.gguf", &LanguageOptions::default())?;
    /// let options = GenerateOptions { max_tokens: 32, ..GenerateOptions::default() };
    /// let generation = model.generate("Once upon a time", &options, |event| {
    ///     if let GenerateEvent::Text(piece) = event {
    ///         print!("{piece}");
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// println!("\n{} tokens", generation.token_ids.len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `NotFound`, `InvalidFile`, `UnsupportedModel` and `Io` for what is wrong with the files; `InvalidArgument` for a context
    /// beyond the model's; `UnsupportedOnDevice` and `Device`.
    pub fn load(runtime: &Runtime, path: impl AsRef<Path>, options: &LanguageOptions) -> Result<Self> {
        Self::load_files(runtime, hub::open(path.as_ref(), hub::TEXT)?, options, &|_, _| {})
    }

    /// Loads a model from open files; `progress` is told the bytes of weights that are done, and all bytes.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_files(
        runtime: &Runtime,
        files: ModelFiles,
        options: &LanguageOptions,
        progress: &LoadProgress<'_>,
    ) -> Result<Self> {
        let _span = tracing::debug_span!("load", model = %files.path().display()).entered();
        let decoder = decoder::open(&files)?;
        let shape = decoder.shape();
        let limits = options.limits(&shape).map_err(|e| e.context(files.path().display()))?;
        let graph = decoder.graph(&limits)?;
        let session_options = SessionOptions {
            device: options.device.as_deref(),
            strategy: options.strategy,
            compile: options.compile.clone(),
            progress,
        };
        let session = Session::compile(runtime, &graph, decoder.weights(), &session_options)?;
        Ok(Self {
            files,
            session,
            limits,
            shape,
            tokenizer: OnceLock::new(),
            known_ids: OnceLock::new(),
            chat_template: OnceLock::new(),
            idle: Mutex::new(None),
        })
    }

    /// The files.
    pub fn files(&self) -> &ModelFiles {
        &self.files
    }

    /// The compiled step.
    pub fn compiled(&self) -> &Session {
        &self.session
    }

    /// The sizes of the network.
    pub fn shape(&self) -> &DecoderShape {
        &self.shape
    }

    /// The largest sizes of a step, and the context in tokens.
    pub fn limits(&self) -> &DecoderLimits {
        &self.limits
    }

    /// The tokenizer; it is read when it is asked for first.
    ///
    /// # Errors
    /// `NotFound` where folder or file has none; `InvalidFile` and `UnsupportedModel` where it cannot be read, or has a token of
    /// ordinary text that the network does not have ([`Tokenizer::check_rows`]).
    pub fn tokenizer(&self) -> Result<&Arc<Tokenizer>> {
        if let Some(tokenizer) = self.tokenizer.get() {
            return Ok(tokenizer);
        }
        let place = |e: Error| e.context(self.files.path().display());
        let tokenizer = match (self.files.config(), self.files.folder()) {
            (ModelConfig::Gguf(gguf), _) => {
                GgufVocab::from_metadata(gguf.metadata()).and_then(Tokenizer::from_gguf).map_err(place)?
            }
            (ModelConfig::Hf(_), folder) => Tokenizer::from_folder(folder.unwrap_or(Path::new(".")))?,
        };
        tokenizer.check_rows(self.shape.vocab_size).map_err(place)?;
        Ok(self.tokenizer.get_or_init(|| Arc::new(tokenizer)))
    }

    /// How many of the first ids the tokenizer knows, and those among them that can neither be written nor end a text.
    pub(super) fn known_ids(&self) -> Result<(usize, &[u32])> {
        let (tokenizer, rows) = (self.tokenizer()?, self.shape.vocab_size);
        let (end, gaps) = self.known_ids.get_or_init(|| {
            let stop = &tokenizer.special_tokens().stop;
            let ends = stop.iter().map(|&id| id as usize + 1).filter(|&end| end <= rows);
            let end = ends.max().unwrap_or(0).max(tokenizer.vocab_size().min(rows));
            let mut gaps = tokenizer.gaps(end);
            gaps.retain(|id| !stop.contains(id));
            (end, gaps)
        });
        Ok((*end, gaps))
    }

    /// The chat template that the model's files bring; it is read when it is asked for first.
    ///
    /// # Errors
    /// `NotFound` where they have none: how a model writes conversations is not guessed. `InvalidFile` where it is no
    /// template; errors of [`tokenizer`](Self::tokenizer).
    pub fn chat_template(&self) -> Result<&Arc<ChatTemplate>> {
        if let Some(template) = self.chat_template.get() {
            return Ok(template);
        }
        let template = match (self.files.config(), self.files.folder()) {
            (ModelConfig::Gguf(gguf), _) => ChatTemplate::from_gguf(gguf.metadata(), self.tokenizer()?)
                .map_err(|e| e.context(self.files.path().display()))?,
            (ModelConfig::Hf(_), folder) => ChatTemplate::from_folder(folder.unwrap_or(Path::new(".")))?,
        };
        Ok(self.chat_template.get_or_init(|| Arc::new(template)))
    }

    /// The tokens that end a text: all that the tokenizer or, where there is none, the config names.
    ///
    /// # Errors
    /// `InvalidFile` where a file that names them is damaged.
    pub fn stop_tokens(&self) -> Result<Vec<u32>> {
        match (self.tokenizer(), self.files.folder()) {
            (Ok(tokenizer), _) => Ok(tokenizer.special_tokens().stop.clone()),
            (Err(e), folder) if e.kind() == ErrorKind::NotFound => match folder {
                Some(folder) => Ok(TokenizerConfig::from_folder(folder)?.eos_token_ids),
                None => Ok(Vec::new()),
            },
            (Err(e), _) => Err(e),
        }
    }

    /// Memory to run in, with a cache of `tokens` tokens for all its sequences together.
    ///
    /// # Errors
    /// `InvalidArgument` for a cache that is too large to number; `Device` where memory cannot be had.
    pub fn session(&self, tokens: usize) -> Result<DecodeSession> {
        DecodeSession::new(&self.session, self.limits, self.shape, tokens)
    }

    /// What it keeps in memory.
    ///
    /// # Errors
    /// `Device` where memory for a generation cannot be had.
    pub fn memory(&self) -> Result<LanguageMemory> {
        let session = self.check_out()?;
        let memory = session.memory();
        self.check_in(session);
        Ok(LanguageMemory {
            weights: self.session.weight_bytes(),
            arena: memory.arena,
            inputs: memory.inputs,
            kv_reserved: memory.states,
        })
    }

    /// Memory for one sequence of the whole context, from the last generation where it is there.
    pub(super) fn check_out(&self) -> Result<DecodeSession> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).take();
        match idle {
            Some(session) => Ok(session),
            None => self.session(self.limits.context),
        }
    }

    /// Gives memory back whose sequences have all ended well.
    pub(super) fn check_in(&self, session: DecodeSession) {
        *self.idle.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
    }
}
