use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::op::Evaluated;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::{DType, OpRef, Tensor, TensorType};
use rlx_kernels::call::{EmbeddingLayerNorm, EmbeddingPart, embedding_layer_norm};
use rlx_kernels::layout::Layout;

use crate::harness::{FLOATS, Placement, cases, check, check_call, random, reference};

cases! {
    rows_of_every_type_by_ids_of_every_type,
    an_id_outside_of_the_table_gives_nan_and_reads_nothing,
    a_sum_of_embeddings_and_its_norm_in_one,
    every_kind_of_sum,
    an_id_outside_of_a_table_spoils_its_token_only,
    sums_that_no_kernel_takes_are_refused,
}

fn rows_of_every_type_by_ids_of_every_type() {
    let mut rng = SplitMix64::new(1);
    for table in FLOATS {
        for dtype in FLOATS {
            for ids in [DType::I32, DType::I64, DType::U32] {
                for width in [1, 33, 300] {
                    let table = random(&mut rng, table, &[11, width], (-2.0, 2.0));
                    let at: Vec<i64> = (0..7).map(|_| rng.below(11) as i64).collect();
                    let ids = Tensor::from_i64(TensorType::new(ids, [7]), &at).unwrap();
                    check(Embedding { scale: 1.5, dtype }, &[table, ids], Placement::Dense, 1);
                }
            }
        }
    }
}

fn an_id_outside_of_the_table_gives_nan_and_reads_nothing() {
    let table = Tensor::f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let op = Embedding::default();
    let inside = Tensor::i32([3], &[1, 1, 1]).unwrap();
    let mut expected = reference(Arc::new(op), &[table.clone(), inside]);
    let nan = [f64::NAN, f64::NAN];
    let values = [nan, [3.0, 4.0], nan].concat();
    expected[0].tensor = Tensor::from_f64(expected[0].tensor.ty().clone(), &values).unwrap();
    let ids = Tensor::i32([3], &[-1, 1, 2]).unwrap();
    check_call("ids outside", &expected, &[table, ids], Placement::Dense, 0, |l| {
        rlx_kernels::call::call(&op, l).unwrap()
    });
}

/// What is summed up: by ids, or a row for all tokens.
pub(super) const SUMS: [&[bool]; 5] =
    [&[true], &[true, true], &[true, true, false], &[true, false, true], &[true, true, true]];

/// The types of the first table and of all others.
pub(super) const TABLES: [[DType; 2]; 3] =
    [[DType::F32, DType::F32], [DType::F16, DType::F16], [DType::F16, DType::F32]];

/// Tables and ids of a sum of `tokens` tokens, then weight and bias, with the places of all.
pub(super) fn block(
    rng: &mut SplitMix64,
    [table, others, ids, weights, dtype]: [DType; 5],
    by_ids: &[bool],
    (tokens, width): (usize, usize),
    with_bias: bool,
) -> (EmbeddingLayerNorm, Vec<Tensor>) {
    let mut operands = Vec::new();
    let mut parts = Vec::new();
    for (at, &by_ids) in by_ids.iter().enumerate() {
        let rows = if by_ids { 7 + at } else { 1 };
        let part = EmbeddingPart { table: operands.len(), ids: None, scale: [1.0, 1.5, 1.0][at] };
        operands.push(random(rng, if at == 0 { table } else { others }, &[rows, width], (-2.0, 2.0)));
        parts.push(EmbeddingPart { ids: by_ids.then_some(operands.len()), ..part });
        if by_ids {
            let at: Vec<i64> = (0..tokens).map(|_| rng.below(rows) as i64).collect();
            operands.push(Tensor::from_i64(TensorType::new(ids, [tokens]), &at).unwrap());
        }
    }
    let weight = operands.len();
    operands.push(random(rng, weights, &[width], (-2.0, 2.0)));
    if with_bias {
        operands.push(random(rng, weights, &[width], (-2.0, 2.0)));
    }
    let bias = with_bias.then_some(weight + 1);
    (EmbeddingLayerNorm { parts, weight, bias, eps: 1e-12, dtype }, operands)
}

