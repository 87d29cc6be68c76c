//! What the CPU runs the steps of every model with: kernels of its own, never the reference evaluation.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::collections::BTreeSet;
use std::path::Path;

use models::{runtime, tests};
use rlx_compile::CompileOptions;
use rlx_compile::precision::{Compute, PrecisionPolicy};
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, Graph};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::arch::{EmbeddingHead, EncoderGraph, EncoderOutput, Family, decoder};
use rlx_models::encoder::Encoder;
use rlx_models::files::{ModelFiles, NamedWeights};
use rlx_models::language::LanguageOptions;
use rlx_models::sentence_transformers::{EmbeddingConfig, PoolingMode};
use rlx_runtime::{Session, SessionOptions};

/// Types of weights, and of activations in products.
const TYPES: [(WeightType, Compute); 5] = [
    (WeightType::AsStored, Compute::F32),
    (WeightType::AsStored, Compute::Int8),
    (WeightType::Convert(DType::Block(BlockType::Q8_0)), Compute::F32),
    (WeightType::Convert(DType::F16), Compute::F16),
    (WeightType::Convert(DType::BF16), Compute::BF16),
];

fn head(pooling: &[PoolingMode], pool_prompt: bool) -> EncoderOutput {
    let (pooling, normalize) = (pooling.to_vec(), true);
    let config = EmbeddingConfig { pooling, pool_prompt, normalize, ..EmbeddingConfig::default() };
    EncoderOutput::Pooled(EmbeddingHead { config, dims: Some(8) })
}

/// The steps that no kernel runs.
fn without_kernel(graph: &Graph, weights: &NamedWeights, compute: Compute) -> BTreeSet<String> {
    let compile = CompileOptions { precision: PrecisionPolicy::new(compute), ..CompileOptions::default() };
    let options = SessionOptions { compile, ..SessionOptions::default() };
    let session = Session::compile(&runtime(), graph, weights, &options).unwrap();
    let kernels = session.kernels();
    let steps = &session.plan().steps;
    assert_eq!(kernels.len(), steps.len());
    let slow = steps.iter().zip(&kernels).filter(|(_, kernel)| *kernel == "reference");
    slow.map(|(step, _)| format!("{}: {} {}", graph.name(), step.action.name(), step.results[0].ty)).collect()
}

fn check(path: &Path) -> BTreeSet<String> {
    use PoolingMode::{Cls, LastToken, Max, Mean, MeanSqrtLen, WeightedMean};
    let files = ModelFiles::open(path).unwrap();
    let mut slow = BTreeSet::new();
    for (weights, compute) in TYPES {
        let encoder = Encoder::new(&files).unwrap();
        let mut outputs = vec![head(&[Mean], true)];
        if compute == Compute::F32 && weights == WeightType::AsStored {
            let all = [Cls, Max, Mean, MeanSqrtLen, WeightedMean, LastToken];
            outputs.extend([EncoderOutput::Hidden, head(&all, true), head(&all, false)]);
        }
        for output in outputs {
            let graph = EncoderGraph { max_tokens: 64, max_sequences: 4, weights, output };
            slow.extend(without_kernel(&encoder.graph(&graph).unwrap(), encoder.weights(), compute));
        }
        if files.supported().unwrap().family == Family::Decoder {
            let network = decoder::open(&files).unwrap();
            let options = LanguageOptions { context: 64, weights, ..LanguageOptions::default() };
            let graph = network.graph(&options.limits(&network.shape()).unwrap()).unwrap();
            slow.extend(without_kernel(&graph, network.weights(), compute));
        }
    }
    slow
}

#[test]
fn no_step_of_any_model_runs_through_the_reference_evaluation() {
    let mut fixtures: Vec<_> =
        std::fs::read_dir(tests("fixtures/hf_models")).unwrap().map(|f| f.unwrap().path()).collect();
    fixtures.sort();
    assert!(fixtures.len() >= 11, "{fixtures:?}");
    let slow: BTreeSet<String> = fixtures.iter().flat_map(|path| check(path)).collect();
    assert!(slow.is_empty(), "{slow:#?}");
}
