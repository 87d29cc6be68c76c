//! Small encoders on simulated hardware, with every access checked, beside the CPU and the reference implementation.
#![cfg(all(feature = "cpu", target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlx::compile::plan::RegionKind;
use rlx::compile::precision::{Compute, PrecisionPolicy};
use rlx::compile::{Layout, OpFacts, Plan, RegionFacts, Support, Target};
use rlx::cpu::CpuBackend;
use rlx::ir::Tensor;
use rlx::ir::env::Settings;
use rlx::models::files::ModelFiles;
use rlx::models::forward::{ForwardInput, ForwardOutput, forward};
use rlx::models::options::LoadOptions;
use rlx::runtime::weights::{RowSource, SafetensorsFile, SafetensorsWeights};
use rlx::runtime::{Backend, DeviceInfo, DeviceWeight, Executable, Runtime, Strategy, WeightSource as _};
use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::{RecordedDispatch, SimulatorDriver};
use rlx_simulator::{Mode, or_skip};

/// Every encoder of which there is a small model: the most tokens of a sequence, and the region that the launches of a layer
/// belong to.
const ARCHITECTURES: [(&str, usize, &str); 5] = [
    ("bert", 64, "bert_layer"),
    ("nomic_bert", 128, "nomic_layer"),
    ("modernbert", 128, "attention_block"),
    ("xlm_roberta", 64, "bert_layer"),
    ("gemma3_embedding", 128, "attention_block"),
];

/// What float32 arithmetic reaches, absolute.
const TOLERANCE: f32 = 2e-4;

type Metal = MetalBackend<SimulatorDriver>;

/// A backend on simulated hardware, if clang is there.
fn simulated() -> Option<Arc<Metal>> {
    let driver = or_skip(SimulatorDriver::new(Path::new(env!("CARGO_TARGET_TMPDIR")), Mode::Hooked))?;
    Some(Arc::new(MetalBackend::new(driver).unwrap()))
}

fn runtime(backend: Arc<dyn Backend>) -> Runtime {
    Runtime::new(vec![backend], Settings::defaults())
}

fn fixture(architecture: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rlx-models/tests/fixtures/hf_models").join(architecture)
}

fn network(runtime: &Runtime, architecture: &str, compute: Compute, input: &ForwardInput) -> ForwardOutput {
    let mut options = LoadOptions::default();
    options.compile.precision = PrecisionPolicy::new(compute);
    forward(runtime, &ModelFiles::open(&fixture(architecture)).unwrap(), &options, input)
        .unwrap_or_else(|e| panic!("{architecture}: {e}"))
}

/// Sequences of these many tokens: fewer than a tile's rows, and more than one and two tiles; every local window is narrower.
fn lengths(most: usize) -> [usize; 3] {
    [3, 40, most.min(70)]
}

fn batch(most: usize) -> ForwardInput {
    let lengths = lengths(most);
    let columns = lengths[2];
    let places = || lengths.iter().flat_map(move |length| (0..columns).map(move |at| (at, at < *length)));
    let ids = places().enumerate().map(|(i, (_, kept))| if kept { 4 + (i as i64 * 37) % 300 } else { 0 });
    let mask = places().map(|(_, kept)| kept).collect();
    ForwardInput::new(ids.collect(), Some(mask), lengths.len(), columns).unwrap()
}

/// The vectors of the tokens that count.
fn tokens(output: &ForwardOutput, most: usize) -> Vec<&[f32]> {
    let [rows, columns, width] = output.shape[..] else { panic!("{:?}", output.shape) };
    assert_eq!((rows, columns), (3, lengths(most)[2]));
    let row = |(row, length): (usize, usize)| (0..length).map(move |at| row * columns + at);
    let kept = lengths(most).into_iter().enumerate().flat_map(row);
    kept.map(|token| &output.values[token * width..][..width]).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    // Unlike `max`, this keeps NaN.
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |most, off| if off <= most { most } else { off })
}

