//! Any bytes as a `tokenizer.json`: texts are encoded with it and back, or it is refused with an error.
#![no_main]

#[path = "../../crates/rlx-models/tests/exercise/mod.rs"]
mod exercise;

libfuzzer_sys::fuzz_target!(
    init: {
        // Panics of the `tokenizers` crate are caught; libFuzzer's hook would end the process before that.
        std::panic::set_hook(Box::new(|_| {}));
    },
    |bytes: &[u8]| {
        exercise::exercise(bytes);
    }
);
