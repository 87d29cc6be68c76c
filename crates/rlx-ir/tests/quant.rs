//! Block formats against values made by ggml, and properties that hold for any bytes and values.

#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;
use rlx_ir::quant::{BlockType, decode_bf16, decode_f16, encode_bf16, encode_f16};
use rlx_ir::{DType, ErrorKind};
use safetensors::SafeTensors;

const FIXTURE: &[u8] = include_bytes!("fixtures/gguf_blocks.safetensors");
const ROWS: usize = 3;
const COLUMNS: usize = 512;

fn bytes<'a>(file: &SafeTensors<'a>, name: &str) -> &'a [u8] {
    file.tensor(name).unwrap().data()
}

fn floats(file: &SafeTensors, name: &str) -> Vec<f32> {
    bytes(file, name).as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn fixture() -> SafeTensors<'static> {
    SafeTensors::deserialize(FIXTURE).unwrap()
}

/// The types that files hold, with ggml's names.
fn file_types() -> impl Iterator<Item = (BlockType, String)> {
    let types = BlockType::ALL.into_iter().filter(|t| !t.is_activation());
    types.map(|t| (t, t.name().to_uppercase()))
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn decoding_equals_ggml_bit_for_bit() {
    let file = fixture();
    for (block, name) in file_types() {
        let mut out = vec![0.0; ROWS * COLUMNS];
        block.decode(bytes(&file, &format!("{name}.blocks")), &mut out).unwrap();
        assert_eq!(bits(&out), bits(&floats(&file, &format!("{name}.f32"))), "{name}");
    }
    let mut out = vec![0.0; ROWS * COLUMNS];
    decode_f16(bytes(&file, "F16.blocks"), &mut out).unwrap();
    assert_eq!(bits(&out), bits(&floats(&file, "F16.f32")));
    decode_bf16(bytes(&file, "BF16.blocks"), &mut out).unwrap();
    assert_eq!(bits(&out), bits(&floats(&file, "BF16.f32")));
}

#[test]
fn f16_and_bf16_rows_encode_to_the_bytes_of_ggml() {
    let file = fixture();
    let mut out = vec![0; ROWS * COLUMNS * 2];
    encode_f16(&floats(&file, "F16.source"), &mut out).unwrap();
    assert_eq!(out, bytes(&file, "F16.blocks"));
    encode_bf16(&floats(&file, "BF16.source"), &mut out).unwrap();
    assert_eq!(out, bytes(&file, "BF16.blocks"));
    assert_eq!(encode_f16(&[1.0], &mut [0; 3]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(decode_bf16(&[0; 3], &mut [0.0]).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

fn encoded(block: BlockType, x: &[f32], importance: Option<&[f32]>) -> Vec<f32> {
    let mut blocks = vec![0; DType::Block(block).row_bytes(x.len()).unwrap()];
    block.encode(x, importance, &mut blocks).unwrap();
    let mut decoded = vec![0.0; x.len()];
    block.decode(&blocks, &mut decoded).unwrap();
    decoded
}

fn rmse(x: &[f32], y: &[f32], weights: &[f32]) -> f64 {
    let sum: f64 = x
        .iter()
        .zip(y)
        .enumerate()
        .map(|(i, (x, y))| f64::from(weights[i % weights.len()]) * (f64::from(*x) - f64::from(*y)).powi(2))
        .sum();
    (sum / x.len() as f64).sqrt()
}

#[test]
fn encoding_is_as_good_as_ggml() {
    let file = fixture();
    for (block, name) in file_types() {
        let x = floats(&file, &format!("{name}.source"));
        let importance = floats(&file, &format!("{name}.imatrix"));
        let theirs = floats(&file, &format!("{name}.f32"));
        let weighted = block.uses_importance();
        let weights = if weighted { importance.clone() } else { vec![1.0] };
        for row in 0..ROWS {
            let part = row * COLUMNS..(row + 1) * COLUMNS;
            let ours = encoded(block, &x[part.clone()], Some(&importance));
            let plain = encoded(block, &x[part.clone()], None);
            let (x, theirs) = (&x[part.clone()], &theirs[part]);
            let (ours, expected) = (rmse(x, &ours, &weights), rmse(x, theirs, &weights));
            assert!(ours <= 1.02 * expected, "{name} row {row}: {ours:e}, ggml {expected:e}");
            // Without importances the plain error is the lower one.
            if weighted {
                assert!(rmse(x, &plain, &[1.0]) <= 1.02 * rmse(x, theirs, &[1.0]), "{name} row {row}");
            }
        }
    }
}

#[test]
fn lengths_that_do_not_agree_are_refused() {
    for block in BlockType::ALL {
        let (elems, size) = (block.block_elems(), block.block_bytes());
        let mut out = vec![0.0; elems];
        for wrong in [0, size - 1, size + 1, 2 * size] {
            let e = block.decode(&vec![0; wrong], &mut out).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument);
            assert!(e.message().contains(block.name()), "{e}");
        }
        let e = block.decode(&vec![0; size], &mut out[1..]).unwrap_err();
        assert!(e.message().contains("no multiple"), "{e}");
        let mut blocks = vec![0; size];
        let x = vec![1.0; elems];
        assert!(block.encode(&x, Some(&x[1..]), &mut blocks).is_err());
        assert!(block.encode(&x, None, &mut blocks[1..]).is_err());
        assert!(block.encode(&x, Some(&vec![-1.0; elems]), &mut blocks).is_err());
        assert!(block.encode(&x, Some(&vec![f32::NAN; elems]), &mut blocks).is_err());
    }
}

#[test]
fn values_that_a_file_type_cannot_hold_are_refused() {
    for (block, _) in file_types() {
        let mut blocks = vec![0; block.block_bytes()];
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e30] {
            // A power of two reaches as far as f32 does.
            if block == BlockType::MXFP4 && bad.is_finite() {
                continue;
            }
            let mut x = vec![0.25; block.block_elems()];
            x[7] = bad;
            let e = block.encode(&x, None, &mut blocks).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::NonFinite, "{} {bad}", block.name());
        }
    }
}

#[test]
fn zeros_and_constants_survive() {
    for block in BlockType::ALL {
        let zeros = vec![0.0; block.block_elems()];
        assert_eq!(encoded(block, &zeros, None), zeros, "{}", block.name());
        assert_eq!(encoded(block, &zeros, Some(&zeros)), zeros, "{}", block.name());
        for constant in [1.0f32, -3.0, 1e-20] {
            let x = vec![constant; block.block_elems()];
            for y in encoded(block, &x, Some(&zeros)) {
                let tolerance = 0.02 * constant.abs() + 1e-7;
                assert!((y - constant).abs() <= tolerance, "{}: {constant} became {y}", block.name());
            }
        }
    }
}

#[test]
fn names_are_unique_and_found_again() {
    for block in BlockType::ALL {
        assert_eq!(BlockType::from_name(block.name()), Some(block));
        assert_eq!(DType::from_name(block.name()), Some(DType::Block(block)));
    }
    assert_eq!(BlockType::from_name("q9_z"), None);
}

mod q8_f32 {
    use super::*;

    fn encode(x: &[f32; 32]) -> (f32, Vec<i8>) {
        let mut block = [0; 36];
        BlockType::Q8_F32.encode(x, None, &mut block).unwrap();
        (f32::from_le_bytes(*block.first_chunk().unwrap()), block[4..].iter().map(|b| *b as i8).collect())
    }

    #[test]
    fn rounds_ties_to_even_and_keeps_the_largest_at_127() {
        let mut x = [0.0; 32];
        x[..6].copy_from_slice(&[127.0, -127.0, 0.5, 1.5, 2.5, -0.5]);
        let (d, q) = encode(&x);
        assert_eq!(d, 1.0);
        assert_eq!(q[..7], [127, -127, 0, 2, 2, 0, 0]);
    }

    #[test]
    fn values_that_are_not_finite_are_never_lost() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = [1.0; 32];
            x[31] = bad;
            let (d, q) = encode(&x);
            assert!(d.is_nan());
            assert_eq!(q, [0; 32]);
            assert!(encoded(BlockType::Q8_F32, &x, None).iter().all(|v| v.is_nan()));
        }
    }

    #[test]
    fn extremes_of_the_range_encode() {
        let mut x = [0.0; 32];
        x[0] = f32::MAX;
        assert_eq!(encode(&x).1[0], 127);
        x[0] = 1e-40;
        assert_eq!(encode(&x).1[..2], [127, 0]);
        x[0] = f32::from_bits(1);
        assert_eq!(encode(&x), (0.0, vec![0; 32]));
    }
}

