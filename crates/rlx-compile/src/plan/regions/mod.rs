//! Named regions of a plan: steps that belong together, which a backend may run as one thing.
//!
//! Invariants, which [`Plan::verify_regions`](super::Plan::verify_regions) checks:
//! - A region covers a range of steps without a gap, and each of them has one role in it.
//! - Two regions lie apart, or one lies within the other; the outer one comes first in [`Plan::regions`](super::Plan::regions).
//! - The outermost claim wins: what lies within a claimed region is not offered to the target.
//! - Nothing within a claimed region writes into memory from outside, states excepted; what goes into it stays alive until it
//!   ends, and what comes out of it is alive from its start. So one kernel may run it in any order.
//!
//! Regions are found in the steps themselves, by who reads what: names of scopes do not matter. They change no step. A backend
//! that claims none gets the plan that it would get without them.
//!
//! Next door: one file per kind; `dataflow` knows who wrote what a step reads, `claim` asks the target.

mod attention;
mod claim;
mod dataflow;
mod embedding;
mod layer;
mod members;
mod pooling;
mod roles;
mod verify;

use std::cmp::Reverse;
use std::ops::Range;

use super::{BufferId, Operand, Step};
use crate::target::Role;
use dataflow::Dataflow;

pub(super) use claim::{claim, part_from_inputs};
pub use roles::{AttentionBlock, BertLayer, EmbeddingBlock, NomicLayer, PoolingHead, RegionKind};

/// Steps that belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanRegion {
    /// What it is, and which step does what in it.
    pub kind: RegionKind,
    /// The steps that it covers.
    pub steps: Range<usize>,
    /// The buffers from outside that it reads, each once, in the order of the first read; states too, prepared weights not.
    pub inputs: Vec<BufferId>,
    /// The results that are used outside: read by a later step, returned, or a version of a state. All others are internal:
    /// nobody misses them where a backend does not make them.
    pub outputs: Vec<ResultRef>,
    /// What the target said to it.
    pub claim: Claim,
}

/// A result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResultRef {
    /// The step's index.
    pub step: usize,
    /// Which of its results.
    pub index: usize,
}

/// What became of the offer of a region to the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The target runs it as a whole.
    Claimed,
    /// It lies in the claimed region of this index, and was not offered.
    Within(usize),
    /// The target runs its steps, because of this.
    Refused(String),
}

/// Steps that look like a region, but are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionMiss {
    /// The name of the kind of region.
    pub kind: &'static str,
    /// The step at which it was looked for.
    pub step: usize,
    /// Why it is none.
    pub reason: String,
}

impl PlanRegion {
    /// Whether the target runs it as a whole.
    pub fn is_claimed(&self) -> bool {
        self.claim == Claim::Claimed
    }

    /// The scope that its steps have in common, up to a point: `layers.0` of `layers.0.attention` and `layers.0.ffn`.
    pub fn scope<'a>(&self, steps: &'a [Step]) -> &'a str {
        let mut scopes = steps[self.steps.clone()].iter().map(|s| &*s.scope);
        let first = scopes.next().unwrap_or_default();
        scopes.fold(first, common_scope)
    }
}

fn common_scope<'a>(a: &'a str, b: &str) -> &'a str {
    let ends = |s: &str, at: usize| matches!(s.as_bytes().get(at), None | Some(b'.'));
    let same = a.bytes().zip(b.bytes()).take_while(|(x, y)| x == y).count();
    let at = (0..=same).rev().find(|&at| ends(a, at) && ends(b, at)).unwrap_or(0);
    &a[..at]
}

/// A region with its range, or why there is none.
type Found = Result<(RegionKind, Range<usize>), RegionMiss>;

/// The regions in `steps`, outer ones first, not yet offered to a target; and what nearly was one. `outputs` is what the plan
/// returns; `buffers` is the number of buffers.
pub(super) fn find(
    steps: &[Step],
    outputs: &[Operand],
    buffers: usize,
) -> (Vec<PlanRegion>, Vec<RegionMiss>) {
    let flow = Dataflow::new(steps, outputs, buffers);
    let (mut found, mut misses) = (Vec::new(), Vec::new());
    let mut take = |one: Found| match one {
        Ok(one) => {
            found.push(one);
            true
        }
        Err(miss) => {
            misses.push(miss);
            false
        }
    };
    for step in 0..steps.len() {
        if let Some(one) = attention::find(&flow, step) {
            let block = if let Ok((RegionKind::AttentionBlock(block), range)) = &one {
                Some((block.clone(), range.clone()))
            } else {
                None
            };
            take(one);
            if let Some((block, range)) = block {
                layer::find(&flow, &block, range).map(&mut take);
            }
        }
        if let Some(one) = embedding::find(&flow, step) {
            let wider = one.as_ref().ok().and_then(|(kind, range)| embedding::with_cast(&flow, kind, range));
            take(one);
            wider.map(Ok).map(&mut take);
        }
        if let Some(one) = pooling::find(&flow, step) {
            let wider = one.as_ref().ok().and_then(|(kind, range)| pooling::with_cast(&flow, kind, range));
            take(one);
            wider.map(Ok).map(&mut take);
        }
    }
    found.sort_by_key(|(_, range)| (range.start, Reverse(range.end)));
    let mut regions: Vec<PlanRegion> = Vec::with_capacity(found.len());
    let mut open: Vec<(usize, Range<usize>)> = Vec::new();
    for (kind, steps) in found {
        open.retain(|(_, outer)| outer.end > steps.start);
        if let Some((_, other)) = open.iter().find(|(_, outer)| outer.end < steps.end) {
            let reason = format!("it shares steps with the region of steps {}..{}", other.start, other.end);
            misses.push(RegionMiss { kind: kind.name(), step: steps.start, reason });
            continue;
        }
        open.push((regions.len(), steps.clone()));
        let (inputs, outputs) = flow.boundary(&steps);
        regions.push(PlanRegion { kind, steps, inputs, outputs, claim: Claim::Refused(String::new()) });
    }
    misses.sort_by_key(|m| m.step);
    (regions, misses)
}

/// Finds again what goes into regions and what comes out, after buffers have changed.
pub(super) fn update_boundaries(
    regions: &mut [PlanRegion],
    steps: &[Step],
    outputs: &[Operand],
    buffers: usize,
) {
    let flow = Dataflow::new(steps, outputs, buffers);
    for region in regions {
        (region.inputs, region.outputs) = flow.boundary(&region.steps);
    }
}

#[cfg(test)]
mod tests {
    use super::common_scope;

    #[test]
    fn scopes_end_at_points() {
        assert_eq!(common_scope("layers.1.attention", "layers.1.ffn"), "layers.1");
        assert_eq!(common_scope("layers.1.attention", "layers.10.attention"), "layers");
        assert_eq!(common_scope("layers.1", "layers.1.ffn"), "layers.1");
        assert_eq!(common_scope("embeddings", "head"), "");
        assert_eq!(common_scope("", "head"), "");
    }
}
