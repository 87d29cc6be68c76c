//! Texts to vectors, on a tiny BERT with a WordPiece tokenizer.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use std::cell::RefCell;
use std::sync::Barrier;

use models::{Folder, cosine, distance, runtime};
use rlx_ir::{DType, ErrorKind, Tensor};
use rlx_models::arch::weight_type::WeightType;
use rlx_models::embedding::{BUNDLED_MODEL, CancelToken, EmbedRequest, Prompt, Truncation};
use rlx_models::encoder::Packed;
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, forward};
use rlx_models::options::LoadOptions;
use rlx_models::sentence_transformers::PoolingMode;
use rlx_models::text::EncodeOptions;
use rlx_models::{EmbeddingModel, EmbeddingOptions};
use rlx_runtime::RunContext;
use serde_json::json;

const TEXTS: [&str; 7] = [
    "a cat",
    "",
    "the cat sat on the mat",
    "x",
    "1 + 2 = 3; (4)",
    "a cat",
    "longer than the others, by far: one two three",
];

fn modules(last: &[&str]) -> String {
    let list = ["Transformer", "Pooling"].iter().chain(last).enumerate();
    let list: Vec<_> = list
        .map(|(i, kind)| {
            let path = if i == 0 { String::new() } else { format!("{i}_{kind}") };
            json!({ "idx": i, "name": i.to_string(), "path": path, "type": format!("sentence_transformers.models.{kind}") })
        })
        .collect();
    json!(list).to_string()
}