/// The largest root mean square error of a block, in units of its spread (largest less smallest value, zero included), for
/// uniformly spread values and scales that are normal f16 numbers: half a step, which the scale that just reaches all values
/// is sure to keep.
fn error_bound(block: BlockType) -> f32 {
    match block {
        BlockType::Q4_0 | BlockType::Q4_1 => 1.0 / 30.0,
        BlockType::Q5_0 | BlockType::Q5_1 => 1.0 / 62.0,
        BlockType::Q8_0 | BlockType::Q8_1 | BlockType::Q8_K | BlockType::Q8_F32 => 1.0 / 254.0,
        // The rounded scales add to the step.
        BlockType::Q2_K => 1.0 / 5.0,
        BlockType::Q3_K => 1.0 / 12.0,
        BlockType::Q4_K => 1.0 / 24.0,
        BlockType::Q5_K => 1.0 / 48.0,
        BlockType::Q6_K => 1.0 / 96.0,
        // The widest gap is a tenth of the range.
        BlockType::IQ4_NL => 1.0 / 20.0,
        BlockType::IQ4_XS => 1.0 / 18.0,
        BlockType::MXFP4 => 1.0 / 12.0,
        BlockType::NVFP4 => 1.0 / 16.0,
        // For uniform values the best fits have 1 / sqrt(48) and 1 / sqrt(108).
        BlockType::Q1_0 => 1.0 / 6.0,
        BlockType::TQ1_0 | BlockType::TQ2_0 => 1.0 / 9.0,
        // Grids that are made for normal values.
        BlockType::IQ1_S | BlockType::IQ1_M => 1.0 / 4.0,
        BlockType::IQ2_XXS | BlockType::IQ2_XS | BlockType::IQ2_S => 1.0 / 5.0,
        BlockType::IQ3_XXS | BlockType::IQ3_S => 1.0 / 8.0,
        other => panic!("{other:?} has no error bound"),
    }
}

