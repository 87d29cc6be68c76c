use half::bf16;

use super::*;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

const SIZES: [(usize, usize); 5] = [(1, 1), (3, 16), (5, 37), (40, 384), (300, 300)];

fn rows_of(x: &[f32], cols: usize, f: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    x.chunks(cols).flat_map(|row| f(&row.iter().map(|&x| f64::from(x)).collect::<Vec<_>>())).collect()
}

fn mean(x: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = x.len() as f64;
    x.sum::<f64>() / count
}

#[test]
fn norms_match_f64() {
    for (count, cols) in SIZES {
        let mut numbers = Numbers::new(cols as u64);
        let (x, weight, bias) = (numbers.floats(count * cols), numbers.floats(cols), numbers.floats(cols));
        let wide = |p: &[f32], i: usize| f64::from(p[i]);
        let layer = rows_of(&x, cols, |x| {
            let m = mean(x.iter().copied());
            let scale = 1.0 / (mean(x.iter().map(|x| (x - m).powi(2))) + 1e-3).sqrt();
            x.iter().enumerate().map(|(i, x)| (x - m) * scale * wide(&weight, i) + wide(&bias, i)).collect()
        });
        let rms = rows_of(&x, cols, |x| {
            let scale = 1.0 / (mean(x.iter().map(|x| x * x)) + 1e-3).sqrt();
            x.iter().enumerate().map(|(i, x)| x * scale * wide(&weight, i)).collect()
        });
        let around_zero: Vec<f64> = rms
            .iter()
            .enumerate()
            .map(|(i, y)| y / wide(&weight, i % cols) * (1.0 + wide(&weight, i % cols)))
            .collect();
        let l2 = rows_of(&x, cols, |x| {
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1e-12);
            x.iter().map(|x| x / length).collect()
        });
        let soft = rows_of(&x, cols, |x| {
            let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let e: Vec<f64> = x.iter().map(|x| ((x - max) * 3.0).exp()).collect();
            e.iter().map(|v| v / e.iter().sum::<f64>()).collect()
        });
        let run = |cpu: Cpu<'_>, which: usize| {
            let mut out = vec![f32::NAN; x.len()];
            let (w, b) = (Some(&weight[..]), Some(&bias[..]));
            match which {
                0 => layer_norm(cpu, cols, 1e-3, (w, b), &x, None, &mut out).unwrap(),
                1 => rms_norm(cpu, cols, 1e-3, (w, 0.0), &x, None, &mut out).unwrap(),
                2 => rms_norm(cpu, cols, 1e-3, (w, 1.0), &x, None, &mut out).unwrap(),
                3 => l2_normalize(cpu, cols, 1e-12, &x, &mut out).unwrap(),
                _ => softmax(cpu, cols, 3.0, &x, &mut out).unwrap(),
            }
            out
        };
        for (which, reference) in [layer, rms, around_zero, l2, soft].iter().enumerate() {
            let tolerance = 6e-8 * (40.0 + 4.0 * (cols as f64).sqrt());
            everywhere(|cpu| {
                close(&format!("{which} {cols} {cpu:?}"), &run(cpu, which), reference, |_| tolerance);
            });
            same_bits_everywhere(|cpu| run(cpu, which));
        }
    }
}

