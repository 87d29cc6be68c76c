//! What a network gives for each token.

use std::path::Path;

use rlx_gguf::OutputFile;
use serde_json::json;

use crate::Result;

/// Values that are written at once.
const PIECE: usize = 1 << 16;

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
    /// Writes a `.safetensors` file that holds it under its name. It appears whole or not at all.
    ///
    /// # Errors
    /// `InvalidArgument` where the path is something else than a file; `Io`.
    pub fn save(&self, path: &Path) -> Result<()> {
        self.write(OutputFile::create(path)?)
    }

    /// [`save`](Self::save) into a file that was begun before the values were there.
    ///
    /// # Errors
    /// `Io`.
    pub fn write(&self, mut file: OutputFile) -> Result<()> {
        // The length of a JSON header, the header, padded so that the data is aligned, and the data.
        let info = json!({"dtype": "F32", "shape": self.shape, "data_offsets": [0, self.values.len() * 4]});
        let mut header = json!({ self.name: info }).to_string();
        header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
        file.write(&(header.len() as u64).to_le_bytes())?;
        file.write(header.as_bytes())?;
        for piece in self.values.chunks(PIECE) {
            let bytes: Vec<u8> = piece.iter().flat_map(|v| v.to_le_bytes()).collect();
            file.write(&bytes)?;
        }
        Ok(file.finish()?)
    }
}
