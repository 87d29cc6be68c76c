//! Architectures, tokenizers, pooling and sampling.
