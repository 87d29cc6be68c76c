//! `fold`: what is known at compile time is computed at compile time, and ops that change nothing go.

mod algebra;
mod cast;
mod constant;
mod shape;

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
    cast::CAST_TO_SAME,
    cast::CAST_OF_CAST,
    cast::SELECT_KNOWN,
    shape::NO_MOVE,
    shape::RESHAPE_OF_RESHAPE,
    shape::TRANSPOSE_OF_TRANSPOSE,
    shape::TRANSPOSE_INTO_MATMUL,
];

/// Applies the rules until none fires.
///
/// # Errors
/// `Bug` where a patch does not fit.
pub fn run(graph: Graph, cx: &PassContext<'_>) -> Result<(Graph, PassReport)> {
    rewrite(NAME, RULES, graph, cx)
}
