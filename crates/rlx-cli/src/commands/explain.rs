//! `rlx explain`: what each step of a model is, and what it takes.

use clap::Args;
use rlx::compile::PassReport;
use rlx::compile::plan::{Claim, Plan};
use rlx::models::hub;
use rlx::runtime::{Session, Timing};
use serde::Serialize;

use crate::error::Result;
use crate::model::{self, Network, Sizes};
use crate::options::{Format, Global, ModelArgs};
use crate::output::{Align, Stdout, Table, bytes, count};
use crate::workload;

/// Runs before measuring.
const WARM_UP: usize = 2;
/// Runs that are measured; a step's time is its median.
const RUNS: usize = 9;

/// Shows what each step of a model takes.
#[derive(Args, Debug)]
pub struct Explain {
    #[command(flatten)]
    model: ModelArgs,
    /// Sequences that are run together
    #[arg(long, value_name = "B", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=4096))]
    batch: u32,
    /// Tokens of each sequence
    #[arg(long, value_name = "S", default_value_t = 16, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    seq: u32,
}

#[derive(Serialize)]
struct Report {
    graph: String,
    device: &'static str,
    strategy: &'static str,
    batch: usize,
    seq: usize,
    total_ns: u64,
    steps: Vec<Step>,
    passes: Vec<Pass>,
    regions: Vec<Region>,
    region_misses: Vec<RegionMiss>,
}

