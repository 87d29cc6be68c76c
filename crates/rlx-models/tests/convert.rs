//! Conversion to GGUF, and what the results give when they are run.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use models::{Folder, cosine, distance, runtime};
use rlx_gguf::{Gguf, MetadataBuilder, TensorInfo, Writer};
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, ErrorKind, Tensor};
use rlx_models::convert::{QuantizeOptions, Report, quantize};
use rlx_models::embedding::{EmbedRequest, Prompt};
use rlx_models::text::EncodeOptions;
use rlx_models::{EmbeddingModel, EmbeddingOptions};

const TEXTS: [&str; 3] = ["a cat", "The Cat sat on the mat!", ""];

fn folder() -> Folder {
    Folder::bert()
        .file(
            "modules.json",
            r#"[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
                {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"}]"#,
        )
        .file("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#)
        .file("sentence_bert_config.json", r#"{"max_seq_length": 20}"#)
        .file("config_sentence_transformers.json", r#"{"prompts": {"query": "the "}}"#)
        .file("README.md", "---\nlicense: mit\n---\n")
}

fn convert(folder: &Folder, input: &str, output: &str, ty: &str) -> rlx_models::Result<Report> {
    let options = QuantizeOptions::new(DType::from_name(ty).unwrap());
    quantize(&folder.0.join(input), &folder.0.join(output), &options, &|_, _, _| {})
}

fn load(path: &std::path::Path) -> EmbeddingModel {
    EmbeddingModel::load_with(&runtime(), path, &EmbeddingOptions::default()).unwrap()
}

#[test]
fn a_converted_model_gives_the_same_vectors() {
    let folder = folder();
    let report = convert(&folder, "", "f32.gguf", "f32").unwrap();
    assert!(report.fallbacks.is_empty());
    assert_eq!(report.skipped, ["pooler.dense.bias", "pooler.dense.weight"]);
    let (before, after) = (load(&folder.0), load(&folder.0.join("f32.gguf")));
    assert_eq!(after.config().pooling, before.config().pooling);
    assert_eq!((after.config().normalize, after.max_seq_length()), (false, 20));
    assert_eq!(after.config().prompts, before.config().prompts);
    for text in ["The cat sat.", "café 123 [SEP] ##a", "", "日本 x"] {
        let encode = |m: &EmbeddingModel| m.tokenizer().encode(text, EncodeOptions::default()).unwrap();
        assert_eq!(encode(&before), encode(&after), "{text}");
    }
    let (a, b) = (before.embed(TEXTS).unwrap(), after.embed(TEXTS).unwrap());
    assert!(a.iter().zip(b.iter()).all(|(a, b)| distance(a, b) < 1e-6));
}

#[test]
fn metadata_has_the_standard_keys() {
    let folder = folder();
    convert(&folder, "model.safetensors", "m.gguf", "f16").unwrap();
    let gguf = Gguf::open(folder.0.join("m.gguf")).unwrap();
    let m = gguf.metadata();
    for (key, value) in [
        ("bert.block_count", 3),
        ("bert.context_length", 64),
        ("bert.embedding_length", 96),
        ("bert.feed_forward_length", 100),
        ("bert.attention.head_count", 4),
        ("bert.pooling_type", 2),
        ("general.file_type", 1),
        ("general.quantization_version", 2),
        ("tokenizer.ggml.token_type_count", 2),
        ("tokenizer.ggml.cls_token_id", 2),
        ("tokenizer.ggml.seperator_token_id", 3),
        ("tokenizer.ggml.unknown_token_id", 1),
        ("tokenizer.ggml.padding_token_id", 0),
        ("tokenizer.ggml.mask_token_id", 4),
        ("rlx.embedding.max_seq_length", 20),
    ] {
        assert_eq!(m.u32(key).unwrap(), Some(value), "{key}");
    }
    assert_eq!(m.str("general.architecture").unwrap(), Some("bert"));
    assert_eq!(m.str("general.license").unwrap(), Some("mit"));
    assert_eq!(m.f32("bert.attention.layer_norm_epsilon").unwrap(), Some(1e-12));
    let tokens: Vec<&str> = m.require_strs("tokenizer.ggml.tokens").unwrap().collect();
    assert_eq!(tokens.len(), 314, "as many as the network has");
    assert_eq!((tokens[2], tokens[25], tokens[313]), ("[CLS]", "▁a", "[PAD313]"));
    let types = m.i32s("tokenizer.ggml.token_type").unwrap().unwrap();
    assert_eq!((types[2], types[25], types[313]), (3, 1, 5));
    let names: Vec<&str> = gguf.tensors().iter().map(TensorInfo::name).collect();
    assert_eq!(names[..2], ["token_embd.weight", "position_embd.weight"]);
    assert!(names.is_sorted_by_key(|n| n.strip_prefix("blk.").map(|n| n.as_bytes()[0])));
    assert_eq!(gguf.tensor("blk.0.attn_q.weight").unwrap().dtype().unwrap(), DType::F16);
    assert_eq!(gguf.tensor("blk.0.attn_q.bias").unwrap().dtype().unwrap(), DType::F32);
    assert_eq!(gguf.tensor("position_embd.weight").unwrap().dtype().unwrap(), DType::F32);
}

#[test]
fn all_that_follows_the_network_goes_along() {
    let numbers = |shape: [usize; 2]| {
        let values: Vec<f32> =
            (0..shape[0] * shape[1]).map(|i| ((i * 37 % 101) as f32 - 50.0) / 80.0).collect();
        Tensor::f32(shape, &values).unwrap()
    };
    let bias = Tensor::f32([8], &[0.1, -0.2, 0.3, 0.0, 0.5, -0.6, 0.7, -0.8]).unwrap();
    let folder = folder()
        .file(
            "modules.json",
            r#"[{"path":"","type":"sentence_transformers.models.Transformer"},
                {"path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
                {"path":"2_Dense","type":"sentence_transformers.models.Dense"},
                {"path":"3_Dense","type":"sentence_transformers.models.Dense"}]"#,
        )
        .file(
            "1_Pooling/config.json",
            r#"{"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true, "include_prompt": false}"#,
        )
        .file("2_Dense/config.json", r#"{"in_features": 192, "out_features": 8}"#)
        .file(
            "3_Dense/config.json",
            r#"{"in_features": 8, "out_features": 4, "bias": false,
             "activation_function": "torch.nn.modules.linear.Identity"}"#,
        )
        .file("sentence_bert_config.json", r#"{"max_seq_length": 20, "do_lower_case": true}"#);
    models::write_tensors(
        &folder.0.join("2_Dense/model.safetensors"),
        &[("linear.weight".into(), numbers([8, 192])), ("linear.bias".into(), bias)],
    );
    models::write_tensors(
        &folder.0.join("3_Dense/model.safetensors"),
        &[("linear.weight".into(), numbers([4, 8]))],
    );
    convert(&folder, "", "m.gguf", "q8_0").unwrap();
    let gguf = Gguf::open(folder.0.join("m.gguf")).unwrap();
    assert_eq!(gguf.tensor("dense.0.weight").unwrap().dtype().unwrap(), DType::F32);
    assert_eq!(gguf.metadata().u32("bert.pooling_type").unwrap(), Some(0));
    // Once more: from GGUF to GGUF.
    convert(&folder, "m.gguf", "again.gguf", "f32").unwrap();
    let request = EmbedRequest { prompt: Some(Prompt::Named("query".into())), ..EmbedRequest::default() };
    let exact = load(&folder.0).embed_with(&TEXTS, &request).unwrap();
    assert_eq!(exact.dim(), 4);
    for file in ["m.gguf", "again.gguf"] {
        let model = load(&folder.0.join(file));
        assert!(model.config().lowercase && !model.config().pool_prompt);
        let got = model.embed_with(&TEXTS, &request).unwrap();
        for (a, b) in exact.iter().zip(got.iter()) {
            assert!(distance(a, b) < 0.02, "{file}: {a:?} {b:?}");
        }
    }
}

#[test]
fn a_unigram_vocabulary_has_the_standard_keys() {
    let from = models::fixture("xlm_roberta");
    let folder = Folder::new().copy(&from.join("config.json")).copy(&from.join("model.safetensors"));
    let text = std::fs::read_to_string(models::tests("data/unigram_tokenizer.json")).unwrap();
    let mut tokenizer: serde_json::Value = serde_json::from_str(&text).unwrap();
    tokenizer["normalizer"] =
        serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": "AAEC/w==" });
    let folder = folder.file("tokenizer.json", &tokenizer.to_string());
    convert(&folder, "", "m.gguf", "f16").unwrap();
    let gguf = Gguf::open(folder.0.join("m.gguf")).unwrap();
    let m = gguf.metadata();
    let key = |name: &str| format!("tokenizer.ggml.{name}");
    for (name, value) in [
        ("bos_token_id", 0),
        ("padding_token_id", 1),
        ("eos_token_id", 2),
        ("unknown_token_id", 3),
        ("cls_token_id", 0),
        ("seperator_token_id", 2),
        ("mask_token_id", 4),
    ] {
        assert_eq!(m.u32(&key(name)).unwrap(), Some(value), "{name}");
    }
    for name in ["add_bos_token", "add_eos_token", "add_space_prefix", "remove_extra_whitespaces"] {
        assert_eq!(m.bool(&key(name)).unwrap(), Some(true), "{name}");
    }
    assert_eq!(m.str(&key("model")).unwrap(), Some("t5"));
    let (scores, types) =
        (m.f32s(&key("scores")).unwrap().unwrap(), m.i32s(&key("token_type")).unwrap().unwrap());
    assert_eq!((scores.len(), types.len()), (314, 314));
    assert_eq!((types[0], types[3], types[5], types[313]), (3, 2, 1, 5));
    assert!((scores[5] + 1.944_516).abs() < 1e-4 && scores[313] == -10_000.0);
    assert_eq!(m.i32s(&key("precompiled_charsmap")).unwrap().unwrap(), [0, 1, 2, 255]);
    assert_eq!(m.require_strs(&key("tokens")).unwrap().nth(5), Some("\u{2581}"));

    for (at, value, part) in [
        ("/normalizer/precompiled_charsmap", serde_json::json!("A"), "base64"),
        ("/normalizer/type", serde_json::json!("NFKC"), "NFKC"),
        ("/pre_tokenizer/type", serde_json::json!("Whitespace"), "Whitespace"),
        ("/model/byte_fallback", serde_json::json!(true), "byte_fallback"),
        ("/model/unk_id", serde_json::json!(999), "unk_id"),
        ("/post_processor/type", serde_json::json!("ByteLevel"), "ByteLevel"),
    ] {
        let mut changed = tokenizer.clone();
        *changed.pointer_mut(at).unwrap() = value;
        std::fs::write(folder.0.join("tokenizer.json"), changed.to_string()).unwrap();
        let e = convert(&folder, "", "n.gguf", "f16").unwrap_err();
        assert!(e.message().contains("tokenizer.json") && e.message().contains(part), "{e}");
    }
}

#[test]
fn a_byte_level_vocabulary_of_an_encoder_gives_the_same_vectors() {
    let from = models::fixture("modernbert");
    let text = std::fs::read_to_string(models::tests("data/bpe_tokenizer.json")).unwrap();
    let mut tokenizer: serde_json::Value = serde_json::from_str(&text).unwrap();
    let special = |name: &str| serde_json::json!({ "SpecialToken": { "id": name, "type_id": 0 } });
    let sequence = serde_json::json!({ "Sequence": { "id": "A", "type_id": 0 } });
    let around = [special("<|start|>"), sequence, special("<|end|>")];
    tokenizer["post_processor"] = serde_json::json!({
        "type": "TemplateProcessing", "single": around, "pair": around,
        "special_tokens": {
            "<|start|>": { "id": "<|start|>", "ids": [1], "tokens": ["<|start|>"] },
            "<|end|>": { "id": "<|end|>", "ids": [0], "tokens": ["<|end|>"] }
        }
    });
    let folder = Folder::new()
        .copy(&from.join("config.json"))
        .copy(&from.join("model.safetensors"))
        .file("tokenizer.json", &tokenizer.to_string())
        .file("tokenizer_config.json", r#"{"cls_token": "<|start|>", "sep_token": "<|end|>"}"#)
        .config(|c| drop(c.insert("vocab_size".into(), serde_json::json!(420))))
        .tensors(|tensors| {
            let (_, table) = tensors.iter_mut().find(|(n, _)| n.ends_with("tok_embeddings.weight")).unwrap();
            let values = table.to_f32().unwrap();
            let longer: Vec<f32> = values.iter().chain(&values).copied().take(420 * 64).collect();
            *table = Tensor::f32([420, 64], &longer).unwrap();
        });
    convert(&folder, "", "m.gguf", "f32").unwrap();
    let gguf = Gguf::open(folder.0.join("m.gguf")).unwrap();
    let m = gguf.metadata();
    assert_eq!(m.u32("tokenizer.ggml.bos_token_id").unwrap(), Some(1));
    assert_eq!(m.u32("tokenizer.ggml.eos_token_id").unwrap(), Some(0));
    assert_eq!(m.bool("tokenizer.ggml.add_bos_token").unwrap(), Some(true));
    let raw = EmbeddingOptions { normalize: Some(false), ..EmbeddingOptions::default() };
    let load = |path: &std::path::Path| EmbeddingModel::load_with(&runtime(), path, &raw).unwrap();
    let texts = ["a cat", "The Cat's 12 mats!", "", "déjà vu 日本 😀", " two  spaces "];
    let (a, b) = (load(&folder.0), load(&folder.0.join("m.gguf")));
    let (a, b) = (a.embed(texts).unwrap(), b.embed(texts).unwrap());
    assert_eq!(a.tokens(), b.tokens());
    assert!(a.iter().zip(b.iter()).all(|(a, b)| distance(a, b) < 1e-5));
}

#[test]
fn every_type_can_be_made_and_made_back() {
    let folder = folder();
    let exact = load(&folder.0).embed(TEXTS).unwrap();
    for (ty, row_96, row_100, least) in [
        ("bf16", "bf16", "bf16", 0.999),
        ("q8_0", "q8_0", "f16", 0.999),
        ("q5_0", "q5_0", "f16", 0.98),
        ("q4_0", "q4_0", "f16", 0.95),
        ("q4_1", "q4_1", "f16", 0.95),
        ("q4_k", "q5_0", "f16", 0.98),
        ("iq4_nl", "iq4_nl", "f16", 0.95),
        ("q2_k", "iq4_nl", "f16", 0.95),
        ("nvfp4", "iq4_nl", "f16", 0.95),
        ("mxfp4", "mxfp4", "f16", 0.9),
        ("q6_k", "q8_0", "f16", 0.999),
    ] {
        let report = convert(&folder, "", "q.gguf", ty).unwrap();
        let gguf = Gguf::open(folder.0.join("q.gguf")).unwrap();
        let dtype = |name| gguf.tensor(name).unwrap().dtype().unwrap().name();
        assert_eq!((dtype("blk.1.attn_v.weight"), dtype("blk.1.ffn_down.weight")), (row_96, row_100), "{ty}");
        let down = report.fallbacks.iter().find(|f| f.name == "blk.2.ffn_down.weight");
        assert_eq!(
            down.map(|f| (f.row_elems, f.dtype.name())),
            (row_100 != ty).then_some((100, row_100)),
            "{ty}"
        );
        let got = load(&folder.0.join("q.gguf")).embed(TEXTS).unwrap();
        for (a, b) in exact.iter().zip(got.iter()) {
            assert!(cosine(a, b) > least, "{ty}: {}", cosine(a, b));
        }
        convert(&folder, "q.gguf", "back.gguf", "f32").unwrap();
        let back = load(&folder.0.join("back.gguf")).embed(TEXTS).unwrap();
        assert!(back.iter().zip(got.iter()).all(|(a, b)| distance(a, b) < 1e-3), "{ty}");
    }
}

#[test]
fn what_cannot_be_converted_is_refused_and_leaves_no_file() {
    use ErrorKind::{InvalidArgument, InvalidFile, NonFinite, NotFound, UnsupportedModel};
    #[track_caller]
    fn refused(folder: &Folder, input: &str, ty: &str, kind: ErrorKind, part: &str) {
        let e = convert(folder, input, "out.gguf", ty).unwrap_err();
        assert!(e.kind() == kind && e.message().contains(part), "{e:?}");
        let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().map(|f| f.unwrap().file_name()).collect();
        assert!(!left.iter().any(|f| f.to_string_lossy().contains("out.gguf")), "{left:?}");
    }
    refused(&folder(), "", "i32", InvalidArgument, "i32");
    refused(&folder(), "", "q8_f32", InvalidArgument, "q8_f32");
    refused(&folder(), "none.gguf", "f16", NotFound, "none.gguf");
    let cased = folder();
    let path = cased.0.join("tokenizer.json");
    let json = std::fs::read_to_string(&path).unwrap().replace("\"WordPiece\",\"unk", "\"WordLevel\",\"unk");
    let changed = json.replace("\"type\": \"WordPiece\", \"unk", "\"type\": \"WordLevel\", \"unk");
    std::fs::write(path, changed.replace("\"BertPreTokenizer\"", "\"Whitespace\"")).unwrap();
    refused(&cased, "", "f16", UnsupportedModel, "tokenizer.json");
    let without = folder().tensors(|t| t.retain(|(n, _)| !n.ends_with("layer.0.output.dense.weight")));
    refused(&without, "", "f16", NotFound, "layer.0.output.dense.weight");
    let nan = folder().tensors(|tensors| {
        let (_, w) = tensors.iter_mut().find(|(n, _)| n.ends_with("layer.2.output.dense.weight")).unwrap();
        let mut values = w.to_f32().unwrap();
        values[777] = f32::INFINITY;
        *w = Tensor::f32(w.shape(), &values).unwrap();
    });
    refused(&nan, "", "q8_0", NonFinite, "blk.2.ffn_down.weight");
    let missing = folder();
    std::fs::remove_file(missing.0.join("tokenizer.json")).unwrap();
    refused(&missing, "", "f16", NotFound, "tokenizer.json");
    let wrong = folder().file("1_Pooling/config.json", "{");
    refused(&wrong, "", "f16", InvalidFile, "1_Pooling");
    let same = folder();
    convert(&same, "", "a.gguf", "f16").unwrap();
    let e = convert(&same, "a.gguf", "a.gguf", "q8_0").unwrap_err();
    assert!(e.kind() == InvalidArgument && e.message().contains("a.gguf"), "{e}");
}

/// A file with matrices whose rows hold 512, 320 and 100 elements, a norm, and what a llama's metadata must have.
fn matrices(folder: &Folder) -> Vec<f32> {
    let mut metadata = MetadataBuilder::new();
    metadata.set("general.architecture", "llama");
    metadata.set("general.file_type", 15u32);
    let mut plan = Writer::new(folder.0.join("m.gguf"), metadata).unwrap();
    let shapes: [(&str, &[usize]); 4] = [
        ("blk.0.attn_q.weight", &[7, 512]),
        ("blk.0.ffn_up.weight", &[2, 320]),
        ("blk.0.ffn_down.weight", &[2, 100]),
        ("blk.0.attn_norm.weight", &[512]),
    ];
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        state as f32 / u32::MAX as f32
    };
    let values: Vec<f32> = (0..7 * 512).map(|_| (0..6).map(|_| number()).sum::<f32>() - 3.0).collect();
    for (name, shape) in shapes {
        plan.declare(name, DType::F32, shape).unwrap();
    }
    let mut data = plan.start().unwrap();
    for (name, shape) in shapes {
        let count: usize = shape.iter().product();
        let bytes: Vec<u8> = values[..count].iter().flat_map(|v| v.to_le_bytes()).collect();
        data.tensor(name, |sink| sink.write(&bytes)).unwrap();
    }
    data.finish().unwrap();
    values
}

#[test]
fn every_block_type_of_weights_can_be_asked_for() {
    let folder = Folder::bert();
    let values = matrices(&folder);
    let mut file_types = Vec::new();
    for block in BlockType::ALL {
        if block.is_activation() {
            let e = convert(&folder, "m.gguf", "q.gguf", block.name()).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidArgument, "{}", block.name());
            continue;
        }
        let report = convert(&folder, "m.gguf", &format!("{}.gguf", block.name()), block.name()).unwrap();
        let gguf = Gguf::open(folder.0.join(format!("{}.gguf", block.name()))).unwrap();
        let q = gguf.tensor("blk.0.attn_q.weight").unwrap();
        assert_eq!(q.dtype().unwrap(), DType::Block(block));
        let mut y = vec![0.0; values.len()];
        block.decode(q.bytes(), &mut y).unwrap();
        let energy = |v: &mut dyn Iterator<Item = f32>| v.map(|v| v * v).sum::<f32>();
        let error = energy(&mut values.iter().zip(&y).map(|(x, y)| x - y));
        let ratio = (error / energy(&mut values.iter().copied())).sqrt();
        let bits = 8.0 * block.block_bytes() as f32 / block.block_elems() as f32;
        assert!(ratio < 1.6 * 2f32.powf(-bits) + 0.1, "{}: {ratio}", block.name());
        // What the rows do not allow is another type, and reported.
        let fitted = |row: usize| {
            if row.is_multiple_of(block.block_elems()) { Vec::new() } else { vec![row] }
        };
        let rows: Vec<usize> = report.fallbacks.iter().map(|f| f.row_elems).collect();
        assert_eq!(rows, [fitted(320), fitted(100)].concat(), "{}", block.name());
        assert_eq!(gguf.tensor("blk.0.ffn_down.weight").unwrap().dtype().unwrap(), DType::F16);
        assert_eq!(gguf.tensor("blk.0.attn_norm.weight").unwrap().dtype().unwrap(), DType::F32);
        file_types.push(gguf.metadata().u32("general.file_type").unwrap().unwrap());
    }
    assert!(!file_types.contains(&15), "the source's would be wrong");
    let count = file_types.len();
    file_types.sort_unstable();
    file_types.dedup();
    assert_eq!(file_types.len(), count, "each type has a number of its own");
}
