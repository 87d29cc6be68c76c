//! Pseudo-random networks over ragged batches: what encoders are made of, in orders and sizes that none has.

use rlx_ir::interp::{RunData, SplitMix64};
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::pooling::pool::PoolMode;
use rlx_ir::ops::position::rope::RopeStyle;
use rlx_ir::{Builder, DType, Dim, Graph, Tensor, Value};

use crate::Result;

/// The most tokens of a batch, and so the width of masks.
const TOKENS: usize = 48;
/// The most sequences.
const SEQUENCES: usize = 5;
/// The rows of the table.
const IDS: usize = 50;

/// A network that depends on `seed` alone: `dtype` (f32 or f16) is that of activations. Inputs are `ids`, `positions`, `starts`
/// and masks; outputs the states of `N` tokens, and a unit vector for each of `R` sequences.
///
/// # Errors
/// `Bug` where the generator itself is wrong.
pub fn random_network(seed: u64, dtype: DType) -> Result<Graph> {
    let mut random = SplitMix64::new(seed);
    let mut b = Builder::new("network");
    let (n, r) = (b.symbol("N", TOKENS), b.symbol("R", SEQUENCES));
    let ids = b.input("ids", DType::I32, [n.clone()])?;
    let positions = b.input("positions", DType::I32, [n.clone()])?;
    let starts = b.input("starts", DType::I32, [r + 1.into()])?;
    let width = [32, 48, 64, 96][random.below(4)];
    let mut g = Generator { b, random, dtype, width, n, positions, starts, weights: 0, masks: 0 };
    let table = g.any_weight(&[IDS, width])?;
    let embedding = Embedding { scale: [1.0, 2.0][g.random.below(2)], dtype };
    let mut x = g.b.embedding(table, ids, embedding)?;
    x = g.norm(x, None)?;
    for _ in 0..3 + g.random.below(3) {
        x = g.step(x)?;
    }
    let mode = [PoolMode::Mean, PoolMode::Cls, PoolMode::Last, PoolMode::Max][g.random.below(4)];
    let pooled = g.b.pool(x, starts, mode)?;
    let unit = g.b.l2_normalize(pooled, 0.01)?;
    Ok(g.b.finish(&[x, unit])?)
}

/// Ids, positions and starts of a batch of `tokens` tokens for a graph of [`random_network`]; sequences may be empty.
///
/// # Errors
/// `InvalidArgument` where there are more tokens than the graph takes.
pub fn batch(seed: u64, tokens: usize) -> Result<RunData<'static>> {
    let mut random = SplitMix64::new(seed ^ 0xba7c);
    let mut data = RunData::default();
    let sequences = 1 + random.below(SEQUENCES);
    data.bindings.bind("N", tokens)?;
    data.bindings.bind("R", sequences)?;
    let mut starts: Vec<i32> = (1..sequences).map(|_| random.below(tokens + 1) as i32).collect();
    starts.extend([0, tokens as i32]);
    starts.sort_unstable();
    let mut ints = |below: usize| (0..tokens).map(|_| random.below(below) as i32).collect::<Vec<_>>();
    for (name, values) in [("ids", ints(IDS)), ("positions", ints(400)), ("starts", starts)] {
        data.inputs.insert(name.to_owned(), Tensor::i32([values.len()], &values)?);
    }
    Ok(data)
}

struct Generator {
    b: Builder,
    random: SplitMix64,
    dtype: DType,
    width: usize,
    n: Dim,
    positions: Value,
    starts: Value,
    weights: usize,
    masks: usize,
}

impl Generator {
    fn flag(&mut self) -> bool {
        self.random.below(2) == 0
    }

    fn weight(&mut self, dtype: DType, shape: &[usize]) -> Result<Value> {
        self.weights += 1;
        Ok(self.b.weight(&format!("w{}", self.weights), dtype, shape)?)
    }

    /// A weight of either float dtype.
    fn any_weight(&mut self, shape: &[usize]) -> Result<Value> {
        let dtype = if self.flag() { DType::F32 } else { DType::F16 };
        self.weight(dtype, shape)
    }

    fn step(&mut self, x: Value) -> Result<Value> {
        match self.random.below(6) {
            0..=2 => {
                let y = self.attention(x)?;
                self.norm(y, Some(x))
            }
            3 => {
                let y = self.feed_forward(x)?;
                self.norm(y, Some(x))
            }
            4 => {
                let y = self.gated(x)?;
                self.norm(y, Some(x))
            }
            _ => {
                let axis = if self.flag() { -1 } else { 1 };
                let y = self.b.softmax(x, axis, 1.5)?;
                Ok(self.b.add(x, y)?)
            }
        }
    }

    /// A norm of `x`, or of its sum with a residual.
    fn norm(&mut self, x: Value, residual: Option<Value>) -> Result<Value> {
        let width = self.width;
        let weight = self.weight(DType::F32, &[width])?;
        let x = match residual {
            Some(residual) => self.b.add(x, residual)?,
            None => x,
        };
        if self.flag() {
            let norm = RmsNorm { eps: 0.1, unit_offset: self.random.below(2) == 0 };
            return Ok(self.b.rms_norm(x, weight, norm)?);
        }
        let bias = if self.flag() { Some(self.weight(DType::F32, &[width])?) } else { None };
        Ok(self.b.layer_norm(x, weight, bias, 0.1)?)
    }

