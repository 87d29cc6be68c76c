//! Language models on the CPU: against the reference's logits, cache against recomputation, streaming, and what goes wrong.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;

use common::{Tensors, changed_copy, fixture, llama_gguf, runtime};
use rlx::models::arch::weight_type::WeightType;
use rlx::models::language::{
    CancelToken, FinishReason, GenerateEvent, GenerateOptions, LanguageModel, LanguageOptions, Request,
    Wanted,
};
use rlx::models::sampling::SamplingParams;
use rlx::prelude::*;
use rlx::runtime::pages::Sequence;

fn f32_options() -> LanguageOptions {
    LanguageOptions { kv_dtype: DType::F32, ..LanguageOptions::default() }
}

fn load(name: &str, options: &LanguageOptions) -> LanguageModel {
    LanguageModel::load(&runtime(), fixture(name), options).unwrap()
}

fn greedy(max_tokens: i64) -> GenerateOptions {
    GenerateOptions { max_tokens, sampling: SamplingParams::greedy(), ..GenerateOptions::default() }
}

fn go_on(_: GenerateEvent<'_>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn worst(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn logits_and_greedy_tokens_are_those_of_the_reference() {
    for name in ["llama", "llama3_rope_scaling", "mistral"] {
        let expected = Tensors::open(name, "expected.safetensors");
        let model = load(name, &LanguageOptions { batch_tokens: 16, ..f32_options() });
        let ids = expected.ids("input_ids");
        let off = worst(&model.logits(&ids).unwrap(), &expected.floats("logits"));
        assert!(off <= 2e-4, "{name}: off by {off}");
        let generation = model.generate_ids(&ids, &greedy(12), go_on).unwrap();
        assert_eq!(generation.token_ids, expected.ids("greedy_ids"), "{name}");
        assert_eq!(generation.finish_reason, FinishReason::Length);
    }
}

#[test]
fn a_gguf_file_with_its_rows_in_another_order_gives_the_same_logits() {
    let expected = Tensors::open("llama", "expected.safetensors");
    let path = llama_gguf("order");
    let model = LanguageModel::load(&runtime(), &path.0, &f32_options()).unwrap();
    let off = worst(&model.logits(&expected.ids("input_ids")).unwrap(), &expected.floats("logits"));
    assert!(off <= 2e-4, "off by {off}");
}

#[test]
fn masked_places_are_left_out_and_zero() {
    let model = load("llama", &f32_options());
    let vocab_size = model.shape().vocab_size;
    let (a, b) = ([5, 6, 7, 8], [9, 10]);
    let (alone_a, alone_b) = (model.logits(&a).unwrap(), model.logits(&b).unwrap());
    let ids = [5, 6, 7, 8, 9, 10, 0, 0];
    let mask = [true, true, true, true, true, true, false, false];
    let both = model.forward(&ids, [2, 4], Some(&mask)).unwrap();
    assert_eq!(both[..4 * vocab_size], alone_a);
    assert_eq!(both[4 * vocab_size..6 * vocab_size], alone_b);
    assert!(both[6 * vocab_size..].iter().all(|&l| l == 0.0));
    let left = model.forward(&[0, 0, 9, 10], [1, 4], Some(&[false, false, true, true])).unwrap();
    assert_eq!(left[2 * vocab_size..], alone_b);
    let e = model.forward(&ids, [3, 4], None).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let e = model.forward(&[5, 6, 7], [1, 3], Some(&[true, false, true])).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("row 0"), "{e}");
}

