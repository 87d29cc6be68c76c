//! What a network gives for each token.

use std::path::Path;

use rlx_ir::bail;
use safetensors::{Dtype, tensor::TensorView};

use crate::{Error, Result};

/// A value per token, zero where masked.
#[derive(Clone, Debug, PartialEq)]
pub struct ForwardOutput {
    /// `last_hidden_state` or `logits`.
    pub name: &'static str,
    /// [B, S, H] or [B, S, V].
    pub shape: [usize; 3],
    /// The values, row-major.
    pub values: Vec<f32>,
}

impl ForwardOutput {
    /// Writes a `.safetensors` file that holds it under its name.
    ///
    /// # Errors
    /// `Io`.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut bytes = Vec::with_capacity(self.values.len() * 4);
        self.values.iter().for_each(|v| bytes.extend(v.to_le_bytes()));
        let view = TensorView::new(Dtype::F32, self.shape.to_vec(), &bytes);
        let written = view.and_then(|view| safetensors::serialize_to_file([(self.name, view)], None, path));
        match written {
            Ok(()) => Ok(()),
            Err(e) => bail!(Io, "{}: {e}", path.display()),
        }
    }
}
