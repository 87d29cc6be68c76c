//! The suite: every sample of every case through sessions on backends, and through the interpreter after each stage of
//! the compiler, compared with the interpreter on the graph as it was built.
//!
//! Data that an op refuses (starts that descend, an index out of range) must be refused wherever the op is run as such. A
//! composite's decomposition has no way to refuse: there, wrong data may give any result.

mod compare;
pub(crate) mod execute;
mod random;
mod report;
mod rows;

use std::sync::Arc;

use rlx_compile::{CompileOptions, CoreTarget, STAGES, Target, run_passes};
use rlx_ir::interp::run as interpret;
use rlx_ir::op::Tier;
use rlx_ir::{ErrorKind, Graph, OpSet, text};
use rlx_runtime::Backend;

use crate::cases::{Case, Sample, Samples, TABLE};
use crate::equivalence::relative_of;
use crate::{Error, Result};

pub use compare::Reference;
use execute::{Outcome, compile, context, execute};
pub use random::{NetworkCompute, check_random_graphs, check_random_networks};
pub use report::{Exclusion, Failure, Report};
pub use rows::check_row_independence;

/// What is run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// The data's seeds.
    pub seeds: &'a [u64],
    /// Samples that need not pass. One that passes all the same is a failure.
    pub exclusions: &'a [Exclusion],
    /// Runs only samples whose `case dtype label` contains this: for one failure again.
    pub only: &'a str,
    /// Runs only the cases of these names: those of the ops that a backend has.
    pub cases: Option<&'a [&'a str]>,
    /// Whether the device takes numbers below the least normal one for zero.
    pub flushes: bool,
    /// Why a sample's graph must be refused with `UnsupportedOnDevice` when it is compiled, if it must.
    pub refuses: Option<&'a Refuses>,
}

/// Says why a backend cannot run a sample's graph; `None` where it can.
pub type Refuses = dyn Fn(&Sample) -> Option<&'static str>;

impl std::fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("seeds", &self.seeds)
            .field("exclusions", &self.exclusions)
            .field("only", &self.only)
            .field("cases", &self.cases)
            .field("flushes", &self.flushes)
            .finish_non_exhaustive()
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { seeds: &[1], exclusions: &[], only: "", cases: None, flushes: false, refuses: None }
    }
}

