//! Seeded random cases over all ops that have a kernel: sizes, dtypes and layouts that nobody thought of.

use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::attention::paged_attention::PagedAttention;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::ops::pooling::l2_normalize::L2Normalize;
use rlx_ir::ops::pooling::pool::{Pool, PoolMode};
use rlx_ir::ops::position::rope::{Rope, RopeStyle};
use rlx_ir::ops::reduce::reduce::{KeepDims, Reduce, ReduceKind};
use rlx_ir::ops::shape::transpose::Transpose;
use rlx_ir::{DType, OpRef, Tensor, TensorType};
use rlx_kernels::call::copy;
use rlx_kernels::layout::Layout;

use super::attention::mask_operand;
use super::elementwise::{TYPES, check_regions, fused};
use super::embedding::{SUMS, TABLES, block, check_block};
use super::paged_attention::Shape as PagedShape;
use crate::harness::{FLOATS, Placement, cases, check, check_call, random, reference};

cases! {
    random_cases_one_of_four,
    random_cases_two_of_four,
    random_cases_three_of_four,
    random_cases_four_of_four,
    random_regions,
}

/// The number of cases, which are the same in each run.
const COUNT: usize = 200;

/// What draws a case.
struct Draw {
    rng: SplitMix64,
    placement: Placement,
    seed: u64,
}

const SPAN: (f64, f64) = (-2.0, 2.0);

impl Draw {
    fn new(case: usize) -> Self {
        let mut rng = SplitMix64::new(0x5eed_0000 + case as u64);
        let placement = if rng.below(2) == 0 { Placement::Dense } else { Placement::Gaps };
        Self { rng, placement, seed: case as u64 }
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.rng.below(list.len())]
    }

    fn flag(&mut self) -> bool {
        self.rng.below(2) == 0
    }

    /// A size from 1 to `most`: every magnitude is as likely, and every third lies within one of a power of two.
    fn size(&mut self, most: usize) -> usize {
        let magnitude = 2f64.powf(self.rng.uniform() * (most as f64).log2());
        let size = match self.rng.below(3) {
            0 => (magnitude as usize).next_power_of_two() + self.rng.below(3) - 1,
            _ => magnitude as usize,
        };
        size.clamp(1, most)
    }

    fn float(&mut self) -> DType {
        self.pick(&FLOATS)
    }

    fn tensor(&mut self, dtype: DType, shape: &[usize]) -> Tensor {
        random(&mut self.rng, dtype, shape, SPAN)
    }

    fn integers(&mut self, dtype: DType, count: usize, below: usize) -> Tensor {
        let values: Vec<i64> = (0..count).map(|_| self.rng.below(below) as i64).collect();
        Tensor::from_i64(TensorType::new(dtype, [count]), &values).unwrap()
    }

    fn check(&self, op: impl rlx_ir::Op, operands: &[Tensor]) {
        check(op, operands, self.placement, self.seed);
    }
}

fn softmax(d: &mut Draw) {
    let (dtype, shape) = (d.float(), [d.size(6), d.size(40), d.size(300)]);
    let x = random(&mut d.rng, dtype, &shape, (-8.0, 8.0));
    let axis = d.pick(&[-1, 1]);
    let scale = d.pick(&[1.0, 0.125, -0.7]);
    d.check(Softmax { axis, scale }, &[x]);
}

fn norms(d: &mut Draw) {
    let (dtype, weights) = (d.float(), d.float());
    let shape = [d.size(5), d.size(7), d.size(2000)];
    let mut operands = vec![d.tensor(dtype, &shape)];
    let residual = d.flag();
    if residual {
        operands.push(d.tensor(dtype, &shape));
    }
    operands.push(d.tensor(weights, &shape[2..]));
    let eps = d.pick(&[1e-12, 1e-6, 1e-3]);
    if d.flag() {
        let norm = RmsNorm { eps, unit_offset: d.flag() };
        if residual {
            d.check(AddRmsNorm { norm }, &operands);
        } else {
            d.check(norm, &operands);
        }
        return;
    }
    if d.flag() {
        operands.push(d.tensor(weights, &shape[2..]));
    }
    if residual { d.check(AddLayerNorm { eps }, &operands) } else { d.check(LayerNorm { eps }, &operands) }
}

