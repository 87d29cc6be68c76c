//! Encoders against the reference implementation, in each layout of their files; and models and inputs that are refused.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/models.rs"]
mod models;

use std::path::Path;

use models::{Folder, cosine, distance, fixture, runtime, tensor, tests};
use rlx_gguf::{Gguf, MetadataBuilder, Writer};
use rlx_ir::interp::{self, RunData};
use rlx_ir::{DType, ErrorKind, Tensor, TensorType};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::arch::{EmbeddingHead, EncoderGraph, EncoderOutput};
use rlx_models::convert::{QuantizeOptions, quantize};
use rlx_models::encoder::{Encoder, EncoderSession, Packed};
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, ForwardOutput, forward};
use rlx_models::options::LoadOptions;
use rlx_models::sentence_transformers::{EmbeddingConfig, PoolingMode};
use rlx_runtime::WeightSource;
use serde_json::json;

/// What float32 arithmetic reaches, absolute.
const TOLERANCE: f32 = 2e-4;

const FIXTURES: [&str; 4] = ["bert", "nomic_bert", "modernbert", "xlm_roberta"];

fn network(path: &Path, input: &ForwardInput) -> rlx_models::Result<ForwardOutput> {
    forward(&runtime(), &ModelFiles::open(path)?, &LoadOptions::default(), input)
}

/// What a fixture's reference was computed from, and what it is.
struct Reference {
    ids: Vec<i64>,
    mask: Vec<bool>,
    rows: usize,
    columns: usize,
    hidden: Tensor,
}

impl Reference {
    fn of(architecture: &str) -> Self {
        Self::read(&fixture(architecture).join("expected.safetensors"), "")
    }

    fn read(path: &Path, prefix: &str) -> Self {
        let get = |name: &str| tensor(path, &format!("{prefix}{name}"));
        let ids = get("input_ids");
        Self {
            rows: ids.shape()[0],
            columns: ids.shape()[1],
            mask: get("attention_mask").to_i64().unwrap().iter().map(|m| *m != 0).collect(),
            ids: ids.to_i64().unwrap(),
            hidden: get("last_hidden_state"),
        }
    }

    fn input(&self) -> ForwardInput {
        ForwardInput::new(self.ids.clone(), Some(self.mask.clone()), self.rows, self.columns).unwrap()
    }

    /// The tokens of a row that count, and their vectors.
    fn row(&self, row: usize) -> (Vec<i64>, Vec<f32>) {
        let width = self.hidden.shape()[2];
        let hidden = self.hidden.to_f32().unwrap();
        let at = row * self.columns..(row + 1) * self.columns;
        let kept: Vec<usize> = at.filter(|i| self.mask[*i]).collect();
        let vectors = kept.iter().flat_map(|i| hidden[i * width..(i + 1) * width].to_vec()).collect();
        (kept.iter().map(|i| self.ids[*i]).collect(), vectors)
    }

    /// All rows at once, and each alone, against the reference.
    #[track_caller]
    fn check(&self, path: &Path) {
        let together = network(path, &self.input()).unwrap();
        assert_eq!(together.shape.as_slice(), self.hidden.shape());
        let off = distance(&together.values, &self.hidden.to_f32().unwrap());
        assert!(off < TOLERANCE, "{}: {off}", path.display());
        for row in 0..self.rows {
            let (ids, vectors) = self.row(row);
            let columns = ids.len();
            let alone = network(path, &ForwardInput::new(ids, None, 1, columns).unwrap()).unwrap();
            let off = distance(&alone.values, &vectors);
            assert!(off < TOLERANCE, "{}, row {row} alone: {off}", path.display());
        }
    }
}

fn head(mode: PoolingMode) -> EmbeddingHead {
    let config = EmbeddingConfig {
        pooling: vec![mode],
        pool_prompt: true,
        normalize: true,
        ..EmbeddingConfig::default()
    };
    EmbeddingHead { config, dims: None }
}

fn graph(output: EncoderOutput) -> EncoderGraph {
    EncoderGraph { max_tokens: 128, max_sequences: 8, weights: WeightType::AsStored, output }
}

