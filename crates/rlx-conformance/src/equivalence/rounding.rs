//! What roundings do to the results of a graph, measured: the graph is evaluated without rounding, over and over, and each time
//! every value that is rounded somewhere is moved by as much as its rounding may move it, up or down at random.
//!
//! The root of the mean square of how far a result moves is, to first order, the root of the sum of the squares of
//! `slope * error` over all roundings, which is how independent errors add up (stochastic arithmetic: Parker 1997, Vignes 2004).
//! No op needs a derivative for it, sums that cancel count in full, and what a result does not depend on does not loosen it.

use std::collections::{BTreeMap, BTreeSet};

use rlx_ir::interp::{RunData, SplitMix64, run_unrounded};
use rlx_ir::op::Evaluated;
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::text::literal;
use rlx_ir::{DType, Def, Graph, Tensor, TensorType, Type, Value, WeightInit};

use super::{Place, copy_of, results, seeded_by_name};
use crate::Result;

/// Evaluations with random errors. The root of a mean of 16 squares is below a third of its expectation once in 10^6.
const SAMPLES: u64 = 16;

/// The unit roundoff that an evaluation without rounding is allowed: f64's own is 2^-53, and would drown in itself.
const UNROUNDED: f64 = 1.0 / (1u64 << 40) as f64;

/// Which errors a graph has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errors<'a> {
    /// Each node's, as its dtype and the length of its sums allow: `u_out |value| + 4 u_acc sqrt(K) sum|terms|`.
    OfDtypes,
    /// Those of evaluating without rounding; and that of a constant or a weight that is in this dtype here and not in these
    /// leaves: a pass that folds or converts it has rounded it.
    Unrounded(&'a Leaves),
}

/// The constants and weights of a graph.
#[derive(Debug, Default)]
pub(super) struct Leaves(BTreeSet<String>);

impl Leaves {
    pub(super) fn of(graph: &Graph) -> Self {
        let mut leaves = Self::default();
        leaves.add(graph);
        leaves
    }

    fn add(&mut self, graph: &Graph) {
        self.0.extend(graph.values().iter().filter_map(|info| leaf(&info.def, &info.ty)));
        for region in graph.nodes().iter().filter_map(|n| n.op.downcast::<FusedRegion>()) {
            self.add(&region.body);
        }
    }

    fn have(&self, def: &Def, ty: &Type) -> bool {
        leaf(def, ty).is_none_or(|leaf| self.0.contains(&leaf))
    }
}

fn leaf(def: &Def, ty: &Type) -> Option<String> {
    match def {
        Def::Const(t) => Some(format!("{ty} = {}", literal(t))),
        Def::Weight { name, init: WeightInit::External } => Some(format!("{name:?} : {ty}")),
        Def::Weight { name, init: WeightInit::Seed(seed) } => Some(format!("{name:?} : {ty} = seed {seed}")),
        Def::Weight { name, init: WeightInit::Inline(t) } => {
            Some(format!("{name:?} : {ty} = {}", literal(t)))
        }
        _ => None,
    }
}

/// Outputs and states of `graph` on `data`, all in f64, without rounding.
pub(super) fn unrounded(graph: &Graph, data: &RunData<'_>) -> Result<BTreeMap<Place, Tensor>> {
    evaluate(graph, data, &mut |_, _, _| Ok(()))
}

fn evaluate(
    graph: &Graph,
    data: &RunData<'_>,
    adjust: &mut dyn FnMut(&Graph, Value, &mut Evaluated) -> rlx_ir::Result<()>,
) -> Result<BTreeMap<Place, Tensor>> {
    let weights = seeded_by_name;
    let mut data = RunData { weights: Some(&weights), ..copy_of(data) };
    let outputs = run_unrounded(graph, &mut data, adjust)?;
    Ok(results(outputs, data.states))
}

