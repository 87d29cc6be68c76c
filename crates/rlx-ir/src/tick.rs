//! Readings of a monotonic clock, for spans and measurements. Nothing that is computed depends on them.

use std::time::Instant;

/// A reading of the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(Instant);

impl Tick {
    /// The clock now.
    pub fn now() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since this reading.
    pub fn elapsed_ns(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Milliseconds since this reading.
    pub fn elapsed_ms(self) -> f64 {
        self.elapsed_ns() as f64 / 1e6
    }

    /// Nanoseconds from `earlier` to this reading; 0 where it is not earlier.
    pub fn since_ns(self, earlier: Self) -> u64 {
        u64::try_from(self.0.saturating_duration_since(earlier.0).as_nanos()).unwrap_or(u64::MAX)
    }
}
