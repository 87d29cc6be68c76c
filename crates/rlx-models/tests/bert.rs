//! BERT against the reference implementation, through the interpreter and through a session; and models that are refused.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/models.rs"]
mod models;

use models::{Folder, cosine, distance, fixture, runtime, tensor, tests};
use rlx_ir::interp::{self, RunData};
use rlx_ir::{ErrorKind, Tensor, TensorType};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::arch::{EmbeddingHead, EncoderGraph, EncoderOutput};
use rlx_models::encoder::{Encoder, Packed};
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, forward};
use rlx_models::options::LoadOptions;
use rlx_models::sentence_transformers::{EmbeddingConfig, PoolingMode};
use rlx_runtime::WeightSource;
use serde_json::json;

/// What float32 arithmetic reaches, absolute.
const TOLERANCE: f32 = 2e-4;

fn head(pooling: &[PoolingMode]) -> EmbeddingHead {
    let config = EmbeddingConfig {
        pooling: pooling.to_vec(),
        pool_prompt: true,
        normalize: true,
        ..EmbeddingConfig::default()
    };
    EmbeddingHead { config, dims: None }
}

fn interpret(encoder: &Encoder, packed: &Packed, output: EncoderOutput, with_prompts: bool) -> Vec<Tensor> {
    let graph = EncoderGraph { max_tokens: 128, max_sequences: 8, weights: WeightType::AsStored, output };
    let graph = encoder.graph(&graph).unwrap();
    let ints = |v: &[i32]| Tensor::i32([v.len()], v).unwrap();
    let weight = |name: &str, ty: &TensorType| {
        let data = encoder.weights().weight(name).map_err(|e| rlx_ir::Error::new(e.kind(), e.message()))?;
        assert_eq!(data.ty, *ty, "{name}");
        Tensor::from_bytes(data.ty, data.bytes.to_vec())
    };
    let mut data = RunData::default()
        .input("ids", ints(&packed.ids))
        .input("positions", ints(&packed.positions))
        .input("starts", ints(&packed.starts));
    if with_prompts {
        data = data.input("pool_starts", ints(&packed.pool_starts));
    }
    data.bindings.bind("R", packed.sequences()).unwrap();
    data.weights = Some(&weight);
    interp::run(&graph, &mut data).unwrap().into_iter().map(|e| e.tensor).collect()
}

fn expected() -> (Vec<i64>, Vec<i64>, Tensor) {
    let path = fixture("bert").join("expected.safetensors");
    let ints = |name: &str| tensor(&path, name).to_i64().unwrap();
    (ints("input_ids"), ints("attention_mask"), tensor(&path, "last_hidden_state"))
}

#[test]
fn the_interpreter_agrees_with_the_reference() {
    let encoder = Encoder::new(&ModelFiles::open(&fixture("bert")).unwrap()).unwrap();
    let (ids, mask, hidden) = expected();
    let (columns, width) = (hidden.shape()[1], hidden.shape()[2]);
    let mut packed = Packed::default();
    for (ids, mask) in ids.chunks(columns).zip(mask.chunks(columns)) {
        let kept = ids.iter().zip(0..).zip(mask).filter(|(_, m)| **m != 0);
        packed.push(kept.map(|((&id, at), _)| (id as i32, at)), 0);
    }
    let outputs = interpret(
        &encoder,
        &packed,
        EncoderOutput::Both(head(&[PoolingMode::Mean, PoolingMode::Cls])),
        false,
    );
    let reference = hidden.to_f32().unwrap();
    let kept = reference.chunks(width).zip(&mask).filter(|(_, m)| **m != 0).flat_map(|(v, _)| v);
    let kept: Vec<f32> = kept.copied().collect();
    assert!(distance(&outputs[0].to_f32().unwrap(), &kept) < TOLERANCE);

    // Both vectors are normalised together: each half has the direction of its own reference.
    let path = fixture("bert").join("expected.safetensors");
    let mean = tensor(&path, "mean_pooled_normalized").to_f32().unwrap();
    let cls = tensor(&path, "cls_pooled_normalized").to_f32().unwrap();
    let pooled = outputs[1].to_f32().unwrap();
    for (row, (mean, cls)) in pooled.chunks(2 * width).zip(mean.chunks(width).zip(cls.chunks(width))) {
        assert!(cosine(&row[..width], mean) > 0.99999);
        assert!(cosine(&row[width..], cls) > 0.99999);
    }
}

#[test]
fn a_session_agrees_with_the_reference() {
    let (ids, mask, hidden) = expected();
    let [rows, columns, _] = hidden.shape() else { panic!("{:?}", hidden.shape()) };
    let mask = mask.iter().map(|m| *m != 0).collect();
    let input = ForwardInput::new(ids, Some(mask), *rows, *columns).unwrap();
    let files = ModelFiles::open(&fixture("bert").join("model.safetensors")).unwrap();
    let output = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap();
    assert_eq!(output.shape.as_slice(), hidden.shape());
    assert!(distance(&output.values, &hidden.to_f32().unwrap()) < TOLERANCE);
}

