use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::add_rms_norm::AddRmsNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::{DType, Tensor, TensorType};

use crate::harness::{FLOATS, Placement, WIDTHS, cases, check, random};

cases! {
    softmax_of_every_width,
    softmax_along_an_inner_axis,
    softmax_of_rows_that_are_not_finite,
    layer_norm_with_and_without_bias,
    residual_and_layer_norm,
    rms_norm_with_and_without_offset_and_residual,
    norms_of_rows_that_are_zero_or_not_finite,
}

const SPAN: (f64, f64) = (-3.0, 3.0);

fn softmax_of_every_width() {
    let mut rng = SplitMix64::new(1);
    for dtype in FLOATS {
        for (seed, width) in WIDTHS.into_iter().enumerate() {
            let x = random(&mut rng, dtype, &[3, width], (-8.0, 8.0));
            check(Softmax { axis: -1, scale: 0.7 }, std::slice::from_ref(&x), Placement::Dense, seed as u64);
            check(Softmax { axis: -1, scale: -1.0 }, &[x], Placement::Gaps, seed as u64);
        }
    }
}

fn softmax_along_an_inner_axis() {
    let mut rng = SplitMix64::new(2);
    for dtype in FLOATS {
        for shape in [[2, 5, 7], [1, 40, 3], [3, 1, 2], [2, 33, 1]] {
            let x = random(&mut rng, dtype, &shape, (-8.0, 8.0));
            check(Softmax { axis: 1, scale: 1.0 }, &[x], Placement::Dense, 3);
        }
    }
}

fn softmax_of_rows_that_are_not_finite() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows = [[-inf, -inf, -inf], [1.0, -inf, 2.0], [1.0, nan, 2.0], [inf, 0.0, 1.0], [-inf, nan, -inf]];
    for dtype in FLOATS {
        let x = Tensor::from_f64(TensorType::new(dtype, [5, 3]), rows.as_flattened()).unwrap();
        check(Softmax { axis: -1, scale: 1.0 }, &[x], Placement::Dense, 0);
    }
}

/// `x`, `residual`, `weight` and `bias`; the mean is far from 0.
fn operands(rng: &mut SplitMix64, dtype: DType, weights: DType, width: usize) -> [Tensor; 4] {
    [
        random(rng, dtype, &[2, 3, width], (4.0, 9.0)),
        random(rng, dtype, &[2, 3, width], SPAN),
        random(rng, weights, &[width], SPAN),
        random(rng, weights, &[width], SPAN),
    ]
}

fn layer_norm_with_and_without_bias() {
    let mut rng = SplitMix64::new(3);
    for dtype in FLOATS {
        for weights in FLOATS {
            for (seed, width) in WIDTHS.into_iter().enumerate() {
                let [x, _, weight, bias] = operands(&mut rng, dtype, weights, width);
                let op = LayerNorm { eps: 1e-5 };
                check(op, &[x.clone(), weight.clone(), bias], Placement::Gaps, seed as u64);
                check(op, &[x, weight], Placement::Dense, seed as u64 + 1);
            }
        }
    }
}

fn residual_and_layer_norm() {
    let mut rng = SplitMix64::new(4);
    for dtype in FLOATS {
        for weights in FLOATS {
            for (seed, width) in WIDTHS.into_iter().enumerate() {
                let [x, residual, weight, bias] = operands(&mut rng, dtype, weights, width);
                let op = AddLayerNorm { eps: 1e-12 };
                let some = [x, residual, weight, bias];
                check(op, &some[..3], Placement::Gaps, seed as u64);
                check(op, &some, Placement::Dense, seed as u64 + 1);
            }
        }
    }
}

fn rms_norm_with_and_without_offset_and_residual() {
    let mut rng = SplitMix64::new(5);
    for dtype in FLOATS {
        for weights in FLOATS {
            for (seed, width) in WIDTHS.into_iter().enumerate() {
                let [x, residual, weight, _] = operands(&mut rng, dtype, weights, width);
                let norm = RmsNorm { eps: 1e-6, unit_offset: seed % 2 == 0 };
                check(norm, &[x.clone(), weight.clone()], Placement::Gaps, seed as u64);
                check(AddRmsNorm { norm }, &[x, residual, weight], Placement::Dense, seed as u64 + 1);
            }
        }
    }
}

fn norms_of_rows_that_are_zero_or_not_finite() {
    for dtype in FLOATS {
        let rows = [[0.0, 0.0], [1.0, f64::NAN], [-2.0, -2.0]];
        let x = Tensor::from_f64(TensorType::new(dtype, [3, 2]), rows.as_flattened()).unwrap();
        let weight = Tensor::f32([2], &[1.0, 2.0]).unwrap();
        check(LayerNorm { eps: 1e-5 }, &[x.clone(), weight.clone()], Placement::Dense, 0);
        check(RmsNorm { eps: 1e-5, unit_offset: false }, &[x, weight], Placement::Dense, 0);
    }
}
