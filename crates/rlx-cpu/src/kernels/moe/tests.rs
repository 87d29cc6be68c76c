use half::f16;
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::*;
use crate::kernels::matmul::{Arrangement, PackedBuf, PackedShape};
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

const EXPERTS: usize = 5;
const HIDDEN: usize = 64;
const INNER: usize = 96;
const EACH: usize = 3;

/// Matrices `[E, rows, depth]`: packed one after the other, and their values.
struct Stack {
    shape: PackedShape,
    bytes: Vec<crate::kernels::matmul::Line>,
    values: Vec<f32>,
}

impl Stack {
    fn new(seed: u64, rows: usize, depth: usize) -> Self {
        let block = BlockType::Q8_0;
        let dtype = DType::Block(block);
        let shape = PackedShape::new(dtype, rows, depth, Arrangement::Plain).unwrap();
        let mut values = Numbers::new(seed).floats(EXPERTS * rows * depth);
        let mut source = vec![0; EXPERTS * rows * dtype.row_bytes(depth).unwrap()];
        block.encode(&values, None, &mut source).unwrap();
        block.decode(&source, &mut values).unwrap();
        let mut packed = Vec::new();
        for source in source.chunks(source.len() / EXPERTS) {
            packed.extend_from_slice(PackedBuf::pack(shape, source).unwrap().view().bytes());
        }
        let mut bytes = vec![bytemuck::Zeroable::zeroed(); packed.len().div_ceil(64)];
        bytemuck::cast_slice_mut::<_, u8>(&mut bytes)[..packed.len()].copy_from_slice(&packed);
        Self { shape, bytes, values }
    }

    fn view(&self) -> PackedStack<'_> {
        let bytes = EXPERTS * self.shape.bytes();
        PackedStack::new(self.shape, EXPERTS, &bytemuck::cast_slice(&self.bytes)[..bytes]).unwrap()
    }

    fn product(&self, e: usize, x: &[f64]) -> Vec<f64> {
        let (rows, depth) = (self.shape.rows(), self.shape.depth());
        let matrix = &self.values[e * rows * depth..][..rows * depth];
        matrix.chunks(depth).map(|w| w.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum()).collect()
    }
}

struct Layer {
    gate: Stack,
    up: Stack,
    down: Stack,
}

impl Layer {
    fn new() -> Self {
        Self {
            gate: Stack::new(1, INNER, HIDDEN),
            up: Stack::new(2, INNER, HIDDEN),
            down: Stack::new(3, HIDDEN, INNER),
        }
    }

    fn experts(&self, function: GateFunction) -> Experts<'_> {
        Experts { function, gate: self.gate.view(), up: self.up.view(), down: self.down.view() }
    }

    fn reference(&self, act: impl Fn(f64) -> f64, x: &[f32], weights: &[f32], chosen: &[i32]) -> Vec<f64> {
        let mut out = Vec::new();
        for (n, x) in x.chunks(HIDDEN).enumerate() {
            let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
            let mut sum = vec![0.0; HIDDEN];
            for k in n * EACH..(n + 1) * EACH {
                let Some(e) = usize::try_from(chosen[k]).ok().filter(|e| *e < EXPERTS) else { continue };
                let (gate, up) = (self.gate.product(e, &x), self.up.product(e, &x));
                let product: Vec<f64> = gate.into_iter().zip(up).map(|(g, u)| act(g) * u).collect();
                let y = self.down.product(e, &product);
                sum.iter_mut().zip(y).for_each(|(s, y)| *s += f64::from(weights[k]) * y);
            }
            out.extend(sum);
        }
        out
    }
}

fn choices(tokens: usize) -> (Vec<f32>, Vec<f32>, Vec<i32>) {
    let mut numbers = Numbers::new(tokens as u64);
    let x = numbers.floats(tokens * HIDDEN);
    let weights = numbers.floats(tokens * EACH);
    // Also none of them, and one twice.
    let chosen = (0..tokens * EACH).map(|_| (numbers.next() % (EXPERTS as u64 + 2)) as i32 - 1).collect();
    (x, weights, chosen)
}

#[test]
fn experts_match_f64() {
    let layer = Layer::new();
    let silu = |x: f64| x / (1.0 + (-x).exp());
    for tokens in [0, 1, 2, 40] {
        let (x, weights, chosen) = choices(tokens);
        for (function, act) in [
            (GateFunction::Epilogue(Activation::Silu), &silu as &dyn Fn(f64) -> f64),
            (GateFunction::After(Unary::Tanh), &f64::tanh),
        ] {
            let reference = layer.reference(act, &x, &weights, &chosen);
            everywhere(|cpu| {
                let mut out = vec![f32::NAN; x.len()];
                moe(cpu, &layer.experts(function), &x, &weights, &chosen, &mut out).unwrap();
                close(&format!("{tokens} {function:?} {cpu:?}"), &out, &reference, |_| 2e-3);
            });
        }
    }
}

#[test]
fn a_token_has_the_same_bits_in_every_batch() {
    let layer = Layer::new();
    let experts = layer.experts(GateFunction::Epilogue(Activation::Silu));
    let (x, weights, chosen) = choices(30);
    let run = |cpu: Cpu<'_>, from: usize, to: usize| {
        let mut out = vec![f32::NAN; (to - from) * HIDDEN];
        let (tokens, choices) = (from * HIDDEN..to * HIDDEN, from * EACH..to * EACH);
        moe(cpu, &experts, &x[tokens], &weights[choices.clone()], &chosen[choices], &mut out).unwrap();
        out
    };
    everywhere(|cpu| {
        let all = run(cpu, 0, 30);
        for (from, to) in [(0, 1), (7, 8), (29, 30), (3, 12)] {
            assert_eq!(run(cpu, from, to), all[from * HIDDEN..to * HIDDEN], "{cpu:?}");
        }
    });
    same_bits_everywhere(|cpu| run(cpu, 0, 30));
}

#[test]
fn what_was_not_chosen_does_not_matter_and_sizes_are_checked() {
    let layer = Layer::new();
    let experts = layer.experts(GateFunction::Epilogue(Activation::None));
    everywhere(|cpu| {
        let x = vec![f16::ONE; HIDDEN];
        let mut out = vec![f16::NAN; HIDDEN];
        moe(cpu, &experts, &x, &[f32::NAN, f32::INFINITY], &[-1, EXPERTS as i32], &mut out).unwrap();
        assert!(out.iter().all(|&y| y == f16::ZERO));
        assert!(moe(cpu, &experts, &x[1..], &[1.0], &[0], &mut out[1..]).is_err());
        assert!(moe(cpu, &experts, &x, &[1.0], &[0, 1], &mut out).is_err());
        let wrong = Experts { down: layer.up.view(), ..experts };
        assert!(moe(cpu, &wrong, &x, &[1.0], &[0], &mut out).is_err());
    });
}
