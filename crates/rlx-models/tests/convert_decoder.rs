//! What a decoder's folder becomes in GGUF: keys, vocabularies, templates, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "common/models.rs"]
mod models;

use std::path::Path;

use models::{Folder, distance, fixture, runtime, tests};
use rlx_gguf::Gguf;
use rlx_ir::{DType, ErrorKind, Tensor};
use rlx_models::convert::{QuantizeOptions, Report, quantize};
use rlx_models::text::{EncodeOptions, GgufVocab, Tokenizer};
use rlx_models::{LanguageModel, LanguageOptions};
use serde_json::{Value, json};

/// A tiny model of an architecture, with vectors for so many tokens.
fn folder(name: &str, vocab_size: usize) -> Folder {
    Folder::new()
        .copy(&fixture(name).join("config.json"))
        .copy(&fixture(name).join("model.safetensors"))
        .config(|c| {
            c.insert("vocab_size".into(), vocab_size.into());
        })
        .tensors(|all| {
            for (name, tensor) in all.iter_mut() {
                if name.ends_with("embed_tokens.weight") || name == "lm_head.weight" {
                    let width = tensor.shape()[1];
                    let mut values = tensor.to_f32().unwrap();
                    values.resize(vocab_size * width, 0.0);
                    *tensor = Tensor::f32([vocab_size, width], &values).unwrap();
                }
            }
        })
}

fn convert(folder: &Folder) -> rlx_models::Result<Report> {
    let options = QuantizeOptions::new(DType::F32);
    quantize(&folder.0, &folder.0.join("out.gguf"), &options, &|_, _, _| {})
}

fn data(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(tests("data").join(name)).unwrap()).unwrap()
}

fn metadata(folder: &Folder) -> Gguf {
    Gguf::open(folder.0.join("out.gguf")).unwrap()
}

/// Both tokenizers give the same ids for awkward texts.
fn same_tokens(folder: &Folder, cases: &Value) {
    let before = Tokenizer::from_folder(&folder.0).unwrap();
    let vocab = GgufVocab::from_metadata(metadata(folder).metadata()).unwrap();
    let after = Tokenizer::from_gguf(vocab).unwrap();
    for case in cases.as_array().unwrap() {
        let text = case["text"].as_str().unwrap();
        let ids = |t: &Tokenizer| t.encode(text, EncodeOptions::default()).unwrap().ids;
        assert_eq!(ids(&before), ids(&after), "{text:?}");
    }
    // A GGUF file's stop tokens are also those that are known by their names.
    let stop = &before.special_tokens().stop;
    assert!(!stop.is_empty() && stop.iter().all(|id| after.special_tokens().stop.contains(id)));
}

#[test]
fn a_byte_level_vocabulary_is_carried_over() {
    let mut tokenizer = data("bpe_tokenizer.json");
    // A token without a vector, and one of the user's.
    let added = |id: u32, text: &str, special: bool| {
        json!({ "id": id, "content": text, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special })
    };
    let list = tokenizer["added_tokens"].as_array_mut().unwrap();
    list.push(added(420, "<|user|>", false));
    list.push(added(500, "<|image|>", true));
    let folder = folder("qwen2", 430).file("tokenizer.json", &tokenizer.to_string()).file(
        "tokenizer_config.json",
        r#"{"eos_token": "<|end|>", "bos_token": {"content": "<|start|>"}, "chat_template": [
            {"name": "default", "template": "{{ a }}"}, {"name": "tool_use", "template": "{{ b }}"}]}"#,
    );
    let report = convert(&folder).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("<|image|>")), "{report:?}");
    same_tokens(&folder, &data("bpe.json")["cases"]);
    let gguf = metadata(&folder);
    let m = gguf.metadata();
    for (key, value) in [
        ("general.architecture", "qwen2"),
        ("tokenizer.ggml.model", "gpt2"),
        ("tokenizer.ggml.pre", "smollm"),
        ("tokenizer.chat_template", "{{ a }}"),
        ("tokenizer.chat_template.tool_use", "{{ b }}"),
    ] {
        assert_eq!(m.str(key).unwrap(), Some(value), "{key}");
    }
    for (key, value) in [
        ("qwen2.block_count", 3),
        ("qwen2.embedding_length", 64),
        ("qwen2.feed_forward_length", 144),
        ("qwen2.attention.head_count", 4),
        ("qwen2.attention.head_count_kv", 2),
        ("qwen2.context_length", 256),
        ("qwen2.vocab_size", 430),
        ("tokenizer.ggml.bos_token_id", 1),
        ("tokenizer.ggml.eos_token_id", 0),
    ] {
        assert_eq!(m.u32(key).unwrap(), Some(value), "{key}");
    }
    assert_eq!(m.bool("tokenizer.ggml.add_bos_token").unwrap(), Some(false));
    let types = m.u32s("tokenizer.ggml.token_type").unwrap().unwrap();
    assert_eq!((types.len(), types[0], types[2], types[420], types[421]), (430, 3, 1, 4, 5));
    assert_eq!(m.strs("tokenizer.ggml.merges").unwrap().unwrap().next(), Some("Ġ t"));
    assert_eq!(m.strs("tokenizer.chat_templates").unwrap().unwrap().collect::<Vec<_>>(), ["tool_use"]);
}