/// The vectors of the reference's rows, one or several rows at a time.
fn pooled(path: &Path, reference: &Reference, mode: PoolingMode, rows_at_once: usize) -> Vec<f32> {
    let encoder = Encoder::new(&ModelFiles::open(path).unwrap()).unwrap();
    let graph = encoder.graph(&graph(EncoderOutput::Pooled(head(mode)))).unwrap();
    let session =
        EncoderSession::new(&runtime(), &graph, encoder.weights(), &LoadOptions::default()).unwrap();
    let rows: Vec<usize> = (0..reference.rows).collect();
    let mut out = Vec::new();
    for rows in rows.chunks(rows_at_once) {
        let packed = pack(&encoder, rows.iter().map(|row| reference.row(*row).0));
        out.extend(session.run(&packed, |context| Ok(context.output::<f32>(0)?.to_vec())).unwrap());
    }
    out
}

fn pack(encoder: &Encoder, rows: impl IntoIterator<Item = Vec<i64>>) -> Packed {
    let mut packed = Packed::default();
    for ids in rows {
        let positions = encoder.shape().positions.of_row(ids.iter().map(|id| (*id, true)));
        packed.push(ids.iter().map(|id| *id as i32).zip(positions), 0);
    }
    packed
}

#[test]
fn every_fixture_agrees_with_the_reference_alone_and_together() {
    for architecture in FIXTURES {
        Reference::of(architecture).check(&fixture(architecture));
    }
}

#[test]
fn pooled_vectors_agree_with_the_reference_alone_and_together() {
    for architecture in FIXTURES {
        let folder = fixture(architecture);
        let reference = Reference::of(architecture);
        for (mode, name) in [(PoolingMode::Mean, "mean"), (PoolingMode::Cls, "cls")] {
            let path = folder.join("expected.safetensors");
            let expected = tensor(&path, &format!("{name}_pooled_normalized"));
            let (width, expected) = (expected.shape()[1], expected.to_f32().unwrap());
            let together = pooled(&folder, &reference, mode, reference.rows);
            let alone = pooled(&folder, &reference, mode, 1);
            assert!(distance(&together, &alone) < 1e-5, "{architecture}");
            for (got, expected) in together.chunks(width).zip(expected.chunks(width)) {
                let cosine = cosine(got, expected);
                assert!(cosine > 0.99999, "{architecture}, {name}: {cosine}");
            }
        }
    }
}

#[test]
fn the_interpreter_agrees_with_the_reference() {
    for architecture in FIXTURES {
        let reference = Reference::of(architecture);
        let encoder = Encoder::new(&ModelFiles::open(&fixture(architecture)).unwrap()).unwrap();
        let graph = encoder.graph(&graph(EncoderOutput::Hidden)).unwrap();
        let packed = pack(&encoder, (0..reference.rows).map(|row| reference.row(row).0));
        let ints = |v: &[i32]| Tensor::i32([v.len()], v).unwrap();
        let weight = |name: &str, ty: &TensorType| {
            let data =
                encoder.weights().weight(name).map_err(|e| rlx_ir::Error::new(e.kind(), e.message()))?;
            assert_eq!(data.ty, *ty, "{name}");
            Tensor::from_bytes(data.ty, data.bytes.to_vec())
        };
        let mut data = RunData::default()
            .input("ids", ints(&packed.ids))
            .input("positions", ints(&packed.positions))
            .input("starts", ints(&packed.starts));
        data.bindings.bind("R", packed.sequences()).unwrap();
        data.weights = Some(&weight);
        let outputs = interp::run(&graph, &mut data).unwrap();
        let expected: Vec<f32> = (0..reference.rows).flat_map(|row| reference.row(row).1).collect();
        let off = distance(&outputs[0].tensor.to_f32().unwrap(), &expected);
        assert!(off < TOLERANCE, "{architecture}: {off}");
    }
}

#[test]
fn masks_and_padding_tokens_agree_with_the_reference() {
    for architecture in ["nomic_bert", "modernbert", "xlm_roberta"] {
        let reference =
            Reference::read(&tests("data/encoder_masks.safetensors"), &format!("{architecture}."));
        let output = network(&fixture(architecture), &reference.input()).unwrap();
        let off = distance(&output.values, &reference.hidden.to_f32().unwrap());
        assert!(off < TOLERANCE, "{architecture}: {off}");
    }
}

/// The fixture in GGUF, its matrices of this type.
fn gguf(architecture: &str, folder: &Folder, ty: &str) -> std::path::PathBuf {
    let path = folder.0.join(format!("{architecture}.gguf"));
    let options = QuantizeOptions::new(DType::from_name(ty).unwrap());
    quantize(&fixture(architecture), &path, &options, &|_, _, _| {}).unwrap();
    path
}

