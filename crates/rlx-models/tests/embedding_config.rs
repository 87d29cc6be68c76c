//! Reading sentence-transformers folders and GGUF metadata.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rlx_gguf::MetadataBuilder;
use rlx_ir::ErrorKind;
use rlx_models::sentence_transformers::{Activation, DenseConfig, DenseSource, EmbeddingConfig, PoolingMode};
use rlx_models::text::TokenizerConfig;

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rlx-embedding-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        for (name, text) in files {
            let file = path.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn config(&self) -> rlx_models::Result<EmbeddingConfig> {
        EmbeddingConfig::from_folder(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn modules(kinds: &[&str]) -> String {
    let module = |(i, kind): (usize, &&str)| {
        let path = if i == 0 { String::new() } else { format!("{i}_{kind}") };
        format!(r#"{{"idx":{i},"name":"{i}","path":"{path}","type":"sentence_transformers.models.{kind}"}}"#)
    };
    let list: Vec<String> = kinds.iter().enumerate().map(module).collect();
    format!("[{}]", list.join(","))
}

const MEAN: (&str, &str) =
    ("1_Pooling/config.json", r#"{"word_embedding_dimension":384,"pooling_mode_mean_tokens":true}"#);

#[test]
fn a_usual_folder_is_read_with_the_source_of_every_fact() {
    let folder = Folder::new(&[
        ("modules.json", &modules(&["Transformer", "Pooling", "Normalize"])),
        MEAN,
        ("sentence_bert_config.json", r#"{"max_seq_length":256,"do_lower_case":true}"#),
        (
            "config_sentence_transformers.json",
            r#"{"prompts":{"query":"query: ","document":""},"default_prompt_name":"query"}"#,
        ),
    ]);
    let config = folder.config().unwrap();
    assert_eq!(config.pooling, [PoolingMode::Mean]);
    assert!(config.normalize && config.lowercase && config.pool_prompt && config.dense.is_empty());
    assert_eq!(config.max_seq_length, Some(256));
    assert_eq!(config.limit(Some(128), Some(512)), Some(128));
    assert_eq!(config.limit(None, Some(512)), Some(256));
    assert_eq!(config.prompt(None).unwrap(), "query: ");
    assert_eq!(config.prompt(Some("document")).unwrap(), "");
    let e = config.prompt(Some("title")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.to_string().contains("\"title\"") && e.to_string().contains("document, query"), "{e}");
    assert_eq!(config.sources.pooling, "1_Pooling/config.json");
    assert_eq!(config.sources.normalize, "modules.json");
    assert_eq!(config.sources.max_seq_length, "sentence_bert_config.json");
    assert_eq!(config.sources.prompts, "config_sentence_transformers.json");
}

#[test]
fn what_newer_versions_write_is_read() {
    let file = "config_sentence_transformers.json";
    let usual = modules(&["Transformer", "Pooling", "Dropout"]);
    let with = |text: &str| Folder::new(&[("modules.json", &usual), MEAN, (file, text)]).config();
    let config = with(r#"{"model_type":"SentenceTransformer","prompts":{"query":null},"truncate_dim":64}"#);
    let config = config.unwrap();
    assert_eq!((config.prompt(Some("query")).unwrap(), config.dims), ("", Some(64)));
    let e = with(r#"{"model_type":"CrossEncoder"}"#).unwrap_err();
    assert!(e.kind() == ErrorKind::UnsupportedModel && e.message().contains("CrossEncoder"), "{e}");

    let causal = |is: &str| {
        let text = format!(r#"{{"architectures":["Qwen3ForCausalLM"],"is_causal":{is}}}"#);
        Folder::new(&[("config.json", &text)]).config().unwrap().pooling
    };
    assert_eq!((causal("true"), causal("false")), (vec![PoolingMode::LastToken], vec![PoolingMode::Mean]));
}

#[test]
fn a_module_lies_in_the_folder_of_the_model() {
    let with = |path: &str| {
        let pooling = format!(r#"{{"path":{path:?},"type":"sentence_transformers.models.Pooling"}}"#);
        let all = format!(r#"[{{"path":"","type":"sentence_transformers.models.Transformer"}},{pooling}]"#);
        Folder::new(&[("modules.json", &all), MEAN]).config()
    };
    for inside in ["1_Pooling", "1_Pooling/", "./1_Pooling"] {
        assert_eq!(with(inside).unwrap().pooling, [PoolingMode::Mean], "{inside}");
    }
    for outside in ["/etc", "/", "..", "../../..", "1_Pooling/../../x", "./../x", "a//b"] {
        let e = with(outside).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidFile, "{e}");
        assert!(e.message().contains("modules.json") && e.message().contains(outside), "{e}");
    }
}

#[test]
fn a_file_without_end_is_not_read() {
    for name in ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"] {
        let folder = Folder::new(&[]);
        std::fs::File::create(folder.0.join(name)).unwrap().set_len(20 << 30).unwrap();
        let e = folder.config().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidFile);
        assert!(e.message().contains(name) && e.message().contains("21474836480"), "{e}");
    }
    for name in ["tokenizer_config.json", "special_tokens_map.json", "generation_config.json"] {
        let folder = Folder::new(&[]);
        std::fs::File::create(folder.0.join(name)).unwrap().set_len(20 << 30).unwrap();
        let e = TokenizerConfig::from_folder(&folder.0).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains(name), "{e}");
    }
}

#[test]
fn no_normalize_module_means_raw_vectors() {
    let folder = Folder::new(&[("modules.json", &modules(&["Transformer", "Pooling"])), MEAN]);
    let config = folder.config().unwrap();
    assert!(!config.normalize);
    assert_eq!(config.prompt(None).unwrap(), "");
    assert!(config.prompt(Some("query")).unwrap_err().to_string().contains("none"));
}

#[test]
fn a_folder_without_modules_is_pooled_by_the_mean() {
    let config =
        Folder::new(&[("sentence_bert_config.json", r#"{"max_seq_length":null}"#)]).config().unwrap();
    assert_eq!(config.pooling, [PoolingMode::Mean]);
    assert!(!config.normalize && config.max_seq_length.is_none());
    assert!(config.sources.pooling.contains("no modules.json"));
}

#[test]
fn dense_layers_are_read_in_order() {
    let kinds = ["Transformer", "Pooling", "Dense", "Dense", "Normalize"];
    let first = r#"{"in_features":768,"out_features":3072,"bias":false,"activation_function":"torch.nn.modules.linear.Identity"}"#;
    let second =
        r#"{"in_features":3072,"out_features":768,"activation_function":"torch.nn.modules.activation.GELU"}"#;
    let folder = Folder::new(&[
        ("modules.json", &modules(&kinds)),
        MEAN,
        ("2_Dense/config.json", first),
        ("3_Dense/config.json", second),
    ]);
    let dense = folder.config().unwrap().dense;
    assert_eq!(dense.len(), 2);
    assert_eq!((dense[0].in_features, dense[0].out_features, dense[0].bias), (768, 3072, false));
    assert_eq!((dense[0].activation, dense[1].activation), (Activation::Identity, Activation::Gelu));
    assert!(dense[1].bias && dense[1].source == DenseSource::Folder(folder.0.join("3_Dense")));

    let swapped = Folder::new(&[
        ("modules.json", &modules(&kinds)),
        MEAN,
        ("2_Dense/config.json", second),
        ("3_Dense/config.json", second),
    ]);
    let e = swapped.config().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.to_string().contains("out_features 768"), "{e}");

    for (key, value) in [
        ("activation_function", r#""my.Swoosh""#),
        ("use_residual", "true"),
        ("module_input_name", r#""token_embeddings""#),
        ("module_output_name", r#""other""#),
    ] {
        let odd = format!(r#"{{"in_features":8,"out_features":8,"{key}":{value}}}"#);
        let unknown = Folder::new(&[
            ("modules.json", &modules(&["Transformer", "Pooling", "Dense"])),
            MEAN,
            ("2_Dense/config.json", &odd),
        ]);
        let e = unknown.config().unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.to_string().contains(key), "{e}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let refused = |kinds: &[&str], named: &str| {
        let dense = r#"{"in_features":8,"out_features":8}"#;
        let files = [("modules.json", &*modules(kinds)), MEAN, ("3_Dense/config.json", dense)];
        let e = Folder::new(&files).config().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel, "{e}");
        assert!(e.to_string().contains(named), "{e}");
    };
    refused(&["Transformer", "Pooling", "WeightedLayerPooling"], "WeightedLayerPooling");
    refused(&["Transformer", "Pooling", "Normalize", "Dense"], "place");
    refused(&["Pooling", "Transformer"], "place");
    refused(&["Transformer"], "no Pooling module");
    let own = r#"[{"path":"","type":"custom_st.Transformer"}]"#;
    let e = Folder::new(&[("modules.json", own)]).config().unwrap_err();
    assert!(
        e.kind() == ErrorKind::UnsupportedModel && e.to_string().contains("custom_st.Transformer"),
        "{e}"
    );
}

#[test]
fn damaged_and_missing_files_are_named() {
    let modules = modules(&["Transformer", "Pooling"]);
    let e = Folder::new(&[("modules.json", "[{")]).config().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.to_string().contains("modules.json"), "{e}");
    let e = Folder::new(&[("modules.json", &modules)]).config().unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.to_string().contains("1_Pooling"), "{e}");
    for (name, text) in [
        ("sentence_bert_config.json", r#"{"max_seq_length":"many"}"#),
        ("sentence_bert_config.json", r#"{"max_seq_length":0}"#),
        ("config_sentence_transformers.json", r#"{"prompts":["x"]}"#),
        ("config_sentence_transformers.json", r#"{"default_prompt_name":"query"}"#),
        ("config_sentence_transformers.json", r#"{"truncate_dim":0}"#),
    ] {
        let e = Folder::new(&[("modules.json", &modules), MEAN, (name, text)]).config().unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidFile && e.to_string().contains(name), "{e}");
    }
}

#[test]
fn json_that_is_no_object_is_named() {
    let modules = modules(&["Transformer", "Pooling", "Dense"]);
    let dense = ("2_Dense/config.json", r#"{"in_features":8,"out_features":8}"#);
    let usual = [("modules.json", &*modules), MEAN, dense];
    let refused = |e: rlx_models::Error, name: &str| {
        let message = e.to_string();
        assert!(e.kind() == ErrorKind::InvalidFile && message.contains(name), "{message}");
        assert!(message.contains("JSON object"), "{message}");
    };
    for text in ["null", "[]", "7"] {
        for name in [
            "1_Pooling/config.json",
            "2_Dense/config.json",
            "sentence_bert_config.json",
            "config_sentence_transformers.json",
        ] {
            let files = usual.into_iter().filter(|(other, _)| *other != name).chain([(name, text)]);
            refused(Folder::new(&files.collect::<Vec<_>>()).config().unwrap_err(), name);
        }
        for name in ["tokenizer_config.json", "special_tokens_map.json", "generation_config.json"] {
            refused(TokenizerConfig::from_folder(&Folder::new(&[(name, text)]).0).unwrap_err(), name);
        }
    }
}

#[test]
fn a_pooling_that_asks_for_no_mode_is_the_mean_and_says_so() {
    let modules = modules(&["Transformer", "Pooling"]);
    for text in ["{}", r#"{"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":false}"#] {
        let files = [("modules.json", &*modules), ("1_Pooling/config.json", text)];
        let config = Folder::new(&files).config().unwrap();
        assert_eq!(config.pooling, [PoolingMode::Mean]);
        assert!(config.sources.pooling.contains("1_Pooling/config.json asks for no mode"));
    }
}

#[test]
fn gguf_keys_decide_and_their_absence_has_a_rule() {
    let mut keys = MetadataBuilder::new();
    keys.set("bert.context_length", 512u32);
    let foreign = EmbeddingConfig::from_metadata(&keys.clone().build(), "bert").unwrap();
    assert_eq!(
        (foreign.pooling, foreign.normalize, foreign.max_seq_length),
        (vec![PoolingMode::Mean], true, Some(512))
    );

    keys.set("bert.pooling_type", 2u32);
    keys.set("rlx.embedding.max_seq_length", 256u32);
    keys.set("rlx.embedding.normalize", false);
    keys.set("rlx.embedding.prompts", r#"{"query":"q: "}"#);
    let own = EmbeddingConfig::from_metadata(&keys.clone().build(), "bert").unwrap();
    assert_eq!(
        (&own.pooling[..], own.normalize, own.max_seq_length),
        (&[PoolingMode::Cls][..], false, Some(256))
    );
    assert_eq!(own.prompt(Some("query")).unwrap(), "q: ");
    assert_eq!(own.sources.pooling, "bert.pooling_type");

    keys.set("bert.pooling_type", 0u32);
    let none = EmbeddingConfig::from_metadata(&keys.clone().build(), "bert").unwrap();
    assert!(none.pooling.is_empty());
    let chat = EmbeddingConfig::from_metadata(&keys.clone().build(), "llama").unwrap();
    assert!(chat.pooling.is_empty() && chat.sources.pooling.contains("llama.pooling_type is missing"));

    for rank_or_unknown in [4u32, 77] {
        keys.set("bert.pooling_type", rank_or_unknown);
        let e = EmbeddingConfig::from_metadata(&keys.clone().build(), "bert").unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
        assert!(e.to_string().contains("bert.pooling_type"), "{e}");
    }
}

#[test]
fn roles_of_tokens_come_from_any_of_the_files() {
    let folder = Folder::new(&[
        ("tokenizer_config.json", r#"{"bos_token":{"content":"<s>"},"model_max_length":512}"#),
        ("special_tokens_map.json", r#"{"bos_token":"<x>","pad_token":"<pad>"}"#),
        ("config.json", r#"{"eos_token_id":7}"#),
        ("generation_config.json", r#"{"eos_token_id":[1,106]}"#),
    ]);
    let config = TokenizerConfig::from_folder(&folder.0).unwrap();
    assert_eq!((config.bos_token.as_deref(), config.pad_token.as_deref()), (Some("<s>"), Some("<pad>")));
    assert_eq!((config.eos_token_ids, config.model_max_length), (vec![1, 106], Some(512)));

    let huge =
        Folder::new(&[("tokenizer_config.json", r#"{"model_max_length":1000000000000000019884624838656}"#)]);
    assert_eq!(TokenizerConfig::from_folder(&huge.0).unwrap().model_max_length, None);
    assert_eq!(TokenizerConfig::from_folder(Path::new("no/such")).unwrap(), TokenizerConfig::default());
    let bad = Folder::new(&[("config.json", r#"{"eos_token_id":"x"}"#)]);
    let e = TokenizerConfig::from_folder(&bad.0).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.to_string().contains("config.json"), "{e}");
}

#[test]
fn all_that_sentence_transformers_knows_goes_through_gguf_and_back() {
    let dense = |i: usize, bias, activation| DenseConfig {
        source: DenseSource::Gguf(format!("dense.{i}")),
        in_features: 8 * (i + 1),
        out_features: 8 * (i + 2),
        bias,
        activation,
    };
    let mut config = EmbeddingConfig {
        pooling: vec![PoolingMode::Max, PoolingMode::MeanSqrtLen],
        pool_prompt: false,
        dense: vec![dense(0, true, Activation::Gelu), dense(1, false, Activation::Identity)],
        dims: Some(5),
        normalize: true,
        max_seq_length: Some(99),
        lowercase: true,
        prompts: [("query".to_owned(), "q: ".to_owned())].into(),
        default_prompt: Some("query".into()),
        ..EmbeddingConfig::default()
    };
    let back = |config: &EmbeddingConfig, architecture: &str| {
        let mut m = MetadataBuilder::new();
        config.write_metadata(&mut m, architecture).unwrap();
        let metadata = m.build();
        let read = EmbeddingConfig::from_metadata(&metadata, architecture).unwrap();
        (EmbeddingConfig { sources: config.sources.clone(), ..read }, metadata)
    };
    let (read, metadata) = back(&config, "bert");
    assert_eq!(read, config);
    // Other readers must not pool by something else.
    assert_eq!(metadata.u32("bert.pooling_type").unwrap(), Some(0));

    config.pooling = vec![PoolingMode::LastToken];
    for (i, layer) in config.dense.iter_mut().enumerate() {
        (layer.bias, layer.activation) = (false, Activation::Identity);
        layer.source = DenseSource::Gguf(format!("dense_{}", i + 2));
    }
    let (read, metadata) = back(&config, "gemma-embedding");
    assert_eq!(read, config);
    assert_eq!(metadata.u32("gemma-embedding.pooling_type").unwrap(), Some(3));
    assert_eq!(metadata.u32("gemma-embedding.dense_3_feat_out").unwrap(), Some(24));
    assert_eq!(config.dense_tensor(1, "gemma-embedding"), "dense_3");
    assert_eq!(config.dense_tensor(1, "bert"), "dense.1");
}

#[test]
fn keys_of_layers_that_do_not_fit_are_refused() {
    let refused = |change: &dyn Fn(&mut MetadataBuilder), part: &str| {
        let mut m = MetadataBuilder::new();
        m.set_strs("rlx.embedding.dense.activation", ["Tanh", "Tanh"]);
        m.set_numbers("rlx.embedding.dense.in_features", &[8u32, 16]);
        m.set_numbers("rlx.embedding.dense.out_features", &[16u32, 4]);
        m.set_numbers("rlx.embedding.dense.bias", &[false, true]);
        assert_eq!(EmbeddingConfig::from_metadata(&m.clone().build(), "bert").unwrap().dense.len(), 2);
        change(&mut m);
        let e = EmbeddingConfig::from_metadata(&m.build(), "bert").unwrap_err();
        assert!(e.message().contains(part), "{e}");
        e.kind()
    };
    use ErrorKind::{InvalidFile, UnsupportedModel};
    let biases = |m: &mut MetadataBuilder| m.set_numbers("rlx.embedding.dense.bias", &[false]);
    assert_eq!(refused(&biases, "as many"), InvalidFile);
    let sizes = |m: &mut MetadataBuilder| m.set_numbers("rlx.embedding.dense.in_features", &[8u32, 17]);
    assert_eq!(refused(&sizes, "dense.1"), InvalidFile);
    let zero = |m: &mut MetadataBuilder| m.set_numbers("rlx.embedding.dense.out_features", &[16u32, 0]);
    assert_eq!(refused(&zero, "dense.1"), InvalidFile);
    let word = |m: &mut MetadataBuilder| m.set_strs("rlx.embedding.dense.activation", ["Tanh", "Swoosh"]);
    assert_eq!(refused(&word, "Swoosh"), UnsupportedModel);
    let pooling = |m: &mut MetadataBuilder| m.set_strs("rlx.embedding.pooling", ["median"]);
    assert_eq!(refused(&pooling, "median"), UnsupportedModel);
}
