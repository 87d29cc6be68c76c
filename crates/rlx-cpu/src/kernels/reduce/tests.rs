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
fn argmax_takes_the_first() {
    everywhere(|cpu| {
        let mut x = vec![0.0; 3 * 50];
        (x[20], x[30]) = (5.0, 5.0);
        x[50..100].fill(f32::NEG_INFINITY);
        (x[110], x[120]) = (f32::NAN, 9.0);
        let mut out = [7; 3];
        argmax(cpu, 50, &x, &mut out).unwrap();
        assert_eq!(out, [20, 0, 10]);
        assert!(argmax(cpu, 0, &[], &mut out).is_err());
        assert!(reduce(cpu, Reduction::Sum, [3, 50, 2], &x, &mut [0.0; 6]).is_err());
    });
}
