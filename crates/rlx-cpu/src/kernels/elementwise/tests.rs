use half::{bf16, f16};

use super::*;
use crate::kernels::matmul::Activation;
use crate::kernels::{Cpu, Strided};
use crate::testing::{Numbers, canonical, close, everywhere, same_bits_everywhere};

fn exact(op: Unary, x: f64) -> f64 {
    let gelu_inner = 0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x);
    match op {
        Unary::Neg => -x,
        Unary::Abs => x.abs(),
        Unary::Sign => {
            if x == 0.0 {
                x
            } else {
                x.signum()
            }
        }
        Unary::Exp => x.exp(),
        Unary::Log => x.ln(),
        Unary::Sqrt => x.sqrt(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Reciprocal => 1.0 / x,
        Unary::Sin => x.sin(),
        Unary::Cos => x.cos(),
        Unary::Tanh => x.tanh(),
        Unary::Erf => libm::erf(x),
        Unary::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Unary::Relu => x.max(0.0),
        Unary::Gelu => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        Unary::GeluTanh => 0.5 * x * (1.0 + gelu_inner.tanh()),
        Unary::Silu => x / (1.0 + (-x).exp()),
        Unary::Square => x * x,
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round_ties_even(),
    }
}

#[test]
fn unary_functions_match_f64() {
    let x: Vec<f32> = Numbers::new(1).floats(50_001).into_iter().map(|x| x * 5.0).collect();
    for op in Unary::ALL {
        let positive = matches!(op, Unary::Log | Unary::Sqrt | Unary::Rsqrt | Unary::Reciprocal);
        let x: Vec<f32> = x.iter().map(|&x| if positive { x.abs() + 0.01 } else { x }).collect();
        let reference: Vec<f64> = x.iter().map(|&x| exact(op, f64::from(x))).collect();
        let run = |cpu: Cpu<'_>| {
            let mut out = vec![f32::NAN; x.len()];
            unary(cpu, op, &x, &mut out).unwrap();
            out
        };
        everywhere(|cpu| {
            let tolerance = |i: usize| 4e-7 * (reference[i].abs() + 1.0);
            close(&format!("{op:?} {cpu:?}"), &run(cpu), &reference, tolerance);
            let mut out = [0.0; 3];
            unary(cpu, op, &[f32::NAN, 1.0, f32::NAN], &mut out).unwrap();
            assert!(out[0].is_nan() && out[1].is_finite() && out[2].is_nan(), "{op:?}");
        });
        same_bits_everywhere(run);
    }
}

fn exact_binary(op: Binary, a: f32, b: f32) -> f32 {
    match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div => a / b,
        Binary::Max => a.max(b),
        Binary::Min => a.min(b),
        Binary::Pow => libm::pow(a.into(), b.into()) as f32,
    }
}

/// Equal; but that powers are rounded a little off the middle of two numbers.
fn same(op: Binary, y: f32, expected: f32) -> bool {
    let near = op == Binary::Pow && y.to_bits().abs_diff(expected.to_bits()) <= 1;
    canonical(y) == canonical(expected) || near
}

#[test]
fn binary_functions_broadcast_the_last_axis() {
    let mut numbers = Numbers::new(2);
    let a = numbers.floats(70_000);
    for period in [1, 7, 1000, 70_000] {
        let b = numbers.floats(period);
        for op in Binary::ALL {
            everywhere(|cpu| {
                let mut out = vec![f32::NAN; a.len()];
                binary(cpu, op, &a, &b, &mut out).unwrap();
                for (i, &y) in out.iter().enumerate() {
                    let expected = exact_binary(op, a[i], b[i % period]);
                    assert!(same(op, y, expected), "{op:?} {period} {i}: {y} {expected}");
                }
            });
        }
    }
    everywhere(|cpu| {
        for op in Binary::ALL {
            let mut out = [0.0; 2];
            binary(cpu, op, &[f32::NAN, 2.0], &[1.0, f32::NAN], &mut out).unwrap();
            assert!(out[0].is_nan() && out[1].is_nan(), "{op:?}");
            assert!(binary(cpu, op, &[1.0; 4], &[1.0; 3], &mut [0.0; 4]).is_err());
            assert!(binary(cpu, op, &[1.0; 4], &[], &mut [0.0; 4]).is_err());
        }
        assert!(unary(cpu, Unary::Exp, &[1.0f32; 4], &mut [0.0; 3]).is_err());
    });
}

