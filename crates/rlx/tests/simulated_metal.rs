//! Whole models on simulated hardware beside the CPU.
#![cfg(all(feature = "cpu", target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlx::compile::precision::{Compute, PrecisionPolicy};
use rlx::cpu::CpuBackend;
use rlx::ir::env::Settings;
use rlx::models::{EmbeddingModel, EmbeddingOptions};
use rlx::runtime::{Backend, Runtime};
use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::{Recording, SimulatorDriver};
use rlx_simulator::{Mode, or_skip};

/// The model that ships with the project.
const MINILM: &str = "../rlx-models/models/all-MiniLM-L6-v2-q8_0.gguf";

const TEXTS: [&str; 4] = [
    "hello world",
    "",
    "The quick brown fox jumps over the lazy dog, and nobody is surprised.",
    "Ωμέγα 漢字",
];

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn runtime(backend: Arc<dyn Backend>) -> Runtime {
    Runtime::new(vec![backend], Settings::defaults())
}

fn cpu() -> Runtime {
    runtime(Arc::new(CpuBackend::new(None).unwrap()))
}

fn options(compute: Compute) -> EmbeddingOptions {
    let mut options = EmbeddingOptions::default();
    options.load.compile.precision = PrecisionPolicy::new(compute);
    options
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// A backend on simulated hardware, if clang is there.
fn simulated(mode: Mode) -> Option<Arc<MetalBackend<SimulatorDriver>>> {
    let driver = or_skip(SimulatorDriver::new(Path::new(env!("CARGO_TARGET_TMPDIR")), mode))?;
    Some(Arc::new(MetalBackend::new(driver).unwrap()))
}

/// The vectors of the shipped model on simulated hardware, each text alone, and what was asked of the device for the last.
fn minilm(compute: Compute) -> Option<(Vec<Vec<f32>>, Recording)> {
    let backend: Arc<MetalBackend<SimulatorDriver>> = simulated(Mode::Fast)?;
    let model = EmbeddingModel::load_with(&runtime(backend.clone()), at(MINILM), &options(compute)).unwrap();
    let mut vectors = Vec::new();
    let mut recording = Recording::default();
    for text in TEXTS {
        backend.driver().take_recording();
        vectors.push(model.embed([text]).unwrap().iter().next().unwrap().to_vec());
        recording = backend.driver().take_recording();
    }
    // Together they are one run more, of several sequences.
    for (alone, together) in vectors.iter().zip(model.embed(TEXTS).unwrap().iter()) {
        let off = alone.iter().zip(together).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5 || compute == Compute::F16 && off < 1e-3, "{off}");
    }
    Some((vectors, recording))
}

fn expected() -> Vec<Vec<f32>> {
    let model = EmbeddingModel::load_with(&cpu(), at(MINILM), &options(Compute::F32)).unwrap();
    model.embed(TEXTS).unwrap().iter().map(<[f32]>::to_vec).collect()
}

#[test]
fn minilm_gives_the_vectors_of_the_cpu_in_f32() {
    let Some((vectors, _)) = minilm(Compute::F32) else { return };
    for ((got, want), text) in vectors.iter().zip(expected()).zip(TEXTS) {
        let off = got.iter().zip(&want).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 1e-5, "{text:?}: {off}");
    }
}

#[test]
fn minilm_gives_the_vectors_of_the_cpu_in_f16() {
    let Some((vectors, _)) = minilm(Compute::F16) else { return };
    for ((got, want), text) in vectors.iter().zip(expected()).zip(TEXTS) {
        let cosine = cosine(got, &want);
        assert!(cosine >= 0.999, "{text:?}: {cosine}");
    }
}

#[test]
fn a_run_of_minilm_is_one_command_buffer_of_few_launches() {
    for compute in [Compute::F32, Compute::F16] {
        let Some((_, recording)) = minilm(compute) else { return };
        let kernels: Vec<&str> = recording.dispatches().map(|d| d.kernel.as_str()).collect();
        assert_eq!((recording.command_buffers.len(), recording.waits), (1, 1), "{compute:?}");
        // Seven for each of six layers, what comes before and after, in f16 a cast of the vectors; each reads what the one before
        // it wrote.
        let launches = if compute == Compute::F16 { 45 } else { 44 };
        assert_eq!(
            (kernels.len(), recording.barriers()),
            (launches, launches - 1),
            "{compute:?}: {kernels:?}"
        );
    }
}

#[derive(serde::Deserialize)]
struct Row {
    text: String,
    embedding: Vec<f32>,
}

/// The original weights in f32 against the vectors of their makers' library.
#[test]
#[ignore = "needs RLX_TEST_MODELS"]
fn original_weights_give_the_reference() {
    let Some(backend) = simulated(Mode::Fast) else { return };
    let rows: Vec<Row> = serde_json::from_slice(
        &std::fs::read(at("../rlx-cli/tests/fixtures/minilm_embeddings.json")).unwrap(),
    )
    .unwrap();
    let folder = std::env::var_os("RLX_TEST_MODELS").expect("RLX_TEST_MODELS is set");
    for (compute, least) in [(Compute::F32, 0.99999), (Compute::F16, 0.999)] {
        let path = Path::new(&folder).join("minilm");
        let model = EmbeddingModel::load_with(&runtime(backend.clone()), path, &options(compute)).unwrap();
        for row in &rows {
            let vector = model.embed([&row.text]).unwrap().iter().next().unwrap().to_vec();
            let cosine = cosine(&vector, &row.embedding);
            assert!(cosine >= least, "{compute:?}, {:?}: {cosine}", row.text);
        }
    }
}