    /// A product of `columns` columns, whose values are about as large as those of `x`, which has `depth`.
    fn product(&mut self, x: Value, depth: usize, columns: usize, activation: Activation) -> Result<Value> {
        let w = self.any_weight(&[columns, depth])?;
        let scale = self.b.scalar(self.dtype, 1.5 / (depth as f64).sqrt())?;
        let x = self.b.mul(x, scale)?;
        let bias = if self.flag() { Some(self.any_weight(&[columns])?) } else { None };
        Ok(self.b.linear(x, w, Linear { activation, ..Linear::default() }, bias, None)?)
    }

    fn feed_forward(&mut self, x: Value) -> Result<Value> {
        let (width, inner) = (self.width, [64, 96, 130][self.random.below(3)]);
        let activation = [Activation::Gelu, Activation::GeluTanh, Activation::Silu, Activation::Relu];
        let activation = activation[self.random.below(4)];
        let y = self.product(x, width, inner, activation)?;
        self.product(y, inner, width, Activation::None)
    }

    fn gated(&mut self, x: Value) -> Result<Value> {
        let (width, inner) = (self.width, [32, 72][self.random.below(2)]);
        let joint = self.product(x, width, 2 * inner, Activation::None)?;
        let activation = if self.flag() { Activation::Silu } else { Activation::Gelu };
        let y = self.b.glu(joint, activation)?;
        self.product(y, inner, width, Activation::None)
    }

    fn attention(&mut self, x: Value) -> Result<Value> {
        let shapes = [(4, 2, 32), (3, 1, 40), (2, 2, 64), (2, 1, 96), (2, 1, 128), (1, 1, 256)];
        let (heads, kv_heads, dim) = shapes[self.random.below(shapes.len())];
        let width = self.width;
        let mut parts = Vec::new();
        for count in [heads, kv_heads, kv_heads] {
            let y = self.product(x, width, count * dim, Activation::None)?;
            parts.push(self.b.reshape(y, [self.n.clone(), count.into(), dim.into()])?);
        }
        if self.flag() {
            let frequencies = self.weight(DType::F32, &[dim / 2])?;
            let style = if self.flag() { RopeStyle::Half } else { RopeStyle::Interleaved };
            for part in &mut parts[..2] {
                *part = self.b.rope(*part, self.positions, frequencies, style, 1.0)?;
            }
        }
        let (mask, operand) = self.mask(heads)?;
        let scale = [1.0 / (dim as f64).sqrt(), 0.04, 0.15][self.random.below(3)];
        let softcap = [None, None, Some(2.0)][self.random.below(3)];
        let attention = Attention { mask, scale, softcap };
        let y = self.b.attention(parts[0], parts[1], parts[2], self.starts, operand, attention)?;
        let y = self.b.reshape(y, [self.n.clone(), (heads * dim).into()])?;
        self.product(y, heads * dim, width, Activation::None)
    }

    fn mask(&mut self, heads: usize) -> Result<(Mask, Option<Value>)> {
        let window = 1 + self.random.below(12);
        let mask = match self.random.below(6) {
            0 => Mask::None,
            1 => Mask::Causal,
            2 => Mask::SlidingWindow { window },
            3 => Mask::Local { window },
            4 => Mask::Custom,
            _ => Mask::Bias,
        };
        let dtype = match mask {
            Mask::Custom => DType::Bool,
            Mask::Bias if self.flag() => DType::F16,
            Mask::Bias => DType::F32,
            _ => return Ok((mask, None)),
        };
        self.masks += 1;
        let heads = if self.flag() { 1 } else { heads };
        let shape = [heads.into(), self.n.clone(), TOKENS.into()];
        let operand = self.b.input(&format!("mask{}", self.masks), dtype, shape)?;
        Ok((mask, Some(operand)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::equivalence::{fill, interpret};

    #[test]
    fn networks_have_every_kind_of_mask_and_op_and_finite_values() {
        let (mut ops, mut masks) = (BTreeSet::new(), BTreeSet::new());
        for seed in 0..40 {
            let graph = random_network(seed, [DType::F32, DType::F16][seed as usize % 2]).unwrap();
            for node in graph.nodes() {
                ops.insert(node.op.name().to_owned());
                masks.extend(node.op.downcast::<Attention>().map(|a| (a.mask.name(), a.softcap.is_some())));
            }
            let mut data = batch(seed, 9).unwrap();
            fill(&graph, &mut data).unwrap();
            for output in interpret(&graph, &mut data).unwrap() {
                assert!(
                    output.tensor.to_f64().unwrap().iter().all(|v| v.is_finite()),
                    "seed {seed}\n{graph}"
                );
            }
        }
        let wanted =
            ["attention", "embedding", "glu", "l2_normalize", "layer_norm", "linear", "pool", "rms_norm"];
        let more = ["rope", "softmax"];
        assert!(wanted.iter().chain(&more).all(|op| ops.contains(*op)), "{ops:?}");
        assert_eq!(masks.len(), 12, "{masks:?}");
    }
}