#[test]
fn every_fixture_agrees_with_the_reference_in_gguf() {
    let folder = Folder::new();
    for architecture in FIXTURES {
        Reference::of(architecture).check(&gguf(architecture, &folder, "f32"));
    }
    for architecture in ["nomic_bert", "modernbert"] {
        let reference =
            Reference::read(&tests("data/encoder_masks.safetensors"), &format!("{architecture}."));
        let output = network(&folder.0.join(format!("{architecture}.gguf")), &reference.input()).unwrap();
        assert!(distance(&output.values, &reference.hidden.to_f32().unwrap()) < TOLERANCE);
    }
}

#[test]
fn gguf_has_the_standard_keys_and_names() {
    let folder = Folder::new();
    let open = |architecture: &str| Gguf::open(gguf(architecture, &folder, "f16")).unwrap();
    let shape = |gguf: &Gguf, name: &str| gguf.tensor(name).unwrap().shape().to_vec();

    let nomic = open("nomic_bert");
    let m = nomic.metadata();
    assert_eq!(m.str("general.architecture").unwrap(), Some("nomic-bert"));
    assert_eq!(m.f32("nomic-bert.rope.freq_base").unwrap(), Some(1000.0));
    assert_eq!(m.u32("nomic-bert.feed_forward_length").unwrap(), Some(112));
    assert_eq!(shape(&nomic, "blk.1.attn_qkv.weight"), [384, 128]);
    assert_eq!(shape(&nomic, "blk.1.ffn_gate.weight"), [112, 128]);
    assert_eq!(nomic.tensor("blk.1.layer_output_norm.bias").unwrap().dtype().unwrap(), DType::F32);

    let modern = open("modernbert");
    let m = modern.metadata();
    assert_eq!(m.str("general.architecture").unwrap(), Some("modern-bert"));
    assert_eq!(m.u32("modern-bert.attention.sliding_window").unwrap(), Some(16));
    assert_eq!(m.u32("modern-bert.attention.sliding_window_pattern").unwrap(), Some(3));
    assert_eq!(m.f32("modern-bert.rope.freq_base").unwrap(), Some(160_000.0));
    assert_eq!(m.f32("modern-bert.rope.freq_base_swa").unwrap(), Some(10_000.0));
    assert_eq!(m.str("modern-bert.hidden_activation").unwrap(), Some("gelu"));
    assert_eq!(shape(&modern, "blk.0.ffn_up.weight"), [192, 64]);
    assert!(modern.tensor("blk.0.attn_norm.weight").is_err());
    assert_eq!(shape(&modern, "output_norm.weight"), [64]);

    let xlm = open("xlm_roberta");
    let m = xlm.metadata();
    assert_eq!(m.str("general.architecture").unwrap(), Some("bert"));
    // Without the rows before the first position.
    assert_eq!(m.u32("bert.context_length").unwrap(), Some(64));
    assert_eq!(shape(&xlm, "position_embd.weight"), [64, 48]);
    assert_eq!(m.u32("tokenizer.ggml.token_type_count").unwrap(), Some(1));
    let raw =
        tensor(&fixture("xlm_roberta").join("model.safetensors"), "embeddings.position_embeddings.weight");
    let stored = xlm.tensor("position_embd.weight").unwrap();
    let stored = Tensor::from_bytes(
        TensorType::new(stored.dtype().unwrap(), stored.shape().to_vec()),
        stored.bytes().to_vec(),
    );
    assert_eq!(stored.unwrap().to_f32().unwrap(), raw.to_f32().unwrap()[2 * 48..]);
}

/// The fixture of NomicBERT as models on the hub write their config.
fn nomic_of_the_hub() -> Folder {
    let from = fixture("nomic_bert");
    Folder::new().copy(&from.join("model.safetensors")).file(
        "config.json",
        &json!({
            "model_type": "nomic_bert", "architectures": ["NomicBertModel"], "activation_function": "swiglu",
            "attn_pdrop": 0.0, "causal": false, "layer_norm_epsilon": 1e-12, "max_trained_positions": 64,
            "mlp_fc1_bias": false, "mlp_fc2_bias": false, "n_embd": 128, "n_head": 4, "n_inner": 112, "n_layer": 3,
            "n_positions": 128, "pad_vocab_size_multiple": 2, "parallel_block": false, "prenorm": false,
            "qkv_proj_bias": false, "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0,
            "rotary_emb_interleaved": false, "rotary_emb_scale_base": null, "rotary_scaling_factor": null,
            "scale_attn_by_inverse_layer_idx": false, "scale_attn_weights": true, "type_vocab_size": 2,
            "use_rms_norm": false, "vocab_size": 313
        })
        .to_string(),
    )
}

