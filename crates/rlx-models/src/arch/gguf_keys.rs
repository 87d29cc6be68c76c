//! The metadata keys of a GGUF file that start with its architecture.

use rlx_gguf::Metadata;
use rlx_ir::bail;

use crate::files::{NamedWeights, limits};
use crate::{Error, Result};

/// Metadata whose keys start with an architecture. Errors name the whole key.
#[derive(Clone, Copy, Debug)]
pub struct GgufKeys<'a> {
    metadata: &'a Metadata,
    architecture: &'a str,
}

impl<'a> GgufKeys<'a> {
    /// The keys of the architecture that the file says it has.
    pub(crate) fn new(metadata: &'a Metadata) -> Result<Self> {
        Ok(Self { metadata, architecture: metadata.require_str("general.architecture")? })
    }

    /// All metadata.
    pub(crate) fn metadata(&self) -> &'a Metadata {
        self.metadata
    }

    /// `name` behind the architecture.
    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.architecture)
    }

    /// A whole number in `1..=max`.
    pub(crate) fn size(&self, name: &str, max: usize) -> Result<Option<usize>> {
        let key = self.key(name);
        self.metadata.usize(&key)?.map(|n| limits::size(&key, n, max)).transpose()
    }

    /// A whole number in `1..=max` that must be there.
    pub(crate) fn require_size(&self, name: &str, max: usize) -> Result<usize> {
        let key = self.key(name);
        limits::size(&key, self.metadata.require_usize(&key)?, max)
    }

    /// The architecture.
    pub(crate) fn architecture(&self) -> &'a str {
        self.architecture
    }

    /// A text.
    pub(crate) fn str(&self, name: &str) -> Result<Option<&'a str>> {
        Ok(self.metadata.str(&self.key(name))?)
    }

    /// A number.
    pub(crate) fn float(&self, name: &str) -> Result<Option<f64>> {
        Ok(self.metadata.f32(&self.key(name))?.map(f64::from))
    }

    /// A number that must be there.
    pub(crate) fn require_float(&self, name: &str) -> Result<f64> {
        match self.float(name)? {
            Some(value) => Ok(value),
            None => bail!(InvalidFile, "metadata key `{}` is missing", self.key(name)),
        }
    }

    /// Refuses models whose tokens see only those before them.
    pub(crate) fn refuse_causal(&self) -> Result<()> {
        let key = self.key("attention.causal");
        match self.metadata.bool(&key)? {
            Some(true) => bail!(UnsupportedModel, "{key} is true: such a model is not supported, only false"),
            _ => Ok(()),
        }
    }

    /// Refuses rotary frequencies that are stretched.
    pub(crate) fn refuse_rope_scaling(&self) -> Result<()> {
        let key = self.key("rope.scaling.type");
        match self.metadata.str(&key)? {
            // "linear" without a factor above 1 changes nothing.
            None | Some("none" | "linear") => {}
            Some(other) => bail!(UnsupportedModel, "{key} \"{other}\" is not supported; none is"),
        }
        for name in ["rope.scaling.factor", "rope.scale_linear"] {
            // 0 stands for none.
            if let Some(factor) = self.float(name)?.filter(|f| ![0.0, 1.0].contains(f)) {
                bail!(UnsupportedModel, "{} is {factor}, which is not supported; 1 is", self.key(name));
            }
        }
        Ok(())
    }
}

/// The number of rows of a matrix, which is the size of a vocabulary where no key gives it.
pub(crate) fn rows(weights: &NamedWeights, name: &str, max: usize) -> Result<usize> {
    let ty = weights.require(name)?.ty;
    let rows = ty.shape.first().copied().unwrap_or(0);
    limits::size(&format!("the number of rows of tensor {name:?}"), rows, max)
}
