//! The runtime: what a backend is, weights and state, and sessions that run compiled graphs.

mod backend;
mod error;
mod executable;
pub mod pages;
mod runtime;
pub mod weights;

pub use backend::{Backend, DeviceInfo, DeviceWeight, Strategy};
pub use error::{Error, Result};
pub use executable::{Context, Executable, MemoryUse, Pending, Timing};
pub use runtime::{Runtime, settings_from_env};
pub use weights::{WeightSource, WeightStore};
