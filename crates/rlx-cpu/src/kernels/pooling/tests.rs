use super::*;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

#[test]
fn pooling_matches_f64() {
    let (cols, starts) = (37, [0, 4, 4, 5, 300]);
    let x = Numbers::new(1).floats(300 * cols);
    for pooling in [Pooling::Mean, Pooling::Cls, Pooling::Last, Pooling::Max] {
        let run = |cpu: Cpu<'_>| {
            let mut out = vec![f32::NAN; 4 * cols];
            pool(cpu, pooling, cols, &x, &starts, &mut out).unwrap();
            out
        };
        let mut reference = Vec::new();
        for w in starts.windows(2) {
            for c in 0..cols {
                let column: Vec<f64> = (w[0]..w[1]).map(|n| f64::from(x[n as usize * cols + c])).collect();
                reference.push(match (pooling, column.as_slice()) {
                    (_, []) => 0.0,
                    (Pooling::Mean, all) => all.iter().sum::<f64>() / all.len() as f64,
                    (Pooling::Cls, [first, ..]) => *first,
                    (Pooling::Last, [.., last]) => *last,
                    (Pooling::Max, all) => all.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                });
            }
        }
        everywhere(|cpu| close(&format!("{pooling:?} {cpu:?}"), &run(cpu), &reference, |_| 2e-6));
        same_bits_everywhere(run);
    }
}

#[test]
fn a_mean_is_finite_where_its_rows_are() {
    let (cols, tokens) = (19, 5i32);
    let x: Vec<f32> = (0..cols * 5).map(|i| f32::MAX * if i % 2 == 0 { 0.5 } else { 0.75 }).collect();
    let column = |c: usize| (0..5).map(|t| f64::from(x[t * cols + c])).sum::<f64>() / 5.0;
    let reference: Vec<f64> = (0..cols).map(column).collect();
    everywhere(|cpu| {
        let mut out = vec![0.0; cols];
        pool(cpu, Pooling::Mean, cols, &x, &[0, tokens], &mut out).unwrap();
        close("mean", &out, &reference, |_| 1e-6 * f64::from(f32::MAX));
    });
}

#[test]
fn nan_stays_with_its_sequence_and_sizes_are_checked() {
    let mut x = vec![1.0f32; 6 * 3];
    x[4] = f32::NAN;
    everywhere(|cpu| {
        for pooling in [Pooling::Mean, Pooling::Max] {
            let mut out = [0.0; 6];
            pool(cpu, pooling, 3, &x, &[0, 3, 6], &mut out).unwrap();
            assert!(out[1].is_nan() && out.iter().filter(|y| y.is_nan()).count() == 1);
        }
        assert!(pool(cpu, Pooling::Mean, 3, &x, &[0, 3, 7], &mut [0.0; 6]).is_err());
        assert!(pool(cpu, Pooling::Mean, 3, &x, &[0, 3, 6], &mut [0.0; 5]).is_err());
        assert!(pool(cpu, Pooling::Mean, 4, &x, &[0, 4], &mut [0.0; 4]).is_err());
    });
}
