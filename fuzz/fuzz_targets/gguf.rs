//! Any bytes as a GGUF file: read whole, or refused with an error.
#![no_main]

#[path = "../../crates/rlx-gguf/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