/// Shapes of a result with strides of both operands: a column over rows, the same first, a row over a column, one value, a
/// transposed operand, a middle axis.
const BROADCASTS: [([usize; 3], [usize; 3], [usize; 3]); 7] = [
    ([1, 128, 8], [0, 8, 1], [0, 1, 0]),
    ([1, 900, 130], [0, 1, 0], [0, 130, 1]),
    ([1, 40, 3000], [0, 1, 0], [0, 0, 1]),
    ([3, 5, 7], [35, 7, 1], [0, 0, 0]),
    ([1, 300, 200], [0, 1, 300], [0, 200, 1]),
    ([40, 50, 60], [3000, 60, 1], [60, 0, 1]),
    ([2, 0, 3], [0, 3, 1], [3, 3, 1]),
];

fn place(i: usize, shape: [usize; 3], strides: [usize; 3]) -> usize {
    i / (shape[1] * shape[2]) * strides[0] + i / shape[2] % shape[1] * strides[1] + i % shape[2] * strides[2]
}

#[test]
fn binary_functions_broadcast_by_strides() {
    let x = Numbers::new(5).floats(120_000);
    let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
    for (shape, of_a, of_b) in BROADCASTS {
        let count = shape.iter().product();
        for op in Binary::ALL {
            everywhere(|cpu| {
                let mut out = vec![f32::NAN; count];
                let operands = [&of_a, &of_b].map(|strides| Strided { data: &x[..], strides });
                binary_strided(cpu, op, &shape, operands, &mut out).unwrap();
                let mut narrow = vec![f16::NAN; count];
                let operands = [&of_a, &of_b].map(|strides| Strided { data: &halves[..], strides });
                binary_strided(cpu, op, &shape, operands, &mut narrow).unwrap();
                for (i, (y, half)) in out.iter().zip(&narrow).enumerate() {
                    let (a, b) = (place(i, shape, of_a), place(i, shape, of_b));
                    assert!(same(op, *y, exact_binary(op, x[a], x[b])), "{op:?} {shape:?} {i}");
                    let expected = f16::from_f32(exact_binary(op, halves[a].to_f32(), halves[b].to_f32()));
                    let near = same(op, half.to_f32(), expected.to_f32())
                        || op == Binary::Pow && half.to_bits().abs_diff(expected.to_bits()) <= 1;
                    assert!(near, "{op:?} {shape:?} {i}");
                }
            });
        }
    }
}

type OfIntegers = fn(i32, i32) -> i32;

#[test]
fn arithmetic_broadcasts_by_strides_wraps_and_refuses_to_divide_by_zero() {
    let mut numbers = Numbers::new(6);
    let x: Vec<i32> = (0..120_000).map(|_| numbers.next() as i32 | 1).collect();
    for (shape, of_a, of_b) in BROADCASTS {
        let functions: [(Arithmetic, OfIntegers); 5] = [
            (Arithmetic::Add, i32::wrapping_add),
            (Arithmetic::Mul, i32::wrapping_mul),
            (Arithmetic::Div, i32::wrapping_div),
            (Arithmetic::Rem, i32::wrapping_rem),
            (Arithmetic::Max, i32::max),
        ];
        for (op, f) in functions {
            everywhere(|cpu| {
                let mut out = vec![0; shape.iter().product()];
                let operands = [&of_a, &of_b].map(|strides| Strided { data: &x[..], strides });
                arithmetic(cpu, op, &shape, operands, &mut out).unwrap();
                let at = |i, strides| x[place(i, shape, strides)];
                assert!(out.iter().enumerate().all(|(i, y)| *y == f(at(i, of_a), at(i, of_b))), "{op:?}");
            });
        }
    }
    fn row<T>(data: &[T]) -> Strided<'_, T> {
        Strided { data, strides: &[1] }
    }
    everywhere(|cpu| {
        let mut out = [0i8; 2];
        arithmetic(cpu, Arithmetic::Div, &[2], [row(&[-128, 7]), row(&[-1, -2])], &mut out).unwrap();
        assert_eq!(out, [-128, -3]);
        arithmetic(cpu, Arithmetic::Rem, &[2], [row(&[-128, -7]), row(&[-1, 2])], &mut out).unwrap();
        assert_eq!(out, [0, -1]);
        for op in [Arithmetic::Div, Arithmetic::Rem] {
            let e = arithmetic(cpu, op, &[2], [row(&[1, 1]), row(&[1, 0])], &mut out).unwrap_err();
            assert!(e.message().contains("division by zero"), "{e}");
        }
        // Any byte but 0 is true.
        let mut out = [9u8; 4];
        let (a, b) = ([0, 0, 1, 2], [0, 4, 0, 1]);
        for (op, expected) in [
            (Arithmetic::Both, [0, 0, 0, 1]),
            (Arithmetic::Either, [0, 1, 1, 1]),
            (Arithmetic::OneOf, [0, 1, 1, 0]),
        ] {
            arithmetic(cpu, op, &[4], [row(&a), row(&b)], &mut out).unwrap();
            assert_eq!(out, expected);
        }
        let mut out = [0f64; 2];
        arithmetic(cpu, Arithmetic::Max, &[2], [row(&[f64::NAN, 1.0]), row(&[1.0, f64::NAN])], &mut out)
            .unwrap();
        assert!(out.iter().all(|y| y.is_nan()));
        arithmetic(cpu, Arithmetic::Rem, &[2], [row(&[-7.5, 5.0]), row(&[2.0, -3.0])], &mut out).unwrap();
        assert_eq!(out, [-1.5, 2.0]);
        assert!(
            arithmetic(cpu, Arithmetic::And, &[2], [row(&[1.0, 1.0]), row(&[1.0, 1.0])], &mut out).is_err()
        );
        assert!(arithmetic(cpu, Arithmetic::Add, &[2], [row(&[1.0]), row(&[1.0, 1.0])], &mut out).is_err());
        assert!(arithmetic(cpu, Arithmetic::Add, &[1], [row(&[1.0]), row(&[1.0])], &mut out).is_err());
    });
}

