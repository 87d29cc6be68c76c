//! The reference interpreter: evaluates any graph, slowly and obviously. It is the only definition of what an op means.

use std::collections::BTreeMap;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Def, Graph, Value, WeightInit};
use crate::op::{self, EvalContext, Evaluated};
use crate::ops::fused::fused_region::FusedRegion;
use crate::quant::BlockType;
use crate::symbols::Bindings;
use crate::tensor::{Tensor, room};
use crate::types::TensorType;

/// Gives an external weight by name and type.
pub type WeightSource<'a> = dyn Fn(&str, &TensorType) -> Result<Tensor> + 'a;

/// What a run needs from outside.
#[derive(Default)]
pub struct RunData<'a> {
    /// Inputs by name.
    pub inputs: BTreeMap<String, Tensor>,
    /// States by name; a run replaces those that it writes.
    pub states: BTreeMap<String, Tensor>,
    /// Sizes of symbols that no input's or state's shape gives.
    pub bindings: Bindings,
    /// External weights by name and type.
    pub weights: Option<&'a WeightSource<'a>>,
}

impl std::fmt::Debug for RunData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunData")
            .field("inputs", &self.inputs)
            .field("bindings", &self.bindings)
            .finish_non_exhaustive()
    }
}

impl RunData<'_> {
    /// With an input.
    #[must_use]
    pub fn input(mut self, name: &str, tensor: Tensor) -> Self {
        self.inputs.insert(name.to_owned(), tensor);
        self
    }

    /// With a state.
    #[must_use]
    pub fn state(mut self, name: &str, tensor: Tensor) -> Self {
        self.states.insert(name.to_owned(), tensor);
        self
    }
}

/// Binds the graph's symbols to the sizes of inputs and states.
///
/// # Errors
/// `InvalidArgument` where an input is missing, has another dtype or does not fit, or a symbol stays unbound.
pub fn bind(graph: &Graph, data: &RunData<'_>) -> Result<Bindings> {
    let mut bindings = data.bindings.clone();
    let inputs = graph.inputs().map(|(v, n)| (v, "input", n, data.inputs.get(n)));
    let given: Vec<_> =
        inputs.chain(graph.states().map(|(v, n)| (v, "state", n, data.states.get(n)))).collect();
    for (value, kind, name, tensor) in &given {
        let Some(tensor) = tensor else {
            crate::bail!(InvalidArgument, "{kind} {name:?} is missing");
        };
        let ty = graph.ty(*value);
        if tensor.dtype() != ty.dtype {
            crate::bail!(InvalidArgument, "{kind} {name:?}: expected {}, got {}", ty.dtype, tensor.dtype());
        }
        bindings.unify(&ty.shape, tensor.shape()).map_err(|e| e.context(format!("{kind} {name:?}")))?;
    }
    graph.symbols().check(&bindings)?;
    for (value, kind, name, tensor) in &given {
        if let Some(tensor) = tensor {
            let shape = &graph.ty(*value).shape;
            bindings.verify(shape, tensor.shape()).map_err(|e| e.context(format!("{kind} {name:?}")))?;
        }
    }
    Ok(bindings)
}

/// Evaluates `graph` and returns its outputs; written states are replaced in `data`.
///
/// # Errors
/// As [`bind`]; and errors of ops, which name the node.
pub fn run(graph: &Graph, data: &mut RunData<'_>) -> Result<Vec<Evaluated>> {
    let bindings = bind(graph, data)?;
    evaluate(graph, &bindings, data, None)
}

/// Sees each value of a graph (of a fused region's body too) once it is there, and may change it.
pub type Adjust<'a> = dyn FnMut(&Graph, Value, &mut Evaluated) -> Result<()> + 'a;

/// Evaluates `graph` without rounding: every float and every block is held as f64, so a cast between floats and a `quantize`
/// give their operand. `adjust` sees every value. States in `data` become f64 too, whether or not they are written.
///
/// # Errors
/// As [`run`]; and those of `adjust`.
pub fn run_unrounded(
    graph: &Graph,
    data: &mut RunData<'_>,
    adjust: &mut Adjust<'_>,
) -> Result<Vec<Evaluated>> {
    let bindings = bind(graph, data)?;
    for tensor in data.inputs.values_mut().chain(data.states.values_mut()) {
        *tensor = widen(tensor)?;
    }
    evaluate(graph, &bindings, data, Some(adjust))
}

/// The type that an unrounded run holds values of type `ty` in.
fn wide(ty: TensorType) -> TensorType {
    if ty.dtype.is_float() || ty.dtype.is_block() { TensorType::new(DType::F64, ty.shape) } else { ty }
}

fn widen(tensor: &Tensor) -> Result<Tensor> {
    let ty = wide(tensor.ty().clone());
    if ty == *tensor.ty() { Ok(tensor.clone()) } else { Tensor::from_f64(ty, &tensor.to_f64()?) }
}

