//! `silu`.

use super::gelu::elementwise;
use crate::Result;
use crate::cases::{Case, Samples};

/// The float dtypes, far from zero too.
pub(crate) struct Silu;

impl Case for Silu {
    fn name(&self) -> &'static str {
        "silu"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        elementwise(samples, "silu %x", "plain")
    }
}
