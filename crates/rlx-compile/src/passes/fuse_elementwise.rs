//! `fuse_elementwise`: elementwise ops of one shape that read each other become one region, which runs as one kernel and
//! keeps what is in between in registers.
//!
//! It runs after everything that would take such ops into a kernel of its own.

use std::collections::BTreeSet;

use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::fused::fused_region::{FusedRegion, is_elementwise};
use rlx_ir::{Builder, Def, Graph, NodeId, Shape, Value};

use super::{Pass, PassContext};
use crate::rewrite::{Fired, Matcher, NearMiss, Numerics, Operand, Outcome, PassReport, Patch, Rule, Sweep};
use crate::{Result, Role};

const NAME: &str = "fuse_elementwise";

/// A region has at most this many operands and results: kernels bind each to a buffer, and devices have about 30.
const MAX_BUFFERS: usize = 16;

/// A region has at most this many nodes: what is in between must fit into registers.
const MAX_NODES: usize = 64;

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

/// The one rule; it grows regions over the whole graph, so its work is in [`run`].
const RULES: &[Rule] = &[Rule {
    name: "elementwise_region",
    numerics: Numerics::Exact,
    doc: "two or more elementwise nodes of one shape that read each other -> fused_region",
    apply: |_, _| Outcome::NoMatch,
}];

/// Puts elementwise nodes into regions, until no two are left that could be in one.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    let mut report = PassReport { pass: NAME, nodes_before: graph.nodes().len(), ..PassReport::default() };
    let mut graph = graph;
    // Every sweep leaves fewer nodes.
    while let Some(next) = sweep(&graph, cx, &mut report)? {
        graph = next;
    }
    report.nodes_after = graph.nodes().len();
    Ok((graph, report))
}

/// One sweep; `None` where no region was found.
fn sweep(graph: &Graph, cx: &PassContext<'_>, report: &mut PassReport) -> Result<Option<Graph>> {
    let matcher = Matcher::new(graph, cx);
    let mut sweep = Sweep::new(&matcher);
    let (mut fired, mut near_misses) = (Vec::new(), Vec::new());
    let ids: Vec<NodeId> = graph.iter_nodes().map(|(id, _)| id).collect();
    for &id in ids.iter().rev() {
        if sweep.is_covered(id) || !can_join(&matcher, id) {
            continue;
        }
        let (rule, value) = (RULES[0].name, graph.value(graph.node(id).results[0]).name.clone());
        match fuse(&matcher, &mut sweep, id)? {
            None => {}
            Some(Err(reason)) => near_misses.push(NearMiss { rule, value, reason }),
            Some(Ok(())) => fired.push(Fired { rule, value }),
        }
    }
    report.fired.extend(fired.into_iter().rev());
    near_misses.reverse();
    report.near_misses = near_misses;
    if sweep.is_empty() { Ok(None) } else { Ok(Some(sweep.rebuild()?)) }
}

/// Offers the region that ends at `id`: first with results that others read too; where these leave no place, without.
fn fuse(matcher: &Matcher<'_>, sweep: &mut Sweep<'_>, id: NodeId) -> Result<Option<Result<(), String>>> {
    for share in [true, false] {
        let region = grow(matcher, sweep, id, share);
        if region.len() < 2 {
            break;
        }
        let region = Region::new(matcher, &region)?;
        let operands: Vec<Operand> = region.reads.iter().map(|&v| v.into()).collect();
        let op = FusedRegion { body: region.body };
        if let Err(reason) = matcher.check_replaces(&op, &operands, &region.results) {
            return Ok(Some(Err(reason)));
        }
        let patch = Patch::new(region.nodes, region.reads, region.results, |b, x| Ok(b.emit(op, x)?));
        if sweep.offer(patch)? {
            return Ok(Some(Ok(())));
        }
    }
    Ok(None)
}

/// Whether a region may hold the node: what is made of weights alone is prepared at load instead, and what the program has a
/// kernel of its own for runs there.
fn can_join(cx: &Matcher<'_>, id: NodeId) -> bool {
    let node = cx.node(id);
    is_elementwise(&*node.op)
        && node.results.len() == 1
        && cx.role(node.results[0]) == Role::Activation
        && node.operands.iter().all(|&v| !cx.ty(v).dtype.is_block() && cx.role(v) != Role::State)
        && !cx.has_own_kernel(id)
}

