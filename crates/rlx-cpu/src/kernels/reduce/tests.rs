use half::bf16;

use super::*;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

const ALL: [Reduction; 5] =
    [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Min, Reduction::Prod];

fn exact(reduction: Reduction, x: &[f64]) -> f64 {
    match reduction {
        Reduction::Sum => x.iter().sum(),
        Reduction::Mean => x.iter().sum::<f64>() / x.len() as f64,
        Reduction::Max => x.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        Reduction::Min => x.iter().copied().fold(f64::INFINITY, f64::min),
        Reduction::Prod => x.iter().product(),
    }
}

#[test]
fn reductions_match_f64() {
    for [outer, axis, inner] in [[3, 37, 1], [2, 5, 21], [700, 200, 1], [4, 0, 3], [1, 1, 1], [0, 4, 4]] {
        let x = Numbers::new(axis as u64).floats(outer * axis * inner);
        for reduction in ALL {
            let run = |cpu: Cpu<'_>| {
                let mut out = vec![0.0; outer * inner];
                reduce(cpu, reduction, [outer, axis, inner], &x, &mut out).unwrap();
                out
            };
            let reference: Vec<f64> = (0..outer * inner)
                .map(|i| {
                    let column: Vec<f64> =
                        (0..axis).map(|a| f64::from(x[(i / inner * axis + a) * inner + i % inner])).collect();
                    exact(reduction, &column)
                })
                .collect();
            let tolerance = 4.0 * 6e-8 * (axis as f64).sqrt() * axis as f64;
            everywhere(|cpu| close(&format!("{reduction:?} {cpu:?}"), &run(cpu), &reference, |_| tolerance));
            same_bits_everywhere(run);
        }
    }
}

/// The sum of these is beyond f32, whatever the order, or only in some orders.
#[test]
fn a_mean_is_finite_where_its_elements_are() {
    for [axis, inner] in [[40, 1], [40, 3], [37, 19]] {
        for low in [0.9, -1.0] {
            let x: Vec<f32> =
                (0..axis * inner).map(|i| f32::MAX * if i % 32 < 16 { 1.0 } else { low }).collect();
            let column = |i: usize| (0..axis).map(move |a| a * inner + i);
            let reference: Vec<f64> =
                (0..inner).map(|i| column(i).map(|at| f64::from(x[at])).sum::<f64>() / axis as f64).collect();
            everywhere(|cpu| {
                let mut out = vec![0.0; inner];
                reduce(cpu, Reduction::Mean, [1, axis, inner], &x, &mut out).unwrap();
                let tolerance = 4.0 * 6e-8 * (axis as f64).sqrt() * f64::from(f32::MAX);
                close(&format!("{axis} {inner} {low}"), &out, &reference, |_| tolerance);
            });
        }
    }
    everywhere(|cpu| {
        let mut out = vec![0.0; 1];
        reduce(cpu, Reduction::Mean, [1, 2, 1], &[f32::INFINITY, 1.0], &mut out).unwrap();
        assert_eq!(out[0], f32::INFINITY);
    });
}

#[test]
fn nan_is_never_lost() {
    for [axis, inner] in [[40, 1], [40, 3]] {
        for at in [0, 17, 39] {
            let mut x = vec![1.0; axis * inner];
            x[at * inner] = f32::NAN;
            for reduction in ALL {
                everywhere(|cpu| {
                    let mut out = vec![0.0; inner];
                    reduce(cpu, reduction, [1, axis, inner], &x, &mut out).unwrap();
                    assert!(out[0].is_nan() && out[1..].iter().all(|y| y.is_finite()), "{reduction:?}");
                });
            }
        }
    }
}

#[test]
fn sizes_that_do_not_agree_are_refused() {
    everywhere(|cpu| {
        assert!(reduce(cpu, Reduction::Sum, [3, 50, 2], &[0f32; 150], &mut [0f32; 6]).is_err());
        assert!(reduce_exact(cpu, Reduction::Mean, [1, 2, 1], &[1, 2], &mut [0]).is_err());
        let axes = reduce_axes(cpu, Reduction::Sum, &[2, 3], &[true], &[0i32; 6], &mut [0]);
        assert!(axes.is_err());
    });
}

