//! BERT (Devlin et al. 2018): an encoder with learned positions and norms after each residual; and the RoBERTas (Liu et al.
//! 2019; XLM-RoBERTa, Conneau et al. 2020), which count positions from the padding token on.

mod config;
mod graph;
mod names;

pub use config::{BertConfig, HIDDEN_ACT_KEY, POSITIONS_KEY};
pub use names::NAMES;