/// Mean pooling, normalised, with prompts.
fn folder() -> Folder {
    Folder::bert()
        .file("modules.json", &modules(&["Normalize"]))
        .file("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens": true}"#)
        .file("config_sentence_transformers.json", r#"{"prompts": {"query": "the ", "none": ""}}"#)
}

fn load(folder: &Folder, options: &EmbeddingOptions) -> rlx_models::Result<EmbeddingModel> {
    EmbeddingModel::load_with(&runtime(), &folder.0, options)
}

#[test]
fn a_vector_is_the_pooled_output_of_the_network() {
    let folder = folder();
    let model = load(&folder, &EmbeddingOptions::default()).unwrap();
    let text = "the cat sat";
    let ids = model.tokenizer().encode(text, EncodeOptions::default()).unwrap().ids;
    let vectors = model.embed([text]).unwrap();
    assert_eq!((vectors.len(), vectors.dim(), vectors.tokens()), (1, 96, &[ids.len()][..]));
    let input = ForwardInput::new(ids.iter().map(|&id| id.into()).collect(), None, 1, ids.len()).unwrap();
    let files = ModelFiles::open(&folder.0).unwrap();
    let hidden = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap().values;
    let sum: Vec<f32> = (0..96).map(|c| hidden.chunks(96).map(|row| row[c]).sum()).collect();
    assert!(cosine(&vectors[0], &sum) > 0.999_999);
    assert!((vectors[0].iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
}

#[test]
fn a_vector_does_not_depend_on_its_batch() {
    let folder = folder();
    let together = load(&folder, &EmbeddingOptions::default()).unwrap();
    let small = load(&folder, &EmbeddingOptions { batch_tokens: 16, ..EmbeddingOptions::default() }).unwrap();
    let all = together.embed(TEXTS).unwrap();
    let split = small.embed(TEXTS).unwrap();
    for (i, text) in TEXTS.iter().enumerate() {
        let alone = together.embed([text]).unwrap();
        assert!(distance(&all[i], &alone[0]) < 1e-5, "{text}");
        assert!(distance(&all[i], &split[i]) < 1e-5, "{text}");
    }
    assert_eq!(all[0], all[5]);
    assert_eq!(all.tokens()[1], 2, "an empty text has the added tokens");
    assert!(all.iter().zip(TEXTS).all(|(v, _)| v.len() == 96) && all.get(7).is_none());
    assert!(together.embed([""; 0]).unwrap().is_empty());
}

#[test]
fn long_texts_are_cut_and_say_so() {
    let folder = folder();
    let model = load(&folder, &EmbeddingOptions::default()).unwrap();
    assert_eq!(model.max_seq_length(), 64);
    let long = "cat ".repeat(1 << 18);
    let vectors = model.embed([long.as_str(), "cat"]).unwrap();
    assert_eq!((vectors.truncated(), vectors.tokens()[0]), (&[true, false][..], 64));
    let shorter = EmbeddingOptions { max_seq_length: Some(5), ..EmbeddingOptions::default() };
    let vectors = load(&folder, &shorter).unwrap().embed(["cat ".repeat(9)]).unwrap();
    assert_eq!(vectors.tokens(), [5]);
}

#[test]
fn long_texts_can_be_refused() {
    let folder = folder();
    let options = EmbeddingOptions { truncation: Truncation::Refuse, ..EmbeddingOptions::default() };
    let model = load(&folder, &options).unwrap();
    let long = "cat ".repeat(32);
    let e = model.embed(["cat", long.as_str()]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ContextExceeded);
    assert!(e.message().starts_with("text 1: ") && e.message().contains("66 tokens"), "{e}");
    assert!(e.message().contains("64 at most"), "{e}");
    let each = model.embed_each(&["cat", long.as_str()], &EmbedRequest::default()).unwrap();
    assert!(each[0].is_ok() && each[1].is_err(), "the other text has its vector");
    let full = model.embed(["cat ".repeat(31)]).unwrap();
    assert_eq!((full.tokens(), full.truncated()), (&[64][..], &[false][..]));
}

#[test]
fn prompts_go_before_the_text() {
    let folder = folder();
    let model = load(&folder, &EmbeddingOptions::default()).unwrap();
    let with = |prompt| {
        model.embed_with(&["cat"], &EmbedRequest { prompt: Some(prompt), ..EmbedRequest::default() })
    };
    let expected = model.embed(["the cat"]).unwrap();
    assert_eq!(with(Prompt::Named("query".into())).unwrap(), expected);
    assert_eq!(with(Prompt::Prefix("the ".into())).unwrap(), expected);
    assert_ne!(with(Prompt::Default).unwrap(), expected);
    let e = with(Prompt::Named("passage".into())).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("none, query"), "{e}");
    let options = EmbeddingOptions { prompt: Prompt::Named("passage".into()), ..EmbeddingOptions::default() };
    assert_eq!(load(&folder, &options).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn vectors_are_cut_before_they_are_normalised() {
    let folder = folder();
    let options = |dims, normalize| EmbeddingOptions { dims, normalize, ..EmbeddingOptions::default() };
    let raw = load(&folder, &options(None, Some(false))).unwrap().embed(["a cat"]).unwrap();
    let cut = load(&folder, &options(Some(7), None)).unwrap().embed(["a cat"]).unwrap();
    let length = raw[0][..7].iter().map(|v| v * v).sum::<f32>().sqrt();
    let wanted: Vec<f32> = raw[0][..7].iter().map(|v| v / length).collect();
    assert!(cut.dim() == 7 && distance(&cut[0], &wanted) < 1e-6);
    for dims in [0, 97] {
        let e = load(&folder, &options(Some(dims), None)).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("96"), "{e}");
    }
}

#[test]
fn what_one_text_breaks_is_its_error_alone() {
    // The row of the letter x is NaN.
    let x = 48;
    let folder = folder().tensors(|tensors| {
        let (_, table) = tensors.iter_mut().find(|(n, _)| n.ends_with("word_embeddings.weight")).unwrap();
        let mut values = table.to_f32().unwrap();
        values[x * 96..(x + 1) * 96].fill(f32::NAN);
        *table = Tensor::f32(table.shape(), &values).unwrap();
    });
    let model = load(&folder, &EmbeddingOptions::default()).unwrap();
    assert_eq!(model.tokenizer().encode("x", EncodeOptions::default()).unwrap().ids, [2, x as u32, 3]);
    let e = model.embed(TEXTS).unwrap_err();
    assert!(e.kind() == ErrorKind::NonFinite && e.message().contains("text 3"), "{e}");
    let each = model.embed_each(&TEXTS, &EmbedRequest::default()).unwrap();
    let right = load(&self::folder(), &EmbeddingOptions::default()).unwrap().embed(TEXTS).unwrap();
    for (i, one) in each.iter().enumerate() {
        match one {
            Ok(one) => assert!(distance(&one.vector, &right[i]) < 1e-5),
            Err(e) => assert!(i == 3 && e.kind() == ErrorKind::NonFinite),
        }
    }
    assert!(each[3].is_err());
    assert!(distance(&model.embed(["a cat"]).unwrap()[0], &right[0]) < 1e-5);
}

#[test]
fn several_poolings_and_layers_after_them_run_in_order() {
    let weight: Vec<f32> = (0..3 * 192).map(|i| ((i * 37 % 101) as f32 - 50.0) / 100.0).collect();
    let dense = |folder: Folder, width: usize| {
        let folder = folder
            .file("modules.json", &modules(&["Dense", "Normalize"]))
            .file("1_Pooling/config.json", r#"{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true}"#)
            .file(
                "2_Dense/config.json",
                &json!({ "in_features": width, "out_features": 3, "activation_function": "torch.nn.modules.activation.Tanh" })
                    .to_string(),
            );
        let tensors = [
            ("linear.weight".to_owned(), Tensor::f32([3, 192], &weight).unwrap()),
            ("linear.bias".to_owned(), Tensor::f32([3], &[0.1, -0.2, 0.3]).unwrap()),
        ];
        models::write_tensors(&folder.0.join("2_Dense/model.safetensors"), &tensors);
        folder
    };
    let got =
        load(&dense(Folder::bert(), 192), &EmbeddingOptions::default()).unwrap().embed(["a cat"]).unwrap();
    let pooled = |mode| {
        let options =
            EmbeddingOptions { pooling: Some(mode), normalize: Some(false), ..EmbeddingOptions::default() };
        load(&folder(), &options).unwrap().embed(["a cat"]).unwrap()[0].to_vec()
    };
    let x = [pooled(PoolingMode::Cls), pooled(PoolingMode::Mean)].concat();
    let y: Vec<f32> = weight
        .chunks(192)
        .zip([0.1, -0.2, 0.3])
        .map(|(row, bias)| (row.iter().zip(&x).map(|(w, x)| w * x).sum::<f32>() + bias).tanh())
        .collect();
    let length = y.iter().map(|v| v * v).sum::<f32>().sqrt();
    let wanted: Vec<f32> = y.iter().map(|v| v / length).collect();
    assert!(distance(&got[0], &wanted) < 1e-5, "{:?} {wanted:?}", &got[0]);
    let e = load(&dense(Folder::bert(), 191), &EmbeddingOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("191"), "{e}");
}

#[test]
fn weights_may_be_converted_while_they_load() {
    let folder = folder();
    let exact = load(&folder, &EmbeddingOptions::default()).unwrap().embed(TEXTS).unwrap();
    for (dtype, least) in [("f16", 0.99999), ("bf16", 0.999), ("q8_0", 0.999)] {
        let load_options = LoadOptions {
            weights: WeightType::Convert(DType::from_name(dtype).unwrap()),
            ..LoadOptions::default()
        };
        let options = EmbeddingOptions { load: load_options, ..EmbeddingOptions::default() };
        let got = load(&folder, &options).unwrap().embed(TEXTS).unwrap();
        for (a, b) in exact.iter().zip(got.iter()) {
            assert!(cosine(a, b) > least, "{dtype}: {}", cosine(a, b));
        }
    }
}

#[test]
fn progress_ends_with_all_texts() {
    let calls = RefCell::new(Vec::new());
    let progress = |done, total| calls.borrow_mut().push((done, total));
    let options = EmbeddingOptions { batch_tokens: 16, ..EmbeddingOptions::default() };
    let model = load(&folder(), &options).unwrap();
    model.embed_with(&TEXTS, &EmbedRequest { progress: Some(&progress), ..EmbedRequest::default() }).unwrap();
    let calls = calls.into_inner();
    assert!(calls.len() > 1 && calls.is_sorted() && calls.last() == Some(&(7, 7)), "{calls:?}");
}

#[test]
fn several_threads_may_embed_at_once() {
    let model = load(&folder(), &EmbeddingOptions::default()).unwrap();
    let expected = model.embed(TEXTS).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| assert_eq!(model.embed(TEXTS).unwrap(), expected));
        }
    });
}

