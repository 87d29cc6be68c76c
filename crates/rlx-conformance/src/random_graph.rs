//! Pseudo-random graphs for property tests of passes: small, valid, and full of what rules look for.

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::reduce::reduce::KeepDims;
use rlx_ir::ops::shape::slice::Slice;
use rlx_ir::quant::BlockType;
use rlx_ir::{Builder, DType, Dim, Graph, Value};

use crate::Result;

/// The width of every activation: one block of `q8_0`.
const WIDTH: usize = 32;

/// A graph of about `nodes` nodes that depends on `seed` alone. Its functions are continuous, so that a change of the order
/// of sums stays small; values are f32 `[N, 32]` between steps.
///
/// # Errors
/// `Bug` where the generator itself is wrong.
pub fn random_graph(seed: u64, nodes: usize) -> Result<Graph> {
    let mut b = Builder::new("random");
    let n = b.symbol("N", 8);
    let values = vec![
        b.input("x", DType::F32, [n.clone(), WIDTH.into()])?,
        b.input("y", DType::F32, [n.clone(), WIDTH.into()])?,
    ];
    let row = b.input("row", DType::F32, [WIDTH])?;
    let slots = b.input("slots", DType::I32, [n.clone()])?;
    let state = b.state("state", DType::F32, [2, 4, 1, WIDTH])?;
    let random = SplitMix64::new(seed);
    let mut g = Generator { b, random, n, values, row, slots, state, kept: Vec::new(), weights: 0 };
    while g.b.graph().nodes().len() < nodes {
        let value = g.step()?;
        g.values.push(value);
    }
    let mut outputs: Vec<Value> = g.values.iter().rev().take(2).copied().collect();
    outputs.push(g.pick());
    outputs.extend(g.kept.last());
    Ok(g.b.finish(&outputs)?)
}

struct Generator {
    b: Builder,
    random: SplitMix64,
    n: Dim,
    values: Vec<Value>,
    /// `[32]`.
    row: Value,
    slots: Value,
    state: Value,
    /// Views of versions of the state, and what was made of some: `[4, 32]`. Others are read after the version was overwritten.
    kept: Vec<Value>,
    weights: usize,
}

impl Generator {
    /// A value, the latest most likely.
    fn pick(&mut self) -> Value {
        let back = self.random.below(3) * self.random.below(3);
        let last = self.values.len() - 1;
        self.values[last - back.min(last)]
    }

    fn weight(&mut self, dtype: DType, shape: &[usize]) -> Result<Value> {
        self.weights += 1;
        Ok(self.b.weight(&format!("w{}", self.weights), dtype, shape)?)
    }

    fn matrix(&mut self, rows: usize) -> Result<Value> {
        let block = DType::Block(BlockType::Q8_0);
        let dtype = if self.random.below(2) == 0 { DType::F32 } else { block };
        self.weight(dtype, &[rows, WIDTH])
    }

    fn step(&mut self) -> Result<Value> {
        let x = self.pick();
        Ok(match self.random.below(21) {
            0 => self.b.tanh(x)?,
            1 => self.b.neg(x)?,
            2 => self.b.relu(x)?,
            3 => self.b.gelu(x, Approximate::Tanh)?,
            4 => self.b.silu(x)?,
            5 | 6 => self.binary(x)?,
            7 => self.with_constant(x)?,
            8 | 9 => self.product(x)?,
            10 => self.gated(x)?,
            11 => {
                let weight = self.weight(DType::F32, &[WIDTH])?;
                self.b.rms_norm(x, weight, RmsNorm { eps: 0.1, unit_offset: false })?
            }
            12 => {
                let (weight, bias) = (self.weight(DType::F32, &[WIDTH])?, self.weight(DType::F32, &[WIDTH])?);
                self.b.layer_norm(x, weight, Some(bias), 0.1)?
            }
            13 => self.there_and_back(x)?,
            14 => self.selection(x)?,
            15 => self.known(x)?,
            16 => self.twice(x)?,
            17 => self.repeated()?,
            _ => self.state(x)?,
        })
    }

    fn binary(&mut self, x: Value) -> Result<Value> {
        let y = self.pick();
        Ok(match self.random.below(3) {
            0 => self.b.add(x, y)?,
            1 => self.b.sub(y, x)?,
            _ => self.b.max(x, y)?,
        })
    }