/// Runs `graph` on inputs and states that fit `bindings`; with `adjust` without rounding.
fn evaluate(
    graph: &Graph,
    bindings: &Bindings,
    data: &mut RunData<'_>,
    mut adjust: Option<&mut Adjust<'_>>,
) -> Result<Vec<Evaluated>> {
    let mut values: Vec<Option<Evaluated>> = vec![None; graph.values().len()];
    for value in graph.value_ids() {
        let info = graph.value(value);
        let tensor = match &info.def {
            Def::Input(name) => data.inputs.get(&**name).cloned(),
            Def::State(name) => data.states.get(&**name).cloned(),
            Def::Const(t) => Some((**t).clone()),
            Def::Weight { name, init } => Some(weight(name, init, &info.ty.eval(bindings)?, data)?),
            Def::Result { .. } => None,
        };
        let mut known = tensor.map(Evaluated::moved);
        if let (Some(known), Some(adjust)) = (&mut known, &mut adjust) {
            known.tensor = widen(&known.tensor)?;
            adjust(graph, value, known)?;
        }
        values[value.index()] = known;
    }
    let mut last_use = vec![0usize; values.len()];
    for (i, node) in graph.nodes().iter().enumerate() {
        node.operands.iter().for_each(|v| last_use[v.index()] = i);
    }
    graph.outputs().iter().for_each(|v| last_use[v.index()] = usize::MAX);
    let mut state_names: BTreeMap<Value, String> = graph.states().map(|(v, n)| (v, n.to_owned())).collect();
    for (i, node) in graph.nodes().iter().enumerate() {
        let missing =
            || Error::new(crate::ErrorKind::Bug, format!("{}: an operand has no value", node.op.name()));
        let operands = node
            .operands
            .iter()
            .map(|v| values[v.index()].as_ref().map(|e| &e.tensor).ok_or_else(missing))
            .collect::<Result<Vec<_>>>()?;
        let mut results =
            node.results.iter().map(|&v| graph.ty(v).eval(bindings)).collect::<Result<Vec<_>>>()?;
        if adjust.is_some() {
            results = results.into_iter().map(wide).collect();
        }
        let place = || format!("%{} = {}", graph.value(node.results[0]).name, node.op.name());
        let outs = match (&mut adjust, node.op.downcast::<FusedRegion>()) {
            // Its ops are evaluated one by one, so that none of them rounds.
            (Some(adjust), Some(FusedRegion { body })) => {
                let named = body.inputs().zip(&operands).map(|((_, name), &t)| (name.to_owned(), t.clone()));
                let mut inner = RunData { inputs: named.collect(), ..RunData::default() };
                evaluate(body, bindings, &mut inner, Some(&mut **adjust))
            }
            _ => {
                let cx = EvalContext { operands: &operands, results: &results, bindings };
                op::evaluate(&*node.op, &cx)
            }
        };
        let outs = outs.map_err(|e| e.context(place()))?;
        for (&value, mut out) in node.results.iter().zip(outs) {
            if let Some(adjust) = &mut adjust {
                adjust(graph, value, &mut out)?;
            }
            values[value.index()] = Some(out);
        }
        if node.op.writes_state()
            && let Some(name) = state_names.remove(&node.operands[0])
        {
            if let Some(e) = &values[node.results[0].index()] {
                data.states.insert(name.clone(), e.tensor.clone());
            }
            state_names.insert(node.results[0], name);
        }
        for v in &node.operands {
            if last_use[v.index()] == i {
                values[v.index()] = None;
            }
        }
    }
    let output = |v: &Value| {
        values[v.index()].clone().ok_or_else(|| {
            Error::new(crate::ErrorKind::Bug, format!("%{} has no value", graph.value(*v).name))
        })
    };
    graph.outputs().iter().map(output).collect()
}

fn weight(name: &str, init: &WeightInit, ty: &TensorType, data: &RunData<'_>) -> Result<Tensor> {
    match (init, data.weights) {
        (WeightInit::Inline(t), _) => Ok((**t).clone()),
        (WeightInit::Seed(seed), _) => seeded(ty, *seed),
        (WeightInit::External, Some(source)) => source(name, ty),
        (WeightInit::External, None) => {
            crate::bail!(NotFound, "no weights were given, but {name:?} is needed")
        }
    }
}

/// Pseudo-random values of a seed: uniform in [-1, 1) for floats and blocks, 0 or 1 for `bool`, 0 to 7 for integers.
///
/// # Errors
/// `InvalidArgument` where the type has no byte size; `Device` where there is no memory for the values.
pub fn seeded(ty: &TensorType, seed: u64) -> Result<Tensor> {
    let mut random = SplitMix64::new(seed);
    let bytes = ty.bytes()?;
    if let DType::Block(block) = ty.dtype {
        let of_blocks = random_blocks(block, bytes, &mut random, -1.0, 1.0)?;
        return Tensor::from_bytes(ty.clone(), of_blocks);
    }
    let mut values: Vec<f64> = room(ty, ty.elems())?;
    values.extend((0..ty.elems()).map(|_| match ty.dtype {
        DType::Bool => (random.next_u64() & 1) as f64,
        d if d.is_int() => (random.next_u64() & 7) as f64,
        _ => random.uniform() * 2.0 - 1.0,
    }));
    Tensor::from_f64(ty.clone(), &values)
}

/// Bytes of blocks with values uniform in `low..high`: a few blocks, placed at random, since encoders search for long.
///
/// # Errors
/// `NonFinite` where the values are beyond the range of the format; `Device` where there is no memory for the bytes.
pub fn random_blocks(
    block: BlockType,
    bytes: usize,
    random: &mut SplitMix64,
    low: f64,
    high: f64,
) -> Result<Vec<u8>> {
    let (elems, size) = (block.block_elems(), block.block_bytes());
    let distinct = (bytes / size).min(16);
    let values: Vec<f32> =
        (0..distinct * elems).map(|_| (random.uniform() * (high - low) + low) as f32).collect();
    let mut pool = vec![0; distinct * size];
    block.encode(&values, None, &mut pool)?;
    let mut out = room(&TensorType::new(DType::Block(block), [bytes / size * elems]), bytes)?;
    for _ in 0..bytes / size {
        out.extend_from_slice(&pool[random.below(distinct) * size..][..size]);
    }
    Ok(out)
}

/// The splitmix64 generator (Steele, Lea and Flood 2014): small, and the same for ever.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1), with 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `0..n`; 0 where `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.next_u64() % n as u64) as usize }
    }
}
