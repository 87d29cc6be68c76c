use half::{bf16, f16};
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use super::*;
use crate::kernels::Cpu;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

/// Every dtype that is packed.
fn dtypes() -> impl Iterator<Item = DType> {
    [DType::F32, DType::F16, DType::BF16].into_iter().chain(blocks().map(DType::Block))
}

/// Every block type that is packed.
fn blocks() -> impl Iterator<Item = BlockType> {
    let activations = [BlockType::Q8_1, BlockType::Q8_K, BlockType::Q8_F32];
    BlockType::ALL.into_iter().filter(move |b| !activations.contains(b))
}

/// A weight: its bytes and the values that they mean.
struct Weight {
    shape: PackedShape,
    source: Vec<u8>,
    values: Vec<f32>,
}

impl Weight {
    fn new(dtype: DType, rows: usize, depth: usize, arrangement: Arrangement) -> Self {
        let mut values = Numbers::new(7 + rows as u64).floats(rows * depth);
        let mut source = vec![0; rows * dtype.row_bytes(depth).unwrap()];
        match dtype {
            DType::F32 => source = bytemuck::cast_slice(&values).to_vec(),
            DType::F16 => {
                rlx_ir::quant::encode_f16(&values, &mut source).unwrap();
                rlx_ir::quant::decode_f16(&source, &mut values).unwrap();
            }
            DType::BF16 => {
                rlx_ir::quant::encode_bf16(&values, &mut source).unwrap();
                rlx_ir::quant::decode_bf16(&source, &mut values).unwrap();
            }
            DType::Block(b) => {
                if depth > 0 {
                    let row_bytes = dtype.row_bytes(depth).unwrap();
                    // Some rows, which then come again in another order: encoders search for long.
                    let few = 7.min(rows);
                    for (v, s) in values.chunks(depth).zip(source.chunks_mut(row_bytes)).take(few) {
                        b.encode(v, None, s).unwrap();
                    }
                    for row in few..rows {
                        let from = (row * 3 + row / few) % few * row_bytes;
                        source.copy_within(from..from + row_bytes, row * row_bytes);
                    }
                    b.decode(&source, &mut values).unwrap();
                }
            }
            _ => unreachable!(),
        }
        Self { shape: PackedShape::new(dtype, rows, depth, arrangement).unwrap(), source, values }
    }

    fn plain(dtype: DType, rows: usize, depth: usize) -> Self {
        Self::new(dtype, rows, depth, Arrangement::Plain)
    }

    fn packed(&self) -> PackedBuf {
        PackedBuf::pack(self.shape, &self.source).unwrap()
    }

    /// `x · wᵀ` in f64 and the sums of absolute terms.
    fn product(&self, x: &[f32]) -> (Vec<f64>, Vec<f64>) {
        let k = self.shape.depth();
        let mut sums = Vec::new();
        let mut terms = Vec::new();
        for x in x.chunks(k) {
            for w in self.values.chunks(k) {
                let products = || x.iter().zip(w).map(|(&x, &w)| f64::from(x) * f64::from(w));
                sums.push(products().sum());
                terms.push(products().map(f64::abs).sum());
            }
        }
        (sums, terms)
    }
}

fn run(cpu: Cpu<'_>, w: &PackedBuf, x: &[f32], rows: usize, epilogue: &Epilogue<'_, f32>) -> Vec<f32> {
    let columns = w.view().shape().columns();
    let mut out = vec![f32::NAN; rows * columns];
    let x = Rows { data: x, rows, stride: w.view().shape().depth() };
    packed(cpu, x, &w.view(), epilogue, &mut out, columns).unwrap();
    out
}

fn depths(dtype: DType) -> Vec<usize> {
    match dtype.block_elems() {
        1 => vec![1, 30, 256, 300],
        32 => vec![32, 96, 288],
        block => vec![block, 2 * block],
    }
}

