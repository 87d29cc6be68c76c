//! Tensors under canonical names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rlx_ir::{TensorType, bail};
use rlx_runtime::WeightSource;
use rlx_runtime::weights::{WeightBytes, WeightData};

use super::model_files::{ModelConfig, ModelFiles};
use crate::{Error, Result};

/// A canonical name (that of GGUF) and the names that Hugging Face models give the same tensor, the usual one first.
/// `{i}` stands for the number of a layer. A name with `{e}` is that of a part: the tensor is the stack of those numbered from 0.
pub type Alias = (&'static str, &'static [&'static str]);

/// Stands for the number of a part in the name of a tensor that is stacked.
const PART: &str = "{e}";

/// The tensor names of an architecture.
#[derive(Debug, PartialEq, Eq)]
pub struct NameTable {
    /// What may stand before all names of a model (`""`, `"bert."`), the usual one first.
    pub prefixes: &'static [&'static str],
    /// The names of each tensor.
    pub aliases: &'static [Alias],
}

impl NameTable {
    /// All names that the tensor `canonical` may have in a model of the Hugging Face layout, the usual one first.
    pub fn candidates(&self, canonical: &str) -> Vec<String> {
        let mut out = Vec::new();
        for (pattern, aliases) in self.aliases {
            let Some(layer) = layer_of(pattern, canonical) else { continue };
            for prefix in self.prefixes {
                out.extend(aliases.iter().map(|alias| format!("{prefix}{}", alias.replace("{i}", layer))));
            }
        }
        out
    }

    /// The canonical name of a tensor of a model of the Hugging Face layout.
    pub fn canonical(&self, raw: &str) -> Option<String> {
        self.bare(raw).find_map(|bare| {
            self.aliases.iter().find_map(|(pattern, aliases)| {
                let layer = aliases.iter().find_map(|alias| layer_of(alias, bare))?;
                Some(pattern.replace("{i}", layer))
            })
        })
    }

    /// A name without each of the prefixes that it begins with.
    fn bare<'a>(&self, raw: &'a str) -> impl Iterator<Item = &'a str> {
        self.prefixes.iter().filter_map(|prefix| raw.strip_prefix(prefix))
    }
}

/// The digits that `{i}` of `pattern` stands for in `name`; empty for a pattern without it.
fn layer_of<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{i}") else { return (pattern == name).then_some("") };
    let (layer, rest) = split_digits(name.strip_prefix(before)?)?;
    let fits = match after.split_once(PART) {
        None => rest == after,
        Some((between, end)) => split_digits(rest.strip_prefix(between)?)?.1 == end,
    };
    fits.then_some(layer)
}

/// The digits that a text begins with, at least one, and what follows.
fn split_digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The tensors of a model under canonical names: those of GGUF, whatever the files call them. A tensor that is there under
/// two names is an error.
#[derive(Clone)]
pub struct NamedWeights {
    place: String,
    identity: String,
    source: Arc<dyn WeightSource>,
    names: Arc<BTreeSet<String>>,
    table: Option<&'static NameTable>,
    extra: BTreeMap<String, WeightData>,
}

impl NamedWeights {
    /// The tensors of `files`, which an architecture calls as `table` says.
    pub fn new(files: &ModelFiles, table: &'static NameTable) -> Self {
        let table = matches!(files.config(), ModelConfig::Hf(_)).then_some(table);
        // Another table may give another tensor of the same files the same name.
        let names = table.map(|table| format!(" named by {table:p}")).unwrap_or_default();
        Self {
            place: files.path().display().to_string(),
            identity: format!("{}{names}", files.source().identity()),
            source: files.source().clone(),
            names: files.tensor_names().clone(),
            table,
            extra: BTreeMap::new(),
        }
    }

    /// No tensors.
    #[cfg(test)]
    pub(crate) fn empty(place: &str) -> Self {
        Self {
            place: place.to_owned(),
            identity: "none".to_owned(),
            source: Arc::new(rlx_runtime::weights::NoWeights),
            names: Arc::default(),
            table: None,
            extra: BTreeMap::new(),
        }
    }

