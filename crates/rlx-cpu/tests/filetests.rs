//! Small graphs in the text form, run on the CPU beside the interpreter.

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use rlx_conformance::filetest::run_dir_on;
use rlx_cpu::CpuBackend;
use rlx_cpu::simd::SimdLevel;
use rlx_runtime::Backend;

#[test]
fn filetests() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    for level in SimdLevel::available() {
        let backend = CpuBackend::with_level(NonZeroUsize::new(2), level).expect("threads start");
        let backend: Arc<dyn Backend> = Arc::new(backend);
        run_dir_on(&dir, &backend).unwrap();
    }
}
