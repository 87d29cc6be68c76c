//! `rlx forward`: the raw network on token ids.

use std::path::PathBuf;

use clap::Args;
use rlx::gguf::{OutputFile, same_file};
use rlx::ir::bail;
use rlx::models::arch::Family;
use rlx::models::forward::{ForwardInput, forward};
use rlx::models::hub;

use crate::error::{Error, Result};
use crate::model;
use crate::options::{Format, Global, ModelArgs};

/// Runs the raw network on token ids.
#[derive(Args, Debug)]
pub struct Forward {
    #[command(flatten)]
    model: ModelArgs,
    /// A .safetensors with `input_ids` [B, S] and, where rows are padded, `attention_mask` [B, S]
    #[arg(long, value_name = "IN.safetensors")]
    inputs: PathBuf,
    /// Where `last_hidden_state` [B, S, H] or `logits` [B, S, V] is written
    #[arg(long, value_name = "OUT.safetensors")]
    outputs: PathBuf,
}

impl Forward {
    pub fn run(&self, global: &Global) -> Result<()> {
        // Results go to a file: there is one form.
        global.format_of(&[Format::Text])?;
        global.refuse_output(&self.outputs)?;
        let input = ForwardInput::open(&self.inputs)?;
        let runtime = global.runtime()?;
        let files = model::open(global, &self.model.model, hub::NETWORK)?;
        files.refuse_output(&self.outputs)?;
        if same_file(&self.inputs, &self.outputs) {
            bail!(
                InvalidArgument,
                "{}: it is the file of the inputs: name another one to write",
                self.outputs.display()
            );
        }
        // Before the work, which may be long: a place that takes no file is an error now.
        let file = OutputFile::create(&self.outputs)?;
        let types = self.model.types.types();
        if files.supported()?.family == Family::Encoder {
            types.warn_without_cache();
        }
        let options = model::load_options(global, types);
        let output = forward(&runtime, &files, &options, &input)?;
        output.write(file)?;
        if !input.unread().is_empty() {
            tracing::warn!("{}: without effect: {}", self.inputs.display(), input.unread().join(", "));
        }
        let [rows, columns, width] = output.shape;
        tracing::info!("{} [{rows}, {columns}, {width}] in {}", output.name, self.outputs.display());
        Ok(())
    }
}
