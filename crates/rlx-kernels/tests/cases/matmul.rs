use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::shape::transpose::Transpose;
use rlx_ir::{DType, Tensor, TensorType};
use rlx_kernels::call::call;
use rlx_kernels::layout::Layout;

use crate::harness::{FLOATS, Placement, cases, check, check_call, random, reference};

cases! {
    sizes_choose_the_kernel,
    each_axis_around_the_edges_of_tiles,
    large_tiles_around_their_edges,
    all_that_may_follow_a_product,
    long_sums,
    rows_of_any_number_of_axes,
    stacks_broadcast,
    operands_lie_in_any_order_of_axes,
    rows_and_residuals_lie_at_distances_of_their_own,
    what_is_not_finite_stays_in_its_row_and_column,
    products_that_no_kernel_takes_are_refused,
}

const SPAN: (f64, f64) = (-1.5, 1.5);

/// `x`, `w`, then bias and residual where the op has them.
fn operands(rng: &mut SplitMix64, op: Linear, types: [DType; 3], x: &[usize], n: usize) -> Vec<Tensor> {
    let k = x[x.len() - 1];
    let mut list = vec![random(rng, types[0], x, SPAN), random(rng, types[1], &[n, k], SPAN)];
    if op.bias {
        list.push(random(rng, types[2], &[n], SPAN));
    }
    if op.residual {
        let shape = [&x[..x.len() - 1], &[n]].concat();
        list.push(random(rng, types[0], &shape, SPAN));
    }
    list
}

/// Every dtype of `x`, weight and bias.
fn types() -> Vec<[DType; 3]> {
    let all = FLOATS.into_iter().flat_map(|x| FLOATS.into_iter().map(move |w| [x, w]));
    all.flat_map(|[x, w]| FLOATS.into_iter().map(move |b| [x, w, b])).collect()
}

/// The name of the kernel for dense f32 operands.
fn kernel(m: usize, n: usize, k: usize) -> &'static str {
    let layouts = [[m, k], [n, k]].map(|shape| Layout::dense(&TensorType::new(DType::F32, shape)));
    &call(&MatMul { transpose_b: true }, &layouts).unwrap().kernel.name
}

fn sizes_choose_the_kernel() {
    let names = [
        ((1, 384, 384), "matmul_few_rows_1_f32_f32_f32"),
        ((4, 384, 384), "matmul_few_rows_4_f32_f32_f32"),
        ((5, 384, 384), "matmul_tile32_f32_f32_f32_f32"),
        ((256, 384, 384), "matmul_tile64_f32_f32_f32_f32"),
        ((32, 4096, 384), "matmul_tile32_f32_f32_f32_f32"),
        ((192, 384, 384), "matmul_tile32_f32_f32_f32_f32"),
    ];
    for ((m, n, k), name) in names {
        assert_eq!(kernel(m, n, k), name, "{m} x {n} x {k}");
    }
}

fn each_axis_around_the_edges_of_tiles() {
    let mut rng = SplitMix64::new(1);
    let sizes = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 37, 63, 64, 65];
    let ops = [
        Linear::default(),
        Linear { bias: true, residual: false, activation: Activation::Gelu },
        Linear { bias: true, residual: true, activation: Activation::None },
    ];
    for (seed, size) in sizes.into_iter().enumerate() {
        for (axis, [m, n, k]) in
            [[size, 37, 19], [37, size, 19], [34, 33, size], [3, size, 19], [3, 21, size]]
                .into_iter()
                .enumerate()
        {
            for types in [[DType::F32; 3], [DType::F16; 3], [DType::F32, DType::F16, DType::F32]] {
                let op = ops[(seed + axis) % ops.len()];
                let placement = if axis % 2 == 0 { Placement::Gaps } else { Placement::Dense };
                check(op, &operands(&mut rng, op, types, &[m, k], n), placement, seed as u64);
            }
        }
    }
}