#[test]
fn gates_multiply_their_ups() {
    let (count, cols) = (600, 90);
    let x = Numbers::new(3).floats(count * 2 * cols);
    let reference: Vec<f64> = (0..count * cols)
        .map(|i| {
            let at = i / cols * 2 * cols + i % cols;
            exact(Unary::Silu, f64::from(x[at])) * f64::from(x[at + cols])
        })
        .collect();
    everywhere(|cpu| {
        let mut out = vec![0.0; count * cols];
        gated(cpu, Activation::Silu, cols, &x, &mut out).unwrap();
        close("gated", &out, &reference, |_| 4e-7);
        assert!(gated(cpu, Activation::Silu, cols, &x[1..], &mut out).is_err());
    });
}

#[test]
fn half_floats_are_computed_in_f32_and_rounded_once() {
    let x = Numbers::new(4).floats(100);
    everywhere(|cpu| {
        let narrow: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
        let wide: Vec<f32> = narrow.iter().map(|x| x.to_f32()).collect();
        let (mut a, mut b) = (vec![bf16::ZERO; 100], vec![0.0; 100]);
        unary(cpu, Unary::Tanh, &narrow, &mut a).unwrap();
        unary(cpu, Unary::Tanh, &wide, &mut b).unwrap();
        assert!(a.iter().zip(&b).all(|(a, b)| *a == bf16::from_f32(*b)));
    });
}

#[test]
fn casts_round_floats_clamp_them_to_integers_and_wrap_integers() {
    everywhere(|cpu| {
        let x = [1.5f32, -2.5, 1e10, -1e10, f32::NAN, f32::INFINITY, 0.49, 255.9];
        let mut i32s = [0i32; 8];
        cast(cpu, &x, &mut i32s).unwrap();
        assert_eq!(i32s, [1, -2, i32::MAX, i32::MIN, 0, i32::MAX, 0, 255]);
        let mut u8s = [0u8; 8];
        cast(cpu, &i32s, &mut u8s).unwrap();
        assert_eq!(u8s, [1, 254, 255, 0, 0, 255, 0, 255]);
        cast(cpu, &x, &mut u8s).unwrap();
        assert_eq!(u8s, [1, 0, 255, 0, 0, 255, 0, 255]);
        let mut f64s = [0f64; 8];
        cast(cpu, &x, &mut f64s).unwrap();
        assert!(f64s[4].is_nan() && f64s[0] == 1.5);
        let mut halves = [f16::ZERO; 8];
        cast(cpu, &f64s, &mut halves).unwrap();
        assert!(halves[4].is_nan());
        assert_eq!(halves.map(f16::to_bits)[..4], [0x3e00, 0xc100, 0x7c00, 0xfc00]);
        // Just above the middle of two f16, and of two bf16: by way of f32 it would be the middle, and go to the even one.
        let (mut half, mut brain) = ([f16::ZERO], [bf16::ZERO]);
        cast(cpu, &[1.0 + 2f64.powi(-11) + 2f64.powi(-40)], &mut half).unwrap();
        cast(cpu, &[1.0 + 2f64.powi(-8) + 2f64.powi(-40)], &mut brain).unwrap();
        assert_eq!((half[0].to_f32(), brain[0].to_f32()), (1.0 + 2f32.powi(-10), 1.0 + 2f32.powi(-7)));
        cast(cpu, &[(1i64 << 60) + (1 << 52) + 1], &mut brain).unwrap();
        assert_eq!(brain[0].to_f64(), 2f64.powi(60) + 2f64.powi(53));
        let many: Vec<i64> = (0..100_000).map(|i| i * 3 - 1000).collect();
        let mut floats = vec![0f32; many.len()];
        cast(cpu, &many, &mut floats).unwrap();
        assert!(floats.iter().zip(&many).all(|(f, &i)| canonical(*f) == canonical(i as f32)));
        assert!(cast(cpu, &many, &mut [0f32; 3]).is_err());
    });
}