#[test]
fn nomic_models_of_the_hub_are_the_same_network() {
    let reference = Reference::of("nomic_bert");
    let folder = nomic_of_the_hub();
    assert_eq!(
        network(&folder.0, &reference.input()).unwrap(),
        network(&fixture("nomic_bert"), &reference.input()).unwrap()
    );
    let max = |folder: &Folder| Encoder::new(&ModelFiles::open(&folder.0).unwrap()).unwrap().max_positions();
    assert_eq!(max(&folder), 128);
    // Scaled frequencies are those of the training up to its length.
    let scaled = nomic_of_the_hub().config(|c| drop(c.insert("rotary_scaling_factor".into(), json!(2.0))));
    assert_eq!(max(&scaled), 64);
    let biased = nomic_of_the_hub().config(|c| drop(c.insert("qkv_proj_bias".into(), json!(true))));
    let e = network(&biased.0, &reference.input()).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.message().contains("layers.0.attn.Wqkv.bias"), "{e}");
}

#[test]
fn products_of_queries_keys_and_values_may_be_stored_apart() {
    let reference = Reference::of("nomic_bert");
    let folder = Folder::new();
    for file in ["config.json", "model.safetensors"] {
        std::fs::copy(fixture("nomic_bert").join(file), folder.0.join(file)).unwrap();
    }
    let folder = folder.tensors(|tensors| {
        let mut apart = Vec::new();
        tensors.retain(|(name, joint)| {
            let Some(layer) = name.strip_suffix(".attn.Wqkv.weight") else { return true };
            let layer = layer.strip_prefix("encoder.").unwrap();
            let values = joint.to_f32().unwrap();
            for (part, values) in ["q", "k", "v"].iter().zip(values.chunks(values.len() / 3)) {
                let name = format!("{layer}.self_attn.{part}_proj.weight");
                apart.push((name, Tensor::f32([128, 128], values).unwrap()));
            }
            false
        });
        tensors.extend(apart);
    });
    reference.check(&folder.0);
}

#[test]
fn roberta_and_older_configs_are_the_same_networks() {
    let copy = |architecture: &str| {
        let from = fixture(architecture);
        Folder::new().copy(&from.join("config.json")).copy(&from.join("model.safetensors"))
    };
    for (model_type, prefix) in [("roberta", "roberta."), ("camembert", "")] {
        let folder = copy("xlm_roberta").config(|c| drop(c.insert("model_type".into(), json!(model_type))));
        let folder = folder.tensors(|tensors| {
            for (name, _) in tensors {
                *name = format!("{prefix}{name}");
            }
        });
        Reference::of("xlm_roberta").check(&folder.0);
    }
    let older = copy("modernbert").config(|c| {
        for key in ["layer_types", "rope_parameters"] {
            c.remove(key);
        }
        c.insert("global_rope_theta".into(), json!(160_000.0));
        c.insert("local_rope_theta".into(), json!(10_000.0));
    });
    let older = older.tensors(|tensors| {
        for (name, _) in tensors {
            *name = format!("model.{name}");
        }
    });
    Reference::of("modernbert").check(&older.0);
}

#[test]
fn block_types_change_little_and_nothing_by_the_batch() {
    let folder = Folder::new();
    for architecture in ["nomic_bert", "modernbert", "xlm_roberta"] {
        let path = gguf(architecture, &folder, "q8_0");
        let reference = Reference::of(architecture);
        let together = pooled(&path, &reference, PoolingMode::Mean, reference.rows);
        assert_eq!(together, pooled(&path, &reference, PoolingMode::Mean, 1), "{architecture}");
        let exact = pooled(&fixture(architecture), &reference, PoolingMode::Mean, reference.rows);
        let width = exact.len() / reference.rows;
        for (a, b) in together.chunks(width).zip(exact.chunks(width)) {
            assert!(cosine(a, b) > 0.999, "{architecture}: {}", cosine(a, b));
        }
    }
}

