//! `rlx embed`: texts to vectors.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use rlx::ir::{Tick, bail};
use rlx::models::embedding::{BUNDLED_MODEL, EmbedRequest, Prompt, Truncation};
use rlx::models::hub;
use rlx::models::sentence_transformers::PoolingMode;
use rlx::prelude::*;

use crate::error::{Error, Result};
use crate::memory::peak_rss_bytes;
use crate::model;
use crate::options::{Format, Global, TypeArgs};
use crate::output::embeddings::{Row, sink};
use crate::output::{Stdout, bytes};
use crate::progress::Bar;
use crate::texts::{LineFormat, Texts};

/// Turns texts into vectors.
#[derive(Args, Debug)]
pub struct Embed {
    /// A folder in the Hugging Face layout, a .safetensors beside its config.json, a .gguf, or a hub id (org/name)
    #[arg(short, long, value_name = "MODEL", default_value = BUNDLED_MODEL, value_parser = NonEmptyStringValueParser::new())]
    model: String,
    #[command(flatten)]
    types: TypeArgs,
    /// The texts
    #[arg(value_name = "TEXT")]
    texts: Vec<String>,
    /// Reads one text per line, or JSON lines with a `text` field, from a file or (-) stdin
    #[arg(long, value_name = "FILE", conflicts_with = "texts")]
    input: Option<PathBuf>,
    /// What the lines of --input are [default: auto]
    #[arg(long, value_enum, value_name = "FORMAT")]
    input_format: Option<LineFormat>,
    /// How the vectors of tokens become one; auto does as the model says
    #[arg(long, value_enum, default_value = "auto")]
    pooling: Pooling,
    /// Leaves vectors at the length that they have
    #[arg(long)]
    no_normalize: bool,
    /// Puts the model's prompt of this name before each text
    #[arg(long, value_name = "NAME", conflicts_with = "prefix")]
    prompt_name: Option<String>,
    /// Puts this before each text
    #[arg(long, value_name = "STR", allow_hyphen_values = true)]
    prefix: Option<String>,
    /// Refuses texts that are too long for the model, instead of cutting them
    #[arg(long)]
    no_truncate: bool,
    /// The most tokens that are run together
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    batch_tokens: Option<usize>,
    /// Keeps the first N components of each vector
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    dims: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Pooling {
    Auto,
    Mean,
    Cls,
    Last,
    Max,
}

impl Pooling {
    fn mode(self) -> Option<PoolingMode> {
        match self {
            Self::Auto => None,
            Self::Mean => Some(PoolingMode::Mean),
            Self::Cls => Some(PoolingMode::Cls),
            Self::Last => Some(PoolingMode::LastToken),
            Self::Max => Some(PoolingMode::Max),
        }
    }
}

impl Embed {
    pub fn run(&self, global: &Global) -> Result<()> {
        let for_people = std::io::stdout().is_terminal();
        let format = match global.format {
            Some(format) => format,
            None if for_people => Format::Text,
            None => Format::Jsonl,
        };
        if self.input_format.is_some() && self.input.is_none() {
            bail!(
                InvalidArgument,
                "--input-format says what the lines of --input are, and there is no --input"
            );
        }
        let mut texts = match &self.input {
            Some(path) => Texts::open(path, self.input_format.unwrap_or_default())?,
            None => Texts::Given(Some(self.texts.clone())),
        };
        let mut piece = texts.next_piece()?;
        if piece.is_empty() {
            match &self.input {
                Some(path) => bail!(InvalidArgument, "{}: it holds no text to embed", path.display()),
                None => bail!(InvalidArgument, "no text to embed: name one, or a file of texts with --input"),
            }
        }
        self.types.types().warn_without_cache();
        let runtime = global.runtime()?;
        let files = model::open(global, &self.model, hub::VECTORS)?;
        let model = EmbeddingModel::from_files(&runtime, &files, &self.options(global))?;
        if tracing::enabled!(tracing::Level::INFO) {
            model::tell(&files, model.encoder().session());
            let memory = model.memory()?;
            tracing::info!(
                "memory: weights {} besides the mapped file, arena {}, inputs {}",
                bytes(memory.weights),
                bytes(memory.arena),
                bytes(memory.inputs)
            );
        }
        let start = Tick::now();
        let mut out = Stdout::lock();
        let mut sink = sink(format);
        let mut tally = Tally::default();
        let bar = Bar::count(global, "embedding");
        while !piece.is_empty() {
            let first = tally.texts;
            let total = first + piece.len();
            let progress = |done: usize, _: usize| match texts.position() {
                Some((read, all)) => bar.set(read, all),
                None => bar.set((first + done) as u64, total as u64),
            };
            let request = EmbedRequest { progress: Some(&progress), ..EmbedRequest::default() };
            let results = model.embed_each(&piece, &request)?;
            for (i, (text, result)) in piece.iter().zip(results).enumerate() {
                let index = first + i;
                match result {
                    Ok(embedded) => {
                        tally.tokens += embedded.tokens;
                        tally.truncated(index, embedded.truncated);
                        sink.row(&mut out, Row { index, text, embedded: &embedded })?;
                    }
                    Err(e) if sink.has_index() => tally.failed(index, e.into()),
                    Err(e) => return Err(Error::from(e).context(format_args!("text {index}"))),
                }
            }
            tally.texts = total;
            piece = texts.next_piece()?;
        }
        bar.clear();
        sink.finish(&mut out, model.dim())?;
        out.flush()?;
        let seconds = start.elapsed_ns() as f64 / 1e9;
        tracing::info!(
            "{} texts with {} tokens in {seconds:.3} s, {:.1} tokens/s, to vectors of {}",
            tally.texts,
            tally.tokens,
            tally.tokens as f64 / seconds,
            model.dim()
        );
        tracing::info!(bytes = peak_rss_bytes(), "peak memory");
        tally.report(model.max_seq_length())
    }