    fn with_constant(&mut self, x: Value) -> Result<Value> {
        let number = [0.0, -0.0, 1.0, 0.5][self.random.below(4)];
        let c = self.b.scalar(DType::F32, number)?;
        Ok(if self.random.below(2) == 0 { self.b.mul(x, c)? } else { self.b.add(c, x)? })
    }

    /// A product, and by chance what may follow one.
    fn product(&mut self, x: Value) -> Result<Value> {
        let w = self.right_operand()?;
        let scale = self.b.scalar(DType::F32, 0.25)?;
        let x = self.b.mul(x, scale)?;
        let mut y = if self.random.below(2) == 0 {
            self.b.matmul_transposed(x, w)?
        } else {
            let bias =
                if self.random.below(2) == 0 { Some(self.weight(DType::F32, &[WIDTH])?) } else { None };
            self.b.linear(x, w, Linear::default(), bias, None)?
        };
        if self.random.below(2) == 0 {
            let bias = self.weight(DType::F32, &[WIDTH])?;
            y = self.b.add(y, bias)?;
        }
        if self.random.below(2) == 0 {
            y = self.b.silu(y)?;
        }
        if self.random.below(2) == 0 {
            let residual = self.pick();
            y = self.b.add(residual, y)?;
        }
        Ok(y)
    }

    /// A matrix: a weight, of a block type or decoded by hand, or one that is made of weights.
    fn right_operand(&mut self) -> Result<Value> {
        if self.random.below(3) > 0 {
            return self.matrix(WIDTH);
        }
        let w = self.weight(DType::F32, &[WIDTH, WIDTH])?;
        Ok(self.b.transpose(w, [1, 0])?)
    }

    /// Two products of one value, one of which gates the other.
    fn gated(&mut self, x: Value) -> Result<Value> {
        let dtype = if self.random.below(2) == 0 { DType::F32 } else { DType::Block(BlockType::Q8_0) };
        let (gate, up) = (self.weight(dtype, &[WIDTH, WIDTH])?, self.weight(dtype, &[WIDTH, WIDTH])?);
        let scale = self.b.scalar(DType::F32, 0.125)?;
        let x = self.b.mul(x, scale)?;
        if self.random.below(2) == 0 {
            let joint = self.b.concat(&[x, x], 1)?;
            return Ok(self.b.glu(joint, Activation::Gelu)?);
        }
        let gate = self.b.matmul_transposed(x, gate)?;
        let up = self.b.linear(x, up, Linear::default(), None, None)?;
        let gate = self.b.silu(gate)?;
        Ok(self.b.mul(gate, up)?)
    }

    /// Moves that add up to none, or to another order.
    fn there_and_back(&mut self, x: Value) -> Result<Value> {
        let (n, b) = (self.n.clone(), &mut self.b);
        match self.random.below(3) {
            0 => {
                let a = b.reshape(x, [n.clone(), 4.into(), 8.into()])?;
                let c = b.transpose(a, [0, 2, 1])?;
                Ok(b.reshape(c, [n, WIDTH.into()])?)
            }
            1 => {
                let a = b.transpose(x, [1, 0])?;
                let c = b.transpose(a, [1, 0])?;
                Ok(b.cast(c, DType::F32)?)
            }
            _ => {
                let half =
                    |start: i64| Slice { axis: 1, start: Dim::constant(start), len: 16.into(), step: 1 };
                let low = b.emit_one(half(0), &[x])?;
                let high = b.emit_one(half(16), &[x])?;
                Ok(b.concat(&[high, low], 1)?)
            }
        }
    }

    /// The condition is made of inputs, so that a rounding error elsewhere cannot turn it over.
    fn selection(&mut self, x: Value) -> Result<Value> {
        let (a, c) = (self.values[0], self.values[1]);
        let condition = self.b.lt(a, c)?;
        let y = self.pick();
        Ok(self.b.select(condition, x, y)?)
    }

