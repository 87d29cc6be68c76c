//! Offering regions to the target, and keeping the memory of claimed ones apart.

use super::super::{BufferId, Operand, SizeTable, Step};
use super::{Claim, PlanRegion, Role};
use crate::target::{RegionFacts, Support, Target};

/// Offers regions to the target, outer ones first.
pub(in crate::plan) fn claim(
    regions: &mut [PlanRegion],
    target: &dyn Target,
    steps: &[Step],
    sizes: &SizeTable,
    symbols: &rlx_ir::Symbols,
) {
    // Claimed regions lie apart, and regions are in the order of their starts: the last one claimed is the only one that
    // can hold the next.
    let mut claimed: Option<(usize, usize)> = None;
    for (index, region) in regions.iter_mut().enumerate() {
        if let Some((outer, end)) = claimed.filter(|(_, end)| region.steps.start < *end) {
            debug_assert!(region.steps.end <= end, "regions nest");
            region.claim = Claim::Within(outer);
            continue;
        }
        region.claim = match target.claims(&RegionFacts { region, steps, sizes, symbols }) {
            Support::No(reason) => Claim::Refused(reason),
            Support::Yes => {
                claimed = Some((index, region.steps.end));
                Claim::Claimed
            }
        };
    }
}

/// Gives results of claimed regions that would overwrite what goes into their region memory of their own: `new_buffer` makes
/// a buffer like the one that it gets, where that is in the arena. Says whether it changed anything.
pub(in crate::plan) fn part_from_inputs(
    regions: &[PlanRegion],
    steps: &mut [Step],
    outputs: &mut [Operand],
    mut new_buffer: impl FnMut(BufferId) -> Option<BufferId>,
) -> bool {
    let mut changed = false;
    for region in regions.iter().filter(|r| r.is_claimed()) {
        for step in region.steps.clone() {
            for result in 0..steps[step].results.len() {
                let written = &steps[step].results[result];
                let old = written.buffer;
                if written.role == Role::State || !region.inputs.contains(&old) {
                    continue;
                }
                let Some(own) = new_buffer(old) else { continue };
                steps[step].results[result].buffer = own;
                // What was in the buffer before is read up to this step at the latest.
                let later =
                    steps[step + 1..].iter_mut().flat_map(|s| s.operands.iter_mut().chain(&mut s.results));
                later.chain(outputs.iter_mut()).filter(|o| o.buffer == old).for_each(|o| o.buffer = own);
                changed = true;
            }
        }
    }
    changed
}