    fn options(&self, global: &Global) -> EmbeddingOptions {
        let mut options = EmbeddingOptions {
            load: model::load_options(global, self.types.types()),
            pooling: self.pooling.mode(),
            normalize: self.no_normalize.then_some(false),
            dims: self.dims,
            truncation: if self.no_truncate { Truncation::Refuse } else { Truncation::Cut },
            ..EmbeddingOptions::default()
        };
        if let Some(tokens) = self.batch_tokens {
            options.batch_tokens = tokens;
        }
        if let Some(name) = &self.prompt_name {
            options.prompt = Prompt::Named(name.clone());
        } else if let Some(prefix) = &self.prefix {
            options.prompt = Prompt::Prefix(prefix.clone());
        }
        options
    }
}

/// What happened to the texts.
#[derive(Default)]
struct Tally {
    texts: usize,
    /// Of the texts that have a vector.
    tokens: usize,
    truncated: Option<(usize, usize)>,
    /// Which ones have no vector, and why the first has none.
    failed: Option<(Vec<usize>, Error)>,
}

impl Tally {
    fn truncated(&mut self, index: usize, truncated: bool) {
        if truncated {
            self.truncated.get_or_insert((0, index)).0 += 1;
        }
    }

    fn failed(&mut self, index: usize, e: Error) {
        self.failed.get_or_insert((Vec::new(), e)).0.push(index);
    }

    /// Warns of cut texts; fails where a text has no vector.
    fn report(self, limit: usize) -> Result<()> {
        let texts = self.texts;
        match self.truncated {
            Some((1, first)) => tracing::warn!("text {first} was cut at {limit} tokens"),
            Some((n, first)) => {
                tracing::warn!("{n} of {texts} texts were cut at {limit} tokens; the first is text {first}");
            }
            None => {}
        }
        match self.failed {
            None => Ok(()),
            Some((failed, e)) => {
                let e = e.context(format_args!("text {}", failed.first().copied().unwrap_or_default()));
                match failed.len() {
                    1 => Err(e),
                    n => {
                        Err(e.context(format_args!("{n} of {texts} texts have no vector: {}", list(&failed))))
                    }
                }
            }
        }
    }
}

/// Some of the numbers, and how many more there are.
fn list(numbers: &[usize]) -> String {
    const MOST: usize = 100;
    let shown: Vec<String> = numbers.iter().take(MOST).map(usize::to_string).collect();
    let more = numbers.len() - shown.len();
    let end = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{end}", shown.join(", "))
}
