//! From logits to the next token.
//!
//! [`Sampler`] runs a fixed chain: logit bias, penalties, top-k, top-p, min-p, temperature, draw. Everything that
//! decides is portable (own random numbers, a portable `exp`): the same seed and logits give the same tokens on every
//! machine.

mod candidates;
mod params;
mod rng;
mod sampler;

pub use params::SamplingParams;
pub use rng::Rng;
pub use sampler::Sampler;
