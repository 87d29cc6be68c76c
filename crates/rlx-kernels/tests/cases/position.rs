use rlx_ir::Tensor;
use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::position::rope::{Rope, RopeStyle};

use crate::harness::{FLOATS, Placement, cases, check, random};

cases! {
    both_styles_with_and_without_elements_that_pass_through,
}

fn both_styles_with_and_without_elements_that_pass_through() {
    let mut rng = SplitMix64::new(1);
    for dtype in FLOATS {
        for style in [RopeStyle::Half, RopeStyle::Interleaved] {
            for (head_dim, pairs) in [(2, 1), (32, 16), (64, 32), (64, 8), (9, 3), (4, 0)] {
                for (tokens, heads) in [(1, 1), (5, 3), (33, 2)] {
                    let x = random(&mut rng, dtype, &[tokens, heads, head_dim], (-2.0, 2.0));
                    let at: Vec<i32> = (0..tokens).map(|_| rng.below(512) as i32).collect();
                    let positions = Tensor::i32([tokens], &at).unwrap();
                    let frequencies: Vec<f32> = (0..pairs).map(|i| 0.7f32.powi(i)).collect();
                    let inv_freq = Tensor::f32([pairs as usize], &frequencies).unwrap();
                    let placement = if heads == 3 { Placement::Gaps } else { Placement::Dense };
                    check(Rope { style, scale: 1.25 }, &[x, positions, inv_freq], placement, 1);
                }
            }
        }
    }
}
