//! BERT (Devlin et al. 2018): an encoder with learned positions and norms after each residual.

mod config;
mod graph;
mod names;

pub use config::{BertConfig, HIDDEN_ACT_KEY};
pub use graph::build;
pub use names::NAMES;
