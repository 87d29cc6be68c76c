//! The pipeline from graph to graph: a list of named stages, run in order.
//!
//! Each stage runs within a `tracing` span named `pass` with the stage's name, by which the caller times it.

use rlx_ir::{Graph, OpSet, verify};

use crate::passes::{self, Pass, PassContext};
use crate::precision::PrecisionPolicy;
use crate::rewrite::PassReport;
use crate::{Error, Result, Target};

/// The stages, in order.
///
/// Weights that the target has no kernels for are decoded first, so that all rules see what it takes. Composites are fused before the policy casts, so that biases are added before a result is rounded; products are stacked
/// after it, when their activations have their last type. What the target refuses is decomposed then, and cleaned; what
/// is left of elementwise ops is put into regions at the end.
pub const STAGES: &[Stage] = &[
    Stage { name: "fold", pass: &passes::fold::PASS, when: When::Always },
    Stage { name: "cse", pass: &passes::cse::PASS, when: When::Always },
    Stage { name: "dce", pass: &passes::dce::PASS, when: When::Always },
    Stage { name: "decode", pass: &passes::decode::PASS, when: When::Always },
    Stage { name: "fuse_linear", pass: &passes::fuse_linear::PASS, when: When::Fusing },
    Stage { name: "fuse_norm", pass: &passes::fuse_norm::PASS, when: When::Fusing },
    Stage { name: "precision", pass: &passes::precision::PASS, when: When::Always },
    Stage { name: "fuse_parallel", pass: &passes::fuse_parallel::PASS, when: When::Fusing },
    Stage { name: "legalise", pass: &passes::legalise::PASS, when: When::Always },
    Stage { name: "fold_legal", pass: &passes::fold::PASS, when: When::Always },
    Stage { name: "cse_legal", pass: &passes::cse::PASS, when: When::Always },
    Stage { name: "dce_legal", pass: &passes::dce::PASS, when: When::Always },
    Stage { name: "fuse_elementwise", pass: &passes::fuse_elementwise::PASS, when: When::Fusing },
];

/// One stage of the pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// The name; unique in the list.
    pub name: &'static str,
    /// The pass that runs.
    pub pass: &'static Pass,
    /// When it runs.
    pub when: When,
}

/// When a stage runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// In every compilation.
    Always,
    /// Where fusion is asked for.
    Fusing,
}

/// What a compilation is asked for.
#[derive(Clone, Debug)]
pub struct CompileOptions {
    /// What the program computes in.
    pub precision: PrecisionPolicy,
    /// Whether ops are fused.
    pub fuse: bool,
    /// The last stage to run, by name.
    pub stop_after: Option<String>,
    /// The ops that the graph may hold.
    pub ops: OpSet,
    /// Whether the graph is verified after every stage; in debug builds it always is.
    pub verify: bool,
}

impl Default for CompileOptions {
    /// Everything that makes a program faster without lowering its precision.
    fn default() -> Self {
        Self {
            precision: PrecisionPolicy::default(),
            fuse: true,
            stop_after: None,
            ops: OpSet::builtin(),
            verify: false,
        }
    }
}

/// Runs the stages on `graph` for `target`; also returns what each stage did.
///
/// # Errors
/// `InvalidArgument` where `stop_after` names no stage or an op is not in the set; `UnsupportedOnDevice` where the target
/// refuses an op that does not decompose; `Bug` where the graph, or what a stage made of it, breaks the verifier's
/// invariants. The message names the stage.
pub fn run_passes(
    graph: Graph,
    target: &dyn Target,
    options: &CompileOptions,
) -> Result<(Graph, Vec<PassReport>)> {
    if !graph.is_verified() {
        verify(&graph).map_err(|e| Error::from(e).context("the graph before all passes"))?;
    }
    check_ops(&graph, &options.ops)?;
    let last = last_stage(options.stop_after.as_deref())?;
    let cx = PassContext { target, precision: &options.precision };
    let mut graph = graph;
    let mut reports = Vec::new();
    for stage in &STAGES[..=last] {
        if stage.when == When::Fusing && !options.fuse {
            continue;
        }
        let _span = tracing::debug_span!("pass", name = stage.name).entered();
        let place = |e: Error| e.context(format!("pass {}", stage.name));
        let (next, report) = (stage.pass.run)(graph, &cx).map_err(place)?;
        if options.verify || cfg!(debug_assertions) {
            verify(&next).map_err(|e| place(e.into()))?;
        }
        graph = next;
        reports.push(report);
    }
    Ok((graph, reports))
}

fn last_stage(stop_after: Option<&str>) -> Result<usize> {
    let Some(name) = stop_after else { return Ok(STAGES.len() - 1) };
    match STAGES.iter().position(|s| s.name == name) {
        Some(i) => Ok(i),
        None => {
            let names: Vec<&str> = STAGES.iter().map(|s| s.name).collect();
            rlx_ir::bail!(InvalidArgument, "no stage is called {name}; there are {}", names.join(", "))
        }
    }
}

fn check_ops(graph: &Graph, ops: &OpSet) -> Result<()> {
    match graph.nodes().iter().find(|n| ops.get(n.op.name()).is_none()) {
        None => Ok(()),
        Some(node) => rlx_ir::bail!(
            InvalidArgument,
            "%{} = {}: this op is not in the set of ops that was given",
            node.results.first().map_or("", |&v| &graph.value(v).name),
            node.op.name()
        ),
    }
}