fn cast(d: &mut Draw) {
    let (from, to, shape) = (d.pick(&TYPES), d.pick(&TYPES), [d.size(5), d.size(700)]);
    let x = random(&mut d.rng, from, &shape, (-300.0, 300.0));
    if from != to {
        d.placement = Placement::Dense;
    }
    d.check(Cast { to }, &[x]);
}

fn reduce(d: &mut Draw) {
    let dtype = d.pick(&[DType::F32, DType::F16, DType::I32, DType::U32]);
    let kinds: Vec<ReduceKind> =
        ReduceKind::ALL.iter().copied().filter(|k| dtype.is_float() || *k != ReduceKind::Mean).collect();
    let kind = d.pick(&kinds);
    // A long product leaves the range of any type.
    let most = if kind == ReduceKind::Prod { 5 } else { 60 };
    let shape = [d.size(most), d.size(most), d.size(most)];
    let axes: Vec<i64> = (0..3).filter(|_| d.flag()).collect();
    let axes = if axes.is_empty() { vec![1] } else { axes };
    let span = if dtype.is_float() { (-1.5, 1.5) } else { (0.0, 4e9) };
    let x = random(&mut d.rng, dtype, &shape, span);
    let keep_dims = if d.flag() { KeepDims::Yes } else { KeepDims::No };
    d.check(Reduce { kind, axes, keep_dims }, &[x]);
}

fn copied(d: &mut Draw) {
    let dtype = d.pick(&[DType::U8, DType::I16, DType::F16, DType::F32, DType::I32, DType::I64]);
    let rank = 1 + d.rng.below(5);
    let shape: Vec<usize> = (0..rank).map(|_| d.size(12)).collect();
    let mut perm: Vec<usize> = (0..rank).collect();
    (1..rank).for_each(|at| perm.swap(at, d.rng.below(at + 1)));
    let x = random(&mut d.rng, dtype, &shape, (0.0, 100.0));
    let expected = reference(Arc::new(Transpose { perm: perm.clone() }), std::slice::from_ref(&x));
    check_call("copy", &expected, &[x], d.placement, d.seed, |l| {
        let pick = |list: &[usize]| perm.iter().map(|p| list[*p]).collect();
        let from = Layout { dtype, shape: pick(&l[0].shape), strides: pick(&l[0].strides) };
        copy(&from, &Layout::dense(expected[0].tensor.ty())).unwrap()
    });
}

fn embedding_block(d: &mut Draw) {
    let ids = d.pick(&[DType::I32, DType::I64, DType::U32]);
    let [table, others] = d.pick(&TABLES);
    let types = [table, others, ids, d.float(), d.float()];
    let (sum, tokens, width, with_bias) = (d.pick(&SUMS), d.size(40), d.size(1100), d.flag());
    let (block, operands) = block(&mut d.rng, types, sum, (tokens, width), with_bias);
    check_block(&block, &operands, d.seed);
}

fn embedding(d: &mut Draw) {
    let (from, ids, dtype) = (d.float(), d.pick(&[DType::I32, DType::I64, DType::U32]), d.float());
    let (rows, width, tokens) = (d.size(90), d.size(500), d.size(40));
    let operands = [d.tensor(from, &[rows, width]), d.integers(ids, tokens, rows)];
    d.placement = Placement::Dense;
    let scale = d.pick(&[1.0, 22.627]);
    d.check(Embedding { scale, dtype }, &operands);
}

fn rope(d: &mut Draw) {
    let (dtype, tokens, heads, head_dim) = (d.float(), d.size(40), d.size(6), 2 * d.size(64));
    let pairs = d.rng.below(head_dim / 2 + 1);
    let frequencies: Vec<f32> = (0..pairs).map(|i| 0.8f32.powi(i as i32)).collect();
    let operands = [
        d.tensor(dtype, &[tokens, heads, head_dim]),
        d.integers(DType::I32, tokens, 600),
        Tensor::f32([pairs], &frequencies).unwrap(),
    ];
    let style = d.pick(&[RopeStyle::Half, RopeStyle::Interleaved]);
    d.check(Rope { style, scale: 1.0 }, &operands);
}

fn glu(d: &mut Draw) {
    let (dtype, shape) = (d.float(), [d.size(9), d.size(5), 2 * d.size(300)]);
    let x = d.tensor(dtype, &shape);
    let (_, activation) = d.pick(Activation::WORDS);
    d.check(Glu { activation }, &[x]);
}

