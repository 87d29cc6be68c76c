//! Samples: a small graph around one op, or around a few that belong together, with sizes and data, all from a seed.

use std::collections::BTreeMap;

use rlx_ir::interp::{RunData, SplitMix64, random_blocks};
use rlx_ir::text::parse;
use rlx_ir::{Bindings, DType, Graph, OpSet, Tensor, TensorType, Value};

use crate::{Error, Result};

/// A graph with everything that it takes to run it.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The case's name.
    pub case: &'static str,
    /// The dtype that the sample is about.
    pub dtype: DType,
    /// What is special about it.
    pub label: String,
    /// The graph: views, if any, and one op, or several where `rounding` says so.
    pub graph: Graph,
    /// The sizes of the symbols.
    pub sizes: Vec<(String, usize)>,
    /// Inputs by name.
    pub inputs: BTreeMap<String, Tensor>,
    /// States by name, as they are before the run.
    pub states: BTreeMap<String, Tensor>,
    /// Whether the data is wrong, so that interpreter and backends must refuse it.
    pub refused: bool,
    /// For graphs of several ops: the dtype to which values are rounded between them, wherever a backend does so. `None` where
    /// one op's own tolerance holds.
    pub rounding: Option<DType>,
    random: SplitMix64,
}

/// Collects the samples of one case.
#[derive(Debug)]
pub struct Samples {
    case: &'static str,
    seed: u64,
    list: Vec<Sample>,
}

impl Samples {
    /// An empty collection; all data follows from `case`, the sample's dtype and label, and `seed`.
    pub fn new(case: &'static str, seed: u64) -> Self {
        Self { case, seed, list: Vec::new() }
    }

    /// The samples.
    pub fn into_list(self) -> Vec<Sample> {
        self.list
    }

    /// Adds a sample: `symbols` is what the graph's header declares (`N <= 64, R <= 4`), `body` its statements. Inputs and
    /// states get random values, which the caller may then replace.
    ///
    /// # Errors
    /// `InvalidArgument` where the text does not parse or a size is missing.
    pub fn add(
        &mut self,
        dtype: DType,
        label: impl Into<String>,
        (symbols, sizes): (&str, &[(&str, usize)]),
        body: &str,
    ) -> Result<&mut Sample> {
        let label = label.into();
        let header = if symbols.is_empty() { String::new() } else { format!("({symbols})") };
        let text = format!("graph @{}{header} {{\n{body}\n}}\n", self.case);
        let place =
            |e: rlx_ir::Error| Error::from(e).context(format!("{} {dtype} {label}\n{text}", self.case));
        let graph = parse(&text, &OpSet::builtin()).map_err(place)?;
        let mut bindings = Bindings::new();
        for (name, size) in sizes {
            bindings.bind(name, *size)?;
        }
        let mut random = SplitMix64::new(self.seed ^ hash(&format!("{} {dtype} {label}", self.case)));
        let mut fill = |values: Vec<(Value, &str)>| -> Result<BTreeMap<String, Tensor>> {
            let mut tensors = BTreeMap::new();
            for (value, name) in values {
                let ty = graph.ty(value).eval(&bindings).map_err(place)?;
                tensors.insert(name.to_owned(), random_tensor(&ty, &mut random, -2.0, 2.0)?);
            }
            Ok(tensors)
        };
        let inputs = fill(graph.inputs().collect())?;
        let states = fill(graph.states().collect())?;
        let sizes = sizes.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect();
        let case = self.case;
        let (refused, rounding) = (false, None);
        self.list.push(Sample {
            case,
            dtype,
            label,
            graph,
            sizes,
            inputs,
            states,
            refused,
            rounding,
            random,
        });
        let last = self.list.len() - 1;
        Ok(&mut self.list[last])
    }
}

impl Sample {
    /// The generator, for values that the caller makes.
    pub fn random(&mut self) -> &mut SplitMix64 {
        &mut self.random
    }

    fn ty(&self, name: &str) -> Result<TensorType> {
        match self.inputs.get(name) {
            Some(t) => Ok(t.ty().clone()),
            None => rlx_ir::bail!(Bug, "{} {}: no input {name:?}", self.case, self.label),
        }
    }

