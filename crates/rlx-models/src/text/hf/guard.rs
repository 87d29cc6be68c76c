//! The one way to the `tokenizers` crate.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `run` gives, or what was wrong, for people. A panic of the crate is an error too: it has some that depend on file and
/// text together, and that no check of the file can rule out. The panic hook, which is the program's own, still tells of it.
pub(super) fn guarded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    // What a panic can leave behind in a tokenizer are caches, which the crate passes over where their lock is poisoned.
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|e| brief(&e.to_string())),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("unknown");
            Err(format!("the `tokenizers` crate failed on it: {}", brief(message)))
        }
    }
}

/// One line that fits on a screen.
fn brief(message: &str) -> String {
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).take(300).collect();
    line.trim_end().to_owned()
}