#[test]
fn what_is_missing_is_named() {
    let without = folder();
    std::fs::remove_file(without.0.join("tokenizer.json")).unwrap();
    let e = load(&without, &EmbeddingOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.message().contains("tokenizer.json"), "{e}");
    let small = folder().config(|c| drop(c.insert("vocab_size".into(), json!(40)))).tensors(|tensors| {
        let (_, table) = tensors.iter_mut().find(|(n, _)| n.ends_with("word_embeddings.weight")).unwrap();
        *table = Tensor::f32([40, 96], &table.to_f32().unwrap()[..40 * 96]).unwrap();
    });
    let e = load(&small, &EmbeddingOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.message().contains("40 tokens"), "{e}");
    let e = EmbeddingModel::load(&runtime(), "no/such/model").unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.message().contains("no/such/model"), "{e}");
    let batch = EmbeddingOptions { batch_tokens: 0, ..EmbeddingOptions::default() };
    assert_eq!(load(&folder(), &batch).unwrap_err().kind(), ErrorKind::InvalidArgument);
    if cfg!(not(feature = "bundled-model")) {
        let e = EmbeddingModel::load(&runtime(), BUNDLED_MODEL).unwrap_err();
        assert!(e.kind() == ErrorKind::NotFound && e.message().contains("bundled-model"), "{e}");
    }
}

