//! The GGUF metadata of a decoder: what [`gguf`](super::gguf) reads back.

use rlx_gguf::MetadataBuilder;
use rlx_ir::bail;

use super::architecture::DecoderArchitecture;
use super::config::{DecoderConfig, Direction, FeedForward, LayerConfig};
use super::gguf;
use crate::arch::rope::{self, RopeScaling};
use crate::{Error, Result};

/// Writes keys that start with the architecture's name.
pub(in crate::arch) struct GgufWriter<'a> {
    metadata: &'a mut MetadataBuilder,
    architecture: &'static str,
    /// What other programs make of the result, for people.
    pub notes: Vec<String>,
}

impl GgufWriter<'_> {
    /// The whole key.
    pub fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// A size.
    pub fn size(&mut self, name: &str, n: usize) {
        self.metadata.set(&self.key(name), u32::try_from(n).unwrap_or(u32::MAX));
    }

    /// A number.
    pub fn float(&mut self, name: &str, value: f64) {
        self.metadata.set(&self.key(name), value as f32);
    }

    /// A text.
    pub fn text(&mut self, name: &str, value: &str) {
        self.metadata.set(&self.key(name), value);
    }

    /// Yes or no.
    pub fn flag(&mut self, name: &str, value: bool) {
        self.metadata.set(&self.key(name), value);
    }

    /// A list of yes or no.
    pub fn flags(&mut self, name: &str, values: &[bool]) {
        self.metadata.set_numbers(&self.key(name), values);
    }

    /// Says that llama.cpp does not read the key `name`.
    pub fn unread(&mut self, name: &str) {
        self.notes.push(format!("llama.cpp does not read {}, and will give something else", self.key(name)));
    }
}

/// Writes the keys of a model of `architecture`; returns what other programs make of it, for people.
///
/// # Errors
/// `UnsupportedModel` where GGUF cannot say what `config` says, by name.
pub(crate) fn write(
    architecture: &DecoderArchitecture,
    config: &DecoderConfig,
    metadata: &mut MetadataBuilder,
) -> Result<Vec<String>> {
    let name = architecture.gguf.architecture;
    metadata.set("general.architecture", name);
    let mut keys = GgufWriter { metadata, architecture: name, notes: Vec::new() };
    let Some(main) = config.layers.iter().find(|l| l.window.is_none()).or(config.layers.first()) else {
        bail!(Bug, "a decoder without layers");
    };
    keys.size("vocab_size", config.vocab_size);
    keys.size("block_count", config.layers.len());
    keys.size("context_length", config.context_length);
    keys.size("embedding_length", config.hidden_size);
    keys.size("attention.head_count", config.num_heads);
    keys.size("attention.head_count_kv", config.num_kv_heads);
    keys.size("attention.key_length", config.head_dim);
    keys.size("attention.value_length", config.head_dim);
    keys.float("attention.layer_norm_rms_epsilon", config.norm.eps);
    if config.attention.direction == Direction::Bidirectional {
        keys.flag("attention.causal", false);
    }
    if let FeedForward::Gated { intermediate_size, .. } = main.feed_forward {
        keys.size("feed_forward_length", intermediate_size);
    }
    rope::gguf::write(&mut keys, &main.rope)?;
    (architecture.gguf.write)(&mut keys, config);
    let notes = keys.notes;
    let read = gguf::from_metadata(architecture, &metadata.clone().build(), config.vocab_size)?;
    match difference(config, &read) {
        None => Ok(notes),
        Some(what) => bail!(UnsupportedModel, "GGUF cannot say {what} of this model, as a \"{name}\""),
    }
}

/// What would be lost.
fn difference(config: &DecoderConfig, read: &DecoderConfig) -> Option<&'static str> {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs();
    let near_cap = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => near(a, b),
        (a, b) => a == b,
    };
    let layers = |same: &dyn Fn(&LayerConfig, &LayerConfig) -> bool| {
        config.layers.iter().zip(&read.layers).all(|(a, b)| same(a, b))
    };
    let sizes =
        |c: &DecoderConfig| (c.hidden_size, c.num_heads, c.num_kv_heads, c.head_dim, c.context_length);
    let facts = [
        (sizes(config) == sizes(read) && config.layers.len() == read.layers.len(), "the sizes"),
        (near(config.norm.eps, read.norm.eps), "the epsilon of the norms"),
        (near(config.attention.scale, read.attention.scale), "the scale of attention"),
        (near_cap(config.attention.softcap, read.attention.softcap), "the soft cap of attention"),
        (near_cap(config.final_softcap, read.final_softcap), "the soft cap of logits"),
        (config.attention.direction == read.attention.direction, "which tokens a token sees"),
        (layers(&|a, b| a.window == b.window), "the windows of the layers"),
        (layers(&|a, b| near(a.rope.theta, b.rope.theta)), "the bases of the ropes"),
        (layers(&|a, b| same_scaling(&a.rope.scaling, &b.rope.scaling)), "the scaling of the ropes"),
        (
            layers(&|a, b| same_parts(&a.feed_forward, &b.feed_forward)),
            "the feed-forward parts of the layers",
        ),
    ];
    facts.into_iter().find(|(same, _)| !same).map(|(_, what)| what)
}

fn same_parts(a: &FeedForward, b: &FeedForward) -> bool {
    match (a, b) {
        (
            FeedForward::Gated { intermediate_size: a, .. },
            FeedForward::Gated { intermediate_size: b, .. },
        ) => a == b,
        (a, b) => a == b,
    }
}

fn same_scaling(a: &RopeScaling, b: &RopeScaling) -> bool {
    let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs();
    match (*a, *b) {
        // A tensor holds it.
        (RopeScaling::None | RopeScaling::Llama3 { .. }, RopeScaling::None) => true,
        (RopeScaling::Linear { factor: a }, RopeScaling::Linear { factor: b }) => near(a, b),
        (
            RopeScaling::Yarn { factor, original_context, beta_fast, beta_slow, attention_factor, truncate },
            RopeScaling::Yarn {
                factor: f,
                original_context: o,
                beta_fast: fast,
                beta_slow: slow,
                attention_factor: a,
                truncate: t,
            },
        ) => {
            let same = [
                (factor, f),
                (original_context, o),
                (beta_fast, fast),
                (beta_slow, slow),
                (attention_factor, a),
            ];
            truncate == t && same.into_iter().all(|(a, b)| near(a, b))
        }
        _ => false,
    }
}
