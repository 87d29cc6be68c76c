//! The passes: functions from graph to graph. `RULES.md` beside this file says what a rule may do, and lists each.

pub mod cse;
pub mod dce;
pub mod decode;
pub mod fold;
pub mod fuse_elementwise;
pub mod fuse_linear;
pub mod fuse_norm;
pub mod fuse_parallel;
pub mod legalise;
pub mod precision;

use rlx_ir::Graph;

use crate::precision::PrecisionPolicy;
use crate::rewrite::{PassReport, Rule};
use crate::{Result, Target};

/// What every pass gets.
#[derive(Clone, Copy)]
pub struct PassContext<'a> {
    /// The backend.
    pub target: &'a dyn Target,
    /// What the program computes in.
    pub precision: &'a PrecisionPolicy,
}

impl std::fmt::Debug for PassContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassContext").finish_non_exhaustive()
    }
}

/// A pass.
#[derive(Clone, Copy)]
pub struct Pass {
    /// The name.
    pub name: &'static str,
    /// Its rules.
    pub rules: &'static [Rule],
    /// Runs it.
    pub run: fn(Graph, &PassContext<'_>) -> Result<(Graph, PassReport)>,
}

impl std::fmt::Debug for Pass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("name", &self.name).field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Every pass.
pub const PASSES: &[Pass] = &[
    fold::PASS,
    cse::PASS,
    dce::PASS,
    decode::PASS,
    fuse_linear::PASS,
    fuse_norm::PASS,
    precision::PASS,
    fuse_parallel::PASS,
    legalise::PASS,
    fuse_elementwise::PASS,
];

/// The pass of that name.
pub fn by_name(name: &str) -> Option<&'static Pass> {
    PASSES.iter().find(|p| p.name == name)
}