#[test]
fn inputs_that_the_network_lacks_are_refused() {
    #[track_caller]
    fn refused(architecture: &str, input: &ForwardInput, kind: ErrorKind, part: &str) {
        let e = network(&fixture(architecture), input).unwrap_err();
        assert!(e.kind() == kind && e.message().contains(part), "{e}");
    }
    let row = |ids: Vec<i64>, mask| {
        let columns = ids.len();
        ForwardInput::new(ids, mask, 1, columns).unwrap()
    };
    use ErrorKind::{ContextExceeded, InvalidArgument};
    refused("xlm_roberta", &row(vec![5; 65], None), ContextExceeded, "position 64");
    refused("nomic_bert", &row(vec![5; 129], None), ContextExceeded, "position 128");
    refused("xlm_roberta", &row(vec![314], None), InvalidArgument, "314");
    // Padding tokens take no position.
    let mut padded = vec![1; 10];
    padded.extend([5; 64]);
    assert!(network(&fixture("xlm_roberta"), &row(padded, None)).is_ok());
    // A hole would bring tokens nearer to each other than they are.
    let mut mask = vec![true; 20];
    mask[4] = false;
    refused("modernbert", &row(vec![5; 20], Some(mask)), InvalidArgument, "row 0");
}

#[test]
fn mixtures_of_experts_are_refused_by_name() {
    let folder = nomic_of_the_hub().config(|c| drop(c.insert("moe_every_n_layers".into(), json!(2))));
    let e = Encoder::new(&ModelFiles::open(&folder.0).unwrap()).unwrap_err();
    assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("nomic-bert-moe"), "{e}");
    let unknown = Folder::new()
        .copy(&fixture("xlm_roberta").join("model.safetensors"))
        .file("config.json", r#"{"model_type": "xlm-roberta-xl"}"#);
    let e = Encoder::new(&ModelFiles::open(&unknown.0).unwrap()).unwrap_err();
    assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("xlm-roberta-xl"), "{e}");
    assert!(
        ["nomic-bert", "modern-bert", "xlm-roberta"].iter().all(|name| e.message().contains(name)),
        "{e}"
    );
}

/// `from` with one key of its metadata changed.
fn with_key(from: &Path, to: &Path, key: &str, value: u32) {
    let gguf = Gguf::open(from).unwrap();
    let mut metadata = MetadataBuilder::new();
    metadata.extend(gguf.metadata());
    metadata.set(key, value);
    let mut writer = Writer::new(to, metadata).unwrap();
    for t in gguf.tensors() {
        writer.declare(t.name(), t.dtype().unwrap(), t.shape()).unwrap();
    }
    let mut data = writer.start().unwrap();
    for t in gguf.tensors() {
        data.tensor(t.name(), |sink| sink.write(t.bytes())).unwrap();
    }
    data.finish().unwrap();
}

#[test]
fn weights_of_the_network_that_the_config_does_not_use_are_refused() {
    let folder = Folder::new();
    for architecture in FIXTURES {
        let reference = Reference::of(architecture);
        let source = fixture(architecture);
        let model = |layers: usize| {
            let folder =
                Folder::new().copy(&source.join("config.json")).copy(&source.join("model.safetensors"));
            folder.config(|config| {
                config.insert("num_hidden_layers".into(), json!(layers));
                if let Some(types) = config.get_mut("layer_types").and_then(|t| t.as_array_mut()) {
                    types.truncate(layers);
                }
            })
        };
        let fewer = model(1);
        let e = network(&fewer.0, &reference.input()).unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("layer"), "{e}");
        assert!(e.message().contains(".1.") && e.message().contains("no part of"), "{e}");
        let options = QuantizeOptions::new(DType::F16);
        let e = quantize(&fewer.0, &folder.0.join("out.gguf"), &options, &|_, _, _| {}).unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("no part of"), "{e}");

        let whole = gguf(architecture, &folder, "f32");
        let name =
            Gguf::open(&whole).unwrap().metadata().str("general.architecture").unwrap().unwrap().to_owned();
        let changed = folder.0.join("changed.gguf");
        with_key(&whole, &changed, &format!("{name}.block_count"), 1);
        let e = network(&changed, &reference.input()).unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("\"blk.1."), "{e}");
        with_key(&whole, &changed, "general.unread", 1);
        network(&changed, &reference.input()).unwrap();
    }
}

#[test]
fn what_is_no_part_of_the_network_may_stand_beside_it() {
    let with = |name: &str| {
        Folder::bert().tensors(|tensors| tensors.push((name.into(), Tensor::f32([1], &[0.0]).unwrap())))
    };
    let reference = Reference::of("bert");
    for name in ["embeddings.position_ids", "cls.predictions.bias", "classifier.weight", "lm_head.bias"] {
        network(&with(name).0, &reference.input()).unwrap();
    }
    for name in ["embeddings.factor.weight", "encoder.rel_embeddings.weight", "bert.encoder.layer.0.extra"] {
        let e = network(&with(name).0, &reference.input()).unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains(name), "{e}");
    }
}
