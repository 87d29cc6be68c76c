//! `fold`: what is known at compile time is computed at compile time, and ops that change nothing go.

mod algebra;
mod constant;

use rlx_ir::Graph;

use super::{Pass, PassContext};
use crate::Result;
use crate::rewrite::{PassReport, Rule, rewrite};

const NAME: &str = "fold";

/// The pass.
pub const PASS: Pass = Pass { name: NAME, rules: RULES, run };

const RULES: &[Rule] = &[
    constant::FOLD_CONST,
    algebra::NEUTRAL,
    algebra::ADD_POSITIVE_ZERO,
    algebra::INVOLUTION,
    algebra::IDEMPOTENT,
];

/// Applies the rules until none fires.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    rewrite(NAME, RULES, graph, cx.target)
}