#[test]
fn integers_wrap_and_have_ends() {
    fn of<T: Folded + PartialEq + std::fmt::Debug>(
        by: Reduction,
        sizes: [usize; 3],
        x: &[T],
        expected: &[T],
    ) {
        everywhere(|cpu| {
            let mut out = expected.to_vec();
            out.reverse();
            reduce_exact(cpu, by, sizes, x, &mut out).unwrap();
            assert_eq!(out, expected, "{by:?}");
        });
    }
    of(Reduction::Sum, [1, 40, 1], &[100u8; 40], &[(4000 % 256) as u8]);
    of(Reduction::Prod, [1, 40, 1], &[3i64; 40], &[3i64.wrapping_pow(40)]);
    of(Reduction::Max, [2, 2, 2], &[1i8, -128, -3, 127, 0, 5, 0, 4], &[1, 127, 0, 5]);
    of(Reduction::Max, [2, 0, 1], &[], &[i16::MIN, i16::MIN]);
    of(Reduction::Min, [2, 0, 1], &[], &[u32::MAX, u32::MAX]);
    of(Reduction::Sum, [1, 3, 2], &[0.5, 1.0, 0.25, 2.0, 4.0, 4.0], &[4.75, 7.0]);
    of(Reduction::Mean, [1, 2, 2], &[1.0, 2.0, 4.0, 8.0], &[2.5, 5.0]);
    everywhere(|cpu| {
        let mut out = [0.0f64; 2];
        for by in ALL {
            reduce_exact(cpu, by, [2, 20, 1], &[[f64::NAN; 20], [1.0; 20]].concat(), &mut out).unwrap();
            assert!(out[0].is_nan() && out[1].is_finite(), "{by:?}");
        }
    });
}

#[test]
fn any_axes_are_reduced_and_narrow_floats_rounded_once() {
    let shape = [3, 1, 4, 5, 6, 7];
    let values: Vec<i64> = (0..shape.iter().product::<usize>()).map(|i| (i * 37 % 101) as i64 - 50).collect();
    for reduced in 1..64u32 {
        let reduced: Vec<bool> = (0..6).map(|axis| reduced & (1 << axis) != 0).collect();
        let kept: Vec<usize> = (0..6).filter(|axis| !reduced[*axis]).collect();
        let mut expected = vec![0i64; kept.iter().map(|axis| shape[*axis]).product()];
        for (i, x) in values.iter().enumerate() {
            let index = |axis: usize| i / shape[axis + 1..].iter().product::<usize>() % shape[axis];
            let at = kept.iter().fold(0, |at, &axis| at * shape[axis] + index(axis));
            expected[at] += x;
        }
        everywhere(|cpu| {
            let mut out = vec![0; expected.len()];
            reduce_axes(cpu, Reduction::Sum, &shape, &reduced, &values, &mut out).unwrap();
            assert_eq!(out, expected, "{reduced:?}");
            let narrow: Vec<bf16> = values.iter().map(|&x| bf16::from_f32(x as f32)).collect();
            let mut out = vec![bf16::ZERO; expected.len()];
            reduce_axes(cpu, Reduction::Sum, &shape, &reduced, &narrow, &mut out).unwrap();
            // Sums of small integers are exact in f32.
            let once = expected.iter().map(|&x| bf16::from_f32(x as f32));
            assert!(out.iter().copied().eq(once), "{reduced:?}");
            let count = (values.len() / expected.len()) as f64;
            let mut out = vec![0.0; expected.len()];
            let doubles: Vec<f64> = values.iter().map(|&x| x as f64).collect();
            reduce_axes(cpu, Reduction::Mean, &shape, &reduced, &doubles, &mut out).unwrap();
            let near = |(y, sum): (&f64, &i64)| (y - *sum as f64 / count).abs() < 1e-12;
            assert!(out.iter().zip(&expected).all(near), "{reduced:?}");
        });
    }
}
