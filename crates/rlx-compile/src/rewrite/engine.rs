//! Sweeps until nothing fires.

use std::sync::Arc;

use rlx_ir::{Graph, NodeId};

use super::{Fired, Matcher, NearMiss, Outcome, PassReport, Rule, Sweep};
use crate::passes::PassContext;
use crate::{Error, Result};

/// Rules are directional, so sweeps end. A rule that follows another one down a chain needs a sweep for each link, which is one for
/// each node at most; this many beyond that bound what a wrong rule can do.
const SPARE_SWEEPS: usize = 100;

/// Applies `rules` to `graph` until none fires. At one node the first rule of the list that fires wins.
///
/// # Errors
/// `Bug` where a rule's patch is wrong or the rules never end.
pub fn rewrite(
    pass: &'static str,
    rules: &[Rule],
    graph: Graph,
    cx: &PassContext<'_>,
) -> Result<(Graph, PassReport)> {
    let mut report = PassReport { pass, nodes_before: graph.nodes().len(), ..PassReport::default() };
    let most = graph.nodes().len().saturating_add(SPARE_SWEEPS);
    let mut graph = graph;
    for _ in 0..most {
        let Some(next) = sweep(rules, &graph, cx, &mut report)? else {
            report.nodes_after = graph.nodes().len();
            return Ok((graph, report));
        };
        graph = next;
    }
    rlx_ir::bail!(Bug, "the rules still fire after {most} sweeps")
}

/// One sweep; `None` where nothing fired.
fn sweep(
    rules: &[Rule],
    graph: &Graph,
    cx: &PassContext<'_>,
    report: &mut PassReport,
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
                    let place = |e: Error| e.context(format!("rule {} at %{}", rule.name, name(id)));
                    let fits = patch.covers.iter().all(|n| !sweep.is_covered(*n));
                    if sweep.offer(patch).map_err(place)? {
                        fired.push(Fired { rule: rule.name, value: name(id) });
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
