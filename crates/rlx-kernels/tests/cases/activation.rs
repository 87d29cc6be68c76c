use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::{Tensor, TensorType};

use crate::harness::{FLOATS, Placement, cases, check, random};

cases! {
    glu_by_every_activation,
    activations_far_from_zero_and_not_finite,
}

fn glu_by_every_activation() {
    let mut rng = SplitMix64::new(1);
    for dtype in FLOATS {
        for &(_, activation) in Activation::WORDS {
            for (seed, half) in [1, 31, 33, 300].into_iter().enumerate() {
                let x = random(&mut rng, dtype, &[5, 2 * half], (-6.0, 6.0));
                let placement = if seed % 2 == 0 { Placement::Gaps } else { Placement::Dense };
                check(Glu { activation }, &[x], placement, seed as u64);
            }
        }
    }
}

fn activations_far_from_zero_and_not_finite() {
    for dtype in FLOATS {
        let gates = [-1e4, -60.0, -12.0, -9.5, 0.0, 9.5, 12.0, 60.0, 1e4, f64::INFINITY, f64::NAN];
        for &(_, activation) in Activation::WORDS {
            let mut row = gates.to_vec();
            row.extend([1.0; 11]);
            let x = Tensor::from_f64(TensorType::new(dtype, [1, 22]), &row).unwrap();
            check(Glu { activation }, &[x], Placement::Dense, 0);
        }
    }
}
