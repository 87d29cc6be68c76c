//! `attention_block`: found at the attention, from where queries, keys and values are followed back to their products.

use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::position::rope::Rope;
use rlx_ir::ops::state::kv_write::KvWrite;

use super::dataflow::{At, Dataflow};
use super::members::Members;
use super::roles::AttentionBlock;
use super::{Found, RegionKind, RegionMiss, ResultRef};

/// The block around the attention at `step`; none where that is no attention.
pub(super) fn find(flow: &Dataflow<'_>, step: usize) -> Option<Found> {
    let op = flow.op(step)?;
    if !op.is::<Attention>() && !op.is::<PagedAttention>() {
        return None;
    }
    let range = || {
        let block = block(flow, step)?;
        let mut members = Members::default();
        members.add(steps(&block));
        let range = members.range(flow)?;
        Ok((RegionKind::AttentionBlock(block), range))
    };
    Some(range().map_err(|reason| RegionMiss { kind: AttentionBlock::NAME, step, reason }))
}

/// The steps of a block.
pub(super) fn steps(block: &AttentionBlock) -> impl Iterator<Item = usize> {
    let optional = [block.q_norm, block.k_norm, block.q_rope, block.k_rope, block.k_write, block.v_write];
    [block.q, block.k, block.v, block.attention, block.output]
        .into_iter()
        .chain(optional.into_iter().flatten())
        .chain(block.conversions.iter().copied())
}

fn block(flow: &Dataflow<'_>, attention: usize) -> Result<AttentionBlock, String> {
    let mut block = AttentionBlock { attention, ..AttentionBlock::default() };
    let conversions = &mut block.conversions;
    let q = Part::of(flow, "queries", At::new(attention, 0), conversions)?;
    let k = Part::of(flow, "keys", At::new(attention, 1), conversions)?;
    let v = Part::of(flow, "values", At::new(attention, 2), conversions)?;
    for (what, part) in [("keys", &k), ("values", &v)] {
        if !flow.same(At::new(q.product, 0), At::new(part.product, 0)) {
            return Err(format!("queries and {what} are products of different activations"));
        }
    }
    if let Some(step) = v.norm.or(v.rope) {
        return Err(format!("the values go through {}", flow.name(step)));
    }
    (block.q, block.q_norm, block.q_rope) = (q.product, q.norm, q.rope);
    (block.k, block.k_norm, block.k_rope, block.k_write) = (k.product, k.norm, k.rope, k.write);
    (block.v, block.v_write) = (v.product, v.write);
    let result = ResultRef { step: attention, index: 0 };
    let Some(reader) = flow.converted(result, conversions) else {
        return Err("the result of attention is read by several steps, or outside".to_owned());
    };
    if !flow.is_product(reader.step) || reader.operand != 0 {
        return Err(format!("the result of attention goes into {}", flow.name(reader.step)));
    }
    block.output = reader.step;
    // Queries and keys may come through the same steps.
    block.conversions.sort_unstable();
    block.conversions.dedup();
    Ok(block)
}

/// The way from a product to an operand of attention.
#[derive(Debug, Default)]
struct Part {
    product: usize,
    norm: Option<usize>,
    rope: Option<usize>,
    write: Option<usize>,
}

impl Part {
    fn of(flow: &Dataflow<'_>, what: &str, mut at: At, conversions: &mut Vec<usize>) -> Result<Self, String> {
        let mut part = Self::default();
        loop {
            at = flow.unconverted(at, conversions);
            let Some(writer) = flow.writer(at) else { return Err(format!("the {what} are no products")) };
            let step = writer.step;
            if flow.is_product(step) {
                part.product = step;
                return Ok(part);
            }
            let (slot, operand) = match flow.op(step) {
                Some(op) if op.is::<Rope>() => (&mut part.rope, 0),
                Some(op) if op.is::<RmsNorm>() => (&mut part.norm, 0),
                Some(op) if op.is::<KvWrite>() => (&mut part.write, 1),
                _ => return Err(format!("the {what} come from {}, not from a product", flow.name(step))),
            };
            if slot.replace(step).is_some() {
                return Err(format!("the {what} go through {} twice", flow.name(step)));
            }
            at = At::new(step, operand);
        }
    }
}
