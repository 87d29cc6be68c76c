//! What came out of the checks of a family.

use crate::harness::Agreement;

/// Checks, elements, the worst error, and what failed.
#[derive(Debug, Default)]
pub struct Tally {
    pub checks: usize,
    pub elems: usize,
    /// The largest error as a share of its tolerance.
    pub worst: f64,
    /// The check with the largest error.
    pub worst_at: String,
    pub failures: Vec<String>,
}

impl Tally {
    /// Takes one outcome.
    pub fn take(&mut self, what: &dyn Fn() -> String, outcome: Result<Agreement, String>) {
        self.checks += 1;
        match outcome {
            Ok(agreement) => {
                self.elems += agreement.elems;
                if agreement.worst > self.worst {
                    (self.worst, self.worst_at) = (agreement.worst, what());
                }
            }
            Err(e) => self.failures.push(format!("{}: {e}", what())),
        }
    }
}
