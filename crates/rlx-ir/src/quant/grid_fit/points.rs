//! The points of a grid in the order in which the search goes through them.

/// The points with one upper half of the code.
pub(super) struct Run {
    pub high: u8,
    /// The number of the first point.
    pub first: usize,
    pub codes: &'static [u16],
}

/// A grid's points.
pub(super) struct Points {
    pub codes: &'static [u16],
    /// All points, by the upper half of their code.
    pub runs: Vec<Run>,
    /// The lower halves that codes have.
    pub low: Vec<u8>,
    /// How the sums of squares are told apart.
    pub intervals: Intervals,
}

impl Points {
    /// Of codes that rise, with these lists of levels.
    pub fn new(codes: &'static [u16], levels: &[&[f32]]) -> Self {
        let mut first = 0;
        let runs = codes.chunk_by(|a, b| a >> 8 == b >> 8).map(|codes| {
            let run = Run { high: (codes[0] >> 8) as u8, first, codes };
            first += codes.len();
            run
        });
        let runs = runs.collect();
        let mut has = [false; 256];
        for code in codes {
            has[usize::from(code & 255)] = true;
        }
        let low = (0..=255).filter(|&i| has[usize::from(i)]).collect();
        let squares = || levels.iter().copied().flatten().map(|v| v * v);
        let least = squares().fold(f32::INFINITY, f32::min);
        let most = squares().fold(0f32, f32::max);
        Self { codes, runs, low, intervals: Intervals::new(least, most) }
    }
}

/// Steps of equal width in which the sums of squares of a group's halves are counted.
const STEPS: usize = 1024;
/// The intervals that the steps belong to: they grow with the sums, because what a point hides that has nearly the same sum
/// is at most that part of it.
pub(super) const COUNT: usize = 112;

/// The intervals of sums of squares. With weights that add up to 1 the sums go from `least` to `most`.
pub(super) struct Intervals {
    pub least: f32,
    pub steps_per_unit: f32,
    /// The interval of each step.
    of: [u8; STEPS],
    /// Half of one over the root of the sums of each interval.
    pub half_scales: [f32; COUNT],
}

impl Intervals {
    fn new(least: f32, most: f32) -> Self {
        // Two less, so that roundings of the two halves stay below the last.
        let steps_per_unit = (STEPS - 2) as f32 / (most - least);
        let growth = libm::powf(most / least, 1.0 / (COUNT - 1) as f32);
        let mut of = [0; STEPS];
        let mut half_scales = [0f32; COUNT];
        let (mut step, mut middle) = (0, least);
        for (i, half_scale) in half_scales.iter_mut().enumerate() {
            *half_scale = 0.5 / middle.sqrt();
            let end = ((middle * growth.sqrt() - least) * steps_per_unit) as usize + 1;
            let end = if i + 1 == COUNT { STEPS } else { end.clamp(step, STEPS) };
            of[step..end].fill(i as u8);
            step = end;
            middle *= growth;
        }
        Self { least, steps_per_unit, of, half_scales }
    }

    /// The interval of a step, which is that of two halves.
    pub fn find(&self, low: u16, high: u16) -> usize {
        usize::from(self.of[usize::from(low.wrapping_add(high)) % STEPS])
    }
}
