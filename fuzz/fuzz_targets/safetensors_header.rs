//! Any bytes as a safetensors file: its tensors lie within it, or it is refused with an error.
#![no_main]

#[path = "../../crates/rlx-runtime/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
