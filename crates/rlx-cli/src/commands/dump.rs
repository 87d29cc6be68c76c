//! `rlx dump`: a model's graph before and after the passes, and its plan.

use clap::{Args, ValueEnum};
use rlx::compile::{build_plan, run_passes};
use rlx::models::hub;

use crate::error::Result;
use crate::model::{self, Network};
use crate::options::{Format, Global, ModelArgs};
use crate::output::Stdout;

/// Prints a model's graph or plan.
#[derive(Args, Debug)]
pub struct Dump {
    #[command(flatten)]
    model: ModelArgs,
    /// After which stage
    #[arg(long, value_enum)]
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// The graph as the model says it.
    Graph,
    /// The graph after all passes, as the device gets it.
    Fused,
    /// Steps, buffers and the layout of memory.
    Plan,
}

impl Dump {
    pub fn run(&self, global: &Global) -> Result<()> {
        global.format_of(&[Format::Text])?;
        let runtime = global.runtime()?;
        let files = model::open(global, &self.model.model, hub::NETWORK)?;
        let network = Network::open(&files, global, self.model.types.types(), None)?;
        let mut out = Stdout::lock();
        if self.stage == Stage::Graph {
            out.text(&network.graph().to_string())?;
            return out.flush();
        }
        let backend = runtime.backend(runtime.settings().text("RLX_DEVICE"))?;
        let (fused, _) = run_passes(network.graph().clone(), &**backend, network.compile_options())?;
        match self.stage {
            Stage::Plan => out.text(&build_plan(&fused, &**backend)?.to_string())?,
            _ => out.text(&fused.to_string())?,
        }
        out.flush()
    }
}
