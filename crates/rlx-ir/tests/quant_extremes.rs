//! Block formats at the edges: damaged scales, rows of zeros, constants, tiny and huge values, useless importances.

#![allow(clippy::unwrap_used)]

use half::f16;
use rlx_ir::quant::{
    BlockType, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs, iq4_nl, iq4_xs, q1_0, q2_k, q3_k, q4_0, q4_1,
    q4_k, q5_0, q5_1, q5_k, q6_k, q8_0, q8_1, tq1_0, tq2_0,
};
use rlx_ir::{Builder, DType, ErrorKind};

/// The types with an f16 that multiplies every value, and its offset.
const F16_SCALES: [(BlockType, usize); 22] = [
    (BlockType::Q4_0, q4_0::SCALE),
    (BlockType::Q4_1, q4_1::SCALE),
    (BlockType::Q5_0, q5_0::SCALE),
    (BlockType::Q5_1, q5_1::SCALE),
    (BlockType::Q8_0, q8_0::SCALE),
    (BlockType::Q8_1, q8_1::SCALE),
    (BlockType::Q2_K, q2_k::SCALE),
    (BlockType::Q3_K, q3_k::SCALE),
    (BlockType::Q4_K, q4_k::SCALE),
    (BlockType::Q5_K, q5_k::SCALE),
    (BlockType::Q6_K, q6_k::SCALE),
    (BlockType::IQ4_NL, iq4_nl::SCALE),
    (BlockType::IQ4_XS, iq4_xs::SCALE),
    (BlockType::IQ1_S, iq1_s::SCALE),
    (BlockType::IQ2_XXS, iq2_xxs::SCALE),
    (BlockType::IQ2_XS, iq2_xs::SCALE),
    (BlockType::IQ2_S, iq2_s::SCALE),
    (BlockType::IQ3_XXS, iq3_xxs::SCALE),
    (BlockType::IQ3_S, iq3_s::SCALE),
    (BlockType::TQ1_0, tq1_0::SCALE),
    (BlockType::TQ2_0, tq2_0::SCALE),
    (BlockType::Q1_0, q1_0::SCALE),
];

fn blocks(block: BlockType, x: &[f32], importance: Option<&[f32]>) -> Vec<u8> {
    let mut blocks = vec![0; DType::Block(block).row_bytes(x.len()).unwrap()];
    block.encode(x, importance, &mut blocks).unwrap();
    blocks
}

fn decoded(block: BlockType, blocks: &[u8]) -> Vec<f32> {
    let mut out = vec![0.0; blocks.len() / block.block_bytes() * block.block_elems()];
    block.decode(blocks, &mut out).unwrap();
    out
}

/// A row of two blocks with values of both signs.
fn row(block: BlockType) -> Vec<f32> {
    (0..2 * block.block_elems()).map(|i| (i as f32 * 0.7).sin() + 0.2).collect()
}

#[test]
fn a_scale_that_is_nan_is_seen_in_every_value() {
    for (block, at) in F16_SCALES {
        let mut damaged = blocks(block, &row(block), None);
        damaged[at..at + 2].copy_from_slice(&f16::NAN.to_le_bytes());
        let (first, second) = damaged.split_at(block.block_bytes());
        assert!(decoded(block, first).iter().all(|v| v.is_nan()), "{}", block.name());
        assert!(decoded(block, second).iter().all(|v| v.is_finite()), "{}", block.name());
    }
}

#[test]
fn damaged_fields_decode_to_something() {
    for block in BlockType::ALL {
        for fill in [0x00, 0x5a, 0x7f, 0x80, 0xff] {
            for value in [f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::MAX] {
                for at in 0..block.block_bytes() - 1 {
                    let mut damaged = vec![fill; block.block_bytes()];
                    damaged[at..at + 2].copy_from_slice(&value.to_le_bytes());
                    assert_eq!(decoded(block, &damaged).len(), block.block_elems());
                }
            }
        }
    }
}

#[test]
fn importances_that_are_all_alike_change_nothing() {
    for block in BlockType::ALL {
        let x = row(block);
        let plain = blocks(block, &x, None);
        for importance in [0.0, 1.0, 7.5, 1e-30, 1e30, f32::MAX] {
            let importance = vec![importance; x.len()];
            assert_eq!(blocks(block, &x, Some(&importance)), plain, "{} {}", block.name(), importance[0]);
        }
    }
}

#[test]
fn a_block_without_importance_is_still_encoded() {
    for block in BlockType::ALL {
        let x = row(block);
        let mut importance = vec![1.0; x.len()];
        importance[..block.block_elems()].fill(0.0);
        let y = decoded(block, &blocks(block, &x, Some(&importance)));
        let half = block.block_elems();
        let error = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| (x - y).powi(2)).sum::<f32>();
        let energy: f32 = x[..half].iter().map(|v| v * v).sum();
        assert!(error(&x[..half], &y[..half]) < 0.5 * energy, "{}", block.name());
    }
}