/// The `tokenizer.json` that the vocabulary of a sentencepiece model becomes.
fn characters(vocab: &Value, prefix: bool) -> Value {
    let tokens = vocab["tokens"].as_array().unwrap().iter().map(|t| t.as_str().unwrap());
    // There, spaces are marked in all tokens.
    let tokens: Vec<String> = tokens.map(|t| t.replace(' ', "▁")).collect();
    let scores: Vec<f64> = vocab["scores"].as_array().unwrap().iter().map(|s| s.as_f64().unwrap()).collect();
    let types: Vec<u64> =
        vocab["token_types"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap()).collect();
    let plain: Vec<usize> = (0..tokens.len()).filter(|&i| types[i] == 1).collect();
    let known = |text: &str| plain.iter().any(|&i| tokens[i] == text);
    let mut merged: Vec<usize> = plain.iter().copied().filter(|&i| tokens[i].chars().count() > 1).collect();
    merged.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]).then(a.cmp(&b)));
    let spaces = tokens.iter().any(|t| t == "▁▁").then(|| json!(["▁", "▁"]));
    let merges = merged
        .iter()
        .flat_map(|&i| tokens[i].char_indices().skip(1).map(move |(at, _)| (i, at)))
        .map(|(i, at)| tokens[i].split_at(at))
        .filter(|(left, right)| known(left) && known(right))
        .map(|(left, right)| json!([left, right]));
    let merges: Vec<Value> = spaces.into_iter().chain(merges).collect();
    let ids: serde_json::Map<String, Value> =
        tokens.iter().enumerate().map(|(id, t)| (t.clone(), id.into())).collect();
    // Control tokens, and those of the user's.
    let added: Vec<Value> = (0..tokens.len())
        .filter(|&id| id < 3 || types[id] == 4)
        .map(|id| {
            json!({ "id": id, "content": tokens[id], "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": id < 3 })
        })
        .collect();
    let mut steps = vec![json!({ "type": "Replace", "pattern": { "String": " " }, "content": "▁" })];
    if prefix {
        steps.insert(0, json!({ "type": "Prepend", "prepend": "▁" }));
    }
    let bos = json!({ "SpecialToken": { "id": "<s>", "type_id": 0 } });
    json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": added,
        "normalizer": { "type": "Sequence", "normalizers": steps }, "pre_tokenizer": null,
        "post_processor": {
            "type": "TemplateProcessing", "single": [bos, { "Sequence": { "id": "A", "type_id": 0 } }],
            "pair": [{ "Sequence": { "id": "A", "type_id": 0 } }, { "Sequence": { "id": "B", "type_id": 1 } }],
            "special_tokens": { "<s>": { "id": "<s>", "ids": [1], "tokens": ["<s>"] } }
        },
        "decoder": { "type": "Sequence", "decoders": [
            { "type": "Replace", "pattern": { "String": "▁" }, "content": " " },
            { "type": "ByteFallback" }, { "type": "Fuse" }
        ] },
        "model": { "type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null,
                   "end_of_word_suffix": null, "fuse_unk": true, "byte_fallback": true, "ignore_merges": false,
                   "vocab": ids, "merges": merges }
    })
}

