//! The runtime: what a backend is, weights and state, and sessions that run compiled graphs.

mod backend;
mod error;
mod executable;
pub mod pages;
mod runtime;
mod session;
pub mod weights;

pub use backend::{Backend, DeviceInfo, DeviceWeight, Strategy};
pub use error::{Error, Result};
pub use executable::{Context, Executable, MemoryUse, Pending, Timing};
pub use runtime::{Runtime, settings_from_env, unknown_settings};
pub use session::{CompileStats, Element, RunContext, Session, SessionOptions};
pub use weights::{WeightSource, WeightStore};
