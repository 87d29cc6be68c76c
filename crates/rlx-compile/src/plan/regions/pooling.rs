//! `pooling_head`: found at `pool`, whose result goes into `l2_normalize` alone.

use std::ops::Range;

use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::Pool;

use super::dataflow::{At, Dataflow};
use super::roles::PoolingHead;
use super::{Found, RegionKind, RegionMiss, ResultRef};

/// The head that begins with the pooling at `step`; none where that is no pooling, or its vectors are not normalised.
pub(super) fn find(flow: &Dataflow<'_>, step: usize) -> Option<Found> {
    if !flow.is::<Pool>(step) {
        return None;
    }
    let mut between = Vec::new();
    let reader = flow.converted(ResultRef { step, index: 0 }, &mut between)?;
    let normalize = reader.step;
    if !flow.is::<L2Normalize>(normalize) {
        return None;
    }
    let miss = |reason| RegionMiss { kind: PoolingHead::NAME, step, reason };
    if let Some(&between) = between.first() {
        return Some(Err(miss(format!("{} stands between pooling and normalisation", flow.name(between)))));
    }
    if !flow.is_whole(reader) {
        return Some(Err(miss("the vectors are normalised in part, or in another shape".to_owned())));
    }
    if normalize != step + 1 {
        let between = flow.name(step + 1);
        return Some(Err(miss(format!("step {}, {between}, stands between its steps", step + 1))));
    }
    let head = PoolingHead { cast: None, pool: step, normalize };
    Some(Ok((RegionKind::PoolingHead(head), step..normalize + 1)))
}

/// The head with the cast before it.
pub(super) fn with_cast(
    flow: &Dataflow<'_>,
    kind: &RegionKind,
    range: &Range<usize>,
) -> Option<(RegionKind, Range<usize>)> {
    let RegionKind::PoolingHead(head) = kind else { return None };
    let x = At::new(head.pool, 0);
    let cast = flow.writer(x)?;
    let alone = flow.is::<Cast>(cast.step) && flow.only_reader(cast) == Some(head.pool) && flow.is_whole(x);
    if !alone || cast.step + 1 != range.start {
        return None;
    }
    let head = PoolingHead { cast: Some(cast.step), ..head.clone() };
    Some((RegionKind::PoolingHead(head), cast.step..range.end))
}
