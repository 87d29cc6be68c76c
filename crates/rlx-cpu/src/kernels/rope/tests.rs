use half::f16;

use super::*;
use crate::testing::{Numbers, close, everywhere, same_bits_everywhere};

fn frequencies(half: usize) -> Vec<f32> {
    (0..half).map(|i| 10000f32.powf(-(i as f32) / half as f32)).collect()
}

#[test]
fn rotations_match_f64() {
    for (style, head_dim, half) in [
        (RopeStyle::Halves, 64, 32),
        (RopeStyle::Interleaved, 64, 32),
        (RopeStyle::Halves, 80, 10),
        (RopeStyle::Interleaved, 80, 20),
        (RopeStyle::Interleaved, 7, 0),
    ] {
        let (heads, positions) = (3, [0, 1, 77, 130_000, 5]);
        let (stride, table) = (heads * head_dim + 5, frequencies(half));
        let x = Numbers::new(half as u64).floats(positions.len() * stride);
        let sizes =
            Rope { style, num_heads: heads, head_dim, inverse_frequencies: &table, attention_scale: 1.5 };
        let mut reference = Vec::new();
        for (n, &p) in positions.iter().enumerate() {
            for h in 0..heads {
                for d in 0..head_dim {
                    let at = |d: usize| f64::from(x[n * stride + h * head_dim + d]);
                    if d >= 2 * half {
                        reference.push(at(d));
                        continue;
                    }
                    let (pair, first, other) = match style {
                        RopeStyle::Halves => (d % half, d < half, (d + half) % (2 * half)),
                        RopeStyle::Interleaved => (d / 2, d % 2 == 0, d ^ 1),
                    };
                    let (sin, cos) = f64::from(table[pair] * p as f32).sin_cos();
                    let turned = if first { -at(other) * sin } else { at(other) * sin };
                    reference.push(1.5 * (at(d) * cos + turned));
                }
            }
        }
        let run = |cpu: Cpu<'_>| {
            let mut out = vec![f32::NAN; positions.len() * heads * head_dim];
            rope(cpu, sizes, &positions, (&x, stride), &mut out).unwrap();
            out
        };
        everywhere(|cpu| close(&format!("{style:?} {head_dim} {cpu:?}"), &run(cpu), &reference, |_| 8e-7));
        same_bits_everywhere(run);
    }
}

#[test]
fn halves_of_f16_round_once_and_sizes_are_checked() {
    let table = frequencies(8);
    let sizes = Rope {
        style: RopeStyle::Halves,
        num_heads: 1,
        head_dim: 16,
        inverse_frequencies: &table,
        attention_scale: 1.0,
    };
    let x: Vec<f16> = Numbers::new(3).floats(32).into_iter().map(f16::from_f32).collect();
    let wide: Vec<f32> = x.iter().map(|x| x.to_f32()).collect();
    everywhere(|cpu| {
        let (mut out, mut expected) = (vec![f16::ZERO; 32], vec![0.0; 32]);
        rope(cpu, sizes, &[3, 9], (&x, 16), &mut out).unwrap();
        rope(cpu, sizes, &[3, 9], (&wide, 16), &mut expected).unwrap();
        assert!(out.iter().zip(&expected).all(|(a, b)| *a == f16::from_f32(*b)));
        assert!(rope(cpu, sizes, &[3], (&x, 16), &mut out).is_err());
        assert!(rope(cpu, sizes, &[3, 9], (&x, 17), &mut out).is_err());
        assert!(rope(cpu, Rope { head_dim: 15, ..sizes }, &[3], (&x, 16), &mut out[..15]).is_err());
        rope(cpu, sizes, &[], (&x[..0], 16), &mut []).unwrap();
    });
}
