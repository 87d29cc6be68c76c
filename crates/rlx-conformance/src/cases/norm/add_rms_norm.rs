//! `add_rms_norm`.

use super::Norm;
use crate::Result;
use crate::cases::{Case, Samples};

/// With the weight as it is, and around 0.
pub(crate) struct AddRmsNorm;

impl Case for AddRmsNorm {
    fn name(&self) -> &'static str {
        "add_rms_norm"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        let variants = [("plain", false, "eps = 1e-6"), ("unit offset", false, "eps = 1e-6, unit_offset")];
        Norm { op: "add_rms_norm", adds: true, variants: &variants }.generate(samples)
    }
}
