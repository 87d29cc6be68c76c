//! `embedding_block`: found at the norm, whose operand is followed back to gathers and rows of weights that are added up.

use std::ops::Range;

use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;

use super::dataflow::{At, Dataflow};
use super::members::Members;
use super::roles::EmbeddingBlock;
use super::{Found, RegionKind, RegionMiss, ResultRef, Role};

/// More terms are no model's; this bounds the work at each norm.
const MAX_TERMS: usize = 8;

/// The result of a norm that is the normalised one.
pub(super) fn normed(flow: &Dataflow<'_>, norm: usize) -> Option<ResultRef> {
    let op = flow.op(norm)?;
    let index = match () {
        () if op.is::<AddLayerNorm>() => 1,
        () if op.is::<LayerNorm>() => 0,
        () => return None,
    };
    Some(ResultRef { step: norm, index })
}

/// The block that ends at the norm `step`; none where that is no norm of gathers.
pub(super) fn find(flow: &Dataflow<'_>, step: usize) -> Option<Found> {
    let index = normed(flow, step)?.index;
    let mut block = EmbeddingBlock { norm: step, ..EmbeddingBlock::default() };
    let mut open: Vec<At> = (0..=index).map(|operand| At::new(step, operand)).collect();
    let (mut terms, mut stranger, mut partial) = (open.len(), None, None);
    let rows = &flow.operand(At::new(step, 0))?.shape;
    while let Some(at) = open.pop() {
        let writer = flow.writer(at);
        // One kernel makes a row of the result of a row of each term.
        if let (Some(w), Some(operand)) = (writer, flow.operand(at))
            && !(flow.is_whole(at) && operand.shape == *rows)
        {
            partial = Some(w.step);
        }
        match writer {
            Some(w) if flow.is::<Embedding>(w.step) => block.gathers.push(w.step),
            Some(w) if is_add(flow, w.step) => {
                block.adds.push(w.step);
                terms += 1;
                if terms > MAX_TERMS {
                    return None;
                }
                open.extend([At::new(w.step, 0), At::new(w.step, 1)]);
            }
            // What layers add to; their norms are not at the entry.
            Some(w) if flow.is_product(w.step) => return None,
            Some(w) => {
                stranger = Some(w.step);
                let behind = flow.writer(At::new(w.step, 0)).map(|w| w.step);
                block.gathers.extend(behind.filter(|&step| flow.is::<Embedding>(step)));
            }
            None if flow.operand(at).is_some_and(|o| o.role == Role::Weight) => {}
            None => return None,
        }
    }
    if block.gathers.is_empty() {
        return None;
    }
    let miss = |reason| RegionMiss { kind: EmbeddingBlock::NAME, step, reason };
    if let Some(stranger) = stranger {
        return Some(Err(miss(format!("{} stands between the gathers and the norm", flow.name(stranger)))));
    }
    if let Some(partial) = partial {
        return Some(Err(miss(format!(
            "not each row of step {partial}, {}, is one of the norm's",
            flow.name(partial)
        ))));
    }
    for list in [&mut block.gathers, &mut block.adds] {
        list.sort_unstable();
        list.dedup();
    }
    let mut members = Members::default();
    members.add(block.gathers.iter().chain(&block.adds).copied().chain([step]));
    let range = members.range(flow).map_err(miss);
    Some(range.map(|range| (RegionKind::EmbeddingBlock(block), range)))
}

fn is_add(flow: &Dataflow<'_>, step: usize) -> bool {
    matches!(flow.op_as(step), Some(Binary { kind: BinaryKind::Add }))
}

/// The block with the cast that follows it.
pub(super) fn with_cast(
    flow: &Dataflow<'_>,
    kind: &RegionKind,
    range: &Range<usize>,
) -> Option<(RegionKind, Range<usize>)> {
    let RegionKind::EmbeddingBlock(block) = kind else { return None };
    let cast = flow.only_reader(normed(flow, block.norm)?)?;
    if !flow.is::<Cast>(cast) || cast != range.end || !flow.is_whole(At::new(cast, 0)) {
        return None;
    }
    let block = EmbeddingBlock { cast: Some(cast), ..block.clone() };
    Some((RegionKind::EmbeddingBlock(block), range.start..cast + 1))
}