/// Runs the suite on `backends`, which are variants of one device (thread counts, instruction sets): stages are stopped
/// after as the first of them has them.
///
/// # Errors
/// `InvalidArgument` where a case's text is wrong. What backends do wrong is in the report.
pub fn run(backends: &[Arc<dyn Backend>], options: &Options<'_>) -> Result<Report> {
    let mut report = Report::default();
    let mut wrong = Vec::new();
    for case in TABLE.iter().filter(|c| options.cases.is_none_or(|names| names.contains(&c.name()))) {
        for &seed in options.seeds {
            if let Err(e) = run_case(*case, seed, backends, options, &mut report) {
                wrong.push(format!("{}: {e}", case.name()));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(report);
    }
    rlx_ir::bail!(InvalidArgument, "{}", wrong.join("\n"))
}

fn run_case(
    case: &dyn Case,
    seed: u64,
    backends: &[Arc<dyn Backend>],
    options: &Options<'_>,
    report: &mut Report,
) -> Result<()> {
    let mut samples = Samples::new(case.name(), seed);
    case.generate(&mut samples)?;
    let wanted = |s: &Sample| format!("{} {} {}", s.case, s.dtype, s.label).contains(options.only);
    let samples: Vec<Sample> = samples.into_list().into_iter().filter(wanted).collect();
    // Samples of one graph share an executable, so that it runs with changing sizes.
    for group in samples.chunk_by(|a, b| a.graph == b.graph) {
        let mut failed = vec![Vec::new(); group.len()];
        if let Some(reason) = options.refuses.and_then(|refuses| refuses(&group[0])) {
            let wrong = unrefused(&group[0], backends, reason);
            report.samples += group.len();
            report.excluded += group.len();
            let what = wrong.into_iter().map(|(place, what)| failure_of(&group[0], seed, place, what));
            report.failures.extend(what);
            continue;
        }
        let mut fail = |index: usize, place, what| failed[index].push((place, what));
        report.flops += check_group(group, backends, options, &mut fail)?;
        for (sample, failed) in group.iter().zip(failed) {
            report.samples += 1;
            let failure = |(place, what)| failure_of(sample, seed, place, what);
            match options.exclusions.iter().find(|e| e.covers(sample)) {
                None => report.failures.extend(failed.into_iter().map(failure)),
                Some(_) if !failed.is_empty() => report.excluded += 1,
                Some(exclusion) => {
                    let what = format!("it is excluded ({}), but it passes", exclusion.reason);
                    report.failures.push(failure(("the list of exclusions".to_owned(), what)));
                }
            }
        }
    }
    Ok(())
}

fn failure_of(sample: &Sample, seed: u64, place: String, what: String) -> Failure {
    Failure {
        case: sample.case,
        dtype: sample.dtype,
        label: sample.label.clone(),
        seed,
        place,
        what,
        sizes: sample.sizes.clone(),
        graph: sample.graph.to_string(),
    }
}

/// Where a graph that must be refused is not.
fn unrefused(sample: &Sample, backends: &[Arc<dyn Backend>], reason: &str) -> Vec<(String, String)> {
    let mut wrong = Vec::new();
    for backend in backends {
        let said = match compile(backend, &sample.graph, CompileOptions::default()) {
            Ok(_) => "it compiles".to_owned(),
            Err(e) if e.kind() == ErrorKind::UnsupportedOnDevice => continue,
            Err(e) => format!("{e:?}"),
        };
        wrong.push((place_of(backend), format!("it must be refused ({reason}), but: {said}")));
    }
    wrong
}

/// What the interpreter says about a sample: references of outputs and states, or the kind of its refusal.
type Expected = std::result::Result<(Vec<Reference>, Vec<(String, Reference)>), ErrorKind>;

/// Takes the index of a sample, the place and what is wrong.
type Fail<'a> = dyn FnMut(usize, String, String) + 'a;

/// Gives the floating point operations that backends did.
fn check_group(
    group: &[Sample],
    backends: &[Arc<dyn Backend>],
    options: &Options<'_>,
    fail: &mut Fail<'_>,
) -> Result<u64> {
    let graph = &group[0].graph;
    let printed = graph.to_string();
    let again = text::parse(&printed, &OpSet::builtin())?.to_string();
    if again != printed {
        fail(0, "the text form".to_owned(), format!("it parses to another graph:\n{again}"));
    }
    let mut expected = Vec::with_capacity(group.len());
    for (index, sample) in group.iter().enumerate() {
        let want = reference(sample)?;
        match (&want, sample.refused) {
            (Err(_), true) | (Ok(_), false) => {}
            (Ok(_), true) => fail(index, "interpreter".to_owned(), "it takes data that is wrong".to_owned()),
            (Err(kind), false) => {
                fail(index, "interpreter".to_owned(), format!("it refuses the data: {kind:?}"));
            }
        }
        expected.push(want);
    }
    let target: &dyn Target = match backends.first() {
        Some(backend) => &**backend,
        None => &CoreTarget,
    };
    for (place, staged) in stages(graph, target, fail) {
        let keeps = keeps_composites(graph, staged.nodes().iter().map(|n| n.op.name()));
        for (index, sample) in group.iter().enumerate() {
            let got = evaluate(&staged, sample);
            if sample.refused && got.is_ok() && !keeps {
                continue;
            }
            if let Some(what) = check(&expected[index], got, 0.0)? {
                fail(index, place.clone(), format!("{what}\n{staged}"));
            }
        }
    }
    let slack = if options.flushes { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
    let mut flops = 0;
    for backend in backends {
        flops += check_backend(group, &expected, (backend, slack), fail)?;
    }
    Ok(flops)
}

/// Whether every composite of `graph` is among `names`, the ops that are left of it.
fn keeps_composites<'a>(graph: &Graph, names: impl Iterator<Item = &'a str>) -> bool {
    let left: Vec<&str> = names.collect();
    let mut composites = graph.nodes().iter().filter(|n| n.op.tier() == Tier::Composite);
    composites.all(|n| left.contains(&n.op.name()))
}

/// The graphs after each stage that changed something, and the decomposition into core ops.
fn stages(graph: &Graph, target: &dyn Target, fail: &mut Fail<'_>) -> Vec<(String, Graph)> {
    let mut seen = vec![graph.to_string()];
    let mut list = Vec::new();
    let mut stop = |place: String, target: &dyn Target, options: &CompileOptions| match run_passes(
        graph.clone(),
        target,
        options,
    ) {
        Err(e) => fail(0, place, e.message().to_owned()),
        Ok((staged, _)) => {
            let printed = staged.to_string();
            if !seen.contains(&printed) {
                seen.push(printed);
                list.push((place, staged));
            }
        }
    };
    for stage in STAGES {
        let options = CompileOptions { stop_after: Some(stage.name.to_owned()), ..CompileOptions::default() };
        stop(format!("interpreter after {}", stage.name), target, &options);
    }
    stop("interpreter on core ops".to_owned(), &CoreTarget, &CompileOptions::default());
    list
}

fn evaluate(graph: &Graph, sample: &Sample) -> Result<Outcome> {
    let mut data = sample.data()?;
    let outputs = interpret(graph, &mut data)?;
    let states = sample.states.keys().filter_map(|n| data.states.get_key_value(n));
    Ok(Outcome {
        outputs: outputs.into_iter().map(|e| e.tensor).collect(),
        states: states.map(|(n, t)| (n.clone(), t.clone())).collect(),
    })
}

fn reference(sample: &Sample) -> Result<Expected> {
    let mut data = sample.data()?;
    let outputs = match interpret(&sample.graph, &mut data) {
        Ok(outputs) => outputs,
        Err(e) => return Ok(Err(e.kind())),
    };
    let of = |evaluated| match sample.rounding {
        Some(rounding) => Reference::of_graph(evaluated, relative_of(rounding)),
        None => Reference::new(evaluated),
    };
    let outputs = outputs.into_iter().map(of).collect::<Result<_>>()?;
    let states =
        data.states.into_iter().map(|(n, t)| Ok((n, Reference::equal(t)?))).collect::<Result<_>>()?;
    Ok(Ok((outputs, states)))
}

/// What is wrong with an outcome.
fn check(expected: &Expected, got: Result<Outcome>, slack: f64) -> Result<Option<String>> {
    let (outputs, states, got) = match (expected, got) {
        (Ok((outputs, states)), Ok(got)) => (outputs, states, got),
        (Err(want), Err(got)) if *want == got.kind() => return Ok(None),
        (Err(want), Err(got)) => return Ok(Some(format!("wanted a refusal of kind {want:?}, got {got:?}"))),
        (Err(want), Ok(_)) => return Ok(Some(format!("wanted a refusal of kind {want:?}, got a result"))),
        (Ok(_), Err(got)) => return Ok(Some(format!("{got:?}"))),
    };
    if outputs.len() != got.outputs.len() {
        return Ok(Some(format!("got {} outputs, want {}", got.outputs.len(), outputs.len())));
    }
    for (index, (want, got)) in outputs.iter().zip(&got.outputs).enumerate() {
        if let Some(what) = want.check_within(got, slack)? {
            return Ok(Some(format!("output {index}, {what}")));
        }
    }
    for (name, want) in states {
        let Some((_, got)) = got.states.iter().find(|(n, _)| n == name) else { continue };
        if let Some(what) = want.check(got)? {
            return Ok(Some(format!("state {name:?}, {what}")));
        }
    }
    Ok(None)
}

/// Every sample in one context that runs them all, and in one of its own: results have equal bits. Gives the floating point
/// operations of both.
fn check_backend(
    group: &[Sample],
    expected: &[Expected],
    (backend, slack): (&Arc<dyn Backend>, f64),
    fail: &mut Fail<'_>,
) -> Result<u64> {
    let place = place_of(backend);
    let session = match compile(backend, &group[0].graph, CompileOptions::default()) {
        Ok(session) => session,
        Err(e) => {
            for (index, want) in expected.iter().enumerate() {
                if let Some(what) = check(want, Err(e.clone()), slack)? {
                    fail(index, place.clone(), format!("it does not compile: {what}"));
                }
            }
            return Ok(0);
        }
    };
    let plan = session.plan().clone();
    let keeps = keeps_composites(&group[0].graph, plan.steps.iter().map(|s| s.action.name()));
    let (mut shared, mut flops) = (None, 0);
    for (index, sample) in group.iter().enumerate() {
        let mut run = || -> Result<(Outcome, Option<Outcome>)> {
            let own = execute(&session, &mut context(&session, sample)?, sample)?;
            // States that change size need a context of their own.
            if group.len() == 1 || sample.states.iter().any(|(n, t)| group[0].states[n].ty() != t.ty()) {
                return Ok((own, None));
            }
            let shared = match &mut shared {
                Some(context) => context,
                None => shared.insert(context(&session, sample)?),
            };
            let replayed = execute(&session, shared, sample)?;
            Ok((own, Some(replayed)))
        };
        let outcome = run();
        let runs = outcome.as_ref().map_or(0, |(_, replayed)| 1 + u64::from(replayed.is_some()));
        flops += runs * sample.flops()?;
        if let Ok((own, Some(replayed))) = &outcome
            && own != replayed
        {
            let what = "a context that ran other sizes before gives other bits than a fresh one".to_owned();
            fail(index, format!("{place}, replayed"), what);
        }
        if sample.refused && outcome.is_ok() && !keeps {
            continue;
        }
        if let Some(what) = check(&expected[index], outcome.map(|o| o.0), slack)? {
            fail(index, place.clone(), format!("{what}\n{plan}"));
        }
    }
    Ok(flops)
}

/// The backend's name with what tells its variants apart.
fn place_of(backend: &Arc<dyn Backend>) -> String {
    let device = backend.device();
    format!("{} ({}, {} threads)", backend.name(), device.features.join(" "), device.parallelism)
}

/// A bug of the suite's own: a sample that is not there.
fn missing(what: &str) -> Error {
    Error::new(ErrorKind::Bug, format!("{what} is missing"))
}