    /// Gives an input other values, rounded to its dtype.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values does not fit; `Bug` where there is no such input.
    pub fn floats(&mut self, name: &str, values: &[f64]) -> Result<&mut Self> {
        let tensor = Tensor::from_f64(self.ty(name)?, values)?;
        self.inputs.insert(name.to_owned(), tensor);
        Ok(self)
    }

    /// Gives an input of integers its values.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn ints(&mut self, name: &str, values: &[i64]) -> Result<&mut Self> {
        let tensor = Tensor::from_i64(self.ty(name)?, values)?;
        self.inputs.insert(name.to_owned(), tensor);
        Ok(self)
    }

    /// Gives an input random values in `low..high`; integers take the value toward zero.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn range(&mut self, name: &str, low: f64, high: f64) -> Result<&mut Self> {
        let tensor = random_tensor(&self.ty(name)?, &mut self.random, low, high)?;
        self.inputs.insert(name.to_owned(), tensor);
        Ok(self)
    }

    /// Gives an input of integers random indices below `below`.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn indices(&mut self, name: &str, below: usize) -> Result<&mut Self> {
        let values: Vec<i64> = (0..self.ty(name)?.elems()).map(|_| self.random.below(below) as i64).collect();
        self.ints(name, &values)
    }

    /// Puts NaN, infinities, zeros of both signs and subnormals among an input's values.
    ///
    /// # Errors
    /// As [`floats`](Self::floats).
    pub fn specials(&mut self, name: &str) -> Result<&mut Self> {
        let Some(tensor) = self.inputs.get(name) else { return self.floats(name, &[]) };
        let mut values = tensor.to_f64()?;
        let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1e-40, -1e-40, 1.0];
        for (i, value) in values.iter_mut().enumerate() {
            if i % 3 == 1 {
                *value = special[(i / 3) % special.len()];
            }
        }
        self.floats(name, &values)
    }

    /// Marks the data as wrong: interpreter and backends must refuse it.
    pub fn refuse(&mut self) {
        self.refused = true;
    }

    /// Says that the graph is several ops, between which values may be rounded to `rounding`.
    pub fn several_ops(&mut self, rounding: DType) -> &mut Self {
        self.rounding = Some(rounding);
        self
    }

    /// The floating point operations of a run, as the ops count them.
    ///
    /// # Errors
    /// `InvalidArgument` where a size has no value.
    pub fn flops(&self) -> Result<u64> {
        let bindings = self.data()?.bindings;
        let types = |values: &[Value]| values.iter().map(|v| self.graph.ty(*v).clone()).collect::<Vec<_>>();
        let mut flops = 0;
        for node in self.graph.nodes() {
            let cost = node.op.cost(&types(&node.operands), &types(&node.results));
            flops += bindings.size(&cost.flops)? as u64;
        }
        Ok(flops)
    }

    /// The data of an interpreter run.
    ///
    /// # Errors
    /// `InvalidArgument` where a size is given twice.
    pub fn data(&self) -> Result<RunData<'static>> {
        let mut data =
            RunData { inputs: self.inputs.clone(), states: self.states.clone(), ..RunData::default() };
        for (name, size) in &self.sizes {
            data.bindings.bind(name, *size)?;
        }
        Ok(data)
    }
}

/// Random values of any dtype: floats and blocks uniform in `low..high`, integers too, toward zero; `bool` 0 or 1.
fn random_tensor(ty: &TensorType, random: &mut SplitMix64, low: f64, high: f64) -> Result<Tensor> {
    if let DType::Block(block) = ty.dtype {
        let bytes = random_blocks(block, ty.bytes()?, random, low, high)?;
        return Ok(Tensor::from_bytes(ty.clone(), bytes)?);
    }
    let wide = if ty.dtype.is_int() && (low, high) == (-2.0, 2.0) { (-100.0, 100.0) } else { (low, high) };
    let values: Vec<f64> = (0..ty.elems())
        .map(|_| match ty.dtype {
            DType::Bool => (random.next_u64() & 1) as f64,
            _ => random.uniform() * (wide.1 - wide.0) + wide.0,
        })
        .collect();
    Ok(Tensor::from_f64(ty.clone(), &values)?)
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}