#[test]
fn constant_rows_come_back() {
    for block in BlockType::ALL {
        for constant in [1.0f32, -3.0, 0.02, 1500.0, -0.5] {
            let x = vec![constant; 2 * block.block_elems()];
            let importance: Vec<f32> = (0..x.len()).map(|i| 0.5 + (i % 5) as f32).collect();
            // The search for points of a grid is not exhaustive: with uneven importances it may miss the exact one.
            let grid = ["iq1", "iq2", "iq3"].iter().any(|family| block.name().starts_with(family));
            let importance = if grid { None } else { Some(&importance[..]) };
            for importance in [None, importance] {
                for y in decoded(block, &blocks(block, &x, importance)) {
                    // One bit of mantissa and a power of two: 1.25 becomes 1 or 1.5.
                    let tolerance = if block == BlockType::MXFP4 { 0.2001 } else { 0.05 };
                    let off = (y - constant).abs();
                    assert!(off <= tolerance * constant.abs(), "{}: {constant} became {y}", block.name());
                }
            }
        }
    }
}

#[test]
fn values_below_the_range_of_scales_vanish_quietly() {
    for block in BlockType::ALL {
        for tiny in [1e-30, 1e-38, f32::from_bits(1)] {
            let x: Vec<f32> = row(block).iter().map(|v| v * tiny).collect();
            let importance = vec![0.5; x.len()];
            for importance in [None, Some(&importance[..])] {
                let y = decoded(block, &blocks(block, &x, importance));
                assert!(y.iter().all(|v| v.abs() <= 1e-9), "{} {tiny:e}", block.name());
            }
        }
    }
}

#[test]
fn huge_values_encode_or_are_refused() {
    for block in BlockType::ALL {
        let mut refused = false;
        for exponent in 0..38 {
            let x: Vec<f32> = row(block).iter().map(|v| v * 10f32.powi(exponent)).collect();
            let mut out = vec![0; DType::Block(block).row_bytes(x.len()).unwrap()];
            match block.encode(&x, None, &mut out) {
                // Once too large, always too large.
                Ok(()) => {
                    assert!(!refused, "{} 1e{exponent}", block.name());
                    assert!(
                        decoded(block, &out).iter().all(|v| v.is_finite()),
                        "{} 1e{exponent}",
                        block.name()
                    );
                }
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::NonFinite);
                    assert!(e.message().contains(block.name()) && e.message().contains("range"), "{e}");
                    refused = true;
                }
            }
        }
        let endless = matches!(block, BlockType::MXFP4 | BlockType::Q8_K | BlockType::Q8_F32);
        assert_eq!(refused, !endless, "{}", block.name());
    }
}

#[test]
fn loading_takes_the_plain_scale_of_q8_0_only() {
    for block in BlockType::ALL {
        let x = row(block);
        let mut out = vec![0; DType::Block(block).row_bytes(x.len()).unwrap()];
        block.encode_for_load(&x, &mut out).unwrap();
        if block == BlockType::Q8_0 {
            let largest = |i: usize| x[32 * i..][..32].iter().fold(0f32, |m, v| m.max(v.abs()));
            for (i, out) in out.chunks(34).enumerate() {
                let scale = f16::from_f32(largest(i) / 127.0);
                assert_eq!(out[..2], scale.to_le_bytes());
            }
            assert!(block.encode_for_load(&x, &mut out[1..]).is_err());
            for bad in [f32::NAN, f32::NEG_INFINITY] {
                let mut spoilt = x.clone();
                spoilt[5] = bad;
                let mut with = out.clone();
                block.encode_for_load(&spoilt, &mut with).unwrap();
                assert!(decoded(block, &with)[..32].iter().all(|v| v.is_nan()));
                assert_eq!(with[34..], out[34..]);
                assert_eq!(block.encode(&spoilt, None, &mut with).unwrap_err().kind(), ErrorKind::NonFinite);
            }
            let huge = vec![f32::MAX; x.len()];
            assert_eq!(block.encode_for_load(&huge, &mut out).unwrap_err().kind(), ErrorKind::NonFinite);
        } else {
            assert_eq!(out, blocks(block, &x, None), "{}", block.name());
        }
    }
}

#[test]
fn weights_whose_rows_are_no_multiple_of_the_block_are_refused_by_name() {
    for block in BlockType::ALL {
        let elems = block.block_elems();
        for row in [1, elems - 1, elems + 1] {
            let mut b = Builder::new("g");
            let e = b.weight("blk.3.ffn_up.weight", DType::Block(block), [2, row]).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument);
            for part in ["blk.3.ffn_up.weight", block.name(), &elems.to_string(), "multiple"] {
                assert!(e.message().contains(part), "{e}");
            }
        }
        Builder::new("g").weight("w", DType::Block(block), [2, elems]).unwrap();
    }
}
