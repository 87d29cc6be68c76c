//! Whether two graphs compute the same: the check that a pass keeps a program's meaning.
//!
//! A pass that is exact gives the same bits. Any other has to pass two checks, neither of which knows what tolerance would do:
//!
//! 1. **The same function.** Both graphs are evaluated without rounding: every float in f64, a cast between floats and a
//!    `quantize` giving their operand. What is left of the difference must be as small as f64 makes it, where no constant was
//!    rounded. A bias that is dropped, an axis, a scale or an epsilon that is wrong shows here, in bf16 as in f32.
//! 2. **No rounding that was not there.** Both graphs are evaluated as they are, and may differ by what the roundings of `before`
//!    allow; where the pass lowers the precision, by those of `after` besides. Each node's is the bound that kernels are held
//!    to, `u_out |value| + 4 u_acc sqrt(K) sum|terms|`, and what all of them do to each element is
//!    measured.

mod rounding;

use std::collections::BTreeMap;
use std::fmt;

use rlx_compile::passes::by_name;
use rlx_compile::rewrite::{Numerics, PassReport};
use rlx_ir::interp::{RunData, run, seeded};
use rlx_ir::op::Evaluated;
use rlx_ir::{DType, Graph, Tensor, TensorType};

use self::rounding::{Errors, Leaves, spread, unrounded};
use crate::{Error, Result};

/// How many times the spread of its roundings a result may be off: their sum is near to normally distributed, and is bounded
/// rather than typical in each.
const ROOM: f64 = 4.0;

/// The size of symbols that nothing else gives.
const DEFAULT_SIZE: usize = 3;

/// Gives every symbol, input and state that `data` lacks a size or pseudo-random values.
///
/// # Errors
/// `InvalidArgument` where a shape has no size.
pub fn fill(graph: &Graph, data: &mut RunData<'_>) -> Result<()> {
    for (values, given) in
        [(graph.inputs().collect::<Vec<_>>(), &data.inputs), (graph.states().collect(), &data.states)]
    {
        for (value, name) in values {
            if let Some(tensor) = given.get(name) {
                data.bindings.unify(&graph.ty(value).shape, tensor.shape())?;
            }
        }
    }
    for name in graph.symbols().names() {
        if data.bindings.get(name).is_none() {
            data.bindings.bind(name, DEFAULT_SIZE)?;
        }
    }
    for (value, name) in graph.inputs() {
        if !data.inputs.contains_key(name) {
            let ty = graph.ty(value).eval(&data.bindings)?;
            data.inputs.insert(name.to_owned(), seeded(&ty, seed_of(name))?);
        }
    }
    for (value, name) in graph.states() {
        if !data.states.contains_key(name) {
            let ty = graph.ty(value).eval(&data.bindings)?;
            data.states.insert(name.to_owned(), seeded(&ty, seed_of(name))?);
        }
    }
    Ok(())
}

/// A seed that depends on the name alone (FNV-1a).
fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// The pseudo-random values of the external weight `name`.
pub(crate) fn seeded_by_name(name: &str, ty: &TensorType) -> rlx_ir::Result<Tensor> {
    seeded(ty, seed_of(name))
}

/// Interprets `graph` on `data`; external weights are pseudo-random, by name.
///
/// # Errors
/// Errors of the interpreter.
pub fn interpret(graph: &Graph, data: &mut RunData<'_>) -> Result<Vec<Evaluated>> {
    let weights = seeded_by_name;
    let mut with_weights = RunData {
        inputs: data.inputs.clone(),
        states: data.states.clone(),
        bindings: data.bindings.clone(),
        weights: Some(&weights),
    };
    let outputs = run(graph, &mut with_weights)?;
    data.states = with_weights.states;
    Ok(outputs)
}

/// A result of a run: an output by number, or a state by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Output(usize),
    State(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(i) => write!(f, "output {i}"),
            Self::State(name) => write!(f, "state {name:?}"),
        }
    }
}

fn results(outputs: Vec<Evaluated>, states: BTreeMap<String, Tensor>) -> BTreeMap<Place, Tensor> {
    let outputs = outputs.into_iter().enumerate().map(|(i, e)| (Place::Output(i), e.tensor));
    outputs.chain(states.into_iter().map(|(name, t)| (Place::State(name), t))).collect()
}

