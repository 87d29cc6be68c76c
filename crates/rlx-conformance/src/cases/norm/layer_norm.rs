//! `layer_norm`.

use super::Norm;
use crate::Result;
use crate::cases::{Case, Samples};

/// With and without bias.
pub(crate) struct LayerNorm;

impl Case for LayerNorm {
    fn name(&self) -> &'static str {
        "layer_norm"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        let variants = [("bias", true, "eps = 1e-5"), ("no bias", false, "eps = 1e-12")];
        Norm { op: "layer_norm", adds: false, variants: &variants }.generate(samples)
    }
}