fn large_tiles_around_their_edges() {
    let mut rng = SplitMix64::new(2);
    for [m, n, k] in [[64, 64, 17], [63, 64, 32], [64, 65, 16], [65, 63, 33], [33, 129, 1], [129, 33, 40]] {
        let tiles = usize::div_ceil(m, 64) * usize::div_ceil(n, 64);
        let batches = 24usize.div_ceil(tiles);
        for dtype in FLOATS {
            let a = random(&mut rng, dtype, &[batches, m, k], SPAN);
            let b = random(&mut rng, dtype, &[batches, n, k], SPAN);
            let layouts = [&a, &b].map(|t| Layout::dense(t.ty()));
            let op = MatMul { transpose_b: true };
            assert!(call(&op, &layouts).unwrap().kernel.name.starts_with("matmul_tile64"));
            check(op, &[a, b], Placement::Gaps, 1);
        }
    }
    // One product in which all tiles share operands, with all that may follow.
    for types in types() {
        let op = Linear { bias: true, residual: true, activation: Activation::GeluTanh };
        let operands = operands(&mut rng, op, types, &[250, 21], 390);
        check(op, &operands, Placement::Dense, 2);
    }
}

fn all_that_may_follow_a_product() {
    let mut rng = SplitMix64::new(3);
    for types in types() {
        for &(_, activation) in Activation::WORDS {
            for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
                let op = Linear { bias, residual, activation };
                for (seed, m) in [1, 3, 9].into_iter().enumerate() {
                    let operands = operands(&mut rng, op, types, &[m, 40], 35);
                    let placement = if residual { Placement::Gaps } else { Placement::Dense };
                    check(op, &operands, placement, seed as u64);
                }
            }
        }
    }
}

fn long_sums() {
    let mut rng = SplitMix64::new(4);
    for types in types() {
        for m in [1, 4, 6] {
            let op = Linear { bias: true, residual: false, activation: Activation::Silu };
            check(op, &operands(&mut rng, op, types, &[m, 1031], 18), Placement::Gaps, 3);
        }
    }
}

fn rows_of_any_number_of_axes() {
    let mut rng = SplitMix64::new(5);
    let op = Linear { bias: true, residual: true, activation: Activation::None };
    for shape in [&[1, 20][..], &[2, 3, 20], &[2, 5, 3, 20], &[1, 1, 20], &[3, 0, 20]] {
        for dtype in FLOATS {
            for placement in [Placement::Dense, Placement::Gaps] {
                check(op, &operands(&mut rng, op, [dtype; 3], shape, 33), placement, 1);
            }
        }
    }
}

fn stacks_broadcast() {
    let mut rng = SplitMix64::new(6);
    let stacks: [(&[usize], &[usize]); 9] = [
        (&[], &[]),
        (&[3], &[3]),
        (&[3], &[]),
        (&[], &[3]),
        (&[3, 1], &[1, 2]),
        (&[2, 3], &[3]),
        (&[3], &[2, 3]),
        (&[2, 3, 2], &[2, 1, 2]),
        (&[0], &[1]),
    ];
    for (a_outer, b_outer) in stacks {
        for (at, [m, n, k]) in [[1, 5, 33], [1, 1, 1], [3, 9, 40], [7, 35, 18]].into_iter().enumerate() {
            for transpose_b in [false, true] {
                for types in [[DType::F32, DType::F32], [DType::F16, DType::F16], [DType::F16, DType::F32]] {
                    let matrix = if transpose_b { [n, k] } else { [k, n] };
                    let a = random(&mut rng, types[0], &[a_outer, &[m, k]].concat(), SPAN);
                    let b = random(&mut rng, types[1], &[b_outer, &matrix].concat(), SPAN);
                    let placement = if at % 2 == 0 { Placement::Gaps } else { Placement::Dense };
                    check(MatMul { transpose_b }, &[a, b], placement, at as u64);
                }
            }
        }
    }
}

/// A layout with its axes in another order.
fn turned(layout: &Layout, perm: [usize; 3]) -> Layout {
    let pick = |list: &[usize]| perm.map(|p| list[p]).to_vec();
    Layout { dtype: layout.dtype, shape: pick(&layout.shape), strides: pick(&layout.strides) }
}

