//! Plans of small graphs as this backend gets them, and what they give.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod common;

use std::path::Path;
use std::sync::Arc;

use rlx_conformance::filetest::run_dir_on;
use rlx_runtime::Backend;
use rlx_simulator::Mode;

#[test]
fn filetests() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let backend: Arc<dyn Backend> = backend;
    run_dir_on(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests"), &backend).unwrap();
}