#[test]
fn powers_have_the_special_values_of_the_standard() {
    let special = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        2.0,
        -2.0,
        3.0,
        -3.0,
        2.5,
        -2.5,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        -1e-45,
        1e-45,
        1.0 + f32::EPSILON,
        -1.0 - f32::EPSILON,
        8_388_607.0,
        -8_388_607.0,
        16_777_215.0,
        16_777_216.0,
        8_388_607.5,
        -127.0,
        128.0,
        149.0,
        -149.0,
        150.0,
    ];
    let pairs = special.iter().flat_map(|&a| special.map(|b| (a, b)));
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.unzip();
    everywhere(|cpu| {
        let mut out = vec![0.0; a.len()];
        binary(cpu, Binary::Pow, &a, &b, &mut out).unwrap();
        for ((a, b), y) in a.iter().zip(&b).zip(&out) {
            let expected = libm::pow(f64::from(*a), f64::from(*b)) as f32;
            assert_eq!(canonical(*y), canonical(expected), "{a:e} to the {b:e}: {y:e}, not {expected:e}");
        }
    });
}

#[test]
fn powers_are_within_a_unit_of_the_last_place() {
    let mut numbers = Numbers::new(9);
    let a: Vec<f32> = (0..50_000).map(|_| (numbers.float() * 80.0).exp2()).collect();
    let mut log2 = || match numbers.float() {
        up if up > 0.0 => up * 127.9,
        down => down * 151.0,
    };
    let b: Vec<f32> = a.iter().map(|a| log2() / a.log2()).collect();
    let run = |cpu: Cpu<'_>| {
        let mut out = vec![0.0; a.len()];
        binary(cpu, Binary::Pow, &a, &b, &mut out).unwrap();
        out
    };
    let reference: Vec<f64> = a.iter().zip(&b).map(|(&a, &b)| libm::pow(a.into(), b.into())).collect();
    // Half a unit of a number above 2^n, relative to it, is 2^-24; subnormal ones are 2^-149 apart.
    let tolerance = |i: usize| (reference[i].abs() * 6.0e-8).max(7.1e-46);
    everywhere(|cpu| close(&format!("pow {cpu:?}"), &run(cpu), &reference, tolerance));
    same_bits_everywhere(run);
}

#[test]
fn exact_functions_wrap_and_keep_nan() {
    fn of<T: Exact + std::fmt::Debug + PartialEq>(op: Unary, x: &[T], expected: &[T]) {
        everywhere(|cpu| {
            let mut out = x.to_vec();
            unary_exact(cpu, op, x, &mut out).unwrap();
            assert_eq!(out, expected, "{op:?}");
        });
    }
    of(Unary::Neg, &[i8::MIN, 1, 0], &[i8::MIN, -1, 0]);
    of(Unary::Abs, &[i64::MIN, -5, 5], &[i64::MIN, 5, 5]);
    of(Unary::Sign, &[i16::MIN, 0, 7], &[-1, 0, 1]);
    of(Unary::Relu, &[i32::MIN, 0, 7], &[0, 0, 7]);
    of(Unary::Neg, &[0u8, 1, 255], &[0, 255, 1]);
    of(Unary::Sign, &[0u32, 1, u32::MAX], &[0, 1, 1]);
    of(Unary::Sign, &[-2.5, 0.0, 1e300, f64::INFINITY], &[-1.0, 0.0, 1.0, 1.0]);
    of(Unary::Exp, &[0.0, f64::NEG_INFINITY], &[1.0, 0.0]);
    everywhere(|cpu| {
        let mut out = [0.0f64; 2];
        for op in [Unary::Neg, Unary::Sign, Unary::Relu, Unary::Sqrt, Unary::Round, Unary::Erf] {
            unary_exact(cpu, op, &[f64::NAN, -0.0], &mut out).unwrap();
            assert!(out[0].is_nan() && (out[1] == 0.0), "{op:?}");
        }
        assert!(unary_exact(cpu, Unary::Exp, &[1i32], &mut [0]).is_err());
        assert!(unary_exact(cpu, Unary::Gelu, &[1f64], &mut [0.0]).is_err());
        assert!(unary_exact(cpu, Unary::Neg, &[1f64], &mut [0.0, 0.0]).is_err());
    });
}

