//! Sweeps until nothing fires.

use std::sync::Arc;

use rlx_ir::op::fault_of;
use rlx_ir::{ErrorKind, Graph, NodeId, OpRef};

use super::{Fired, Matcher, NearMiss, Outcome, PassReport, Rule, Sweep};
use crate::passes::PassContext;
use crate::{Error, Result};

/// Rules are directional, so sweeps end. A rule that follows another one down a chain needs a sweep for each link, which is one for
/// each node at most; this many beyond that bound what a wrong rule can do.
const SPARE_SWEEPS: usize = 100;

/// Which nodes patches may cover.
#[derive(Clone, Copy, PartialEq)]
enum Covers {
    All,
    /// All but those that a kernel of the program's own runs.
    WithoutOwnKernels,
}

/// Applies `rules` to `graph` until none fires. At one node the first rule of the list that fires wins.
///
/// # Errors
/// `Bug` where a rule's patch is wrong or the rules never end; `InvalidArgument` where that is due to an op that is not built in.
pub fn rewrite(
    pass: &'static str,
    rules: &[Rule],
    graph: Graph,
    cx: &PassContext<'_>,
) -> Result<(Graph, PassReport)> {
    repeat(pass, (rules, Covers::All), graph, cx)
}

/// As [`rewrite`], for rules that make one op of several: what a kernel of the program's own runs stays as it is.
///
/// # Errors
/// As [`rewrite`].
pub(crate) fn fuse(
    pass: &'static str,
    rules: &[Rule],
    graph: Graph,
    cx: &PassContext<'_>,
) -> Result<(Graph, PassReport)> {
    repeat(pass, (rules, Covers::WithoutOwnKernels), graph, cx)
}

fn repeat(
    pass: &'static str,
    rules: (&[Rule], Covers),
    graph: Graph,
    cx: &PassContext<'_>,
) -> Result<(Graph, PassReport)> {
    let mut report = PassReport { pass, nodes_before: graph.nodes().len(), ..PassReport::default() };
    let most = graph.nodes().len().saturating_add(SPARE_SWEEPS);
    let mut graph = graph;
    let mut last = None;
    for _ in 0..most {
        let Some(next) = sweep(rules, &graph, cx, &mut report, &mut last)? else {
            report.nodes_after = graph.nodes().len();
            return Ok((graph, report));
        };
        graph = next;
    }
    let kind = last.as_ref().map_or(ErrorKind::Bug, |(_, op)| fault_of(&**op));
    let place = last.map_or_else(String::new, |(rule, op)| format!(": rule {rule} at {}", op.name()));
    Err(Error::new(kind, format!("the rules still fire after {most} sweeps{place}")))
}

/// One sweep; `None` where nothing fired.
fn sweep(
    (rules, covers): (&[Rule], Covers),
    graph: &Graph,
    cx: &PassContext<'_>,
    report: &mut PassReport,
    last: &mut Option<(&'static str, OpRef)>,
) -> Result<Option<Graph>> {
    let matcher = Matcher::new(graph, cx);
    let mut sweep = Sweep::new(&matcher);
    let name = |id: NodeId| -> Arc<str> {
        graph.node(id).results.first().map_or_else(|| "".into(), |&v| graph.value(v).name.clone())
    };
    let (mut fired, mut near_misses) = (Vec::new(), Vec::new());
    let ids: Vec<NodeId> = graph.iter_nodes().map(|(id, _)| id).collect();
    for &id in ids.iter().rev() {
        for rule in rules {
            if sweep.is_covered(id) {
                break;
            }
            match (rule.apply)(&matcher, id) {
                Outcome::NoMatch => {}
                Outcome::NearMiss(reason) => {
                    near_misses.push(NearMiss { rule: rule.name, value: name(id), reason });
                }
                Outcome::Patch(patch) => {
                    let own = |n: &&NodeId| matcher.has_own_kernel(**n);
                    if covers == Covers::WithoutOwnKernels
                        && let Some(kept) = patch.covers.iter().find(own)
                    {
                        let op = graph.node(*kept).op.name();
                        let reason = format!("the program has a kernel of its own for {op}");
                        near_misses.push(NearMiss { rule: rule.name, value: name(id), reason });
                        continue;
                    }
                    let place = |e: Error| e.context(format!("rule {} at %{}", rule.name, name(id)));
                    let fits = patch.covers.iter().all(|n| !sweep.is_covered(*n));
                    if sweep.offer(patch).map_err(place)? {
                        fired.push(Fired { rule: rule.name, value: name(id) });
                        *last = Some((rule.name, graph.node(id).op.clone()));
                    } else if fits {
                        let reason = "there is no place where all its operands are ready and no reader waits";
                        near_misses.push(NearMiss {
                            rule: rule.name,
                            value: name(id),
                            reason: reason.to_owned(),
                        });
                    }
                }
            }
        }
    }
    report.fired.extend(fired.into_iter().rev());
    near_misses.reverse();
    report.near_misses = near_misses;
    if sweep.is_empty() { Ok(None) } else { Ok(Some(sweep.rebuild()?)) }
}
