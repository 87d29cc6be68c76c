//! What a pass did: for `explain`, and for tests.

use std::sync::Arc;

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PassReport {
    /// The pass.
    pub pass: &'static str,
    /// The rules that fired, in the order of the values that they replaced.
    pub fired: Vec<Fired>,
    /// The rules that nearly fired, and why they did not.
    pub near_misses: Vec<NearMiss>,
    /// The number of nodes before.
    pub nodes_before: usize,
    /// The number of nodes after.
    pub nodes_after: usize,
}

/// A rule that fired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fired {
    /// The rule.
    pub rule: &'static str,
    /// The name of the (first) value that was replaced.
    pub value: Arc<str>,
}

/// A rule whose pattern was there, but whose guard refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// The rule.
    pub rule: &'static str,
    /// The name of the value that would have been replaced.
    pub value: Arc<str>,
    /// Why it was not.
    pub reason: String,
}

impl std::fmt::Display for PassReport {
    /// One line per pass, one per rule that fired or nearly did.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}: {} nodes -> {}", self.pass, self.nodes_before, self.nodes_after)?;
        for fired in &self.fired {
            writeln!(f, "  {} fired at %{}", fired.rule, fired.value)?;
        }
        for miss in &self.near_misses {
            writeln!(f, "  {} did not fire at %{}: {}", miss.rule, miss.value, miss.reason)?;
        }
        Ok(())
    }
}