#[test]
fn products_match_f64() {
    everywhere(|cpu| {
        for dtype in dtypes() {
            for k in depths(dtype) {
                for (m, n) in [(1, 7), (2, 33), (3, 64), (4, 100), (5, 70), (29, 96)] {
                    let w = Weight::plain(dtype, n, k);
                    let x = Numbers::new(m as u64).floats(m * k);
                    let y = run(cpu, &w.packed(), &x, m, &Epilogue::default());
                    let (reference, terms) = w.product(&x);
                    let u = DType::F32.unit_roundoff();
                    close(&format!("{dtype} [{m}, {k}] x [{n}, {k}] {cpu:?}"), &y, &reference, |i| {
                        u * reference[i].abs() + 4.0 * u * (k as f64).sqrt() * terms[i]
                    });
                }
            }
        }
    });
}

#[test]
fn a_row_has_the_same_bits_in_every_batch() {
    everywhere(|cpu| {
        for dtype in dtypes() {
            let k = *depths(dtype).last().unwrap();
            let (m, n) = (37, 200);
            let w = Weight::plain(dtype, n, k).packed();
            let x = Numbers::new(3).floats(m * k);
            let all = run(cpu, &w, &x, m, &Epilogue::default());
            for rows in [1, 2, 3, 4, 5, 12, 13, 36] {
                for first in [0, m - rows] {
                    let part = run(cpu, &w, &x[first * k..(first + rows) * k], rows, &Epilogue::default());
                    assert!(part == all[first * n..(first + rows) * n], "{dtype} {rows} rows {cpu:?}");
                }
            }
        }
    });
}

#[test]
fn bits_do_not_depend_on_threads_or_level() {
    for dtype in dtypes() {
        let (k, n) = (*depths(dtype).last().unwrap(), 1000);
        let w = Weight::plain(dtype, n, k).packed();
        for m in [1, 4, 50] {
            let x = Numbers::new(3).floats(m * k);
            same_bits_everywhere(|cpu| run(cpu, &w, &x, m, &Epilogue::default()));
        }
    }
}

#[test]
fn decoded_rows_have_the_bits_of_the_source() {
    for arrangement in [Arrangement::Plain, Arrangement::GateUp] {
        for dtype in dtypes() {
            let k = if dtype.is_block() { 2 * dtype.block_elems() } else { 300 };
            let w = Weight::new(dtype, 70, k, arrangement);
            let packed = w.packed();
            everywhere(|cpu| {
                for row in [0, 1, 31, 32, 34, 35, 69] {
                    let mut out = vec![0.0; k];
                    decode_row(cpu.level, &packed.view(), row, &mut out).unwrap();
                    let expected = &w.values[row * k..(row + 1) * k];
                    assert!(
                        out.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()),
                        "{dtype} row {row}"
                    );
                }
            });
        }
    }
}

#[test]
fn any_bytes_decode_as_the_scalar_decoder_does() {
    for b in blocks() {
        let mut numbers = Numbers::new(11);
        let source: Vec<u8> = (0..64 * b.block_bytes()).map(|_| numbers.next() as u8).collect();
        let k = b.block_elems();
        let mut expected = vec![0.0; 64 * k];
        b.decode(&source, &mut expected).unwrap();
        let shape = PackedShape::new(DType::Block(b), 64, k, Arrangement::Plain).unwrap();
        let packed = PackedBuf::pack(shape, &source).unwrap();
        everywhere(|cpu| {
            for (row, expected) in expected.chunks(k).enumerate() {
                let mut out = vec![0.0; k];
                decode_row(cpu.level, &packed.view(), row, &mut out).unwrap();
                let bits = |x: &[f32]| x.iter().map(|&x| crate::testing::canonical(x)).collect::<Vec<_>>();
                assert_eq!(bits(&out), bits(expected), "{} row {row} {cpu:?}", b.name());
            }
        });
    }
}

#[test]
fn packed_size_is_about_the_source_size() {
    for dtype in dtypes() {
        let shape = PackedShape::new(dtype, 64, 512, Arrangement::Plain).unwrap();
        let source = 64 * dtype.row_bytes(512).unwrap();
        assert!(shape.bytes() >= source && shape.bytes() * 100 <= source * 104, "{dtype}");
    }
}

