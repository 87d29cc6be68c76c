//! Reader and writer for GGUF files.