type OfFloats = fn(f32, f32) -> bool;

#[test]
fn comparisons_and_choices_broadcast_by_strides() {
    let x: Vec<f32> = Numbers::new(7).floats(120_000).into_iter().map(|x| (x * 3.0).round()).collect();
    let halves: Vec<bf16> = x.iter().map(|&x| bf16::from_f32(x)).collect();
    let truths: Vec<Truth> = x.iter().map(|&x| Truth::from(x > 0.0)).collect();
    let functions: [(Comparison, OfFloats); 6] = [
        (Comparison::Eq, |a, b| a == b),
        (Comparison::Ne, |a, b| a != b),
        (Comparison::Lt, |a, b| a < b),
        (Comparison::Le, |a, b| a <= b),
        (Comparison::Gt, |a, b| a > b),
        (Comparison::Ge, |a, b| a >= b),
    ];
    for (shape, of_a, of_b) in BROADCASTS {
        let count = shape.iter().product();
        everywhere(|cpu| {
            let mut out = vec![Truth::from(false); count];
            for (op, f) in functions {
                let operands = [&of_a, &of_b].map(|strides| Strided { data: &x[..], strides });
                compare(cpu, op, &shape, operands, &mut out).unwrap();
                let fits = |out: &[Truth]| {
                    out.iter()
                        .enumerate()
                        .all(|(i, y)| y.get() == f(x[place(i, shape, of_a)], x[place(i, shape, of_b)]))
                };
                assert!(fits(&out), "{op:?} {shape:?}");
                let operands = [&of_a, &of_b].map(|strides| Strided { data: &halves[..], strides });
                compare_floats(cpu, op, &shape, operands, &mut out).unwrap();
                assert!(fits(&out), "{op:?} {shape:?}");
            }
            let mut chosen = vec![0.0; count];
            let condition = Strided { data: &truths[..], strides: &of_b };
            let sides = [&of_a, &of_b].map(|strides| Strided { data: &x[..], strides });
            select(cpu, &shape, condition, sides, &mut chosen).unwrap();
            for (i, y) in chosen.iter().enumerate() {
                let (a, b) = (place(i, shape, of_a), place(i, shape, of_b));
                assert_eq!(*y, if truths[b].get() { x[a] } else { x[b] }, "{shape:?} {i}");
            }
        });
    }
    everywhere(|cpu| {
        let (nan, strides) = ([f32::NAN], [1]);
        let of = || Strided { data: &nan[..], strides: &strides };
        for (op, _) in functions {
            let mut out = [Truth::from(true)];
            compare(cpu, op, &[1], [of(), of()], &mut out).unwrap();
            assert_eq!(out[0].get(), op == Comparison::Ne, "{op:?}");
        }
        assert!(compare(cpu, Comparison::Eq, &[2], [of(), of()], &mut [Truth::from(true); 2]).is_err());
        assert!(compare(cpu, Comparison::Eq, &[1], [of(), of()], &mut []).is_err());
        // Any byte but 0 is true.
        let bytes: &[Truth] = bytemuck::cast_slice(&[0u8, 1, 2, 255]);
        let mut out = [Truth::from(true); 4];
        logical_not(cpu, bytes, &mut out).unwrap();
        assert_eq!(bytemuck::cast_slice::<_, u8>(&out), [1, 0, 0, 0]);
        let mut out = [7u8; 4];
        cast(cpu, bytes, &mut out).unwrap();
        assert_eq!(out, [0, 1, 1, 1]);
        let mut out = [Truth::from(true); 4];
        cast(cpu, &[f32::NAN, -0.0, 0.4, 1e-45], &mut out).unwrap();
        assert_eq!(bytemuck::cast_slice::<_, u8>(&out), [1, 0, 1, 1]);
        assert!(logical_not(cpu, bytes, &mut out[..3]).is_err());
    });
}