#[test]
fn a_vocabulary_of_characters_gets_scores() {
    for (name, prefix) in [("spm.json", true), ("spm_plain.json", false)] {
        let vocab = data(name);
        let folder = folder("gemma3_text", 520)
            .file("tokenizer.json", &characters(&vocab, prefix).to_string())
            .file("tokenizer_config.json", r#"{"bos_token": "<s>", "eos_token": "</s>"}"#)
            .file("generation_config.json", r#"{"eos_token_id": [2, 9]}"#)
            .file("chat_template.jinja", "{{ bos_token }}");
        convert(&folder).unwrap();
        same_tokens(&folder, &vocab["cases"]);
        let gguf = metadata(&folder);
        let m = gguf.metadata();
        for (key, value) in [
            ("tokenizer.ggml.bos_token_id", 1),
            ("tokenizer.ggml.eos_token_id", 2),
            ("tokenizer.ggml.eot_token_id", 9),
            ("tokenizer.ggml.unknown_token_id", 0),
        ] {
            assert_eq!(m.u32(key).unwrap(), Some(value), "{key}");
        }
        for (key, value) in [("add_bos_token", true), ("add_eos_token", false), ("add_space_prefix", prefix)]
        {
            assert_eq!(m.bool(&format!("tokenizer.ggml.{key}")).unwrap(), Some(value), "{key}");
        }
        assert_eq!(m.str("tokenizer.chat_template").unwrap(), Some("{{ bos_token }}"));
        let types = m.u32s("tokenizer.ggml.token_type").unwrap().unwrap();
        let of_vocab = vocab["token_types"].as_array().unwrap().iter().map(|t| t.as_u64().unwrap() as u32);
        assert_eq!(types[..4], of_vocab.take(4).collect::<Vec<u32>>());
        // What llama.cpp gives for the vocabulary that this one was made from.
        let tokenizer = Tokenizer::from_gguf(GgufVocab::from_metadata(m).unwrap()).unwrap();
        let bare = EncodeOptions { add_special: false, parse_special: false };
        for case in vocab["cases"].as_array().unwrap() {
            let ids: Vec<u32> =
                case["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
            assert_eq!(tokenizer.encode(case["text"].as_str().unwrap(), bare).unwrap().ids, ids, "{case}");
        }
    }
}

#[test]
fn layers_and_ropes_have_the_standard_keys() {
    let gemma = folder("gemma3_text", 314);
    convert(&gemma).unwrap();
    let gguf = metadata(&gemma);
    let m = gguf.metadata();
    assert_eq!(m.u32("gemma3.attention.sliding_window").unwrap(), Some(8));
    assert_eq!(m.bools("gemma3.attention.sliding_window_pattern").unwrap(), Some(vec![true, true, false]));
    assert_eq!(m.f32("gemma3.rope.freq_base").unwrap(), Some(1e6));
    assert_eq!(m.f32("gemma3.rope.freq_base_swa").unwrap(), Some(1e4));
    let norm = gguf.tensor("output_norm.weight").unwrap();
    let stored: Vec<f32> = norm.bytes().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let before = models::tensor(&gemma.0.join("model.safetensors"), "model.norm.weight").to_f32().unwrap();
    assert!(stored.iter().zip(&before).all(|(after, before)| *after == before + 1.0));

    let experts = folder("qwen3_moe", 314);
    convert(&experts).unwrap();
    let gguf = metadata(&experts);
    let m = gguf.metadata();
    for (key, value) in [("expert_count", 6), ("expert_used_count", 2), ("expert_feed_forward_length", 48)] {
        assert_eq!(m.u32(&format!("qwen3moe.{key}")).unwrap(), Some(value), "{key}");
    }
    assert_eq!(gguf.tensor("blk.1.ffn_down_exps.weight").unwrap().shape(), [6, 64, 48]);

    let llama = folder("llama3_rope_scaling", 314);
    convert(&llama).unwrap();
    assert_eq!(metadata(&llama).tensor("rope_freqs.weight").unwrap().shape(), [8]);

    let mistral = folder("mistral", 314);
    let report = convert(&mistral).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("llama.attention.sliding_window")), "{report:?}");
}

#[test]
fn yarn_and_linear_scaling_survive() {
    let logits = |path: &Path| {
        let options = LanguageOptions { kv_dtype: DType::F32, ..LanguageOptions::default() };
        LanguageModel::load(&runtime(), path, &options).unwrap().logits(&[5, 17, 230, 9, 4, 250, 31]).unwrap()
    };
    let plain = logits(&fixture("qwen3"));
    for rope in [
        json!({ "rope_type": "linear", "factor": 4.0, "rope_theta": 1e4 }),
        json!({ "rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 32,
                "attention_factor": 0.8, "beta_fast": 20.0, "beta_slow": 2.0 }),
        json!({ "rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4, "original_max_position_embeddings": 32 }),
    ] {
        let folder = folder("qwen3", 314).config(|c| {
            c.insert("rope_parameters".into(), rope.clone());
        });
        convert(&folder).unwrap();
        let (before, after) = (logits(&folder.0), logits(&folder.0.join("out.gguf")));
        assert!(distance(&before, &after) < 1e-5, "{rope}: {}", distance(&before, &after));
        assert!(distance(&before, &plain) > 1e-3, "{rope} changes nothing");
    }
}

#[test]
fn what_gguf_cannot_say_is_refused() {
    let refusal = |name: &str, key: &str, value: Value| {
        let folder = folder(name, 314).config(|c| {
            c.insert(key.into(), value.clone());
        });
        let e = convert(&folder).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel, "{e}");
        assert!(!folder.0.join("out.gguf").exists());
        e.message().to_owned()
    };
    assert!(refusal("gemma3_text", "query_pre_attn_scalar", 99.into()).contains("scale of attention"));
    let llama3 = json!({ "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                         "original_max_position_embeddings": 64, "rope_theta": 1e4 });
    assert!(refusal("qwen3", "rope_parameters", llama3).contains("llama3"));
    let yarn = json!({ "rope_type": "yarn", "factor": 4.0, "rope_theta": 1e4,
                       "original_max_position_embeddings": 32, "truncate": false });
    assert!(refusal("qwen3", "rope_parameters", yarn).contains("scaling of the ropes"));
}

#[test]
fn tensors_that_the_network_does_not_read_are_refused() {
    let sinks = folder("qwen3", 314).tensors(|all| {
        all.push(("model.layers.1.self_attn.sinks".into(), Tensor::f32([4], &[0.0; 4]).unwrap()));
    });
    let e = LanguageModel::load(&runtime(), &sinks.0, &LanguageOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("self_attn.sinks"), "{e}");
    // What holds nothing but what the config says may be there.
    let derived = folder("qwen3", 314).tensors(|all| {
        all.push((
            "model.layers.1.self_attn.rotary_emb.inv_freq".into(),
            Tensor::f32([4], &[0.0; 4]).unwrap(),
        ));
    });
    LanguageModel::load(&runtime(), &derived.0, &LanguageOptions::default()).unwrap();
}

#[test]
fn an_architecture_that_is_not_there_is_named_with_those_that_are() {
    let other = folder("qwen3", 314).config(|c| {
        c.insert("model_type".into(), "gpt_oss".into());
    });
    let e = LanguageModel::load(&runtime(), &other.0, &LanguageOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
    for name in ["gpt_oss", "llama", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma3"] {
        assert!(e.message().contains(name), "{e}");
    }
}

#[test]
fn the_text_part_of_a_model_for_more_is_run() {
    let text = std::fs::read(fixture("gemma3_text").join("config.json")).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    let whole = json!({ "model_type": "gemma3", "text_config": text, "vision_config": { "hidden_size": 8 } });
    let folder = folder("gemma3_text", 314).file("config.json", &whole.to_string()).tensors(|all| {
        for (name, _) in all.iter_mut() {
            *name = name.replace("model.", "model.language_model.");
        }
        let vision = Tensor::f32([2], &[0.0; 2]).unwrap();
        all.push(("model.vision_tower.vision_model.encoder.layers.0.layer_norm1.weight".into(), vision));
    });
    let run = |path: &Path| {
        let model = LanguageModel::load(&runtime(), path, &LanguageOptions::default()).unwrap();
        model.logits(&[5, 17, 230, 9]).unwrap()
    };
    assert_eq!(run(&folder.0), run(&fixture("gemma3_text")));
}