    /// The tensors of `files` under the names that its architecture has for them; those of a GGUF file under their own.
    ///
    /// # Errors
    /// `UnsupportedModel` for an architecture that is not known, in the Hugging Face layout.
    pub fn of(files: &ModelFiles) -> Result<Self> {
        static NONE: NameTable = NameTable { prefixes: &[], aliases: &[] };
        let table = match files.config() {
            ModelConfig::Hf(_) => files.supported()?.names,
            ModelConfig::Gguf(_) => &NONE,
        };
        Ok(Self::new(files, table))
    }

    /// What the files are called in messages.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The names of tensors that were added.
    pub fn added(&self) -> impl Iterator<Item = &str> {
        self.extra.keys().map(String::as_str)
    }

    /// Adds a tensor from elsewhere, or puts it in the place of one that is there.
    pub fn insert(&mut self, name: impl Into<String>, data: WeightData) {
        let name = name.into();
        self.identity.push_str(&format!(" with {name:?} of {}", data.bytes.identity()));
        self.extra.insert(name, data);
    }

    /// The name in the files of the tensor `name`, or of its first part; `None` where it is not there.
    pub fn raw_name(&self, name: &str) -> Option<String> {
        self.parts_of(name).into_iter().next()
    }

    /// The names in the files of all parts of the tensor `name`: none where it is not there, mostly one.
    pub fn parts_of(&self, name: &str) -> Vec<String> {
        self.spellings(name).into_iter().next().unwrap_or_default()
    }

    /// The names in the files of all parts of the tensor `name`, for each of the ways to call it that the files use.
    fn spellings(&self, name: &str) -> Vec<Vec<String>> {
        let Some(table) = self.table else {
            return self.names.get(name).map(|name| vec![name.clone()]).into_iter().collect();
        };
        let mut found: Vec<Vec<String>> = Vec::new();
        for candidate in table.candidates(name) {
            let part = |e: usize| candidate.replace(PART, &e.to_string());
            let count = if candidate.contains(PART) { usize::MAX } else { 1 };
            let parts: Vec<String> =
                (0..count).map(part).take_while(|part| self.names.contains(part)).collect();
            if !parts.is_empty() && !found.contains(&parts) {
                found.push(parts);
            }
        }
        found
    }