fn operands_lie_in_any_order_of_axes() {
    let mut rng = SplitMix64::new(7);
    for (m, n, k) in [(2, 9, 40), (34, 33, 18)] {
        for dtype in FLOATS {
            // As heads of tokens: [m, batch, k] and [n, batch, k], and both matrices turned.
            for perm in [[1, 0, 2], [1, 2, 0], [0, 2, 1], [2, 1, 0]] {
                let stored = |shape: [usize; 3]| {
                    let mut out = [0; 3];
                    perm.iter().zip(shape).for_each(|(&p, size)| out[p] = size);
                    out
                };
                let a = random(&mut rng, dtype, &stored([3, m, k]), SPAN);
                let b = random(&mut rng, dtype, &stored([3, n, k]), SPAN);
                let op = MatMul { transpose_b: true };
                let straight = [&a, &b].map(|t| {
                    let transpose = Transpose { perm: perm.to_vec() };
                    reference(Arc::new(transpose), std::slice::from_ref(t)).remove(0).tensor
                });
                let expected = reference(Arc::new(op), &straight);
                for placement in [Placement::Dense, Placement::Gaps] {
                    check_call("turned", &expected, &[a.clone(), b.clone()], placement, 1, |l| {
                        call(&op, &[turned(&l[0], perm), turned(&l[1], perm)]).unwrap()
                    });
                }
            }
        }
    }
}

fn rows_and_residuals_lie_at_distances_of_their_own() {
    let mut rng = SplitMix64::new(8);
    let op = Linear { bias: false, residual: true, activation: Activation::Relu };
    for m in [2, 7] {
        for dtype in FLOATS {
            // x is [m, 3, k], seen as [3, m, k]; the residual is [n, 3, m], seen as [3, m, n].
            let x = random(&mut rng, dtype, &[m, 3, 20], SPAN);
            let w = random(&mut rng, dtype, &[34, 20], SPAN);
            let residual = random(&mut rng, dtype, &[34, 3, m], SPAN);
            let perms = [[1, 0, 2], [1, 2, 0]];
            let turn = |tensor: &Tensor, perm: [usize; 3]| {
                let transpose = Transpose { perm: perm.to_vec() };
                reference(Arc::new(transpose), std::slice::from_ref(tensor)).remove(0).tensor
            };
            let straight = [turn(&x, perms[0]), w.clone(), turn(&residual, perms[1])];
            let expected = reference(Arc::new(op), &straight);
            for placement in [Placement::Dense, Placement::Gaps] {
                let operands = [x.clone(), w.clone(), residual.clone()];
                check_call("turned", &expected, &operands, placement, 1, |l| {
                    call(&op, &[turned(&l[0], perms[0]), l[1].clone(), turned(&l[2], perms[1])]).unwrap()
                });
            }
        }
    }
}

fn what_is_not_finite_stays_in_its_row_and_column() {
    for dtype in FLOATS {
        for m in [2, 9] {
            let k = 3;
            let mut a = vec![1.0; m * k];
            a[4] = f64::NAN;
            a[0] = f64::INFINITY;
            let mut b = vec![1.0; 10 * k];
            b[2] = f64::NEG_INFINITY;
            b[9 * k] = f64::NAN;
            let a = Tensor::from_f64(TensorType::new(dtype, [m, k]), &a).unwrap();
            let b = Tensor::from_f64(TensorType::new(dtype, [10, k]), &b).unwrap();
            check(MatMul { transpose_b: true }, &[a, b], Placement::Dense, 0);
        }
    }
}

fn products_that_no_kernel_takes_are_refused() {
    let dense = |dtype, shape: [usize; 2]| Layout::dense(&TensorType::new(dtype, shape));
    let op = MatMul { transpose_b: true };
    let refused = |a, b| call(&op, &[dense(a, [4, 32]), dense(b, [4, 32])]).unwrap_err();
    for (a, b) in [(DType::BF16, DType::F32), (DType::F32, DType::F64)] {
        assert_eq!(refused(a, b).kind(), rlx_ir::ErrorKind::UnsupportedOnDevice);
    }
    assert!(refused(DType::F64, DType::F32).message().starts_with("matmul: operand 0 is f64"));
    let too_many = [vec![1 << 20, 1 << 10, 8], vec![1 << 20, 1 << 10, 8]]
        .map(|shape| Layout::dense(&TensorType::new(DType::F16, shape)));
    assert!(call(&op, &too_many).unwrap_err().message().contains("32 bits"));
    // A device with little threadgroup memory.
    let call = call(&op, &[dense(DType::F32, [9, 32]), dense(DType::F32, [9, 32])]).unwrap();
    let limits = rlx_kernels::geometry::DeviceLimits {
        threadgroup_bytes: 4096,
        ..rlx_kernels::geometry::DeviceLimits::APPLE
    };
    assert!(call.geometry(limits, 1024).unwrap_err().message().contains("bytes of threadgroup memory"));
}