/// For each element of each result the root of the mean square of what `errors` do to it; `exact` are the results without.
pub(super) fn spread(
    graph: &Graph,
    data: &RunData<'_>,
    exact: &BTreeMap<Place, Tensor>,
    errors: Errors<'_>,
) -> Result<BTreeMap<Place, Vec<f64>>> {
    let mut squares: BTreeMap<Place, Vec<f64>> =
        exact.iter().map(|(place, t)| (place.clone(), vec![0.0; t.elems()])).collect();
    for seed in 0..SAMPLES {
        let mut random = SplitMix64::new(seed);
        let moved = evaluate(graph, data, &mut |graph, value, evaluated| {
            let Some(errors) = errors.at(graph, value, evaluated)? else { return Ok(()) };
            let mut values = evaluated.tensor.to_f64()?;
            for (v, error) in values.iter_mut().zip(errors) {
                let sign = if random.next_u64() & 1 == 0 { 1.0 } else { -1.0 };
                if error.is_finite() {
                    *v += sign * error;
                }
            }
            evaluated.tensor = Tensor::from_f64(evaluated.tensor.ty().clone(), &values)?;
            Ok(())
        })?;
        for (place, squares) in &mut squares {
            let (Some(moved), Some(exact)) = (moved.get(place), exact.get(place)) else { continue };
            for ((square, m), e) in squares.iter_mut().zip(moved.to_f64()?).zip(exact.to_f64()?) {
                let change = m - e;
                *square += if change.is_finite() { change * change } else { 0.0 };
            }
        }
    }
    for value in squares.values_mut().flatten() {
        *value = (*value / SAMPLES as f64).sqrt();
    }
    Ok(squares)
}

impl Errors<'_> {
    /// How far each element of `value` may be off by itself; `None` where it is exact.
    fn at(self, graph: &Graph, value: Value, evaluated: &Evaluated) -> rlx_ir::Result<Option<Vec<f64>>> {
        let info = graph.value(value);
        let dtype = info.ty.dtype;
        if !(dtype.is_float() || dtype.is_block()) {
            return Ok(None);
        }
        let rounding = || of_rounding(dtype, &evaluated.tensor).map(Some);
        let node = match (&info.def, self) {
            (Def::Result { node, .. }, _) => graph.node(*node),
            (Def::Const(_) | Def::Weight { .. }, Self::Unrounded(known))
                if !known.have(&info.def, &info.ty) =>
            {
                return rounding();
            }
            _ => return Ok(None),
        };
        // A region's ops have had their errors one by one.
        if node.op.is::<FusedRegion>() {
            return Ok(None);
        }
        let terms = evaluated.abs_terms.as_ref();
        let summed = |accumulator: f64| -> Option<Vec<f64>> {
            let factor = 4.0 * accumulator * (evaluated.terms as f64).sqrt();
            terms.map(|terms| terms.iter().map(|t| factor * t).collect())
        };
        match self {
            Self::Unrounded(_) => Ok(summed(UNROUNDED)),
            Self::OfDtypes => {
                let accumulator = if dtype == DType::F64 { dtype } else { DType::F32 };
                match summed(accumulator.unit_roundoff()) {
                    Some(summed) => {
                        let rounding = of_rounding(dtype, &evaluated.tensor)?;
                        Ok(Some(summed.iter().zip(rounding).map(|(s, r)| s + r).collect()))
                    }
                    None if converts(graph, value, &node.operands) => rounding(),
                    None => Ok(None),
                }
            }
        }
    }
}

/// Whether an op that adds nothing up rounds to the dtype of its result.
fn converts(graph: &Graph, value: Value, operands: &[Value]) -> bool {
    let to = graph.ty(value).dtype;
    let mut from = operands.iter().map(|v| graph.ty(*v).dtype);
    from.clone().all(|d| d != to) || from.any(|d| d != to && (d.is_float() || d.is_block()))
}

/// How far rounding to `dtype` may move each value.
fn of_rounding(dtype: DType, values: &Tensor) -> rlx_ir::Result<Vec<f64>> {
    let x = values.to_f64()?;
    let smallest = match dtype {
        DType::F16 => 2f64.powi(-25),
        DType::BF16 => 2f64.powi(-134),
        DType::F32 => 2f64.powi(-150),
        DType::Block(block) => {
            // As far as it moves any value of the block.
            let ty = TensorType::new(dtype, values.shape());
            let blocks = Tensor::from_f64(ty, &x)?.to_f64()?;
            let per_block = x.chunks(block.block_elems()).zip(blocks.chunks(block.block_elems()));
            let most = |(x, y): (&[f64], &[f64])| {
                let most = x.iter().zip(y).fold(0f64, |m, (x, y)| m.max((x - y).abs()));
                vec![most; x.len()]
            };
            return Ok(per_block.flat_map(most).collect());
        }
        _ => 0.0,
    };
    Ok(x.iter().map(|v| (dtype.unit_roundoff() * v.abs()).max(smallest)).collect())
}