fn activation(a: Activation, x: f64) -> f64 {
    let inner = 0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x);
    match a {
        Activation::None => x,
        Activation::Relu => {
            if x.is_nan() {
                x
            } else {
                x.max(0.0)
            }
        }
        Activation::Gelu => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Activation::GeluTanh => 0.5 * x * (1.0 + inner.tanh()),
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

#[test]
fn epilogues_match_f64() {
    let (n, k) = (70, 64);
    let activations =
        [Activation::None, Activation::Relu, Activation::Gelu, Activation::GeluTanh, Activation::Silu];
    everywhere(|cpu| {
        for (case, &a) in activations.iter().enumerate() {
            for arrangement in [Arrangement::Plain, Arrangement::GateUp] {
                for m in [1, 3, 14] {
                    let w = Weight::new(DType::F32, n, k, arrangement);
                    let mut numbers = Numbers::new(case as u64);
                    let (x, bias) = (numbers.floats(m * k), numbers.floats(n));
                    let columns = w.shape.columns();
                    let residual = numbers.floats(m * (columns + 3));
                    let epilogue = Epilogue {
                        bias: Some(&bias),
                        activation: a,
                        residual: Residual::From { data: &residual, stride: columns + 3 },
                    };
                    let y = run(cpu, &w.packed(), &x, m, &epilogue);
                    let (sums, terms) = w.product(&x);
                    let at = |r: usize, c: usize| sums[r * n + c] + f64::from(bias[c]);
                    let reference: Vec<f64> = (0..m * columns)
                        .map(|i| {
                            let (r, c) = (i / columns, i % columns);
                            let up = if n == columns { 1.0 } else { at(r, columns + c) };
                            activation(a, at(r, c)) * up + f64::from(residual[r * (columns + 3) + c])
                        })
                        .collect();
                    close(&format!("{a:?} {arrangement:?} {m} {cpu:?}"), &y, &reference, |i| {
                        let r = i / columns * n;
                        let largest = terms[r..r + n].iter().fold(0f64, |m, t| m.max(*t)) + 2.0;
                        6e-8 * (k as f64).sqrt() * 4.0 * largest * largest
                    });
                }
            }
        }
    });
}

#[test]
fn a_residual_in_place_is_a_residual() {
    let (n, k, m) = (40, 32, 9);
    let w = Weight::plain(DType::Block(BlockType::Q8_0), n, k).packed();
    let mut numbers = Numbers::new(5);
    let (x, residual) = (numbers.floats(m * k), numbers.floats(m * n));
    everywhere(|cpu| {
        for rows in [1, m] {
            let from =
                Epilogue { residual: Residual::From { data: &residual, stride: n }, ..Epilogue::default() };
            let expected = run(cpu, &w, &x, rows, &from);
            let mut out = residual.clone();
            let epilogue = Epilogue { residual: Residual::InPlace, ..Epilogue::default() };
            packed(cpu, Rows { data: &x, rows, stride: k }, &w.view(), &epilogue, &mut out, n).unwrap();
            assert_eq!(out[..rows * n], expected);
            let blocks = quantize(&x).0;
            let rows_of = |rows| Rows { data: &blocks[..], rows, stride: blocks.len() / m };
            let mut expected = vec![0.0; rows * n];
            quantized(cpu, rows_of(rows), &w.view(), &from, &mut expected, n).unwrap();
            let mut out = residual.clone();
            quantized(cpu, rows_of(rows), &w.view(), &epilogue, &mut out[..rows * n], n).unwrap();
            assert_eq!(out[..rows * n], expected);
        }
    });
}

#[test]
fn half_operands_and_results_round_once() {
    let (n, k, m) = (40, 300, 7);
    let w = Weight::plain(DType::F32, n, k).packed();
    let x = Numbers::new(5).floats(m * k);
    let (x16, xb): (Vec<f16>, Vec<bf16>) = x.iter().map(|&x| (f16::from_f32(x), bf16::from_f32(x))).unzip();
    let widened: Vec<f32> = x16.iter().map(|x| x.to_f32()).collect();
    let widened_b: Vec<f32> = xb.iter().map(|x| x.to_f32()).collect();
    everywhere(|cpu| {
        for rows in [1, 3, m] {
            let expected = run(cpu, &w, &widened, rows, &Epilogue::default());
            let mut out = vec![f16::ZERO; rows * n];
            packed(cpu, Rows { data: &x16, rows, stride: k }, &w.view(), &Epilogue::default(), &mut out, n)
                .unwrap();
            assert!(out.iter().zip(&expected).all(|(y, &e)| *y == f16::from_f32(e)));
            let expected = run(cpu, &w, &widened_b, rows, &Epilogue::default());
            let mut out = vec![bf16::ZERO; rows * n];
            packed(cpu, Rows { data: &xb, rows, stride: k }, &w.view(), &Epilogue::default(), &mut out, n)
                .unwrap();
            assert!(out.iter().zip(&expected).all(|(y, &e)| *y == bf16::from_f32(e)));
        }
    });
}

fn quantize(x: &[f32]) -> (Vec<u8>, Vec<f32>) {
    let mut bytes = vec![0; DType::Block(BlockType::Q8_F32).row_bytes(x.len()).unwrap()];
    BlockType::Q8_F32.encode(x, None, &mut bytes).unwrap();
    let mut values = vec![0.0; x.len()];
    BlockType::Q8_F32.decode(&bytes, &mut values).unwrap();
    (bytes, values)
}

fn run_quantized(cpu: Cpu<'_>, w: &PackedBuf, x: &[u8], rows: usize) -> Vec<f32> {
    let shape = *w.view().shape();
    let mut out = vec![f32::NAN; rows * shape.columns()];
    let x = Rows { data: x, rows, stride: shape.depth() / 32 * 36 };
    quantized(cpu, x, &w.view(), &Epilogue::default(), &mut out, shape.columns()).unwrap();
    out
}

#[test]
fn quantized_activations_match_f64_and_keep_their_bits() {
    for dtype in blocks().map(DType::Block) {
        let (k, n, m) = (2 * dtype.block_elems(), 100, 19);
        let w = Weight::plain(dtype, n, k);
        let packed = w.packed();
        let (x, values) = quantize(&Numbers::new(9).floats(m * k));
        let (reference, _) = w.product(&values);
        // What is rounded: one product per block of the largest dot, and with a minimum one more of its size.
        let largest = values.iter().fold(0f32, |m, v| m.max(v.abs())) * 4.0;
        everywhere(|cpu| {
            let y = run_quantized(cpu, &packed, &x, m);
            close(&format!("{dtype} {cpu:?}"), &y, &reference, |_| {
                4.0 * 6e-8 * f64::from(largest) * 32.0 * (k as f64 / 16.0).sqrt()
            });
            let row_bytes = k / 32 * 36;
            for r in [0, 7, m - 1] {
                let one = run_quantized(cpu, &packed, &x[r * row_bytes..][..row_bytes], 1);
                assert_eq!(one, y[r * n..(r + 1) * n]);
            }
        });
        same_bits_everywhere(|cpu| run_quantized(cpu, &packed, &x, m));
    }
}

#[test]
fn the_extremes_of_integer_dot_products_are_exact() {
    // q8_0 quants of -128 and 127 against activations of -128 and 127: where a saturating instruction would fail.
    let mut source = vec![0u8; 2 * 34];
    for (row, q) in [(0, 0x80u8), (1, 0x7f)] {
        source[row * 34..][..2].copy_from_slice(&f16::ONE.to_le_bytes());
        source[row * 34 + 2..][..32].fill(q);
    }
    let shape = PackedShape::new(DType::Block(BlockType::Q8_0), 2, 32, Arrangement::Plain).unwrap();
    let w = PackedBuf::pack(shape, &source).unwrap();
    for (q, expected) in [(0x80u8, [524_288.0, -520_192.0]), (0x7f, [-520_192.0, 516_128.0])] {
        let mut x = 1f32.to_le_bytes().to_vec();
        x.resize(36, q);
        everywhere(|cpu| assert_eq!(run_quantized(cpu, &w, &x, 1), expected));
    }
}

#[test]
fn nan_and_infinity_are_not_lost() {
    for dtype in dtypes() {
        let (k, n) = (*depths(dtype).last().unwrap(), 33);
        let w = Weight::plain(dtype, n, k).packed();
        everywhere(|cpu| {
            for m in [1, 4, 8] {
                let mut x = Numbers::new(1).floats(m * k);
                x[k - 1] = f32::NAN;
                let epilogue = Epilogue { activation: Activation::Relu, ..Epilogue::default() };
                let y = run(cpu, &w, &x, m, &epilogue);
                assert!(y[..n].iter().all(|y| y.is_nan()), "{dtype}");
                assert!(y[n..].iter().all(|y| y.is_finite()), "{dtype}");
            }
        });
    }
    let (mut x, w) =
        (Numbers::new(1).floats(64), Weight::plain(DType::Block(BlockType::Q4_1), 5, 64).packed());
    x[40] = f32::INFINITY;
    let x = quantize(&x).0;
    everywhere(|cpu| assert!(run_quantized(cpu, &w, &x, 1).iter().all(|y| y.is_nan())));
}

#[test]
fn empty_sizes_give_empty_results_or_the_epilogue_of_zero() {
    everywhere(|cpu| {
        let w = Weight::plain(DType::F32, 5, 0).packed();
        let bias = [1.0, 2.0, 3.0, 4.0, 5.0];
        for m in [1, 6] {
            let y = run(cpu, &w, &[], m, &Epilogue { bias: Some(&bias), ..Epilogue::default() });
            assert_eq!(y, bias.repeat(m));
        }
        assert!(run(cpu, &w, &[], 0, &Epilogue::default()).is_empty());
        let w =
            PackedBuf::pack(PackedShape::new(DType::F32, 0, 8, Arrangement::Plain).unwrap(), &[]).unwrap();
        assert!(run(cpu, &w, &[0.0; 16], 2, &Epilogue::default()).is_empty());
    });
}

#[test]
fn wrong_sizes_are_refused() {
    let pool = crate::testing::pool(1);
    let cpu = Cpu { pool: &pool, level: crate::simd::SimdLevel::best() };
    let w = Weight::plain(DType::F32, 8, 16).packed();
    let mut out = [0.0; 16];
    let x = |len: usize, rows: usize| (vec![0.0f32; len], rows);
    for ((data, rows), out_len, stride) in
        [(x(31, 2), 16, 8), (x(32, 2), 15, 8), (x(32, 2), 16, 7), (x(32, usize::MAX), 16, 8)]
    {
        let e = packed(
            cpu,
            Rows { data: &data, rows, stride: 16 },
            &w.view(),
            &Epilogue::default(),
            &mut out[..out_len],
            stride,
        );
        assert_eq!(e.unwrap_err().kind(), rlx_ir::ErrorKind::InvalidArgument);
    }
    let e = PackedShape::new(DType::Block(BlockType::Q4_K), 4, 128, Arrangement::Plain).unwrap_err();
    assert!(e.message().contains("multiple of 256"), "{e}");
    assert!(PackedShape::new(DType::I32, 4, 128, Arrangement::Plain).is_err());
    assert!(PackedShape::new(DType::F32, 5, 8, Arrangement::GateUp).is_err());
    assert!(PackedShape::new(DType::F32, usize::MAX, usize::MAX / 2, Arrangement::Plain).is_err());
    assert!(PackedBuf::pack(*w.view().shape(), &[0; 3]).is_err());
    assert!(Packed::new(*w.view().shape(), &[0; 64]).is_err());
}

#[test]
fn dense_products_match_f64_in_every_layout() {
    everywhere(|cpu| {
        for (batch, m, n, k) in [(1, 1, 1, 1), (1, 50, 70, 300), (3, 5, 33, 40), (5, 1, 64, 17), (2, 3, 2, 0)]
        {
            let mut numbers = Numbers::new(k as u64);
            let (a, b) = (numbers.floats(batch * m * k), numbers.floats(batch * k * n));
            let (bias, terms) = (numbers.floats(n), k as f64 + 1.0);
            for b_transposed in [false, true] {
                let (row_stride, col_stride) = if b_transposed { (1, k) } else { (n, 1) };
                let left = Operand { data: &a, batch_stride: m * k, row_stride: k, col_stride: 1 };
                let right = Operand { data: &b, batch_stride: k * n, row_stride, col_stride };
                let mut out = vec![f32::NAN; batch * m * n];
                let epilogue = Epilogue { bias: Some(&bias), ..Epilogue::default() };
                dense(cpu, [batch, m, n, k], left, right, &epilogue, &mut out).unwrap();
                let reference: Vec<f64> = (0..batch * m * n)
                    .map(|i| {
                        let (g, r, c) = (i / (m * n), i / n % m, i % n);
                        let term = |j: usize| {
                            f64::from(a[(g * m + r) * k + j])
                                * f64::from(b[g * k * n + j * row_stride + c * col_stride])
                        };
                        (0..k).map(term).sum::<f64>() + f64::from(bias[c])
                    })
                    .collect();
                close(&format!("{batch} {m} {n} {k} {cpu:?}"), &out, &reference, |_| {
                    4.0 * 6e-8 * terms.sqrt() * terms
                });
            }
        }
    });
}

#[test]
fn dense_reads_strided_and_half_operands() {
    let (m, n, k) = (6, 20, 21);
    let a = Numbers::new(1).floats(m * k);
    let b: Vec<f16> = Numbers::new(2).floats(n * k).into_iter().map(f16::from_f32).collect();
    let wide: Vec<f32> = b.iter().map(|x| x.to_f32()).collect();
    // The left operand transposed in memory.
    let turned: Vec<f32> = (0..m * k).map(|i| a[i % m * k + i / m]).collect();
    everywhere(|cpu| {
        let plain = |data| Operand { data, batch_stride: 0, row_stride: k, col_stride: 1 };
        let mut expected = vec![0.0; 2 * m * n];
        let right = Operand { data: &wide[..], batch_stride: 0, row_stride: 1, col_stride: k };
        dense(cpu, [2, m, n, k], plain(&a[..]), right, &Epilogue::default(), &mut expected).unwrap();
        assert_eq!(expected[..m * n], expected[m * n..]);
        let mut out = vec![0.0; 2 * m * n];
        let left = Operand { data: &turned[..], batch_stride: 0, row_stride: 1, col_stride: m };
        let right = Operand { data: &b[..], batch_stride: 0, row_stride: 1, col_stride: k };
        dense(cpu, [2, m, n, k], left, right, &Epilogue::default(), &mut out).unwrap();
        assert_eq!(out, expected);
        let short = Operand { data: &wide[1..], batch_stride: 0, row_stride: 1, col_stride: k };
        assert!(dense(cpu, [1, m, n, k], left, short, &Epilogue::default(), &mut out).is_err());
    });
}

#[test]
fn a_dense_product_has_the_bits_of_a_packed_one() {
    let (m, n, k) = (30, 50, 600);
    let w = Weight::plain(DType::F32, n, k);
    let x = Numbers::new(1).floats(m * k);
    everywhere(|cpu| {
        let mut out = vec![0.0; m * n];
        let left = Operand { data: &x[..], batch_stride: 0, row_stride: k, col_stride: 1 };
        let right = Operand { data: &w.values[..], batch_stride: 0, row_stride: 1, col_stride: k };
        dense(cpu, [1, m, n, k], left, right, &Epilogue::default(), &mut out).unwrap();
        assert_eq!(out, run(cpu, &w.packed(), &x, m, &Epilogue::default()));
    });
}

#[test]
fn products_of_doubles_are_near_the_exact_ones() {
    for (m, n, k) in [(1, 1, 1), (5, 7, 33), (130, 20, 64), (3, 4, 0), (0, 4, 3)] {
        let mut numbers = Numbers::new(11);
        let mut doubles = |len: usize| (0..len).map(|_| f64::from(numbers.float())).collect::<Vec<_>>();
        let (a, b) = (doubles(m * k), doubles(k * n));
        for right in [Right::Plain, Right::Transposed] {
            let at = |k_: usize, j: usize| if right == Right::Plain { k_ * n + j } else { j * k + k_ };
            everywhere(|cpu| {
                let mut out = vec![7.0; m * n];
                double(cpu, [m, n, k], &a, (&b, right), &mut out).unwrap();
                for (i, y) in out.iter().enumerate() {
                    let terms = (0..k).map(|k_| a[i / n * k + k_] * b[at(k_, i % n)]);
                    let sum: f64 = terms.sum();
                    assert!((y - sum).abs() < 1e-14 * (k as f64 + 1.0), "{m} {n} {k} {right:?}: {y} {sum}");
                }
                assert!(double(cpu, [m, n, k + 1], &a, (&b, right), &mut out).is_err() || m == 0);
            });
        }
    }
}