/// Rows whose sums or squares are beyond f32, or below it where no epsilon hides that.
#[test]
fn norms_of_very_large_and_very_small_rows_match_f64() {
    let cols = 37;
    let mut numbers = Numbers::new(5);
    let (weight, base) = (numbers.floats(cols), numbers.floats(cols));
    let largest = base.iter().fold(0f32, |m, x| m.max(x.abs()));
    let scaled = |scale: f32| -> Vec<f32> { base.iter().map(|x| x / largest * scale).collect() };
    let alternating = (0..cols).map(|i| if i % 3 == 0 { f32::MAX } else { -f32::MAX });
    let rows: [(Vec<f32>, f32); 8] = [
        (scaled(1e19), 1e-5),
        (scaled(1e30), 1e-5),
        (scaled(f32::MAX), 1e-5),
        (alternating.collect(), 1e-5),
        // The mean is large, and the rest beyond f32 when it is squared.
        (scaled(1e34).iter().map(|x| x + 3e38).collect(), 1e-5),
        (vec![3e38; cols], 1e-5),
        (scaled(1e-22), 0.0),
        (scaled(1e-37), 0.0),
    ];
    for (x, eps) in &rows {
        let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        let m = mean(wide.iter().copied());
        let w = |i: usize| f64::from(weight[i]);
        let each = |center: f64, eps: f64| -> Vec<f64> {
            let square = mean(wide.iter().map(|x| (x - center).powi(2)));
            let scale = 1.0 / (square + eps).sqrt();
            wide.iter().enumerate().map(|(i, x)| (x - center) * scale * w(i)).collect()
        };
        let length = wide.iter().map(|x| x * x).sum::<f64>().sqrt();
        let l2: Vec<f64> = wide.iter().map(|x| x / length).collect();
        let (layer, rms) = (each(m, f64::from(*eps)), each(0.0, f64::from(*eps)));
        everywhere(|cpu| {
            let mut out = vec![f32::NAN; cols];
            let name = format!("{:e} {cpu:?}", x[0]);
            let tolerance = 6e-8 * (40.0 + 4.0 * (cols as f64).sqrt());
            rms_norm(cpu, cols, *eps, (Some(&weight), 0.0), x, None, &mut out).unwrap();
            close(&format!("rms {name}"), &out, &rms, |_| tolerance);
            l2_normalize(cpu, cols, *eps, x, &mut out).unwrap();
            close(&format!("l2 {name}"), &out, &l2, |_| tolerance);
            layer_norm(cpu, cols, *eps, (Some(&weight), None), x, None, &mut out).unwrap();
            // What is subtracted is rounded relative to the mean.
            let spread = mean(wide.iter().map(|x| (x - m).powi(2))).sqrt();
            let tolerance = tolerance * (1.0 + m.abs() / spread);
            close(&format!("layer {name}"), &out, &layer, |_| tolerance);
        });
    }
}

#[test]
fn a_residual_is_added_and_rounded_first() {
    let (count, cols) = (9, 50);
    let mut numbers = Numbers::new(2);
    let mut make = || numbers.floats(count * cols).into_iter().map(bf16::from_f32).collect::<Vec<_>>();
    let (x, residual) = (make(), make());
    let added: Vec<bf16> =
        x.iter().zip(&residual).map(|(a, b)| bf16::from_f32(a.to_f32() + b.to_f32())).collect();
    everywhere(|cpu| {
        let (mut sum, mut out, mut expected) =
            (vec![bf16::ZERO; x.len()], vec![bf16::ZERO; x.len()], vec![bf16::ZERO; x.len()]);
        rms_norm(cpu, cols, 1e-5, (None, 0.0), &added, None, &mut expected).unwrap();
        let add = AddFirst { residual: &residual, sum: &mut sum };
        rms_norm(cpu, cols, 1e-5, (None, 0.0), &x, Some(add), &mut out).unwrap();
        assert_eq!((sum, out), (added.clone(), expected));
    });
}

#[test]
fn special_rows() {
    everywhere(|cpu| {
        let x = [f32::NEG_INFINITY, f32::NEG_INFINITY, 0.0, f32::NEG_INFINITY, 1.0, f32::NAN];
        let mut out = [9.0; 6];
        softmax(cpu, 2, 1.0, &x, &mut out).unwrap();
        assert_eq!(out[..4], [0.0, 0.0, 1.0, 0.0]);
        assert!(out[4].is_nan() && out[5].is_nan());
        l2_normalize(cpu, 2, 1e-12, &[0.0, 0.0, 3.0, 4.0, f32::NAN, 1.0], &mut out).unwrap();
        assert_eq!(out[..4], [0.0, 0.0, 0.6, 0.8]);
        assert!(out[4].is_nan() && out[5].is_nan());
        softmax::<f32>(cpu, 5, 1.0, &[], &mut []).unwrap();
        assert!(softmax(cpu, 4, 1.0, &x, &mut out).is_err());
        assert!(rms_norm(cpu, 2, 1e-5, (Some(&[1.0]), 0.0), &x, None, &mut out).is_err());
        let add = AddFirst { residual: &x[..4], sum: &mut [0.0; 6] };
        assert!(rms_norm(cpu, 2, 1e-5, (None, 0.0), &x, Some(add), &mut out).is_err());
    });
}
