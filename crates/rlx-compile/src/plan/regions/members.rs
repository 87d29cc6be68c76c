//! The steps of a region while it is being found.

use std::ops::Range;

use smallvec::SmallVec;

use super::dataflow::Dataflow;

/// Steps in any order, each once or more often.
#[derive(Clone, Debug, Default)]
pub(super) struct Members(SmallVec<[usize; 24]>);

impl Members {
    pub(super) fn add(&mut self, steps: impl IntoIterator<Item = usize>) {
        self.0.extend(steps);
    }

    /// The range of the steps, where no other step stands between them.
    ///
    /// # Errors
    /// What stands between them.
    pub(super) fn range(mut self, flow: &Dataflow<'_>) -> Result<Range<usize>, String> {
        self.0.sort_unstable();
        self.0.dedup();
        let Some((&first, &last)) = self.0.first().zip(self.0.last()) else { return Ok(0..0) };
        match (first..).zip(&self.0).find(|(expected, step)| expected != *step) {
            None => Ok(first..last + 1),
            Some((gap, _)) => Err(format!("step {gap}, {}, stands between its steps", flow.name(gap))),
        }
    }
}
