//! Running encoders: sequences packed over one token axis, and contexts that are reused.

mod model;
mod packed;
mod session;

pub use model::Encoder;
pub use packed::Packed;
pub use session::{EncoderMemory, EncoderSession};
