//! The compiler: passes over graphs, precision, legalisation, the memory plan and the device-neutral plan.
//!
//! Everything here is pure: pure functions from graph to graph, and from graph to plan; same input, same output.

mod error;
mod target;

pub use error::{Error, Result};
pub use target::{AnyTarget, CoreTarget, Layout, OpFacts, OperandFacts, Role, Support, Target};
