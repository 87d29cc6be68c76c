//! The cases of every family of kernels: what the simulator runs as tests, and the bench `cuda` runs on a GPU.

pub mod harness;

mod activation;
mod attention;
mod elementwise;
mod embedding;
mod kv_write;
mod matmul;
mod matrix;
mod norm;
mod paged_attention;
mod pooling;
mod position;
mod random;
mod reduce;
mod shape;

/// A case by name.
pub type Case = (&'static str, fn());

/// The cases of every family.
pub const FAMILIES: &[(&str, &[Case])] = &[
    ("activation", activation::CASES),
    ("attention", attention::CASES),
    ("elementwise", elementwise::CASES),
    ("embedding", embedding::CASES),
    ("kv_write", kv_write::CASES),
    ("matmul", matmul::CASES),
    ("matrix", matrix::CASES),
    ("norm", norm::CASES),
    ("paged_attention", paged_attention::CASES),
    ("pooling", pooling::CASES),
    ("position", position::CASES),
    ("random", random::CASES),
    ("reduce", reduce::CASES),
    ("shape", shape::CASES),
];