    /// The files' own names of all tensors.
    pub fn raw_names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// What a name of the files may be without what stands before all names of a model.
    pub fn bare_names<'a>(&self, raw: &'a str) -> Vec<&'a str> {
        match self.table {
            None => vec![raw],
            Some(table) => table.bare(raw).collect(),
        }
    }

    /// Whether the tensor `name` is there.
    pub fn contains(&self, name: &str) -> bool {
        self.extra.contains_key(name) || self.raw_name(name).is_some()
    }

    /// The tensor `name`; `None` where it is not there. One of several parts is put together in memory.
    ///
    /// # Errors
    /// `UnsupportedModel` for a dtype that RLX does not know; `InvalidFile`, also where parts have different types.
    pub fn find(&self, name: &str) -> Result<Option<WeightData>> {
        if let Some(data) = self.extra.get(name) {
            return Ok(Some(data.clone()));
        }
        self.refuse_scaled(name)?;
        match self.only_parts_of(name)?.as_slice() {
            [] => Ok(None),
            [raw] if !self.is_stacked(name) => Ok(Some(self.source.weight(raw)?)),
            parts => self.stack(parts).map(Some),
        }
    }

    /// The dtype and shape of the tensor `name`; `None` where it is not there.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_type(&self, name: &str) -> Result<Option<TensorType>> {
        if let Some(data) = self.extra.get(name) {
            return Ok(Some(data.ty.clone()));
        }
        self.refuse_scaled(name)?;
        match self.only_parts_of(name)?.as_slice() {
            [] => Ok(None),
            [raw] if !self.is_stacked(name) => Ok(Some(self.source.weight(raw)?.ty)),
            parts => self.stacked_type(parts).map(Some),
        }
    }

    /// A matrix whose values are to be multiplied with those of a tensor beside it would be wrong without it.
    fn refuse_scaled(&self, name: &str) -> Result<()> {
        let Some(stem) = name.strip_suffix(".weight") else { return Ok(()) };
        for scale in ["scale", "input_scale"].map(|s| format!("{stem}.{s}")) {
            if self.names.contains(&scale) {
                let place = &self.place;
                bail!(
                    UnsupportedModel,
                    "{place}: tensor {name:?} has scales in {scale:?}, which is not supported"
                );
            }
        }
        Ok(())
    }

    /// [`parts_of`](Self::parts_of) of a tensor that is there once at most: which of two is meant is not guessed.
    fn only_parts_of(&self, name: &str) -> Result<Vec<String>> {
        let mut spellings = self.spellings(name).into_iter();
        let parts = spellings.next().unwrap_or_default();
        match (parts.first(), spellings.next().as_deref()) {
            (Some(used), Some([other, ..])) => {
                bail!(InvalidFile, "{}: tensors {used:?} and {other:?} are both {name}", self.place)
            }
            _ => Ok(parts),
        }
    }

    fn is_stacked(&self, name: &str) -> bool {
        self.table.is_some_and(|t| t.candidates(name).first().is_some_and(|c| c.contains(PART)))
    }

    fn stacked_type(&self, parts: &[String]) -> Result<TensorType> {
        let mut first: Option<TensorType> = None;
        for raw in parts {
            let ty = self.source.weight(raw)?.ty;
            match &first {
                None => first = Some(ty),
                Some(first) if *first == ty => {}
                Some(first) => {
                    bail!(
                        InvalidFile,
                        "{}: tensor {raw:?} is {ty}, but the first part is {first}",
                        self.place
                    )
                }
            }
        }
        let Some(TensorType { dtype, shape }) = first else { bail!(Bug, "a stack of no parts") };
        Ok(TensorType::new(dtype, [&[parts.len()], shape.as_slice()].concat()))
    }

    fn stack(&self, parts: &[String]) -> Result<WeightData> {
        let ty = self.stacked_type(parts)?;
        let bytes = WeightBytes::filled(ty.bytes()?, |mut left| {
            for raw in parts {
                let part = self.source.weight(raw)?.bytes;
                let Some((own, rest)) = left.split_at_mut_checked(part.len()) else {
                    bail!(Bug, "{}: {raw:?} is longer than the other tensors of its stack", self.place);
                };
                own.copy_from_slice(&part);
                left = rest;
                part.release(0..part.len());
            }
            Ok::<(), Error>(())
        });
        Ok(WeightData { ty, bytes: bytes? })
    }

    /// The tensor `name`, which must be there.
    ///
    /// # Errors
    /// As [`find`](Self::find); `NotFound` naming the tensor, what the files may call it, and the nearest names there.
    pub fn require(&self, name: &str) -> Result<WeightData> {
        match self.find(name)? {
            Some(data) => Ok(data),
            None => Err(self.missing(name)),
        }
    }

    /// The dtype of the tensor `name`, which must be there, hold floats or blocks of them and have this shape.
    ///
    /// # Errors
    /// As [`require`](Self::require); `InvalidFile` naming the tensor and its dtype, or both shapes.
    pub fn expect(&self, name: &str, shape: &[usize]) -> Result<TensorType> {
        let Some(ty) = self.find_type(name)? else { return Err(self.missing(name)) };
        let raw = || self.raw_name(name).unwrap_or_else(|| name.to_owned());
        if !(ty.dtype.is_float() || ty.dtype.is_block()) {
            bail!(
                InvalidFile,
                "{}: tensor {:?} is {}, but weights are floats: what its integers stand for is not known",
                self.place,
                raw(),
                ty.dtype
            );
        }
        if ty.shape != shape {
            let raw = raw();
            bail!(
                InvalidFile,
                "{}: tensor {raw:?} has the shape {:?}, but the config makes it {shape:?}",
                self.place,
                ty.shape
            );
        }
        Ok(ty)
    }

    fn missing(&self, name: &str) -> Error {
        let candidates = self.table.map(|t| t.candidates(name)).unwrap_or_default();
        let wanted = candidates.first().map_or(name.to_owned(), |c| c.replace(PART, "0"));
        let near = rlx_gguf::nearest_names(&wanted, self.names.iter().map(String::as_str));
        let near = match near.as_slice() {
            [] => String::new(),
            near => format!("; the nearest names are {}", near.join(", ")),
        };
        let message = format!("{}: tensor {wanted:?} is missing{near}", self.place);
        Error::new(rlx_ir::ErrorKind::NotFound, message)
    }
}

