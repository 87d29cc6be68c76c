//! Any bytes as graphs in text form: they print, parse again and run, or are refused with an error.
#![no_main]

#[path = "../../crates/rlx-ir/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    exercise::exercise(bytes);
});
