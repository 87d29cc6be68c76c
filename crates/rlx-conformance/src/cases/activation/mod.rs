//! Activation functions.
pub(super) mod gelu;
pub(super) mod glu;
pub(super) mod silu;