#[test]
fn encoders_give_the_hidden_states_of_the_cpu() {
    let Some(backend) = simulated() else { return };
    let (metal, cpu) = (runtime(backend.clone()), runtime(Arc::new(CpuBackend::new(None).unwrap())));
    for (architecture, most, region) in ARCHITECTURES {
        let input = batch(most);
        let want = network(&cpu, architecture, Compute::F32, &input);
        let want = tokens(&want, most);
        for compute in [Compute::F32, Compute::F16] {
            backend.driver().take_recording();
            let got = network(&metal, architecture, compute, &input);
            let recording = backend.driver().take_recording();
            let of_region = |d: &RecordedDispatch| d.groups.iter().any(|g| g.starts_with(region));
            assert!(recording.dispatches().any(of_region), "{architecture} has no {region}");
            let tiles = recording.dispatches().any(|d| d.kernel.starts_with("attention_tiles"));
            assert!(tiles, "{architecture} has no tiles of queries");
            for (token, (got, want)) in tokens(&got, most).into_iter().zip(&want).enumerate() {
                let (off, cosine) = (distance(got, want), cosine(got, want));
                assert!(compute == Compute::F16 || off < TOLERANCE, "{architecture}, token {token}: {off}");
                assert!(cosine >= 0.999, "{architecture}, {compute:?}, token {token}: {cosine}");
            }
        }
    }
}

#[test]
fn encoders_agree_with_the_reference() {
    let Some(backend) = simulated() else { return };
    let metal = runtime(backend);
    for (architecture, ..) in ARCHITECTURES {
        let path = fixture(architecture).join("expected.safetensors");
        let source = SafetensorsWeights::new(vec![SafetensorsFile::open(&path).unwrap()]);
        let want = source.weight("last_hidden_state").unwrap();
        let want = Tensor::from_bytes(want.ty, want.bytes.to_vec()).unwrap();
        let got = network(&metal, architecture, Compute::F32, &ForwardInput::open(&path).unwrap());
        assert_eq!(got.shape.as_slice(), want.shape());
        let off = distance(&got.values, &want.to_f32().unwrap());
        assert!(off < TOLERANCE, "{architecture}: {off}");
    }
}

/// The backend without the regions that it runs step by step.
struct StepByStep(Arc<Metal>);

impl Target for StepByStep {
    fn supports(&self, facts: &OpFacts<'_>) -> Support {
        self.0.supports(facts)
    }

    fn claims(&self, facts: &RegionFacts<'_>) -> Support {
        match facts.region.kind {
            RegionKind::EmbeddingBlock(_) | RegionKind::PoolingHead(_) => self.0.claims(facts),
            _ => Support::No("its steps are run one by one anyway".to_owned()),
        }
    }
}

impl Backend for StepByStep {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn device(&self) -> DeviceInfo {
        self.0.device()
    }

    fn strategies(&self) -> &'static [Strategy] {
        self.0.strategies()
    }

    fn prepare(&self, layout: &Layout, rows: &mut dyn RowSource) -> rlx::runtime::Result<DeviceWeight> {
        self.0.prepare(layout, rows)
    }

    fn build(
        &self,
        plan: Arc<Plan>,
        weights: Vec<Arc<DeviceWeight>>,
        strategy: Strategy,
    ) -> rlx::runtime::Result<Arc<dyn Executable>> {
        self.0.build(plan, weights, strategy)
    }
}

/// Claims of layers and attention blocks change the labels of launches, and nothing else.
#[test]
fn layers_that_are_claimed_launch_what_their_steps_do() {
    let Some(backend) = simulated() else { return };
    for (architecture, most, region) in ARCHITECTURES {
        let mut outcomes = Vec::new();
        for runtime in [runtime(backend.clone()), runtime(Arc::new(StepByStep(backend.clone())))] {
            backend.driver().take_recording();
            let values = network(&runtime, architecture, Compute::F32, &batch(most)).values;
            let recording = backend.driver().take_recording();
            let claimed = recording.dispatches().any(|d| d.groups.iter().any(|g| g.starts_with(region)));
            let launches: Vec<_> = recording
                .dispatches()
                .map(|d| (d.kernel.clone(), d.geometry, d.read_bytes, d.written_bytes))
                .collect();
            outcomes.push((claimed, (values, launches, recording.barriers())));
        }
        assert_eq!([outcomes[0].0, outcomes[1].0], [true, false], "{architecture}");
        assert!(outcomes[0].1 == outcomes[1].1, "{architecture}");
    }
}
