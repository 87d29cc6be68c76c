//! The commands.

use std::sync::Arc;

use rlx_compile::passes::{PassContext, by_name};
use rlx_compile::rewrite::PassReport;
use rlx_compile::{
    CompileOptions, Compute, CoreTarget, Keep, OpFacts, PrecisionPolicy, RegionFacts, Support, Target,
    build_plan, run_passes,
};
use rlx_ir::text::parse;
use rlx_ir::{DType, Graph, OpSet, Tensor, verify};
use rlx_runtime::Backend;

use super::case::{Case, Keyword};
use super::data::{check_results, run_data};
use super::on_backend;
use crate::equivalence::{interpret, numerics_of, relative_of, same_meaning};
use crate::{Error, Result};

/// Runs the case's command; returns what it prints.
pub(super) fn run(case: &Case, backend: Option<&Arc<dyn Backend>>) -> Result<String> {
    match case.command.first().map(String::as_str) {
        Some("parse") => print_twice(&graph(case)?),
        Some("verify") => graph(case).map(|_| "ok\n".to_owned()),
        Some("pass") => pass(case),
        Some("pipeline") => pipeline(case, backend),
        Some("plan") => plan(case, backend),
        Some("run") => interpreted(case, backend),
        _ => rlx_ir::bail!(InvalidArgument, "unknown command {:?}", case.command.join(" ")),
    }
}

fn graph(case: &Case) -> Result<Graph> {
    Ok(parse(&case.text, &OpSet::builtin())?)
}

/// The text form, once it is sure that it parses to itself.
fn print_twice(graph: &Graph) -> Result<String> {
    let text = graph.to_string();
    let again = parse(&text, &OpSet::builtin())
        .map_err(|e| Error::from(e).context(format!("the output does not parse\n{text}")))?
        .to_string();
    if again != text {
        rlx_ir::bail!(InvalidArgument, "the output parses to another graph:\n{text}\nthen\n{again}");
    }
    Ok(text)
}

/// A device as the command describes it: `core` runs core ops alone, `without=OPS` all but those (`blocks` is every op on a
/// block type, the name of a dtype every op on that), others all; `claim=KINDS` are the regions that it runs as a whole; with `in_place` every op may write over
/// its first operand.
struct Described<'a> {
    core: bool,
    without: Vec<&'a str>,
    claims: Vec<&'a str>,
    in_place: bool,
}

impl<'a> Described<'a> {
    fn of(case: &'a Case) -> Self {
        let list = |option: &str| case.option(option).map_or_else(Vec::new, |v| v.split(',').collect());
        Self {
            core: case.has("core"),
            without: list("without"),
            claims: list("claim"),
            in_place: case.has("in_place"),
        }
    }
}

impl Target for Described<'_> {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        if self.without.iter().any(|n| *n == facts.op.name()) {
            return Support::No(format!("there is no kernel for {}", facts.op.name()));
        }
        let refused = |dtype: DType| {
            (dtype.is_block() && self.without.contains(&"blocks"))
                || self.without.contains(&dtype.to_string().as_str())
        };
        if let Some(operand) = facts.operands.iter().find(|o| refused(o.ty.dtype)) {
            return Support::No(format!("no kernel takes {}", operand.ty.dtype));
        }
        if self.core && self.without.is_empty() { CoreTarget.supports(facts) } else { Support::Yes }
    }

    fn in_place(&self, _: &OpFacts<'_>) -> Option<usize> {
        self.in_place.then_some(0)
    }

    fn claims(&self, facts: &RegionFacts<'_>) -> Support {
        let kind = facts.region.kind.name();
        match self.claims.contains(&kind) {
            true => Support::Yes,
            false => Support::No(format!("there is no kernel for {kind}")),
        }
    }
}

/// The backend where the command says `device`, else what it describes.
fn target<'a>(
    case: &Case,
    described: &'a Described<'_>,
    backend: Option<&'a Arc<dyn Backend>>,
) -> Result<&'a dyn Target> {
    match backend {
        Some(backend) if case.has("device") => Ok(&**backend),
        None if case.has("device") => rlx_ir::bail!(InvalidArgument, "there is no device here"),
        _ => Ok(described),
    }
}

/// What must hold after every pass; returns the printed graph and reports.
fn checked(case: &Case, before: &Graph, after: &Graph, reports: &[PassReport]) -> Result<String> {
    verify(after)?;
    let mut text = print_twice(after)?;
    let data = run_data(case, before)?;
    same_meaning(before, after, &data, numerics_of(reports))
        .map_err(|e| e.context(format!("the meaning changed\n{text}")))?;
    reports.iter().for_each(|r| text.push_str(&r.to_string()));
    Ok(text)
}