fn copy_of(data: &RunData<'_>) -> RunData<'static> {
    RunData {
        inputs: data.inputs.clone(),
        states: data.states.clone(),
        bindings: data.bindings.clone(),
        weights: None,
    }
}

/// Checks that `after` computes what `before` does, on `data`, as exactly as `numerics` says. Where `before` refuses the
/// data, `after` must refuse it too.
///
/// # Errors
/// `InvalidArgument` naming the first output or state that differs; errors of the interpreter.
pub fn same_meaning(before: &Graph, after: &Graph, data: &RunData<'_>, numerics: Numerics) -> Result<()> {
    let interpreted = |graph: &Graph| -> Result<BTreeMap<Place, Tensor>> {
        let mut data = copy_of(data);
        let outputs = interpret(graph, &mut data)?;
        Ok(results(outputs, data.states))
    };
    let (expected, got) = match (interpreted(before), interpreted(after)) {
        (Ok(expected), Ok(got)) => (expected, got),
        (Err(e), Err(g)) if e.kind() == g.kind() => return Ok(()),
        (Err(e), _) => return Err(e.context("before the pass")),
        (_, Err(e)) => return Err(e.context("after the pass")),
    };
    if let Some(place) = expected.keys().find(|p| !got.contains_key(p)) {
        rlx_ir::bail!(InvalidArgument, "{place} is gone");
    }
    if let Some(place) = got.keys().find(|p| !expected.contains_key(p)) {
        rlx_ir::bail!(InvalidArgument, "{place} is new");
    }
    if numerics == Numerics::Exact {
        return same(&expected, &got, None).map_err(|e| e.context("Exact"));
    }
    let exact = [unrounded(before, data)?, unrounded(after, data)?];
    if same(&exact[0], &exact[1], None).is_err() {
        let leaves = Leaves::of(before);
        let errors = Errors::Unrounded(&leaves);
        let allowed =
            both(spread(before, data, &exact[0], errors)?, &spread(after, data, &exact[1], errors)?);
        same(&exact[0], &exact[1], Some(&allowed)).map_err(|e| e.context("without rounding"))?;
    }
    if same(&expected, &got, None).is_err() {
        let mut allowed = spread(before, data, &exact[0], Errors::OfDtypes)?;
        if numerics == Numerics::LowersPrecision {
            allowed = both(allowed, &spread(after, data, &exact[1], Errors::OfDtypes)?);
        }
        same(&expected, &got, Some(&allowed)).map_err(|e| e.context(format!("{numerics:?}")))?;
    }
    Ok(())
}

/// What two graphs' independent errors make together.
fn both(mut a: BTreeMap<Place, Vec<f64>>, b: &BTreeMap<Place, Vec<f64>>) -> BTreeMap<Place, Vec<f64>> {
    for (place, a) in &mut a {
        for (a, b) in a.iter_mut().zip(b.get(place).into_iter().flatten()) {
            *a = a.hypot(*b);
        }
    }
    a
}

/// Checks that results have the same types and bits; with `spread`, that floats and blocks are within [`ROOM`] times that.
fn same(
    expected: &BTreeMap<Place, Tensor>,
    got: &BTreeMap<Place, Tensor>,
    spread: Option<&BTreeMap<Place, Vec<f64>>>,
) -> Result<()> {
    for (place, expected) in expected {
        let Some(got) = got.get(place) else { rlx_ir::bail!(InvalidArgument, "{place} is gone") };
        // Zeros of either sign are one number where the bits need not be the same.
        let room = |s: &f64| (ROOM * s).max(f64::MIN_POSITIVE);
        let allowed = |i: usize| spread.and_then(|s| s.get(place)?.get(i)).map_or(0.0, room);
        within(expected, got, allowed).map_err(|e| e.context(place.to_string()))?;
    }
    Ok(())
}

/// The loosest class of the rules that fired.
pub fn numerics_of(reports: &[PassReport]) -> Numerics {
    let rules = || reports.iter().flat_map(|r| by_name(r.pass)).flat_map(|p| p.rules);
    let fired = reports.iter().flat_map(|r| &r.fired);
    fired
        .filter_map(|f| rules().find(|r| r.name == f.rule))
        .map(|r| r.numerics)
        .max()
        .unwrap_or(Numerics::Exact)
}

/// How far results of a graph of several ops may be apart, relative to the largest, where values are rounded to `rounding` at
/// other places.
pub(crate) fn relative_of(rounding: DType) -> f64 {
    rounding.unit_roundoff().max(64.0 * DType::F32.unit_roundoff())
}

/// Checks that two tensors have one type, and values no further apart than `relative` times the largest of `expected` (at
/// least 1); with 0, and for integers, the same bits, but for those of NaN.
///
/// # Errors
/// `InvalidArgument` naming the first element that differs.
pub(crate) fn near(expected: &Tensor, got: &Tensor, relative: f64) -> Result<()> {
    // Rounding errors grow with the largest values that were added up, which the results bound from below.
    let values = if expected.dtype().is_int() { Vec::new() } else { expected.to_f64()? };
    let scale = values.iter().filter(|v| v.is_finite()).fold(1.0f64, |m, v| m.max(v.abs()));
    within(expected, got, |_| relative * scale)
}

/// Checks that two tensors have one type, and that elements of floats and blocks are no further apart than `allowed`; with 0, and
/// for integers, the same bits, but for those of NaN.
fn within(expected: &Tensor, got: &Tensor, allowed: impl Fn(usize) -> f64) -> Result<()> {
    if expected.ty() != got.ty() {
        rlx_ir::bail!(InvalidArgument, "{} became {}", expected.ty(), got.ty());
    }
    if expected.bytes() == got.bytes() {
        return Ok(());
    }
    let dtype = expected.dtype();
    if !(dtype.is_float() || dtype.is_block()) {
        let (e, g) = (expected.to_i64()?, got.to_i64()?);
        return match e.iter().zip(&g).position(|(e, g)| e != g) {
            None => Ok(()),
            Some(i) => {
                rlx_ir::bail!(
                    InvalidArgument,
                    "element {i} of {} was {} and is {}",
                    expected.ty(),
                    e[i],
                    g[i]
                )
            }
        };
    }
    let (e, g) = (expected.to_f64()?, got.to_f64()?);
    let same = |i: usize, e: f64, g: f64| {
        (e.is_nan() && g.is_nan()) || e.to_bits() == g.to_bits() || {
            let allowed = allowed(i);
            allowed != 0.0 && (e == g || (e - g).abs() <= allowed)
        }
    };
    match e.iter().zip(&g).enumerate().position(|(i, (&e, &g))| !same(i, e, g)) {
        None => Ok(()),
        Some(i) => rlx_ir::bail!(
            InvalidArgument,
            "element {i} of {} was {:?} and is {:?}, which may be {:e} apart",
            expected.ty(),
            e[i],
            g[i],
            allowed(i)
        ),
    }
}

#[cfg(test)]
mod tests;
