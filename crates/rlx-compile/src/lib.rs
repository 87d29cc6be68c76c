//! The compiler: passes over graphs, precision, legalisation, the memory plan and the device-neutral plan.
//!
//! Everything here is pure: pure functions from graph to graph, and from graph to plan; same input, same output.

mod error;
pub mod passes;
mod pipeline;
pub mod plan;
pub mod precision;
pub mod rewrite;
mod target;

pub use error::{Error, Result};
pub use pipeline::{CompileOptions, STAGES, Stage, When, run_passes};
pub use plan::{Plan, build_plan};
pub use precision::{Compute, Keep, PrecisionPolicy};
pub use rewrite::PassReport;
pub use target::{AnyTarget, CoreTarget, Layout, OpFacts, OperandFacts, RegionFacts, Role, Support, Target};