fn block_type() -> impl Strategy<Value = BlockType> {
    prop::sample::select(BlockType::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_decode(block in block_type(), bytes in prop::collection::vec(any::<u8>(), 512)) {
        let n = bytes.len() / block.block_bytes();
        let mut out = vec![0.0; n * block.block_elems()];
        block.decode(&bytes[..n * block.block_bytes()], &mut out).unwrap();
    }

    #[test]
    fn any_values_encode_or_are_refused(
        block in block_type(),
        x in prop::collection::vec(any::<f32>(), 256),
        importance in prop::collection::vec(0.0f32..f32::MAX, 256),
    ) {
        let mut out = vec![0; DType::Block(block).row_bytes(256).unwrap()];
        for importance in [None, Some(&importance[..])] {
            if let Err(e) = block.encode(&x, importance, &mut out) {
                prop_assert_eq!(e.kind(), ErrorKind::NonFinite);
            }
        }
    }

    #[test]
    fn blocks_come_back_within_half_a_step(
        block in block_type(),
        mut x in prop::collection::vec(-1.0f32..1.0, 512),
        scale in 0i32..12,
    ) {
        let scale = 2f32.powi(scale);
        x.iter_mut().for_each(|v| *v *= scale);
        let y = encoded(block, &x, None);
        let elems = block.block_elems();
        for (x, y) in x.chunks(elems).zip(y.chunks(elems)) {
            let most = x.iter().fold(0f32, |m, v| m.max(*v));
            let least = x.iter().fold(0f32, |m, v| m.min(*v));
            let bound = f64::from(error_bound(block) * (most - least) + 1e-7);
            let error = rmse(x, y, &[1.0]);
            prop_assert!(error <= bound, "{}: {error}, bound {bound}", block.name());
        }
    }
}
