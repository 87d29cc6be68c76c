//! Weights: where their bytes come from, how weight-only work is streamed, and the store of prepared ones.

mod bytes;
mod names_once;
mod rows;
mod source;
mod store;

pub use bytes::{WeightBytes, zeros};
pub use rows::{RowSource, open_rows};
pub use source::{
    GgufWeights, MemoryWeights, NoWeights, SafetensorsFile, SafetensorsWeights, WeightData, WeightSource,
};
pub use store::{LoadProgress, WeightStore};
