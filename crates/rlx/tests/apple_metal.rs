//! A model on the GPU of this machine beside the CPU.
#![cfg(all(feature = "cpu", feature = "metal", target_os = "macos"))]
#![allow(clippy::unwrap_used, clippy::panic)]

use rlx::compile::precision::{Compute, PrecisionPolicy};
use rlx::ir::env::Origin;
use rlx::prelude::*;

/// The model that ships with the project.
const MINILM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../rlx-models/models/all-MiniLM-L6-v2-q8_0.gguf");

const TEXTS: [&str; 3] = ["hello world", "", "The quick brown fox jumps over the lazy dog."];

fn vectors(device: &str, compute: Compute) -> rlx::Result<Vec<Vec<f32>>> {
    let mut settings = Settings::defaults();
    settings.set("RLX_DEVICE", device, Origin::Program)?;
    let runtime = Runtime::detect_with(settings)?;
    let mut options = EmbeddingOptions::default();
    options.load.compile.precision = PrecisionPolicy::new(compute);
    let model = EmbeddingModel::load_with(&runtime, MINILM, &options)?;
    Ok(model.embed(TEXTS)?.iter().map(<[f32]>::to_vec).collect())
}

/// Skips where there is no GPU that kernels run on, which is a failure where REQUIRE_METAL is set.
#[test]
fn minilm_gives_the_vectors_of_the_cpu() {
    let status = rlx::backend_statuses().into_iter().find(|s| s.name == "metal").unwrap();
    if let (Some(why), None) = (status.missing, std::env::var_os("REQUIRE_METAL")) {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let want = vectors("cpu", Compute::F32).unwrap();
    for compute in [Compute::F32, Compute::F16] {
        let got = vectors("metal", compute).unwrap();
        for ((got, want), text) in got.iter().zip(&want).zip(TEXTS) {
            let off = got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            let cosine: f32 = got.iter().zip(want).map(|(a, b)| a * b).sum();
            assert!(off < 1e-5 || compute == Compute::F16 && cosine >= 0.999, "{text:?}, {compute:?}: {off}");
        }
    }
}
