//! Replays the corpus: small texts that are sound or hostile; what fuzzing finds joins them.
#![allow(clippy::unwrap_used)]

mod exercise;

use std::path::Path;

#[test]
fn every_text_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let (mut accepted, mut refused) = (0, 0);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        // Shown when a file makes the test fail.
        println!("{}", path.display());
        match exercise::exercise(&std::fs::read(&path).unwrap()) {
            true => accepted += 1,
            false => refused += 1,
        }
    }
    assert!(accepted > 0 && refused > 0, "{accepted} accepted, {refused} refused");
}