impl WeightSource for NamedWeights {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn weight(&self, name: &str) -> rlx_runtime::Result<WeightData> {
        self.require(name).map_err(|e| rlx_runtime::Error::new(e.kind(), e.message()))
    }
}

impl std::fmt::Debug for NamedWeights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedWeights")
            .field("place", &self.place)
            .field("tensors", &self.names.len())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: NameTable = NameTable {
        prefixes: &["", "bert."],
        aliases: &[
            ("token_embd.weight", &["embeddings.word_embeddings.weight"]),
            (
                "blk.{i}.attn_output_norm.weight",
                &["encoder.layer.{i}.norm.weight", "encoder.layer.{i}.norm.gamma"],
            ),
            ("blk.{i}.up_exps.weight", &["encoder.layer.{i}.experts.{e}.up.weight"]),
        ],
    };

    #[test]
    fn a_matrix_with_scales_beside_it_is_refused() {
        let names = ["a.weight", "a.scale", "b.weight"].map(str::to_owned);
        let weights = NamedWeights { names: Arc::new(names.into()), ..NamedWeights::empty("m.gguf") };
        let e = weights.find_type("a.weight").unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::UnsupportedModel);
        assert!(e.message().contains("\"a.scale\""), "{e}");
        // The source is empty, so that the tensor is named and then not found.
        assert_eq!(weights.find_type("b.weight").unwrap_err().kind(), rlx_ir::ErrorKind::NotFound);
    }

    #[test]
    fn a_tensor_under_two_names_is_refused() {
        let names =
            ["encoder.layer.0.norm.weight", "encoder.layer.0.norm.gamma", "bert.x"].map(str::to_owned);
        let weights =
            NamedWeights { names: Arc::new(names.into()), table: Some(&TABLE), ..NamedWeights::empty("m") };
        let e = weights.find_type("blk.0.attn_output_norm.weight").unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::InvalidFile);
        assert!(e.message().starts_with("m: ") && e.message().contains("norm.gamma\" are both"), "{e}");
    }

    #[test]
    fn names_go_both_ways() {
        assert_eq!(
            TABLE.candidates("blk.12.attn_output_norm.weight"),
            [
                "encoder.layer.12.norm.weight",
                "encoder.layer.12.norm.gamma",
                "bert.encoder.layer.12.norm.weight",
                "bert.encoder.layer.12.norm.gamma"
            ]
        );
        assert!(TABLE.candidates("blk.x.attn_output_norm.weight").is_empty());
        for raw in ["encoder.layer.3.norm.gamma", "bert.encoder.layer.3.norm.weight"] {
            assert_eq!(TABLE.canonical(raw).as_deref(), Some("blk.3.attn_output_norm.weight"));
        }
        assert_eq!(TABLE.canonical("pooler.dense.weight"), None);
        assert_eq!(
            TABLE.canonical("encoder.layer.3.experts.17.up.weight").as_deref(),
            Some("blk.3.up_exps.weight")
        );
        for wrong in ["encoder.layer.3.experts.up.weight", "encoder.layer.3.experts.1x.up.weight"] {
            assert_eq!(TABLE.canonical(wrong), None);
        }
    }
}
