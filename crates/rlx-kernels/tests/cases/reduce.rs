use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::reduce::reduce::{KeepDims, Reduce, ReduceKind};
use rlx_ir::{DType, Tensor, TensorType};

use crate::harness::{FLOATS, Placement, WIDTHS, cases, check, random};

cases! {
    every_kind_over_every_set_of_axes,
    long_rows_and_columns,
    nothing_to_reduce_and_values_that_are_not_finite,
}

fn by(kind: ReduceKind, axes: &[i64]) -> Reduce {
    Reduce { kind, axes: axes.to_vec(), keep_dims: KeepDims::No }
}

fn every_kind_over_every_set_of_axes() {
    let mut rng = SplitMix64::new(1);
    let sets: [&[i64]; 7] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]];
    for dtype in [DType::F32, DType::F16, DType::I32, DType::U32] {
        for &kind in ReduceKind::ALL {
            if kind == ReduceKind::Mean && !dtype.is_float() {
                continue;
            }
            for (seed, axes) in sets.into_iter().enumerate() {
                let span = if dtype.is_float() { (-1.5, 1.5) } else { (0.0, 4e9) };
                let x = random(&mut rng, dtype, &[3, 5, 4], span);
                let placement = if seed % 2 == 0 { Placement::Gaps } else { Placement::Dense };
                check(by(kind, axes), &[x], placement, seed as u64);
            }
        }
    }
}

fn long_rows_and_columns() {
    let mut rng = SplitMix64::new(2);
    for dtype in FLOATS {
        for (seed, width) in WIDTHS.into_iter().enumerate() {
            let rows = random(&mut rng, dtype, &[3, width], (-1.0, 1.0));
            let columns = random(&mut rng, dtype, &[width, 3], (-1.0, 1.0));
            for kind in [ReduceKind::Sum, ReduceKind::Max] {
                check(by(kind, &[1]), std::slice::from_ref(&rows), Placement::Gaps, seed as u64);
                check(by(kind, &[0]), std::slice::from_ref(&columns), Placement::Gaps, seed as u64);
            }
        }
    }
}

fn nothing_to_reduce_and_values_that_are_not_finite() {
    for &kind in ReduceKind::ALL {
        let empty = Tensor::zeros(TensorType::new(DType::F32, [3, 0])).unwrap();
        check(by(kind, &[1]), &[empty], Placement::Dense, 0);
        let nan = f32::NAN;
        let x = Tensor::f32([3, 2], &[nan, 1.0, 1.0, nan, f32::NEG_INFINITY, 2.0]).unwrap();
        check(by(kind, &[1]), std::slice::from_ref(&x), Placement::Dense, 0);
        check(by(kind, &[0]), &[x], Placement::Dense, 0);
        if kind != ReduceKind::Mean {
            let empty = Tensor::zeros(TensorType::new(DType::I32, [2, 0])).unwrap();
            check(by(kind, &[1]), &[empty], Placement::Dense, 0);
        }
    }
}