#[test]
fn masks_on_the_left_with_holes_and_empty_agree_with_the_reference() {
    let path = tests("data/bert_masks.safetensors");
    let files = ModelFiles::open(&fixture("bert")).unwrap();
    let input = ForwardInput::open(&path).unwrap();
    let output = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap();
    let reference = tensor(&path, "last_hidden_state");
    assert_eq!(output.shape.as_slice(), reference.shape());
    assert!(distance(&output.values, &reference.to_f32().unwrap()) < TOLERANCE);

    let folder = Folder::new();
    let saved = folder.0.join("out.safetensors");
    output.save(&saved).unwrap();
    assert_eq!(tensor(&saved, "last_hidden_state").to_f32().unwrap(), output.values);

    let nothing = ForwardInput::new(vec![5; 6], Some(vec![false; 6]), 2, 3).unwrap();
    let output = forward(&runtime(), &files, &LoadOptions::default(), &nothing).unwrap();
    assert!(output.values.iter().all(|v| *v == 0.0) && output.shape == [2, 3, 96]);
}

#[test]
fn pooling_follows_its_definition() {
    let encoder = Encoder::new(&ModelFiles::open(&fixture("bert")).unwrap()).unwrap();
    let mut packed = Packed::default();
    packed.push([(9, 0), (17, 1), (33, 2), (20, 3)], 2);
    packed.push([(40, 0), (41, 1)], 1);
    let width = encoder.hidden_size();
    let hidden = interpret(&encoder, &packed, EncoderOutput::Hidden, false)[0].to_f64().unwrap();
    let rows: Vec<&[f64]> = hidden.chunks(width).collect();
    let weighted_sum = |rows: &[&[f64]], weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..width).map(|c| rows.iter().enumerate().map(|(i, r)| r[c] * weight(i)).sum()).collect()
    };
    let modes =
        [PoolingMode::MeanSqrtLen, PoolingMode::WeightedMean, PoolingMode::LastToken, PoolingMode::Max];
    let mut all = head(&modes);
    all.config.normalize = false;
    let pooled = interpret(&encoder, &packed, EncoderOutput::Pooled(all), false)[0].to_f64().unwrap();
    for (row, tokens) in pooled.chunks(4 * width).zip([&rows[..4], &rows[4..]]) {
        let n = tokens.len() as f64;
        let max: Vec<f64> =
            (0..width).map(|c| tokens.iter().map(|r| r[c]).fold(f64::MIN, f64::max)).collect();
        let wanted = [
            weighted_sum(tokens, &|_| 1.0 / n.sqrt()),
            weighted_sum(tokens, &|i| (i + 1) as f64 / (n * (n + 1.0) / 2.0)),
            tokens[tokens.len() - 1].to_vec(),
            max,
        ];
        for (got, wanted) in row.chunks(width).zip(&wanted) {
            assert!(got.iter().zip(wanted).all(|(g, w)| (g - w).abs() < 1e-5));
        }
    }
    let modes = [PoolingMode::Mean, PoolingMode::WeightedMean, PoolingMode::Cls, PoolingMode::MeanSqrtLen];
    let mut without_prompt = head(&modes);
    (without_prompt.config.normalize, without_prompt.config.pool_prompt) = (false, false);
    let pooled =
        interpret(&encoder, &packed, EncoderOutput::Pooled(without_prompt), true)[0].to_f64().unwrap();
    for (row, (prompt, tokens)) in pooled.chunks(4 * width).zip([(2, &rows[2..4]), (1, &rows[5..])]) {
        let n = tokens.len() as f64;
        let places = (0..tokens.len()).map(|i| (prompt + i + 1) as f64).sum::<f64>();
        let wanted = [
            weighted_sum(tokens, &|_| 1.0 / n),
            weighted_sum(tokens, &|i| (prompt + i + 1) as f64 / places),
            tokens[0].to_vec(),
            weighted_sum(tokens, &|_| 1.0 / n.sqrt()),
        ];
        for (got, wanted) in row.chunks(width).zip(&wanted) {
            assert!(got.iter().zip(wanted).all(|(g, w)| (g - w).abs() < 1e-5));
        }
    }
}

#[test]
fn names_may_have_a_prefix_and_norms_gamma_and_beta() {
    let folder = Folder::bert().tensors(|tensors| {
        for (name, _) in tensors {
            *name = format!("bert.{name}")
                .replace("LayerNorm.weight", "LayerNorm.gamma")
                .replace("LayerNorm.bias", "LayerNorm.beta");
        }
    });
    let input = ForwardInput::new(vec![2, 9, 3], None, 1, 3).unwrap();
    let run = |path| {
        let files = ModelFiles::open(path).unwrap();
        forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap()
    };
    assert_eq!(run(&folder.0), run(&fixture("bert")));
}

