//! The least cost of a group or a sub-block as a function of its scale.

use super::tables::Tables;

/// A choice of points: it costs `s^2 c - 2 s b` with the scale `s`.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    pub b: f32,
    pub c: f32,
    /// The least scale for which this choice is the best.
    from: f32,
}

impl Line {
    pub fn new(b: f32, c: f32) -> Self {
        Self { b, c, from: 0.0 }
    }

    /// What it adds to the weighted squared error of zeros.
    pub fn error(self, scale: f32) -> f32 {
        scale * (scale * self.c - 2.0 * self.b)
    }

    /// Both choices at once.
    pub fn add(&mut self, other: Self) {
        self.b += other.b;
        self.c += other.c;
    }
}

/// The choices that are best for some scale, from the largest scales to the least: `c`, and with it `b`, rises.
pub(super) struct Envelope {
    lines: Vec<Line>,
}

/// Intervals of `c` of which one point each is kept.
const BUCKETS: usize = 128;

impl Envelope {
    /// Of the points of a group, with any of the lists of levels.
    pub fn of(tables: &[Tables], codes: &[u16], flip: bool) -> Self {
        let least = tables.iter().map(|t| t.least).fold(f32::INFINITY, f32::min);
        let most = tables.iter().map(|t| t.most).fold(0f32, f32::max);
        let per_bucket = crate::quant::search::inverse((most - least) / (BUCKETS - 1) as f32);
        let mut buckets = [Line::new(f32::NEG_INFINITY, 0.0); BUCKETS];
        for tables in tables {
            for &code in codes {
                let line = tables.line(code, flip);
                let bucket = &mut buckets[(((line.c - least) * per_bucket) as usize).min(BUCKETS - 1)];
                if line.b > bucket.b {
                    *bucket = line;
                }
            }
        }
        Self::hull(buckets.into_iter().filter(|line| line.b > f32::NEG_INFINITY))
    }

    /// Of lines by rising `c`.
    fn hull(all: impl Iterator<Item = Line>) -> Self {
        let mut lines: Vec<Line> = Vec::with_capacity(32);
        for line in all {
            if lines.last().is_some_and(|last| line.b <= last.b) {
                continue;
            }
            while let Some(last) = lines.last_mut() {
                last.from = 2.0 * (line.b - last.b) / (line.c - last.c);
                let from = last.from;
                if lines.len() >= 2 && lines[lines.len() - 2].from <= from {
                    lines.pop();
                } else {
                    break;
                }
            }
            lines.push(line);
        }
        if let Some(last) = lines.last_mut() {
            last.from = 0.0;
        }
        Self { lines }
    }

    /// Of choices that are made independently of one another.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut start = Line::default();
        let mut steps: Vec<Line> = Vec::with_capacity(64);
        for part in parts {
            let Some(&first) = part.lines.first() else { continue };
            start.add(first);
            steps.extend(part.lines.windows(2).map(|pair| Line {
                b: pair[1].b - pair[0].b,
                c: pair[1].c - pair[0].c,
                from: pair[0].from,
            }));
        }
        steps.sort_unstable_by(|a, b| b.from.total_cmp(&a.from));
        let mut lines = Vec::with_capacity(steps.len() + 1);
        let mut line = start;
        for step in steps {
            lines.push(Line { from: step.from, ..line });
            line.add(step);
        }
        lines.push(Line { from: 0.0, ..line });
        Self { lines }
    }

    /// Of either choice.
    pub fn least(either: [Self; 2]) -> Self {
        let mut lines: Vec<Line> = either.into_iter().flat_map(|e| e.lines).collect();
        lines.sort_unstable_by(|x, y| x.c.total_cmp(&y.c).then(y.b.total_cmp(&x.b)));
        Self::hull(lines.into_iter())
    }

    /// The scale with the least error of all, if any is better than 0.
    pub fn best_scale(&self) -> Option<f32> {
        let positive = self.lines.iter().filter(|l| l.b > 0.0 && l.c > 0.0);
        let gain = |l: &Line| l.b * (l.b / l.c);
        positive.max_by(|x, y| gain(x).total_cmp(&gain(y))).map(|l| l.b / l.c)
    }

    /// Looks lines up by rising scale.
    pub fn rising(&self) -> Rising<'_> {
        Rising { lines: &self.lines }
    }
}

/// The lines that are left for scales above the last one.
pub(super) struct Rising<'a> {
    lines: &'a [Line],
}

impl Rising<'_> {
    /// The best choice for `scale`, which is not below that of the call before.
    pub fn at(&mut self, scale: f32) -> Line {
        while let [rest @ .., before, _] = self.lines
            && before.from <= scale
        {
            self.lines = &self.lines[..rest.len() + 1];
        }
        self.lines.last().copied().unwrap_or_default()
    }
}