#[derive(Serialize)]
struct Step {
    index: usize,
    op: String,
    kernel: String,
    scope: String,
    time_ns: u64,
    /// Of the time of all steps.
    share: f64,
    flops: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct Pass {
    pass: &'static str,
    nodes_before: usize,
    nodes_after: usize,
    fired: Vec<Rule>,
    near_misses: Vec<Rule>,
}

#[derive(Serialize)]
struct Rule {
    rule: &'static str,
    value: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Region {
    region: &'static str,
    first_step: usize,
    steps: usize,
    scope: String,
    claimed: bool,
    /// Why it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct RegionMiss {
    region: &'static str,
    step: usize,
    reason: String,
}

impl Explain {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let runtime = global.runtime()?;
        let sizes = Sizes { batch: self.batch as usize, seq: self.seq as usize };
        let files = model::open(global, &self.model.model, hub::NETWORK)?;
        let load = tracing::debug_span!("load", model = %files.path().display()).entered();
        let network = Network::open(&files, global, self.model.types.types(), Some(&sizes))?;
        let session = network.compile(&runtime)?;
        drop(load);
        let report = measure(&network, &session, &sizes)?;
        let mut out = Stdout::lock();
        match format {
            Format::Json => out.json_line(&report)?,
            _ => print(&mut out, &report)?,
        }
        out.flush()
    }
}

fn measure(network: &Network, session: &Session, sizes: &Sizes) -> Result<Report> {
    let mut work = workload::start(network, session, sizes)?;
    work.context.set_timing(Timing::PerStep);
    for _ in 0..WARM_UP {
        work.context.run()?;
    }
    let plan = session.plan().clone();
    let mut times = vec![Vec::with_capacity(RUNS); plan.steps.len()];
    for _ in 0..RUNS {
        work.context.run()?;
        for (list, ns) in times.iter_mut().zip(work.context.timings()) {
            list.push(*ns);
        }
    }
    let times: Vec<u64> = times.into_iter().map(workload::median).collect();
    let total_ns: u64 = times.iter().sum();
    let mut steps = Vec::with_capacity(plan.steps.len());
    for (index, ((step, kernel), &time_ns)) in
        plan.steps.iter().zip(session.kernels()).zip(&times).enumerate()
    {
        let cost = step.cost();
        let size = |dim| work.bindings.eval(dim).map(|n| u64::try_from(n).unwrap_or(0));
        steps.push(Step {
            index,
            op: step.action.name().to_owned(),
            kernel,
            scope: step.scope.to_string(),
            time_ns,
            share: time_ns as f64 / total_ns.max(1) as f64,
            flops: size(&cost.flops)?,
            bytes: size(&cost.bytes_read)?.saturating_add(size(&cost.bytes_written)?),
        });
    }
    Ok(Report {
        graph: plan.name.clone(),
        device: session.backend().name(),
        strategy: session.strategy().name(),
        batch: sizes.batch,
        seq: sizes.seq,
        total_ns,
        steps,
        passes: session.reports().iter().map(pass).collect(),
        regions: regions(&plan),
        region_misses: plan
            .region_misses
            .iter()
            .map(|m| RegionMiss { region: m.kind, step: m.step, reason: m.reason.clone() })
            .collect(),
    })
}

fn regions(plan: &Plan) -> Vec<Region> {
    let reason = |claim: &Claim| match claim {
        Claim::Claimed => None,
        Claim::Within(_) => Some("it lies within one that is claimed".to_owned()),
        Claim::Refused(reason) => Some(reason.clone()),
    };
    let regions = plan.regions.iter().map(|region| Region {
        region: region.kind.name(),
        first_step: region.steps.start,
        steps: region.steps.len(),
        scope: region.scope(&plan.steps).to_owned(),
        claimed: region.is_claimed(),
        reason: reason(&region.claim),
    });
    regions.collect()
}

fn pass(report: &PassReport) -> Pass {
    Pass {
        pass: report.pass,
        nodes_before: report.nodes_before,
        nodes_after: report.nodes_after,
        fired: report
            .fired
            .iter()
            .map(|f| Rule { rule: f.rule, value: f.value.to_string(), reason: None })
            .collect(),
        near_misses: report
            .near_misses
            .iter()
            .map(|m| Rule { rule: m.rule, value: m.value.to_string(), reason: Some(m.reason.clone()) })
            .collect(),
    }
}

fn print(out: &mut Stdout, report: &Report) -> Result<()> {
    out.line(format_args!(
        "{} on {}, strategy {}, {} x {} tokens: {:.3} ms in {} steps",
        report.graph,
        report.device,
        report.strategy,
        report.batch,
        report.seq,
        report.total_ns as f64 / 1e6,
        report.steps.len()
    ))?;
    let left = ["op", "kernel", "in"].map(|name| (name, Align::Left));
    let right = ["us", "share", "flops", "bytes"].map(|name| (name, Align::Right));
    let columns = std::iter::once(("step", Align::Right)).chain(left).chain(right);
    let mut table = Table::new(columns);
    for step in &report.steps {
        table.row([
            step.index.to_string(),
            step.op.clone(),
            step.kernel.clone(),
            step.scope.clone(),
            format!("{:.1}", step.time_ns as f64 / 1e3),
            format!("{:.1}%", step.share * 100.0),
            count(step.flops),
            bytes(step.bytes),
        ]);
    }
    out.line(table)?;
    out.line("\npasses")?;
    for pass in &report.passes {
        out.line(format_args!("  {}: {} nodes -> {}", pass.pass, pass.nodes_before, pass.nodes_after))?;
        for (rule, times) in grouped(&pass.fired, |r| r.rule.to_owned()) {
            out.line(format_args!("    {rule} fired {times} times"))?;
        }
        let reason = |r: &Rule| format!("{}: {}", r.rule, r.reason.as_deref().unwrap_or_default());
        for (miss, times) in grouped(&pass.near_misses, reason) {
            out.line(format_args!("    did not fire {times} times, {miss}"))?;
        }
    }
    out.line("\nregions")?;
    let claim = |r: &Region| match &r.reason {
        None => format!("{} claimed", r.region),
        Some(reason) => format!("{} not claimed: {reason}", r.region),
    };
    for (region, times) in grouped(&report.regions, claim) {
        out.line(format_args!("  {times} times {region}"))?;
    }
    let miss = |m: &RegionMiss| format!("{}: {}", m.region, m.reason);
    for (miss, times) in grouped(&report.region_misses, miss) {
        out.line(format_args!("  nearly {times} times {miss}"))?;
    }
    Ok(())
}

/// What is there how often, in the order in which it first comes.
fn grouped<T>(items: &[T], key: impl Fn(&T) -> String) -> Vec<(String, usize)> {
    let mut out: Vec<(String, usize)> = Vec::new();
    for item in items {
        let key = key(item);
        match out.iter_mut().find(|(known, _)| *known == key) {
            Some((_, times)) => *times += 1,
            None => out.push((key, 1)),
        }
    }
    out
}