/// Callers at once have an arena each, of which as many stay as there are threads.
#[test]
fn arenas_of_many_callers_at_once_do_not_stay() {
    let model = load(&folder(), &EmbeddingOptions::default()).unwrap();
    let threads = model.encoder().session().backend().device().parallelism;
    let callers = 2 * threads + 3;
    let mut packed = Packed::default();
    packed.push([(1, 0), (2, 1)], 0);
    let all_run = Barrier::new(callers);
    std::thread::scope(|scope| {
        for _ in 0..callers {
            scope.spawn(|| {
                let wait = |_: &RunContext| Ok(all_run.wait());
                model.encoder().run(&packed, wait).unwrap();
            });
        }
    });
    let memory = model.memory().unwrap();
    assert_eq!(memory.idle_contexts, threads);
    assert!(memory.arena > 0 && memory.inputs > 0);
    assert_eq!(memory.weights, model.encoder().session().weight_bytes());
}

#[test]
fn a_cancelled_call_ends_between_batches() {
    let model =
        load(&folder(), &EmbeddingOptions { batch_tokens: 8, ..EmbeddingOptions::default() }).unwrap();
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let done = RefCell::new(Vec::new());
    let progress = |texts: usize, _: usize| {
        done.borrow_mut().push(texts);
        stop.cancel();
    };
    let request = EmbedRequest { progress: Some(&progress), cancel, ..EmbedRequest::default() };
    let each = model.embed_each(&TEXTS, &request).unwrap();
    let cancelled = |r: &rlx_models::Result<_>| matches!(r, Err(e) if e.kind() == ErrorKind::Cancelled);
    let ended = each.iter().filter(|r| r.is_ok()).count();
    assert_eq!(done.borrow()[..], [ended]);
    assert!(ended > 0 && each.iter().filter(|r| cancelled(r)).count() == TEXTS.len() - ended);
    assert_eq!(model.embed_with(&TEXTS, &request).unwrap_err().kind(), ErrorKind::Cancelled);
    // The model goes on.
    model.embed(TEXTS).unwrap();
}
