//! Regions of a plan that this backend claims: those that one kernel runs, and layers, whose launches become one group.

use std::sync::Arc;

use rlx_compile::plan::{Action, EmbeddingBlock, Operand, PlanRegion, PoolingHead, RegionKind, Step};
use rlx_compile::{RegionFacts, Support};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::Pool;
use rlx_ir::{DType, Op, bail};
use rlx_kernels::call::{EmbeddingLayerNorm, EmbeddingPart};

use super::executable::Thunk;
use super::recipe::Recipe;
use super::support::where_sizes_fit;
use crate::error::{Error, Result};

/// Whether the region is run as a whole.
pub(super) fn claims(facts: &RegionFacts<'_>) -> Support {
    match attempt(facts) {
        Ok(()) => Support::Yes,
        Err(e) => Support::No(e.message().to_owned()),
    }
}

fn attempt(facts: &RegionFacts<'_>) -> Result<()> {
    let thunks = thunks(facts.region, facts.steps)?;
    where_sizes_fit(
        facts.symbols,
        |bindings| Ok(facts.sizes.bind(bindings)?),
        |sizes| thunks.iter().try_for_each(|thunk| thunk.prepare(&sizes).map(|_| ())),
    )
}

/// The launches of a region.
///
/// # Errors
/// `UnsupportedOnDevice` where its steps are better run as they are, with the reason.
pub(super) fn thunks(region: &PlanRegion, steps: &[Step]) -> Result<Vec<Thunk>> {
    let scope = region.scope(steps);
    let label = if scope.is_empty() {
        region.kind.name().to_owned()
    } else {
        format!("{} {scope}", region.kind.name())
    };
    let group: Arc<str> = label.into();
    match &region.kind {
        RegionKind::EmbeddingBlock(block) => Ok(vec![embedding_block(region, block, steps, group)?]),
        RegionKind::PoolingHead(head) => Ok(vec![pooling_head(region, head, steps, group)?]),
        RegionKind::AttentionBlock(_) | RegionKind::BertLayer(_) | RegionKind::NomicLayer(_) => {
            region.steps.clone().map(|at| Thunk::of_step(at, &steps[at], group.clone())).collect()
        }
    }
}

fn op(step: &Step) -> Result<&dyn Op> {
    match &step.action {
        Action::Op(op) => Ok(op.as_ref()),
        Action::Copy => bail!(UnsupportedOnDevice, "a copy within a region of one kernel"),
    }
}

fn only_result(region: &PlanRegion, step: usize, index: usize) -> Result<()> {
    match region.outputs[..] {
        [out] if (out.step, out.index) == (step, index) => Ok(()),
        _ => bail!(UnsupportedOnDevice, "more than the last result is read"),
    }
}

fn pooling_head(region: &PlanRegion, head: &PoolingHead, steps: &[Step], group: Arc<str>) -> Result<Thunk> {
    if head.cast.is_some() {
        bail!(UnsupportedOnDevice, "the kernel pools and normalises in one dtype");
    }
    only_result(region, head.normalize, 0)?;
    let (pool, normalize) = (&steps[head.pool], &steps[head.normalize]);
    let (Some(pool_op), Some(norm_op)) =
        (op(pool)?.downcast::<Pool>(), op(normalize)?.downcast::<L2Normalize>())
    else {
        bail!(Bug, "a pooling head of {} and {}", pool.action.name(), normalize.action.name())
    };
    let recipe = Recipe::PoolNormalized(*pool_op, *norm_op);
    Ok(Thunk::new(recipe, pool.operands.clone(), normalize.results.clone(), group, region.steps.clone()))
}

fn embedding_block(
    region: &PlanRegion,
    block: &EmbeddingBlock,
    steps: &[Step],
    group: Arc<str>,
) -> Result<Thunk> {
    let norm = &steps[block.norm];
    let (eps, terms, out) = if let Some(op) = op(norm)?.downcast::<AddLayerNorm>() {
        (op.eps, 2, 1)
    } else if let Some(op) = op(norm)?.downcast::<LayerNorm>() {
        (op.eps, 1, 0)
    } else {
        bail!(Bug, "an embedding block ends with {}", norm.action.name())
    };
    let mut found = Terms { block, steps, operands: Vec::new(), parts: Vec::new() };
    for term in &norm.operands[..terms] {
        found.add(term, block.norm)?;
    }
    let Terms { mut operands, mut parts, .. } = found;
    // Rows that all tokens have come last: the first term says how many tokens there are.
    parts.sort_by_key(|part| part.ids.is_none());
    let mut place = |operand: &Operand| {
        operands.push(operand.clone());
        operands.len() - 1
    };
    let weight = place(&norm.operands[terms]);
    let bias = norm.operands.get(terms + 1).map(place);
    let (results, dtype) = match block.cast {
        None => (vec![norm.results[out].clone()], norm.results[out].ty.dtype),
        Some(cast) => {
            let Some(Cast { to }) = op(&steps[cast])?.downcast() else { bail!(Bug, "a cast that is none") };
            (steps[cast].results.clone(), *to)
        }
    };
    match block.cast {
        None => only_result(region, block.norm, out)?,
        Some(cast) => only_result(region, cast, 0)?,
    }
    if norm.results[out].ty.dtype != DType::F32 {
        bail!(UnsupportedOnDevice, "the kernel adds up in f32");
    }
    let recipe = Recipe::EmbeddingBlock(EmbeddingLayerNorm { parts, weight, bias, eps, dtype });
    Ok(Thunk::new(recipe, operands, results, group, region.steps.clone()))
}

/// What is added up, found from the norm backwards.
struct Terms<'a> {
    block: &'a EmbeddingBlock,
    steps: &'a [Step],
    operands: Vec<Operand>,
    parts: Vec<EmbeddingPart>,
}

impl Terms<'_> {
    /// Adds what the step `reader` reads as `term`.
    fn add(&mut self, term: &Operand, reader: usize) -> Result<()> {
        let steps = self.steps;
        // A buffer may be written again later.
        let writes = |at: &&usize| **at < reader && steps[**at].results[0].buffer == term.buffer;
        if term.ty.dtype != DType::F32 {
            bail!(UnsupportedOnDevice, "the kernel adds up in f32, not in {}", term.ty.dtype);
        }
        if let Some(&at) = self.block.adds.iter().rev().find(writes) {
            for operand in &steps[at].operands {
                self.add(operand, at)?;
            }
            return Ok(());
        }
        let Some(&at) = self.block.gathers.iter().rev().find(writes) else {
            self.operands.push(term.clone());
            self.parts.push(EmbeddingPart { table: self.operands.len() - 1, ids: None, scale: 1.0 });
            return Ok(());
        };
        let gather = &steps[at];
        let Some(embedding) = op(gather)?.downcast::<Embedding>() else {
            bail!(Bug, "an embedding block gathers by {}", gather.action.name())
        };
        let table = self.operands.len();
        self.operands.extend(gather.operands.iter().cloned());
        self.parts.push(EmbeddingPart { table, ids: Some(table + 1), scale: embedding.scale });
        Ok(())
    }
}
