//! What came out of the checks of a family.

use crate::harness::Agreement;

/// Checks, elements, the worst error, and what failed.
#[derive(Debug, Default)]
pub struct Tally {
    pub checks: usize,
    pub elems: usize,
    /// The largest errors as shares of their tolerances.
    pub worst_f32: f64,
    pub worst_f16: f64,
    /// The check with the largest error of an f32.
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
                self.worst_f16 = self.worst_f16.max(agreement.worst_f16);
                if agreement.worst_f32 > self.worst_f32 {
                    (self.worst_f32, self.worst_at) = (agreement.worst_f32, what());
                }
            }
            Err(e) => self.failures.push(format!("{}: {e}", what())),
        }
    }
}