fn pooling(d: &mut Draw) {
    let (dtype, width) = (d.float(), d.size(900));
    if d.flag() {
        let shape = [d.size(20), width];
        let x = d.tensor(dtype, &shape);
        return d.check(L2Normalize { eps: 1e-12 }, &[x]);
    }
    let mut starts = vec![d.rng.below(3) as i32];
    for _ in 0..d.size(12) {
        let tokens = d.pick(&[0, 1, 1, 3, 20]);
        starts.push(starts[starts.len() - 1] + tokens);
    }
    let tokens = starts[starts.len() - 1] as usize + d.rng.below(3);
    let operands = [d.tensor(dtype, &[tokens, width]), Tensor::i32([starts.len()], &starts).unwrap()];
    let (_, mode) = d.pick(PoolMode::WORDS);
    d.check(Pool { mode }, &operands);
}

fn linear(d: &mut Draw) {
    let (dtype, weights, biases) = (d.float(), d.float(), d.float());
    let (m, n, k) = (d.size(400), d.size(400), d.size(900));
    let (_, activation) = d.pick(Activation::WORDS);
    let op = Linear { bias: d.flag(), residual: d.flag(), activation };
    let mut operands = vec![d.tensor(dtype, &[m, k]), d.tensor(weights, &[n, k])];
    if op.bias {
        operands.push(d.tensor(biases, &[n]));
    }
    if op.residual {
        operands.push(d.tensor(dtype, &[m, n]));
    }
    d.check(op, &operands);
}

fn matmul(d: &mut Draw) {
    let (a, b, transpose_b) = (d.float(), d.float(), d.flag());
    let outer = [d.size(4), d.size(4)];
    let (m, n, k) = (d.size(150), d.size(150), d.size(200));
    let matrix = if transpose_b { [n, k] } else { [k, n] };
    let stack = |d: &mut Draw| -> Vec<usize> {
        let from = d.rng.below(3);
        outer[from..].iter().map(|size| if d.rng.below(4) == 0 { 1 } else { *size }).collect()
    };
    let (a_outer, b_outer) = (stack(d), stack(d));
    let operands =
        [d.tensor(a, &[&a_outer[..], &[m, k]].concat()), d.tensor(b, &[&b_outer[..], &matrix].concat())];
    d.check(MatMul { transpose_b }, &operands);
}

/// Which keys are seen; the kinds with an operand come last.
fn mask(d: &mut Draw, kinds: usize) -> Mask {
    match d.rng.below(kinds) {
        0 => Mask::None,
        1 => Mask::Causal,
        2 => Mask::SlidingWindow { window: d.size(50) },
        3 => Mask::Local { window: d.size(50) - 1 },
        4 => Mask::Custom,
        _ => Mask::Bias,
    }
}

/// Up to 7 sequences of up to 60 tokens: starts, and the longest one.
fn sequences(d: &mut Draw) -> (Vec<i32>, usize) {
    let mut starts = vec![d.rng.below(3)];
    let mut longest = 0;
    for _ in 0..d.size(7) {
        let length = if d.rng.below(6) == 0 { 0 } else { d.size(60) };
        longest = longest.max(length);
        starts.push(starts[starts.len() - 1] + length);
    }
    (starts.into_iter().map(|s| s as i32).collect(), longest)
}

fn attention(d: &mut Draw) {
    let (dtype, mask) = (d.float(), mask(d, 6));
    let (starts, longest) = sequences(d);
    let tokens = starts[starts.len() - 1] as usize + d.rng.below(3);
    let (kv_heads, group, dim) = (d.size(3), d.size(3), d.size(140));
    let v_dim = if d.flag() { dim } else { d.size(140) };
    let heads = kv_heads * group;
    let mut operands = vec![
        d.tensor(dtype, &[tokens, heads, dim]),
        d.tensor(dtype, &[tokens, kv_heads, dim]),
        d.tensor(dtype, &[tokens, kv_heads, v_dim]),
        Tensor::i32([starts.len()], &starts).unwrap(),
    ];
    if mask.has_operand() {
        let dtype = if mask == Mask::Custom { DType::Bool } else { d.float() };
        let shape = [if d.flag() { heads } else { 1 }, tokens, longest + d.rng.below(3)];
        operands.push(mask_operand(&mut d.rng, dtype, shape));
    }
    let (scale, softcap) = (1.0 / (dim as f64).sqrt(), d.pick(&[None, None, Some(2.0)]));
    d.check(Attention { mask, scale, softcap }, &operands);
}

