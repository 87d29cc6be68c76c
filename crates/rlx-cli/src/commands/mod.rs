//! One command per file.

mod bench;
mod chat;
mod devices;
mod dump;
mod embed;
mod explain;
mod forward;
mod generate;
mod inspect;
mod pull;
mod quantize;
mod settings;

use clap::Subcommand;

use crate::error::Result;
use crate::log;
use crate::options::Global;

/// What `rlx` can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Turns texts into vectors
    Embed(embed::Embed),
    /// Continues a prompt
    Generate(generate::Generate),
    /// Talks with a model, line by line
    Chat(chat::Chat),
    /// Runs the raw network on token ids
    ///
    /// Keys and values of models that continue texts stay in f32, where `generate` and `chat` keep them in f16: with
    /// `--kv-dtype f16` they are rounded alike.
    Forward(forward::Forward),
    /// Shows what a GGUF or safetensors file holds
    Inspect(inspect::Inspect),
    /// Converts a model to GGUF in another type
    Quantize(quantize::Quantize),
    /// Downloads a model from the hub
    Pull(pull::Pull),
    /// Prints a model's graph or plan
    Dump(dump::Dump),
    /// Lists the devices
    Devices(devices::Devices),
    /// Shows what each step of a model takes
    Explain(explain::Explain),
    /// Measures a model
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Lists the settings
    Settings(settings::ShowSettings),
}

/// Runs a command.
pub fn run(command: &Command, global: &Global) -> Result<()> {
    log::start(global)?;
    for name in rlx::runtime::unknown_settings() {
        tracing::warn!("{name} is set, but no setting has that name: `rlx settings` lists them");
    }
    for unclear in rlx::models::hub::unclear_variables(|name| std::env::var_os(name)) {
        tracing::warn!("{unclear}");
    }
    match command {
        Command::Embed(c) => c.run(global),
        Command::Generate(c) => c.run(global),
        Command::Chat(c) => c.run(global),
        Command::Forward(c) => c.run(global),
        Command::Inspect(c) => c.run(global),
        Command::Quantize(c) => c.run(global),
        Command::Pull(c) => c.run(global),
        Command::Dump(c) => c.run(global),
        Command::Devices(c) => c.run(global),
        Command::Explain(c) => c.run(global),
        Command::Bench(c) => c.run(global),
        Command::Settings(c) => c.run(global),
    }
}
