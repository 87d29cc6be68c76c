//! The search against trying everything.

use super::*;
use crate::quant::{iq1_m, iq1_s, iq2_s, iq2_xs, iq2_xxs, iq3_s, iq3_xxs};

fn schemes() -> [(&'static str, &'static Scheme); 7] {
    [
        ("iq1_s", &iq1_s::SCHEME),
        ("iq1_m", &iq1_m::SCHEME),
        ("iq2_xxs", &iq2_xxs::SCHEME),
        ("iq2_xs", &iq2_xs::SCHEME),
        ("iq2_s", &iq2_s::SCHEME),
        ("iq3_xxs", &iq3_xxs::SCHEME),
        ("iq3_s", &iq3_s::SCHEME),
    ]
}

/// Deterministic numbers: nearly normal values, and weights over two decades.
struct Numbers(u64);

impl Numbers {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn block(&mut self) -> ([f32; 256], [f32; 256]) {
        let x = std::array::from_fn(|_| (0..6).map(|_| self.unit()).sum::<f32>() - 3.0);
        (x, std::array::from_fn(|_| 10f32.powf(-2.0 * self.unit())))
    }
}

/// The values of a group of 8 or 4 elements before they are scaled, with the signs of a stored block.
fn values(scheme: &Scheme, fit: &Fit, group: usize, point: u16) -> Vec<f32> {
    let n = scheme.group_elems;
    let eight = group * n / 8;
    let levels = scheme.levels[usize::from(fit.levels[eight])];
    let (code, bits) = (usize::from(scheme.codes[usize::from(point)]), 16 / n);
    (0..n)
        .map(|i| {
            let v = levels[code >> (bits * i) & ((1 << bits) - 1)];
            let minus = fit.minus[eight] >> (group * n % 8 + i) & 1 == 1;
            if minus { -v } else { v }
        })
        .collect()
}

fn group_error(scheme: &Scheme, fit: &Fit, group: usize, point: u16, x: &[f32], w: &[f32]) -> f32 {
    let n = scheme.group_elems;
    let scale = fit.d * scheme.multipliers[usize::from(fit.scales[group * n / scheme.sub_elems])];
    let values = values(scheme, fit, group, point);
    let parts = x[group * n..].iter().zip(&w[group * n..]).zip(values);
    parts.map(|((x, w), v)| w * (x - scale * v).powi(2)).sum()
}

fn error(scheme: &Scheme, fit: &Fit, x: &[f32], w: &[f32]) -> f32 {
    (0..256 / scheme.group_elems).map(|g| group_error(scheme, fit, g, fit.points[g], x, w)).sum()
}

#[test]
fn no_other_point_is_nearer() {
    let mut numbers = Numbers(1);
    for (name, scheme) in schemes() {
        for _ in 0..4 {
            let (x, w) = numbers.block();
            let fit = scheme.fit(&x, &w);
            let all = error(scheme, &fit, &x, &w);
            for g in 0..256 / scheme.group_elems {
                let own = group_error(scheme, &fit, g, fit.points[g], &x, &w);
                for point in 0..scheme.codes.len() as u16 {
                    let other = group_error(scheme, &fit, g, point, &x, &w);
                    assert!(own <= other + 1e-6 * all, "{name} group {g}: {own} with {other} possible");
                }
            }
        }
    }
}

#[test]
fn no_other_multiplier_is_better() {
    let mut numbers = Numbers(2);
    for (name, scheme) in schemes() {
        let points = Points::new(scheme.codes, scheme.levels);
        for _ in 0..4 {
            let (x, w) = numbers.block();
            let fit = scheme.fit(&x, &w);
            let all = error(scheme, &fit, &x, &w);
            for start in (0..256).step_by(scheme.sub_elems) {
                for number in 0..scheme.multipliers.len() {
                    let mut other = fit;
                    other.scales[start / scheme.sub_elems] = number as u8;
                    let part = start..start + scheme.sub_elems;
                    let scale = fit.d * scheme.multipliers[number];
                    scheme.choose(&points, &x[part.clone()], &w[part], scale, start, &mut other);
                    let e = error(scheme, &other, &x, &w);
                    assert!(all <= 1.01 * e, "{name} at {start}: {all} with {e} possible");
                }
            }
        }
    }
}

#[test]
fn no_other_scale_of_scales_is_much_better() {
    let mut numbers = Numbers(3);
    for (name, scheme) in schemes() {
        let points = Points::new(scheme.codes, scheme.levels);
        let (mut ours, mut best) = (0.0, 0.0);
        for _ in 0..2 {
            let (x, w) = numbers.block();
            let fit = scheme.fit(&x, &w);
            ours += error(scheme, &fit, &x, &w);
            let subs = || x.chunks(scheme.sub_elems).zip(w.chunks(scheme.sub_elems)).enumerate();
            let mut least = f32::INFINITY;
            for step in 0..12 {
                let mut other = Fit { d: fit.d * (0.7 + 0.05 * step as f32), ..fit };
                for (j, (x, w)) in subs() {
                    let mut cheapest = f32::INFINITY;
                    for (number, m) in scheme.multipliers.iter().enumerate() {
                        let line =
                            scheme.choose(&points, x, w, other.d * m, j * scheme.sub_elems, &mut other);
                        if line.error(other.d * m) < cheapest {
                            cheapest = line.error(other.d * m);
                            other.scales[j] = number as u8;
                        }
                    }
                    let scale = other.d * scheme.multipliers[usize::from(other.scales[j])];
                    scheme.choose(&points, x, w, scale, j * scheme.sub_elems, &mut other);
                }
                least = least.min(error(scheme, &other, &x, &w));
            }
            best += least;
        }
        assert!(ours <= 1.01 * best, "{name}: {ours} with {best} possible");
    }
}

#[test]
fn signs_are_wrong_only_where_they_must_be() {
    let mut numbers = Numbers(4);
    for (name, scheme) in schemes() {
        let (x, w) = numbers.block();
        let fit = scheme.fit(&x, &w);
        for (minus, x) in fit.minus.iter().zip(x.chunks(8)) {
            let wrong = (minus ^ minus_signs(x)).count_ones();
            match scheme.signs {
                Signs::Free => assert_eq!(wrong, 0, "{name}"),
                Signs::Even => {
                    assert_eq!(minus.count_ones() % 2, 0, "{name}");
                    assert_eq!(wrong, minus_signs(x).count_ones() % 2, "{name}");
                }
                _ => assert_eq!(*minus, 0, "{name}"),
            }
        }
    }
}

#[test]
fn elements_of_no_importance_stay_near() {
    for (name, scheme) in schemes() {
        let mut w = [1.0; 256];
        w.iter_mut().step_by(3).for_each(|w| *w = 0.0);
        let fit = scheme.fit(&[1.5; 256], &w);
        for g in 0..256 / scheme.group_elems {
            let off = group_error(scheme, &fit, g, fit.points[g], &[1.5; 256], &[1.0; 256]);
            assert!(off < 1e-2, "{name} group {g}: {off}");
        }
    }
}