/// What single ops give, where all but the last round to f32, as sums in a kernel do.
fn composed(block: &EmbeddingLayerNorm, operands: &[Tensor]) -> Evaluated {
    let one = |op: OpRef, operands: &[Tensor]| reference(op, operands).remove(0);
    let part = |part: &EmbeddingPart| match part.ids {
        Some(ids) => {
            let op = Embedding { scale: part.scale, dtype: DType::F32 };
            one(Arc::new(op), &[operands[part.table].clone(), operands[ids].clone()]).tensor
        }
        None => {
            let row = one(Arc::new(Cast { to: DType::F32 }), &operands[part.table..=part.table]).tensor;
            let scale = Tensor::f32([], &[part.scale as f32]).unwrap();
            one(Arc::new(Binary { kind: BinaryKind::Mul }), &[row, scale]).tensor
        }
    };
    let mut sum = part(&block.parts[0]);
    for next in &block.parts[1..] {
        sum = one(Arc::new(Binary { kind: BinaryKind::Add }), &[sum, part(next)]).tensor;
    }
    let norm_operands: Vec<Tensor> =
        std::iter::once(sum).chain(operands[block.weight..].iter().cloned()).collect();
    let normed = one(Arc::new(LayerNorm { eps: block.eps }), &norm_operands);
    let ty = TensorType::new(block.dtype, normed.tensor.shape());
    Evaluated::computed(&ty, normed.exact.unwrap(), normed.abs_terms.unwrap(), normed.terms).unwrap()
}

pub(super) fn check_block(block: &EmbeddingLayerNorm, operands: &[Tensor], seed: u64) {
    let expected = [composed(block, operands)];
    check_call(&format!("{block:?}"), &expected, operands, Placement::Dense, seed, |l| {
        embedding_layer_norm(block, l).unwrap()
    });
}

fn a_sum_of_embeddings_and_its_norm_in_one() {
    let mut rng = SplitMix64::new(2);
    for tables in TABLES {
        for ids in [DType::I32, DType::I64, DType::U32] {
            for weights in FLOATS {
                for dtype in FLOATS {
                    for (seed, width) in [1, 33, 384].into_iter().enumerate() {
                        let sum = SUMS[(seed + rng.below(SUMS.len())) % SUMS.len()];
                        let types = [tables[0], tables[1], ids, weights, dtype];
                        let (block, operands) = block(&mut rng, types, sum, (5, width), seed != 1);
                        check_block(&block, &operands, seed as u64);
                    }
                }
            }
        }
    }
}

fn every_kind_of_sum() {
    let mut rng = SplitMix64::new(3);
    for dtype in FLOATS {
        for (seed, sum) in SUMS.into_iter().enumerate() {
            for tokens in [0, 1, 9] {
                let types = [dtype, dtype, DType::I32, dtype, dtype];
                let (block, operands) = block(&mut rng, types, sum, (tokens, 100), true);
                check_block(&block, &operands, seed as u64);
            }
        }
    }
}

fn an_id_outside_of_a_table_spoils_its_token_only() {
    let mut rng = SplitMix64::new(4);
    let types = [DType::F32, DType::F32, DType::I32, DType::F32, DType::F32];
    let (block, mut operands) = block(&mut rng, types, &[true, true], (3, 40), true);
    let mut expected = composed(&block, &operands);
    let mut values = expected.tensor.to_f64().unwrap();
    values[40..80].fill(f64::NAN);
    expected.tensor = Tensor::from_f64(expected.tensor.ty().clone(), &values).unwrap();
    let mut ids = operands[3].to_i64().unwrap();
    ids[1] = 8;
    operands[3] = Tensor::from_i64(operands[3].ty().clone(), &ids).unwrap();
    check_call("ids outside", &[expected], &operands, Placement::Dense, 0, |l| {
        embedding_layer_norm(&block, l).unwrap()
    });
}

fn sums_that_no_kernel_takes_are_refused() {
    let mut rng = SplitMix64::new(5);
    let types = [DType::F32, DType::F32, DType::I32, DType::F32, DType::F32];
    let (block, operands) = block(&mut rng, types, &[true, false], (3, 40), true);
    let layouts: Vec<Layout> = operands.iter().map(|t| Layout::dense(t.ty())).collect();
    let refused = |change: &dyn Fn(&mut EmbeddingLayerNorm, &mut Vec<Layout>)| {
        let (mut block, mut layouts) = (block.clone(), layouts.clone());
        change(&mut block, &mut layouts);
        embedding_layer_norm(&block, &layouts).unwrap_err().message().to_owned()
    };
    assert!(refused(&|b, _| b.parts.swap(0, 1)).contains("does not begin with one by ids"));
    assert!(refused(&|b, _| b.parts = vec![b.parts[0]; 4]).contains("at most 3 fit"));
    assert!(refused(&|_, l| l[2].dtype = DType::F16).contains("operand 2 is f16"));
    assert!(refused(&|_, l| l[1].dtype = DType::U8).contains("operand 1 is u8"));
    assert!(refused(&|b, _| b.dtype = DType::BF16).contains("bf16"));
    assert!(refused(&|_, l| l[0].strides[0] = 41).contains("must be dense"));
}
