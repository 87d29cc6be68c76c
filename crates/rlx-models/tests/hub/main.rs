//! Downloads from a hub on this machine that redirects, breaks off, refuses and lies.
#![allow(clippy::unwrap_used, clippy::panic)]

mod cache;
#[path = "../common/http_server.rs"]
mod http_server;
mod selection;
mod transfer;
mod world;
