//! The least cost of a group or a sub-block as a function of its scale.

use super::points::{COUNT, Points};
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

    /// The scale above which `self`, the choice of smaller `c`, is the better one.
    fn meets(self, next: Self) -> f32 {
        2.0 * (next.b - self.b) / (next.c - self.c)
    }
}

/// The choices that are best for some scale, from the largest scales to the least: `c`, and with it `b`, rises.
pub(super) struct Envelope {
    lines: Vec<Line>,
}

impl Envelope {
    /// Of the points of a group, with any of the lists of levels.
    ///
    /// Of the points whose `c` is nearly the same, one stands for all.
    pub fn of<const LISTS: usize>(tables: [&Tables; LISTS], points: &Points, flip: bool) -> Self {
        // The best of each interval above the point that it is, as one number. Below 0 the order is the wrong one, which does
        // not matter: such points are of no use.
        let mut buckets = [i64::MIN; COUNT];
        for (list, tables) in tables.iter().enumerate() {
            let list = (list as i64) << 16;
            tables.each(points, flip, |code, interval, value| {
                // Adding to 0 makes zeros positive.
                let key = i64::from((value + 0.0).to_bits() as i32) << 32 | list | i64::from(code);
                let bucket = &mut buckets[interval];
                *bucket = key.max(*bucket);
            });
        }
        let mut last = f32::NEG_INFINITY;
        let lines = buckets.iter().filter(|&&key| key > i64::MIN).filter_map(|&key| {
            let line = tables[(key >> 16 & 1) as usize].line(key as u16, flip);
            // Intervals are those of halves, so that neighbours can be out of order by a little: the later one yields.
            let rises = line.c > last;
            last = last.max(line.c);
            rises.then_some(line)
        });
        Self::hull(lines)
    }

    /// Of lines by rising `c`.
    fn hull(all: impl Iterator<Item = Line>) -> Self {
        let mut lines: Vec<Line> = Vec::with_capacity(32);
        for line in all {
            if lines.last().is_some_and(|last| line.b <= last.b) {
                continue;
            }
            while let [.., before, last] = lines[..]
                && (last.b - before.b) * (line.c - last.c) <= (line.b - last.b) * (last.c - before.c)
            {
                lines.pop();
            }
            lines.push(line);
        }
        for i in 1..lines.len() {
            lines[i - 1].from = lines[i - 1].meets(lines[i]);
        }
        Self { lines }
    }

    /// Of choices that are made independently of one another.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Self {
        let mut line = Line::default();
        let mut steps: Vec<Line> = Vec::with_capacity(64);
        for part in parts {
            let Some(&first) = part.lines.first() else { continue };
            line.add(first);
            steps.extend(part.lines.windows(2).map(|pair| Line {
                b: pair[1].b - pair[0].b,
                c: pair[1].c - pair[0].c,
                from: pair[0].from,
            }));
        }
        steps.sort_unstable_by(|a, b| b.from.total_cmp(&a.from));
        let mut lines = Vec::with_capacity(steps.len() + 1);
        for step in steps {
            lines.push(Line { from: step.from, ..line });
            line.add(step);
        }
        lines.push(line);
        Self { lines }
    }

    /// Of either choice.
    pub fn least(either: [Self; 2]) -> Self {
        let mut lines: Vec<Line> = either.into_iter().flat_map(|e| e.lines).collect();
        lines.sort_unstable_by(|x, y| x.c.total_cmp(&y.c).then(y.b.total_cmp(&x.b)));
        lines.iter_mut().for_each(|line| line.from = 0.0);
        Self::hull(lines.into_iter())
    }

    /// The scale with the least error of all; 0 if none is better than that.
    pub fn best_scale(&self) -> f32 {
        let positive = self.lines.iter().filter(|l| l.b > 0.0 && l.c > 0.0);
        let gain = |l: &Line| l.b * (l.b / l.c);
        positive.max_by(|x, y| gain(x).total_cmp(&gain(y))).map_or(0.0, |l| l.b / l.c)
    }

    /// Looks choices up by rising scale, from `least` on.
    pub fn rising(&self, least: f32) -> Rising<'_> {
        let end = self.lines.partition_point(|line| line.from > least) + 1;
        Rising { lines: &self.lines[..end.min(self.lines.len())] }
    }
}

/// The choices that are left for scales from the last one on.
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
