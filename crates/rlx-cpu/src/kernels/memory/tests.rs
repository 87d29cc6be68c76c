use half::{bf16, f16};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::*;
use crate::kernels::matmul::{Arrangement, PackedBuf, PackedShape};
use crate::testing::{Numbers, everywhere};

const IDS: [i32; 6] = [3, 0, 99, 3, 41, 64];

#[test]
fn gathered_rows_are_the_decoded_rows() {
    let (count, cols) = (100, 96);
    let values = Numbers::new(1).floats(count * cols);
    let expect = |values: &[f32]| -> Vec<f32> {
        IDS.iter().flat_map(|&id| values[id as usize * cols..][..cols].to_vec()).collect()
    };
    everywhere(|cpu| {
        let mut out = vec![0.0f32; IDS.len() * cols];
        gather_rows(cpu, cols, &values, &IDS, &mut out).unwrap();
        assert_eq!(out, expect(&values));
        let narrow: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x)).collect();
        gather_rows(cpu, cols, &narrow, &IDS, &mut out).unwrap();
        assert_eq!(out, expect(&narrow.iter().map(|x| x.to_f32()).collect::<Vec<_>>()));
        let block = BlockType::Q8_0;
        let mut bytes = vec![0; count * cols / 32 * 34];
        let mut decoded = values.clone();
        block.encode(&values, None, &mut bytes).unwrap();
        block.decode(&bytes, &mut decoded).unwrap();
        gather_block_rows(cpu, block, cols, &bytes, &IDS, &mut out).unwrap();
        assert_eq!(out, expect(&decoded));
        let shape = PackedShape::new(DType::Block(block), count, cols, Arrangement::Plain).unwrap();
        let packed = PackedBuf::pack(shape, &bytes).unwrap();
        let mut halves = vec![f16::ZERO; IDS.len() * cols];
        gather_packed_rows(cpu, &packed.view(), &IDS, &mut halves).unwrap();
        assert!(halves.iter().zip(expect(&decoded)).all(|(h, e)| *h == f16::from_f32(e)));
        for bad in [-1, 100] {
            let ids = [0, bad];
            let e = gather_rows(cpu, cols, &values, &ids, &mut out[..2 * cols]).unwrap_err();
            assert!(e.message().contains("place 1"), "{e}");
            assert!(gather_block_rows(cpu, block, cols, &bytes, &ids, &mut out[..2 * cols]).is_err());
            assert!(gather_packed_rows(cpu, &packed.view(), &ids, &mut out[..2 * cols]).is_err());
        }
        assert!(gather_rows(cpu, cols, &values, &IDS, &mut out[1..]).is_err());
        gather_rows::<f32, f32>(cpu, cols, &values, &[0i32; 0], &mut []).unwrap();
    });
}

#[test]
fn rows_go_to_their_slots() {
    let (width, stride) = (20, 25);
    let x = Numbers::new(2).floats(5 * stride);
    everywhere(|cpu| {
        let mut pages = vec![f16::ONE; 12 * width];
        kv_write(cpu, width, &[7, -1, 0, 11, 7], (&x, stride), &mut pages).unwrap();
        for (slot, row) in pages.chunks(width).enumerate() {
            let source = match slot {
                0 => Some(2),
                7 => Some(4),
                11 => Some(3),
                _ => None,
            };
            let expected = |c: usize| source.map_or(f16::ONE, |i| f16::from_f32(x[i * stride + c]));
            assert!(row.iter().enumerate().all(|(c, y)| *y == expected(c)), "slot {slot}");
        }
        let before = pages.clone();
        assert!(kv_write(cpu, width, &[1, 12], (&x, stride), &mut pages).is_err());
        assert!(kv_write(cpu, width, &[1; 6], (&x, stride), &mut pages).is_err());
        assert_eq!(pages, before);
    });
}

#[test]
fn strided_copies_transpose_slice_and_broadcast() {
    let x: Vec<i32> = (0..300 * 400).collect();
    everywhere(|cpu| {
        let mut out = vec![0; x.len()];
        copy_strided(cpu, &[400, 300], &x, &[1, 400], &mut out).unwrap();
        assert!(out.iter().enumerate().all(|(i, &v)| v as usize == i % 300 * 400 + i / 300));
        let mut out = vec![0; 2 * 3 * 4];
        copy_strided(cpu, &[2, 3, 4], &x[10..], &[0, 100, 1], &mut out).unwrap();
        assert_eq!(out[..12], out[12..]);
        assert_eq!(out[..8], [10, 11, 12, 13, 110, 111, 112, 113]);
        let mut one = [0];
        copy_strided(cpu, &[], &x[5..6], &[], &mut one).unwrap();
        assert_eq!(one, [5]);
        assert!(copy_strided(cpu, &[2, 2], &x[..3], &[2, 1], &mut [0; 4]).is_err());
        assert!(copy_strided(cpu, &[2, 2], &x, &[1], &mut [0; 4]).is_err());
        copy_strided(cpu, &[0, 5], &x[..0], &[5, 1], &mut []).unwrap();
    });
}

#[test]
fn quantised_rows_have_the_bytes_of_the_encoder() {
    let (count, cols) = (400, 64);
    let mut x = Numbers::new(3).floats(count * cols);
    (x[5], x[100], x[200]) = (0.0, f32::NAN, f32::INFINITY);
    x[64 * 7..64 * 8].fill(0.0);
    x[64 * 9..64 * 10].fill(1e-42);
    x[64 * 11] = 3e38;
    everywhere(|cpu| {
        let block = BlockType::Q8_F32;
        let mut expected = vec![0; count * 2 * 36];
        block.encode(&x, None, &mut expected).unwrap();
        let mut out = vec![1; expected.len()];
        quantize(cpu, block, cols, &x, &mut out).unwrap();
        assert_eq!(out, expected);
        let (mut decoded, mut values) = (vec![0.0f32; x.len()], vec![0.0; x.len()]);
        dequantize(cpu, block, cols, &out, &mut decoded).unwrap();
        block.decode(&expected, &mut values).unwrap();
        let bits = |x: &[f32]| x.iter().map(|&x| crate::testing::canonical(x)).collect::<Vec<_>>();
        assert_eq!(bits(&decoded), bits(&values));
        let narrow: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
        let wide: Vec<f32> = narrow.iter().map(|x| x.to_f32()).collect();
        block.encode(&wide, None, &mut expected).unwrap();
        quantize(cpu, block, cols, &narrow, &mut out).unwrap();
        assert_eq!(out, expected);
        let e = quantize(cpu, BlockType::Q8_0, cols, &x, &mut vec![0; count * 2 * 34]).unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::NonFinite);
        assert!(e.message().contains("row 1") || e.message().contains("row 3"), "{e}");
        assert!(quantize(cpu, block, 48, &x, &mut out).is_err());
        assert!(dequantize(cpu, block, cols, &out[1..], &mut decoded).is_err());
    });
}