    /// What is known before the run.
    fn known(&mut self, x: Value) -> Result<Value> {
        let y = self.pick();
        match self.random.below(3) {
            0 => {
                let condition = self.b.scalar(DType::Bool, self.random.below(2) as f64)?;
                Ok(self.b.select(condition, x, y)?)
            }
            1 => {
                let (a, c) = (self.b.scalar(DType::F32, 0.5)?, self.b.scalar(DType::F32, 0.25)?);
                let sum = self.b.add(a, c)?;
                Ok(self.b.mul(x, sum)?)
            }
            _ => {
                // Every f32 is an f64.
                let wide = self.b.cast(x, DType::F64)?;
                let same = self.b.cast(wide, DType::F32)?;
                Ok(self.b.max(same, y)?)
            }
        }
    }

    /// One row, or one column, for all: whatever op follows is given a view with a stride of 0.
    fn repeated(&mut self) -> Result<Value> {
        let part = if self.random.below(3) > 0 {
            self.row
        } else {
            let x = self.pick();
            self.b.emit_one(Slice { axis: 1, start: 3.into(), len: 1.into(), step: 1 }, &[x])?
        };
        let whole = self.b.broadcast(part, [self.n.clone(), WIDTH.into()])?;
        if self.random.below(2) == 0 {
            return Ok(whole);
        }
        // Other products scale their operand first, which makes it dense.
        let w = self.right_operand()?;
        let y = self.b.matmul_transposed(whole, w)?;
        let scale = self.b.scalar(DType::F32, 0.125)?;
        Ok(self.b.mul(y, scale)?)
    }

    /// An op of its own result.
    fn twice(&mut self, x: Value) -> Result<Value> {
        Ok(match self.random.below(4) {
            0 => {
                let y = self.b.neg(x)?;
                self.b.neg(y)?
            }
            1 => {
                let y = self.b.abs(x)?;
                self.b.abs(y)?
            }
            2 => {
                let y = self.b.relu(x)?;
                self.b.relu(y)?
            }
            _ => {
                // Both are made of the same.
                let (y, z) = (self.b.tanh(x)?, self.b.tanh(x)?);
                self.b.add(y, z)?
            }
        })
    }

    /// Writes the state, keeps a view of the version that there is, or reads such a view, however old.
    fn state(&mut self, x: Value) -> Result<Value> {
        match self.random.below(4) {
            0 => {
                let row = self.row(x)?;
                self.state = self.b.kv_write(self.state, row, self.slots)?;
                Ok(x)
            }
            1 => {
                let page = self.page()?;
                let rows = match self.random.below(3) {
                    0 => self.b.neg(page)?,
                    _ => page,
                };
                self.kept.push(rows);
                Ok(x)
            }
            2 if !self.kept.is_empty() => {
                let rows = self.kept[self.random.below(self.kept.len())];
                let rows = if self.random.below(2) == 0 { self.b.abs(rows)? } else { rows };
                self.add_mean(x, rows)
            }
            _ => {
                let page = self.page()?;
                self.add_mean(x, page)
            }
        }
    }

    /// A row for each token: of `x`, or of the state itself.
    fn row(&mut self, x: Value) -> Result<Value> {
        let (n, one) = (self.n.clone(), Dim::constant(1));
        if self.random.below(4) > 0 {
            return Ok(self.b.reshape(x, [n, one, WIDTH.into()])?);
        }
        let rows = self.b.reshape(self.state, [8, 1, WIDTH])?;
        Ok(self.b.emit_one(Slice { axis: 0, start: 0.into(), len: n, step: 1 }, &[rows])?)
    }

    /// A page of the state as `[4, 32]`, through several views.
    fn page(&mut self) -> Result<Value> {
        let start = self.random.below(2);
        let page =
            self.b.emit_one(Slice { axis: 0, start: start.into(), len: 1.into(), step: 1 }, &[self.state])?;
        if self.random.below(2) == 0 {
            return Ok(self.b.reshape(page, [4, WIDTH])?);
        }
        // Rows in another order: no strides say the second reshape, which is of a view that lies elsewhere.
        let turned = self.b.transpose(page, [0, 2, 3, 1])?;
        Ok(self.b.reshape(turned, [4, WIDTH])?)
    }

    fn add_mean(&mut self, x: Value, rows: Value) -> Result<Value> {
        let mean = self.b.reduce_mean(rows, &[0], KeepDims::No)?;
        Ok(self.b.add(x, mean)?)
    }
}