#[track_caller]
fn refused(folder: &Folder, kind: ErrorKind, parts: &[&str]) {
    let input = ForwardInput::new(vec![2, 9, 3], None, 1, 3).unwrap();
    let result = ModelFiles::open(&folder.0)
        .and_then(|files| forward(&runtime(), &files, &LoadOptions::default(), &input));
    let e = result.unwrap_err();
    assert_eq!(e.kind(), kind, "{e}");
    assert!(parts.iter().all(|p| e.message().contains(p)), "{e}");
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    use ErrorKind::{InvalidFile, NotFound, UnsupportedModel};
    let set = |key: &'static str, value: serde_json::Value| {
        Folder::bert().config(|c| drop(c.insert(key.into(), value)))
    };
    refused(&set("num_attention_heads", json!(5)), InvalidFile, &["config.json", "hidden_size is 96", "5"]);
    refused(&set("hidden_size", json!(1u64 << 40)), InvalidFile, &["hidden_size"]);
    refused(&set("num_hidden_layers", json!(1_000_000)), InvalidFile, &["num_hidden_layers", "1000000"]);
    refused(
        &set("num_hidden_layers", json!(4)),
        NotFound,
        &["encoder.layer.3.attention", "encoder.layer.2."],
    );
    refused(&set("vocab_size", json!(315)), InvalidFile, &["word_embeddings", "[314, 96]", "[315, 96]"]);
    refused(&set("hidden_act", json!("mish")), UnsupportedModel, &["mish", "gelu_new"]);
    refused(&set("layer_norm_eps", json!(-1.0)), InvalidFile, &["layer_norm_eps"]);
    refused(&set("position_embedding_type", json!("relative_key")), UnsupportedModel, &["relative_key"]);
    refused(&set("is_decoder", json!(true)), UnsupportedModel, &["is_decoder"]);
    refused(&set("quantization_config", json!({ "quant_method": "awq" })), UnsupportedModel, &["awq"]);
    refused(&set("model_type", json!("t5")), UnsupportedModel, &["\"t5\"", "bert", "llama"]);
    let missing = Folder::bert().config(|c| drop(c.remove("intermediate_size")));
    refused(&missing, InvalidFile, &["config.json", "\"intermediate_size\" is missing"]);
    let without =
        Folder::bert().tensors(|t| t.retain(|(n, _)| !n.ends_with("layer.1.intermediate.dense.weight")));
    refused(&without, NotFound, &["encoder.layer.1.intermediate.dense.weight"]);
    refused(&Folder::new().file("config.json", "[]"), InvalidFile, &["config.json", "object"]);
    refused(&Folder::new().file("config.json", "{}"), InvalidFile, &["model_type"]);
    refused(&Folder::new(), NotFound, &["config.json"]);
}

#[test]
fn ids_and_positions_that_the_model_lacks_are_refused() {
    let files = ModelFiles::open(&fixture("bert")).unwrap();
    for (ids, columns, kind, part) in [
        (vec![2, 314], 2, ErrorKind::InvalidArgument, "input_ids[0, 1] is 314"),
        (vec![2, -1], 2, ErrorKind::InvalidArgument, "-1"),
        (vec![5; 65], 65, ErrorKind::ContextExceeded, "position 64"),
    ] {
        let input = ForwardInput::new(ids, None, 1, columns).unwrap();
        let e = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap_err();
        assert!(e.kind() == kind && e.message().contains(part), "{e}");
    }
    assert!(ForwardInput::new(vec![1; 5], None, 2, 3).is_err());
}

#[test]
fn the_index_decides_which_shards_hold_the_weights() {
    let split = |listed: &str, shards: &[&str]| {
        let folder = Folder::bert();
        let whole = folder.0.join("model.safetensors");
        let mut map = serde_json::Map::new();
        folder
            .tensors(|tensors| {
                let half = tensors.len().div_ceil(2);
                for (i, (name, _)) in tensors.iter().enumerate() {
                    map.insert(name.clone(), json!(if i < half { "a.safetensors" } else { listed }));
                }
                for (shard, part) in ["a.safetensors", "b.safetensors"].iter().zip(tensors.chunks(half)) {
                    if shards.contains(shard) {
                        models::write_tensors(&whole.with_file_name(shard), part);
                    }
                }
            })
            .file("model.safetensors.index.json", &json!({ "weight_map": map }).to_string())
    };
    let input = ForwardInput::new(vec![2, 9, 3], None, 1, 3).unwrap();
    let whole = ModelFiles::open(&fixture("bert")).unwrap();
    let folder = split("b.safetensors", &["a.safetensors", "b.safetensors"]);
    std::fs::remove_file(folder.0.join("model.safetensors")).unwrap();
    let files = ModelFiles::open(&folder.0).unwrap();
    let run = |files| forward(&runtime(), files, &LoadOptions::default(), &input).unwrap();
    assert_eq!(run(&files), run(&whole));
    refused(&split("b.safetensors", &["a.safetensors"]), ErrorKind::NotFound, &["b.safetensors"]);
    refused(
        &split("a.safetensors", &["a.safetensors"]),
        ErrorKind::InvalidFile,
        &["a.safetensors", "not there"],
    );
    refused(&split("../b.safetensors", &["a.safetensors"]), ErrorKind::InvalidFile, &["no file name"]);
}
