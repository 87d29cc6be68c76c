//! The encoders of the simple formats against a dense search of all scales (and minimums).

#![allow(clippy::unwrap_used, clippy::panic)]

use half::f16;
use rlx_ir::DType;
use rlx_ir::quant::{BlockType, iq4_nl};

const ROWS: usize = 200;
const ROW: usize = 64;
const BLOCK: usize = 32;
/// The scales tried, from `LEAST` to `MOST` times the one that just reaches the largest value.
const SCALES: usize = 300;
const LEAST: f32 = 0.6;
const MOST: f32 = 1.2;
/// The minimums tried with each scale, up to `SPREAD` of the range away from the least value.
const MINIMUMS: usize = 41;
const SPREAD: f32 = 0.15;

/// Deterministic numbers of a few distributions.
struct Numbers(u64);

impl Numbers {
    fn unit(&mut self) -> f32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 40) as f32 / (1u64 << 24) as f32
    }

    fn normal(&mut self) -> f32 {
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// A row of one of four kinds: normal, uniform, heavy-tailed, normal around an offset.
    fn row(&mut self, kind: usize) -> Vec<f32> {
        let scale = 10f32.powf(4.0 * self.unit() - 2.0);
        let offset = if kind % 4 == 3 { 2.0 } else { 0.0 };
        let one = |n: &mut Self| match kind % 4 {
            1 => 2.0 * n.unit() - 1.0,
            2 => n.normal().powi(3),
            _ => n.normal(),
        };
        (0..ROW).map(|_| scale * (one(self) + offset)).collect()
    }
}

/// What the quants of a format stand for, in units of the scale.
enum Levels {
    /// All integers of a range.
    Integers(f32, f32),
    /// Those of a table.
    Table(&'static [i8]),
}

impl Levels {
    fn nearest(&self, v: f32) -> f32 {
        match self {
            Self::Integers(low, high) => v.round().clamp(*low, *high),
            Self::Table(values) => {
                let distance = |level: f32| (level - v).abs();
                let levels = values.iter().map(|q| f32::from(*q));
                levels.min_by(|a, b| distance(*a).total_cmp(&distance(*b))).unwrap()
            }
        }
    }

    fn ends(&self) -> [f32; 2] {
        match self {
            Self::Integers(low, high) => [*low, *high],
            Self::Table(values) => [values[0], values[values.len() - 1]].map(f32::from),
        }
    }
}

fn stored(v: f32) -> f32 {
    f16::from_f32(v).to_f32()
}

fn squared_error(x: &[f32], w: &[f32], levels: &Levels, d: f32, m: f32) -> f64 {
    x.iter().zip(w).fold(0.0, |sum, (v, w)| {
        let off = levels.nearest((v - m) / d) * d + m - v;
        sum + f64::from(*w) * f64::from(off) * f64::from(off)
    })
}

fn fan() -> impl Iterator<Item = f32> {
    (0..=SCALES).map(|i| LEAST + (MOST - LEAST) * i as f32 / SCALES as f32)
}

/// The least error of any scale, which may be negative.
fn best_symmetric(x: &[f32], w: &[f32], levels: &Levels) -> f64 {
    let peak = x.iter().fold(0f32, |m, v| if v.abs() > m.abs() { *v } else { m });
    let mut best = f64::INFINITY;
    for end in levels.ends() {
        for t in fan() {
            best = best.min(squared_error(x, w, levels, stored(t * peak / end), 0.0));
        }
    }
    best
}

/// The least error of any scale and minimum.
fn best_affine(x: &[f32], w: &[f32], high: f32) -> f64 {
    let least = x.iter().copied().fold(f32::INFINITY, f32::min);
    let range = x.iter().copied().fold(f32::NEG_INFINITY, f32::max) - least;
    let mut best = f64::INFINITY;
    for t in fan().step_by(3) {
        for i in 0..MINIMUMS {
            let shift = SPREAD * (2.0 * i as f32 / (MINIMUMS - 1) as f32 - 1.0);
            let (d, m) = (stored(t * range / high), stored(least + shift * range));
            best = best.min(squared_error(x, w, &Levels::Integers(0.0, high), d, m));
        }
    }
    best
}

/// The largest ratio of an encoder's error to the least, over all rows, with and without importances.
fn worst_ratio(block: BlockType, best: impl Fn(&[f32], &[f32]) -> f64) -> f64 {
    let mut numbers = Numbers(7);
    let mut worst = 0f64;
    for row in 0..ROWS {
        let x = numbers.row(row);
        let weighted = block.uses_importance() && row >= ROWS / 2;
        let w: Vec<f32> = (0..ROW).map(|_| if weighted { 0.1 + numbers.unit() } else { 1.0 }).collect();
        let mut blocks = vec![0; DType::Block(block).row_bytes(ROW).unwrap()];
        block.encode(&x, weighted.then_some(&w[..]), &mut blocks).unwrap();
        let mut y = vec![0.0; ROW];
        block.decode(&blocks, &mut y).unwrap();
        let ours: f64 =
            x.iter().zip(&y).zip(&w).map(|((x, y), w)| f64::from(*w) * f64::from(x - y).powi(2)).sum();
        let best: f64 = x.chunks(BLOCK).zip(w.chunks(BLOCK)).map(|(x, w)| best(x, w)).sum();
        worst = worst.max((ours / best).sqrt());
    }
    worst
}

#[test]
fn encoders_with_one_scale_find_nearly_the_best() {
    for (block, levels) in [
        (BlockType::Q4_0, Levels::Integers(-8.0, 7.0)),
        (BlockType::Q5_0, Levels::Integers(-16.0, 15.0)),
        (BlockType::Q8_0, Levels::Integers(-128.0, 127.0)),
        (BlockType::IQ4_NL, Levels::Table(&iq4_nl::VALUES)),
    ] {
        let ratio = worst_ratio(block, |x, w| best_symmetric(x, w, &levels));
        println!("{}: {ratio:.4}", block.name());
        assert!(ratio <= 1.05, "{}: {ratio}", block.name());
    }
}

#[test]
fn encoders_with_a_minimum_find_nearly_the_best() {
    for (block, high) in [(BlockType::Q4_1, 15.0), (BlockType::Q5_1, 31.0)] {
        let ratio = worst_ratio(block, |x, w| best_affine(x, w, high));
        println!("{}: {ratio:.4}", block.name());
        assert!(ratio <= 1.05, "{}: {ratio}", block.name());
    }
}