fn paged(d: &mut Draw) {
    let (kv_heads, group, dim) = (d.size(3), d.size(3), d.size(140));
    let shape = PagedShape {
        q: d.float(),
        state: d.float(),
        heads: kv_heads * group,
        kv_heads,
        dim,
        v_dim: if d.flag() { dim } else { d.size(140) },
        page_len: d.pick(&[4, 7, 16]),
    };
    // New tokens of each sequence, behind those that it had.
    let (mut starts, mut lengths) = (vec![0], Vec::new());
    for _ in 0..d.size(3) {
        let new = if d.flag() { 1 } else { d.size(20) };
        starts.push(starts[starts.len() - 1] + new as i32);
        lengths.push(new + d.rng.below(20));
    }
    let operands = shape.operands(&mut d.rng, &starts, &lengths);
    let (mask, scale) = (mask(d, 4), 1.0 / (dim as f64).sqrt());
    let softcap = d.pick(&[None, Some(2.0)]);
    d.placement = Placement::Dense;
    d.check(PagedAttention { mask, scale, softcap }, &operands);
}

/// Products are drawn most often, since most can go wrong there.
const OPS: &[fn(&mut Draw)] = &[
    linear,
    softmax,
    norms,
    matmul,
    cast,
    reduce,
    linear,
    copied,
    embedding,
    rope,
    matmul,
    embedding_block,
    attention,
    paged,
    glu,
    pooling,
];

/// A region of several ops over operands that broadcast, of which the first has the whole shape.
fn drawn_region(d: &mut Draw) -> (FusedRegion, Vec<Tensor>) {
    let (dtype, shape) = (d.float(), [d.size(5), d.size(9), d.size(90)]);
    let mut operands = vec![d.tensor(dtype, &shape)];
    for _ in 0..d.rng.below(5) {
        let from = d.rng.below(4);
        let narrow: Vec<usize> =
            shape[from..].iter().map(|size| if d.rng.below(3) == 0 { 1 } else { *size }).collect();
        operands.push(d.tensor(dtype, &narrow));
    }
    let region = fused(&operands, |b, inputs| {
        let mut values = inputs.to_vec();
        for _ in 0..d.size(9) {
            let (left, right) = (values[values.len() - 1], d.pick(&values));
            let kind = d.pick(&[
                BinaryKind::Add,
                BinaryKind::Sub,
                BinaryKind::Max,
                BinaryKind::Min,
                BinaryKind::Mul,
            ]);
            let op: OpRef = Arc::new(Binary { kind });
            let value = b.emit_ref(op, &[left, right]).unwrap()[0];
            // What follows keeps products small.
            let value = match d.rng.below(6) {
                0 => b.gelu(value, Approximate::None).unwrap(),
                1 => b.silu(value).unwrap(),
                _ if kind == BinaryKind::Mul => b.tanh(value).unwrap(),
                2 => b.sigmoid(value).unwrap(),
                3 => b.relu(value).unwrap(),
                _ => value,
            };
            values.push(value);
        }
        // Every operand is used, and the result has the shape of the first.
        let last = values[values.len() - 1];
        vec![inputs.iter().fold(last, |sum, input| b.add(sum, *input).unwrap())]
    });
    (region, operands)
}

fn random_regions() {
    let mut draw = Draw::new(COUNT);
    let drawn: Vec<_> = (0..16).map(|_| drawn_region(&mut draw)).collect();
    check_regions(&drawn, Placement::Dense);
    check_regions(&drawn, Placement::Gaps);
}

/// Cases share nothing, so they run on several threads.
fn every_fourth(first: usize) {
    for case in (first..COUNT).step_by(4) {
        OPS[case % OPS.len()](&mut Draw::new(case));
    }
}

fn random_cases_one_of_four() {
    every_fourth(0);
}

fn random_cases_two_of_four() {
    every_fourth(1);
}

fn random_cases_three_of_four() {
    every_fourth(2);
}

fn random_cases_four_of_four() {
    every_fourth(3);
}
