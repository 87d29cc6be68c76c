//! `add_layer_norm`.

use super::Norm;
use crate::Result;
use crate::cases::{Case, Samples};

/// With and without bias.
pub(crate) struct AddLayerNorm;

impl Case for AddLayerNorm {
    fn name(&self) -> &'static str {
        "add_layer_norm"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        let variants = [("bias", true, "eps = 1e-5"), ("no bias", false, "eps = 1e-12")];
        Norm { op: "add_layer_norm", adds: true, variants: &variants }.generate(samples)
    }
}
