//! `rlx bench encode`.

use clap::Args;
use rlx::ir::Tick;
use rlx::models::hub;
use serde::Serialize;

use super::{ms, per_second, print};
use crate::error::Result;
use crate::memory::peak_rss_bytes;
use crate::model::{self, Network, Sizes};
use crate::options::{Format, Global, ModelArgs};
use crate::workload;

/// Runs before measuring.
const WARM_UP: usize = 2;
/// How often binding is measured.
const BINDS: usize = 101;

/// Token ids to vectors.
#[derive(Args, Debug)]
pub struct Encode {
    #[command(flatten)]
    model: ModelArgs,
    /// Sequences that are run together
    #[arg(long, value_name = "B", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: u32,
    /// Tokens of each sequence
    #[arg(long, value_name = "S", default_value_t = 128, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    seq: u32,
    /// Runs that are measured
    #[arg(long, value_name = "N", default_value_t = 10, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..))]
    iters: u32,
}

#[derive(Serialize)]
struct Figures {
    median_ms: f64,
    min_ms: f64,
    max_ms: f64,
    tokens_per_s: f64,
    load_ms: f64,
    compile_ms: f64,
    bind_us: f64,
    peak_rss_bytes: u64,
}

impl Encode {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Json, Format::Text])?;
        let sizes = Sizes { batch: self.batch as usize, seq: self.seq as usize };
        let runtime = global.runtime()?;
        let load = Tick::now();
        let files = model::open(global, &self.model.model, hub::NETWORK)?;
        let span = tracing::debug_span!("load", model = %files.path().display()).entered();
        let network = Network::open(&files, global, self.model.types.types(), Some(&sizes))?;
        network.require_encoder()?;
        let session = network.compile(&runtime)?;
        drop(span);
        let load_ns = load.elapsed_ns();
        let mut work = workload::start(&network, &session, &sizes)?;
        for _ in 0..WARM_UP {
            work.context.run()?;
        }
        let mut times = Vec::with_capacity(self.iters as usize);
        for _ in 0..self.iters {
            let tick = Tick::now();
            work.context.run()?;
            times.push(tick.elapsed_ns());
        }
        let mut binds = Vec::with_capacity(BINDS);
        for i in 0..BINDS {
            // Binding what is bound is free: the sizes change each time.
            let small = [("N", 1), ("R", 1)];
            let sizes = if i % 2 == 0 { &small[..] } else { &work.sizes };
            let tick = Tick::now();
            work.context.bind(sizes)?;
            binds.push(tick.elapsed_ns());
        }
        let tokens = sizes.batch * sizes.seq;
        let (min, max) = (times.iter().min().copied(), times.iter().max().copied());
        let median = workload::median(times);
        print(
            format,
            &Figures {
                median_ms: ms(median),
                min_ms: ms(min.unwrap_or(0)),
                max_ms: ms(max.unwrap_or(0)),
                tokens_per_s: per_second(tokens, median),
                load_ms: ms(load_ns),
                compile_ms: ms(session.stats().compile_ns()),
                bind_us: workload::median(binds) as f64 / 1e3,
                peak_rss_bytes: peak_rss_bytes(),
            },
        )
    }
}