/// The nodes that lead to `root` elementwise, through values of its shape. With `share`, also those that others read.
fn grow(cx: &Matcher<'_>, sweep: &Sweep<'_>, root: NodeId, share: bool) -> BTreeSet<NodeId> {
    let shape = &cx.ty(cx.node(root).results[0]).shape;
    let mut region = BTreeSet::from([root]);
    loop {
        let candidates: Vec<NodeId> = region
            .iter()
            .flat_map(|&n| &cx.node(n).operands)
            .filter(|&&v| cx.ty(v).shape == *shape)
            .filter_map(|&v| cx.producer(v).map(|(id, _)| id))
            .filter(|id| !region.contains(id) && !sweep.is_covered(*id) && can_join(cx, *id))
            .collect();
        // The latest first, so that all readers of a node are decided before it.
        let next = candidates.into_iter().rev().filter(|&id| {
            let result = cx.node(id).results[0];
            let inside = !cx.is_returned(result) && cx.users(result).iter().all(|u| region.contains(u));
            // A cast that others read too would be written out as well, wider than what it was made of.
            inside || (share && !cx.node(id).op.is::<Cast>())
        });
        let Some(next) = next.max() else { return region };
        region.insert(next);
        if buffers(cx, &region) > MAX_BUFFERS || region.len() > MAX_NODES {
            region.remove(&next);
            return region;
        }
    }
}

fn buffers(cx: &Matcher<'_>, region: &BTreeSet<NodeId>) -> usize {
    let reads: BTreeSet<Value> = region
        .iter()
        .flat_map(|&n| cx.node(n).operands.iter().copied())
        .filter(|&v| cx.producer(v).is_none_or(|(id, _)| !region.contains(&id)))
        .collect();
    reads.len() + region.iter().filter(|&&n| is_result(cx, region, n)).count()
}

fn is_result(cx: &Matcher<'_>, region: &BTreeSet<NodeId>, node: NodeId) -> bool {
    let value = cx.node(node).results[0];
    cx.is_returned(value) || cx.users(value).iter().any(|u| !region.contains(u))
}

/// A region as a graph of its own.
struct Region {
    nodes: Vec<NodeId>,
    reads: Vec<Value>,
    results: Vec<Value>,
    body: Graph,
}

impl Region {
    fn new(cx: &Matcher<'_>, region: &BTreeSet<NodeId>) -> Result<Self> {
        let graph = cx.graph();
        let mut b = Builder::new("region");
        let mut map: Vec<Option<Value>> = vec![None; graph.values().len()];
        let (mut reads, mut results) = (Vec::new(), Vec::new());
        for &id in region {
            for &operand in &graph.node(id).operands {
                if map[operand.index()].is_some() {
                    continue;
                }
                let info = graph.value(operand);
                declare_symbols(&mut b, &info.ty.shape);
                let inner = match &info.def {
                    Def::Const(t) if t.elems() == 1 => b.shared_constant(t.clone()),
                    _ => {
                        reads.push(operand);
                        b.input(&format!("x{}", reads.len() - 1), info.ty.dtype, info.ty.shape.clone())?
                    }
                };
                map[operand.index()] = Some(inner);
            }
            let node = graph.node(id);
            let operands: Vec<Value> = node.operands.iter().filter_map(|v| map[v.index()]).collect();
            let result = b.emit_one_ref(node.op.clone(), &operands)?;
            map[node.results[0].index()] = Some(result);
            if is_result(cx, region, id) {
                results.push(node.results[0]);
            }
        }
        let outputs: Vec<Value> = results.iter().filter_map(|v| map[v.index()]).collect();
        let body = b.finish(&outputs)?;
        Ok(Self { nodes: region.iter().copied().collect(), reads, results, body })
    }
}

fn declare_symbols(b: &mut Builder, shape: &Shape) {
    for symbol in shape.dims().iter().flat_map(rlx_ir::Dim::symbols) {
        b.unbounded_symbol(&symbol);
    }
}
