//! The rewrite engine: rules that look at a graph and return patches, and a rebuild that applies all patches of one sweep
//! at once.
//!
//! Invariants:
//! - A rule never changes a graph. It names the nodes that a patch makes superfluous, the values that it replaces, the
//!   values that it reads, and a closure that builds the replacement.
//! - One sweep visits the nodes from the last to the first, so that the longest pattern is seen first. Patches of one sweep
//!   do not overlap: the first that is found wins, the others are found again in the next sweep. Sweeps repeat until nothing
//!   fires.
//! - A rebuild keeps the order of declarations, the topological order, the names of values that survive, and scopes. A
//!   replacement takes over the name of what it replaces.
//!
//! The passes that use it are in [`crate::passes`].

mod engine;
mod matcher;
mod report;
mod rule;
mod sweep;

pub(crate) use engine::fuse;
pub use engine::rewrite;
pub use matcher::{Matcher, Operand};
pub(crate) use matcher::{roles, takes_symbols};
pub use report::{Fired, NearMiss, PassReport};
pub use rule::{Numerics, Outcome, Patch, Rule};
pub(crate) use sweep::Sweep;