/// Logits of `count` greedy steps after `prompt`, with the cache; and the tokens.
fn cached(model: &LanguageModel, prompt: &[u32], count: usize) -> (Vec<u32>, Vec<Vec<f32>>) {
    let mut session = model.session(model.limits().context).unwrap();
    let mut sequence = Sequence::default();
    let mut ids = prompt.to_vec();
    let mut rows = Vec::new();
    let mut new = prompt.len();
    for _ in 0..count {
        let tokens = &ids[ids.len() - new..];
        let request = Request { sequence: &mut sequence, tokens, logits: Wanted::Last };
        let logits = session.step_one(request).unwrap().to_vec();
        let best = (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap();
        rows.push(logits);
        ids.push(best as u32);
        new = 1;
    }
    (ids, rows)
}

fn recomputed(model: &LanguageModel, prefix: &[u32]) -> Vec<f32> {
    let mut session = model.session(model.limits().context).unwrap();
    let mut sequence = Sequence::default();
    let request = Request { sequence: &mut sequence, tokens: prefix, logits: Wanted::Last };
    session.step_one(request).unwrap().to_vec()
}

#[test]
fn the_cache_gives_what_recomputing_the_prefix_gives() {
    let prompt = [1, 20, 30];
    let q8_0 = WeightType::Convert(DType::from_name("q8_0").unwrap());
    for (name, weights) in [("llama", WeightType::AsStored), ("llama", q8_0), ("mistral", q8_0)] {
        let model = load(name, &LanguageOptions { weights, ..LanguageOptions::default() });
        let (ids, rows) = cached(&model, &prompt, 200);
        for (i, row) in rows.iter().enumerate().step_by(7) {
            let again = recomputed(&model, &ids[..prompt.len() + i]);
            if weights == WeightType::AsStored {
                assert!(worst(row, &again) <= 1e-3, "{name}, token {i}");
            } else {
                assert_eq!(*row, again, "{name}, token {i}");
            }
        }
    }
}

#[test]
fn sequences_in_one_step_do_not_see_each_other() {
    let model = load("mistral", &LanguageOptions { sequences: 2, ..f32_options() });
    let (a, b): (Vec<u32>, Vec<u32>) = ((3..43).collect(), (100..107).collect());
    let (alone_a, alone_b) = (recomputed(&model, &a), recomputed(&model, &b));
    let mut session = model.session(128).unwrap();
    let (mut first, mut second) = (Sequence::default(), Sequence::default());
    session.step_one(Request { sequence: &mut first, tokens: &a[..39], logits: Wanted::None }).unwrap();
    let mut requests = [
        Request { sequence: &mut first, tokens: &a[39..], logits: Wanted::Last },
        Request { sequence: &mut second, tokens: &b, logits: Wanted::Last },
    ];
    let logits = session.step(&mut requests).unwrap();
    assert!(worst(logits.of(0).unwrap(), &alone_a) <= 1e-5);
    assert!(worst(logits.of(1).unwrap(), &alone_b) <= 1e-5);
    assert_eq!(logits.of(2).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!((first.len(), second.len(), session.free_tokens()), (40, 7, 32));

    // No room: both stay as they are.
    let long: Vec<u32> = (0..70).collect();
    let mut requests = [
        Request { sequence: &mut first, tokens: &[1], logits: Wanted::Last },
        Request { sequence: &mut second, tokens: &long, logits: Wanted::Last },
    ];
    assert_eq!(session.step(&mut requests).unwrap_err().kind(), ErrorKind::ContextExceeded);
    assert_eq!((first.len(), second.len(), session.free_tokens()), (40, 7, 32));
}

#[test]
fn a_sequence_belongs_to_its_session_and_gives_its_pages_back() {
    let model = load("llama", &f32_options());
    let (mut here, mut there) = (model.session(64).unwrap(), model.session(64).unwrap());
    let mut sequence = Sequence::default();
    here.step_one(Request { sequence: &mut sequence, tokens: &[5, 6], logits: Wanted::Last }).unwrap();
    let taken = here.free_tokens();
    let step = there.step_one(Request { sequence: &mut sequence, tokens: &[7], logits: Wanted::Last });
    let e = step.unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("request 0"), "{e}");
    assert_eq!(there.truncate(&mut sequence, 0).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(there.discard(&mut sequence).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!((sequence.len(), here.free_tokens(), there.free_tokens()), (2, taken, 64));
    drop(sequence);
    assert_eq!(here.free_tokens(), 64);
}

#[test]
fn a_model_that_is_loaded_twice_has_its_weights_once() {
    let runtime = runtime();
    let load = || LanguageModel::load(&runtime, fixture("llama"), &f32_options()).unwrap();
    let first = load();
    let resident = runtime.store().resident_bytes();
    assert_eq!(resident, first.compiled().weight_bytes());
    let second = load();
    assert_eq!((runtime.store().resident_bytes(), second.compiled().weight_bytes()), (resident, resident));
    assert_eq!(first.logits(&[5, 6, 7]).unwrap(), second.logits(&[5, 6, 7]).unwrap());
}

#[test]
fn text_streams_and_ends_as_asked() {
    let path = llama_gguf("stream");
    let model = LanguageModel::load(&runtime(), &path.0, &f32_options()).unwrap();
    let mut pieces = String::new();
    let mut tokens = Vec::new();
    let free = model
        .generate("w3 w5", &greedy(24), |event| {
            match event {
                GenerateEvent::Text(piece) => pieces += piece,
                GenerateEvent::Token(id) => tokens.push(id),
                GenerateEvent::Prompt { done, total } => assert_eq!(done, total),
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((&free.text, &free.token_ids), (&pieces, &tokens));
    assert!(!free.text.is_empty());
    assert_eq!(model.prompt_ids("w3 w5").unwrap()[0], 1, "BOS comes first");
    assert_eq!(free.prompt_tokens, model.prompt_ids("w3 w5").unwrap().len());
    assert!(free.timings.prefill_tok_per_s() > 0.0);

    let cut = free.text.char_indices().nth(free.text.chars().count() / 2).unwrap().0;
    let stop: String = free.text[cut..].chars().take(2).collect();
    let options = GenerateOptions { stop: vec![stop.clone()], ..greedy(24) };
    let stopped = model.generate("w3 w5", &options, go_on).unwrap();
    assert_eq!(stopped.finish_reason, FinishReason::Stop);
    assert_eq!(stopped.text, free.text[..free.text.find(&stop).unwrap()]);

    // All is held back as the start of a stop string when the caller ends it: the text is that of the tokens.
    let options = GenerateOptions { stop: vec![free.text.clone() + "!"], ..greedy(24) };
    let mut told = 0;
    let ended = model
        .generate("w3 w5", &options, |event| {
            assert!(!matches!(event, GenerateEvent::Text(_)));
            told += usize::from(matches!(event, GenerateEvent::Token(_)));
            if told == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    let three = model.generate("w3 w5", &greedy(3), go_on).unwrap();
    assert_eq!((ended.finish_reason, &ended.token_ids), (FinishReason::Cancelled, &three.token_ids));
    assert!(!three.text.is_empty() && ended.text == three.text, "{ended:?}");

    let none = model.generate("w3 w5", &greedy(0), go_on).unwrap();
    assert_eq!((none.text.as_str(), none.token_ids.len(), none.finish_reason.name()), ("", 0, "length"));
    assert_eq!(model.generate("", &greedy(2), go_on).unwrap().prompt_tokens, 1);
    assert_eq!(model.generate("w3", &greedy(-2), go_on).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_stop_token_of_the_model_ends_the_text() {
    // The head's row of EOS outweighs all others once the hidden state is scaled up.
    let folder = changed_copy("llama", "lm_head.weight", |w| {
        let (first, rest) = w.split_at_mut(2 * 64);
        rest[..64].copy_from_slice(&first[..64]);
        w.iter_mut().enumerate().filter(|(i, _)| i / 64 != 2).for_each(|(_, v)| *v = 0.0);
    });
    let model = LanguageModel::load(&runtime(), &folder.0, &f32_options()).unwrap();
    let mut ended = 0;
    for id in 3..13 {
        let generation = model.generate_ids(&[id], &greedy(1), go_on).unwrap();
        if generation.finish_reason == FinishReason::Eos {
            assert!(generation.token_ids.is_empty());
            ended += 1;
        }
    }
    assert!(ended > 0, "of ten tokens one should favour the only row that is not zero");
}

#[test]
fn the_caller_can_stop_it() {
    let model = load("llama", &f32_options());
    let mut told = 0;
    let generation = model
        .generate_ids(&[5, 6], &greedy(50), |event| {
            told += usize::from(matches!(event, GenerateEvent::Token(_)));
            if told == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    assert_eq!((generation.finish_reason, generation.token_ids.len()), (FinishReason::Cancelled, 3));

    let cancel = CancelToken::new();
    let options = GenerateOptions { cancel: cancel.clone(), ..greedy(50) };
    let generation = model
        .generate_ids(&[5, 6], &options, |event| {
            if matches!(event, GenerateEvent::Token(_)) {
                cancel.cancel();
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!((generation.finish_reason, generation.token_ids.len()), (FinishReason::Cancelled, 1));
}

#[test]
fn the_context_is_a_border() {
    let model = load("llama", &LanguageOptions { context: 40, batch_tokens: 16, ..f32_options() });
    let prompt: Vec<u32> = (10..46).collect();
    let generation = model.generate_ids(&prompt, &greedy(-1), go_on).unwrap();
    assert_eq!((generation.finish_reason, generation.token_ids.len()), (FinishReason::Length, 4));
    let long: Vec<u32> = (10..51).collect();
    let e = model.generate_ids(&long, &greedy(1), go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ContextExceeded);
    assert!(e.message().contains("41 tokens"), "{e}");
    assert_eq!(model.logits(&long).unwrap_err().kind(), ErrorKind::ContextExceeded);

    let too_long = LanguageOptions { context: 257, ..f32_options() };
    let e = LanguageModel::load(&runtime(), fixture("llama"), &too_long).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    let e = model.generate_ids(&[314], &greedy(1), go_on).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("314"), "{e}");
}

#[test]
fn what_is_not_finite_fails_alone() {
    // The vector of token 7 is no number: only prompts that hold it are touched.
    let folder = changed_copy("llama", "model.embed_tokens.weight", |w| w[7 * 64..8 * 64].fill(f32::NAN));
    let damaged = LanguageModel::load(&runtime(), &folder.0, &f32_options()).unwrap();
    let sound = load("llama", &f32_options());
    let prompt = [5, 6, 8];
    let expected = sound.generate_ids(&prompt, &greedy(8), go_on).unwrap().token_ids;
    assert!(!expected.contains(&7));
    assert_eq!(damaged.generate_ids(&prompt, &greedy(8), go_on).unwrap().token_ids, expected);
    let e = damaged.generate_ids(&[5, 7, 8], &greedy(8), go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NonFinite);
    assert_eq!(damaged.generate_ids(&prompt, &greedy(8), go_on).unwrap().token_ids, expected);

    // In one cache: the pages of the sequence that failed are clean when others get them.
    let mut session = damaged.session(64).unwrap();
    let mut sequence = Sequence::default();
    let bad = Request { sequence: &mut sequence, tokens: &[5, 7, 8], logits: Wanted::Last };
    assert_eq!(session.step_one(bad).unwrap_err().kind(), ErrorKind::NonFinite);
    session.discard(&mut sequence).unwrap();
    assert_eq!((sequence.len(), session.free_tokens()), (0, 64));
    let good = Request { sequence: &mut sequence, tokens: &prompt, logits: Wanted::Last };
    assert_eq!(session.step_one(good).unwrap(), recomputed(&sound, &prompt));
}

#[test]
fn the_same_seed_gives_the_same_tokens() {
    let model = load("llama", &f32_options());
    let run = |seed| {
        let sampling = SamplingParams::default().temperature(2.0).seed(seed);
        let options = GenerateOptions { max_tokens: 20, sampling, ..GenerateOptions::default() };
        model.generate_ids(&[5, 6], &options, go_on).unwrap().token_ids
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn memory_is_what_the_context_needs() {
    let model = load("llama", &LanguageOptions { context: 64, ..f32_options() });
    let memory = model.memory().unwrap();
    // 3 layers of keys and values: 64 tokens of 2 heads of 16 elements in f32.
    assert!(memory.kv_reserved >= 3 * 2 * 64 * 2 * 16 * 4, "{memory:?}");
    assert!(memory.kv_reserved < 1 << 20, "{memory:?}");
    assert!(memory.arena > 0 && memory.inputs > 0, "{memory:?}");
}

#[test]
fn tensors_that_are_missing_or_of_another_shape_are_named() {
    let folder = changed_copy("llama", "model.norm.weight", |_| ());
    let config = folder.0.join("config.json");
    let text = std::fs::read_to_string(&config).unwrap();
    for (from, to, kind, part) in [
        ("\"num_hidden_layers\": 3", "\"num_hidden_layers\": 4", ErrorKind::NotFound, "layers.3."),
        ("\"vocab_size\": 314", "\"vocab_size\": 320", ErrorKind::InvalidFile, "embed_tokens"),
        ("\"model_type\": \"llama\"", "\"model_type\": \"llama9\"", ErrorKind::UnsupportedModel, "llama9"),
        ("\"model_type\": \"llama\"", "\"model_type\": \"bert\"", ErrorKind::UnsupportedModel, "bert"),
    ] {
        assert!(text.contains(from));
        std::fs::write(&config, text.replace(from, to)).unwrap();
        let e = LanguageModel::load(&runtime(), &folder.0, &f32_options()).unwrap_err();
        assert!(e.kind() == kind && e.message().contains(part), "{e:?}");
    }
    let model = load("llama", &f32_options());
    let e = model.generate("text", &greedy(1), go_on).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.message().contains("tokenizer.json"), "{e:?}");
}

#[test]
fn a_conversation_runs_only_what_is_new_and_answers_alike() {
    let template =
        "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ";
    let path = common::llama_gguf_with("conversation", |m| {
        m.set("tokenizer.chat_template", template);
    });
    let model = LanguageModel::load(&runtime(), &path.0, &f32_options()).unwrap();
    let options =
        GenerateOptions { sampling: SamplingParams::greedy().logit_bias(2, f32::NEG_INFINITY), ..greedy(6) };
    let mut conversation = model.conversation().unwrap();
    let mut messages = vec![ChatMessage::system("w1")];
    let mut held = 0;
    for question in ["w3 w5", "w7", "and then?"] {
        messages.push(ChatMessage::user(question));
        let ids = model.chat_ids(&messages, &ChatOptions::default()).unwrap();
        assert_eq!(ids.iter().filter(|&&id| id == 1).count(), 1, "one BOS, that of the template");
        let fresh = model.generate_ids(&ids, &options, go_on).unwrap();
        let mut ran = Vec::new();
        let answer = conversation
            .reply(&messages, &ChatOptions::default(), &options, |event| {
                if let GenerateEvent::Prompt { done, total } = event {
                    ran.push((done, total));
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        assert_eq!(answer.token_ids, fresh.token_ids);
        assert_eq!((answer.prompt_tokens, fresh.cached_tokens), (ids.len(), 0));
        assert!(answer.cached_tokens >= held && answer.cached_tokens < ids.len());
        assert_eq!(answer.timings.prompt_tokens, ids.len() - answer.cached_tokens);
        assert_eq!(ran.last(), Some(&(ids.len(), ids.len())));
        assert_eq!(conversation.cached_tokens(), ids.len() + answer.token_ids.len() - 1);
        // All up to the answer is common with the next turn, but for the last token of the prompt.
        held = ids.len() - 1;
        messages.push(ChatMessage::assistant(answer.text));
    }
    // Another conversation in the same cache, then one that fails, then one that goes on.
    let other = [ChatMessage::user("w9")];
    let ids = model.chat_ids(&other, &ChatOptions::default()).unwrap();
    let answer = conversation.generate(&ids, &options, go_on).unwrap();
    assert_eq!(answer.token_ids, model.generate_ids(&ids, &options, go_on).unwrap().token_ids);
    let long = [ChatMessage::user("a".repeat(300))];
    let e = conversation.reply(&long, &ChatOptions::default(), &options, go_on).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::ContextExceeded);
    assert_eq!(conversation.generate(&ids, &options, go_on).unwrap().token_ids, answer.token_ids);
}

#[test]
fn without_a_chat_template_nothing_is_guessed() {
    let path = llama_gguf("no-chat");
    let model = LanguageModel::load(&runtime(), &path.0, &f32_options()).unwrap();
    let e = model.chat_ids(&[ChatMessage::user("w1")], &ChatOptions::default()).unwrap_err();
    assert!(e.kind() == ErrorKind::NotFound && e.message().contains("chat template"), "{e:?}");
}
