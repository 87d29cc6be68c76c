//! Which files are part of a model, so that none of them is written over.

use std::path::{Path, PathBuf};

use rlx_gguf::same_file;
use rlx_ir::bail;

use super::model_files::{ModelConfig, ModelFiles};
use super::shards::is_safetensors;
use crate::{Error, Result};

impl ModelFiles {
    /// Refuses a path that a file of this model is at, through links too: its weights, config, tokenizer, modules.
    ///
    /// Of a folder, every file is the model's but GGUF files and `.safetensors` files that its weights do not come from.
    ///
    /// # Errors
    /// `InvalidArgument` naming the path and the file.
    pub fn refuse_output(&self, path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        match self.own_files().into_iter().find(|own| same_file(own, path)) {
            None => Ok(()),
            Some(own) if own == path => {
                bail!(
                    InvalidArgument,
                    "{}: it is a file of the model that is read: name another one to write",
                    path.display()
                )
            }
            Some(own) => bail!(
                InvalidArgument,
                "{}: it is the file {} of the model that is read: name another one to write",
                path.display(),
                own.display()
            ),
        }
    }

    fn own_files(&self) -> Vec<PathBuf> {
        let folder = match self.config() {
            ModelConfig::Gguf(_) => return self.weight_files().to_vec(),
            ModelConfig::Hf(config) => match config.path().parent() {
                Some(folder) if folder != Path::new("") => folder,
                _ => Path::new("."),
            },
        };
        let mut own = self.weight_files().to_vec();
        for path in entries(folder) {
            if path.is_dir() {
                // Layers after the network have folders of their own.
                let weights = |p: &PathBuf| !is_safetensors(p) || p.ends_with("model.safetensors");
                own.extend(entries(&path).filter(weights).filter(|p| !is_gguf(p)));
            } else if !is_safetensors(&path) && !is_gguf(&path) {
                own.push(path);
            }
        }
        own
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

pub(super) fn is_gguf(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("gguf"))
}
