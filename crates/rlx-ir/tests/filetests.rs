//! Runs the filetests of this crate.

use std::path::Path;

#[test]
fn filetests() {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/filetests"));
    rlx_conformance::filetest::run_dir(dir).unwrap();
}
