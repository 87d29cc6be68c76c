//! Models by hub id: the Hugging Face cache, and downloads into it.
//!
//! The cache is laid out as the Python client lays it out, so that both use each other's files, and the variables of that
//! client ([`VARIABLES`]) say where it is. Reading it needs nothing. Downloading needs the feature `hub`, which brings an HTTP
//! client with TLS: `Hub::pull` and `Hub::resolve` are there with that feature only.

mod cache;
mod id;
mod open;
mod options;
mod select;

#[cfg(feature = "hub")]
mod blob;
#[cfg(feature = "hub")]
mod fetch;
#[cfg(feature = "hub")]
mod http;
#[cfg(feature = "hub")]
mod pull;
#[cfg(feature = "hub")]
mod retry;
#[cfg(feature = "hub")]
mod store;
#[cfg(feature = "hub")]
mod url;
#[cfg(feature = "hub")]
mod wanted;

pub use cache::{Cache, Cached};
pub use id::HubId;
pub use open::{NETWORK, TEXT, VECTORS, open};
pub use options::{HubOptions, Token, VARIABLES, Variable, unclear_variables};
#[cfg(feature = "hub")]
pub use pull::{Hub, PullProgress, Pulled, PulledFile};