/// `compute=f16` and `keep=scope:lm_head`, `keep=op:matmul`, `keep=weight:output.weight`.
fn policy(case: &Case) -> Result<PrecisionPolicy> {
    let compute = match case.option("compute") {
        None | Some("f32") => Compute::F32,
        Some("f16") => Compute::F16,
        Some("bf16") => Compute::BF16,
        Some("int8") => Compute::Int8,
        Some(other) => rlx_ir::bail!(InvalidArgument, "compute={other}: expected f32, f16, bf16 or int8"),
    };
    let policy = PrecisionPolicy::new(compute);
    let Some(keep) = case.option("keep") else { return Ok(policy) };
    Ok(policy.keeping(match keep.split_once(':') {
        Some(("scope", s)) => Keep::Scope(s.to_owned()),
        Some(("op", s)) => Keep::Op(s.to_owned()),
        Some(("weight", s)) => Keep::Weight(s.to_owned()),
        _ => rlx_ir::bail!(InvalidArgument, "keep={keep}: expected scope:, op: or weight: and a name"),
    }))
}

fn options(case: &Case) -> Result<CompileOptions> {
    let mut options = CompileOptions { verify: true, ..CompileOptions::default() };
    options.precision = policy(case)?;
    options.stop_after = case.option("stop_after").map(str::to_owned);
    options.fuse = match case.option("fuse") {
        None | Some("on") => true,
        Some("off") => false,
        Some(other) => rlx_ir::bail!(InvalidArgument, "fuse={other}: expected on or off"),
    };
    Ok(options)
}

fn pass(case: &Case) -> Result<String> {
    case.check_options(&["without", "compute", "keep"])?;
    let name = case.command.get(1).map_or("", String::as_str);
    let Some(pass) = by_name(name) else { rlx_ir::bail!(InvalidArgument, "there is no pass {name:?}") };
    let target = Described::of(case);
    let precision = policy(case)?;
    let cx = PassContext { target: &target, precision: &precision };
    let before = graph(case)?;
    let (after, report) = (pass.run)(before.clone(), &cx)?;
    let text = checked(case, &before, &after, &[report])?;
    let (again, second) = (pass.run)(after.clone(), &cx)?;
    if again != after || !second.fired.is_empty() {
        rlx_ir::bail!(InvalidArgument, "a second run changes the graph\n{text}\nto\n{again}{second}");
    }
    Ok(text)
}

fn pipeline(case: &Case, backend: Option<&Arc<dyn Backend>>) -> Result<String> {
    case.check_options(&["without", "fuse", "stop_after", "compute", "keep"])?;
    let (described, options) = (Described::of(case), options(case)?);
    let target = target(case, &described, backend)?;
    let before = graph(case)?;
    let (after, reports) = run_passes(before.clone(), target, &options)?;
    checked(case, &before, &after, &reports)
}

/// The plan of the graph as it is, or, with `passes`, of what the pipeline makes of it; with `device`, on the backend.
fn plan(case: &Case, backend: Option<&Arc<dyn Backend>>) -> Result<String> {
    case.check_options(&["without", "claim", "fuse", "compute", "keep"])?;
    let (described, mut graph) = (Described::of(case), graph(case)?);
    let target = target(case, &described, backend)?;
    if case.has("passes") {
        graph = run_passes(graph, target, &options(case)?)?.0;
    }
    let plan = build_plan(&graph, target)?;
    plan.verify_regions()?;
    Ok(plan.to_string())
}

fn interpreted(case: &Case, backend: Option<&Arc<dyn Backend>>) -> Result<String> {
    let graph = graph(case)?;
    let mut data = run_data(case, &graph)?;
    let ran = backend.map(|b| on_backend::run(b, &graph, &data)).transpose()?;
    let outputs: Vec<Tensor> = interpret(&graph, &mut data)?.into_iter().map(|e| e.tensor).collect();
    check_results(case, &outputs, &data)?;
    if let Some(ran) = ran {
        let rounding = if case.has("half") { DType::F16 } else { DType::F32 };
        on_backend::check(&outputs, &data, &ran, relative_of(rounding))?;
    }
    if case.of(Keyword::Output).chain(case.of(Keyword::StateAfter)).next().is_none()
        && case.directives.is_empty()
    {
        rlx_ir::bail!(InvalidArgument, "the case expects nothing");
    }
    Ok(outputs.iter().enumerate().map(|(i, t)| format!("{i}: {t:?}\n")).collect())
}
