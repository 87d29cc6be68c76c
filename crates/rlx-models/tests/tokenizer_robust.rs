//! Any text can be encoded, what can be written comes back, and damaged vocabularies are refused.
#![allow(clippy::unwrap_used)]

mod common;

use common::{data, json, vocab};
use proptest::prelude::*;
use rlx_gguf::MetadataBuilder;
use rlx_ir::ErrorKind;
use rlx_models::text::{
    EncodeOptions, GgufVocab, SpecialText, StreamDecoder, TokenList, TokenType, Tokenizer,
};

const BARE: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_gguf(vocab(name)).unwrap()
}

/// Texts with what breaks tokenizers: marks, breaks, runs of spaces, combining letters, several scripts.
fn text() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        any::<String>(),
        "[ \t\r\n]{1,6}",
        "[a-zA-Z0-9'.,!]{1,12}",
        "[▁Ġ\u{0}\u{301}\u{FFFD}\u{2028}日한😀é]{1,4}",
        Just("<|end|>".to_owned()),
        Just("</s>".to_owned()),
        Just("[CLS]<0x41>##a".to_owned()),
    ];
    proptest::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn byte_level_bpe_gives_every_text_back(text in text(), parse_special: bool) {
        let tokenizer = tokenizer("bpe.json");
        let ids = tokenizer.encode(&text, EncodeOptions { add_special: false, parse_special }).unwrap().ids;
        prop_assert_eq!(tokenizer.decode(&ids, SpecialText::Keep).unwrap(), text);
    }

    #[test]
    fn sentencepiece_gives_every_text_back_but_for_the_mark_of_spaces(text in text()) {
        for name in ["spm.json", "spm_plain.json"] {
            let tokenizer = tokenizer(name);
            let ids = tokenizer.encode(&text, BARE).unwrap().ids;
            let mut decoder = StreamDecoder::new(&tokenizer);
            let streamed: String = ids.iter().map(|&id| decoder.push(id)).collect();
            let decoded = tokenizer.decode(&ids, SpecialText::Skip).unwrap();
            prop_assert_eq!(streamed + &decoder.finish(), decoded.clone());
            prop_assert_eq!(decoded, text.replace('▁', " "));
        }
    }

    #[test]
    fn no_text_and_no_ids_are_too_odd(text in text(), ids in proptest::collection::vec(any::<u32>(), 0..8)) {
        for name in ["bpe.json", "spm.json", "spm_no_bytes.json", "unigram.json", "unigram_bytes.json", "wordpiece.json"] {
            let tokenizer = tokenizer(name);
            let encoding = tokenizer.encode(&text, BARE).unwrap();
            prop_assert!(encoding.ids.iter().all(|&id| (id as usize) < tokenizer.vocab_size()));
            tokenizer.decode(&encoding.ids, SpecialText::Skip).unwrap();
            let small: Vec<u32> = ids.iter().map(|id| id % 600).collect();
            for ids in [&ids, &small] {
                tokenizer.decode(ids, SpecialText::Keep).unwrap();
                let mut decoder = StreamDecoder::new(&tokenizer);
                ids.iter().for_each(|&id| drop(decoder.push(id)));
                decoder.finish();
            }
        }
    }

    #[test]
    fn wordpiece_gives_what_tokenizer_json_gives(text in text()) {
        let from_json = Tokenizer::from_json(&std::fs::read(data("wordpiece_tokenizer.json")).unwrap()).unwrap();
        let options = EncodeOptions::default();
        let expected = from_json.encode(&text, options).unwrap();
        prop_assert_eq!(tokenizer("wordpiece.json").encode(&text, options).unwrap(), expected);
    }

    #[test]
    fn byte_level_bpe_gives_what_tokenizer_json_gives(text in text()) {
        let from_json = Tokenizer::from_json(&std::fs::read(data("bpe_tokenizer.json")).unwrap()).unwrap();
        let options = EncodeOptions::default();
        prop_assert_eq!(tokenizer("bpe.json").encode(&text, options).unwrap(), from_json.encode(&text, options).unwrap());
    }
}

#[test]
fn a_megabyte_of_one_letter_is_encoded_and_comes_back() {
    for name in ["bpe.json", "spm.json"] {
        let tokenizer = tokenizer(name);
        for text in ["a".repeat(1 << 20), " ".repeat(1 << 20), "\0".repeat(1 << 20)] {
            let ids = tokenizer.encode(&text, BARE).unwrap().ids;
            assert_eq!(tokenizer.decode(&ids, SpecialText::Skip).unwrap(), text);
        }
    }
    let unknown = tokenizer("wordpiece.json").encode(&"a".repeat(1 << 20), BARE).unwrap();
    assert_eq!(unknown.ids, [1]);
}

#[test]
fn a_capital_among_the_pieces_keeps_capitals() {
    let with = |tokens: &[&str]| {
        let mut vocab = vocab("wordpiece.json");
        let all: Vec<&str> = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].iter().chain(tokens).copied().collect();
        vocab.token_types = vec![TokenType::Normal; all.len()];
        vocab.unk = Some(1);
        vocab.tokens = all.into_iter().collect();
        Tokenizer::from_gguf(vocab).unwrap()
    };
    assert!(with(&["▁a"]).lowercases());
    let cased = with(&["▁a", "▁A"]);
    assert!(!cased.lowercases());
    assert_eq!(cased.encode("A a", BARE).unwrap().ids, [5, 4]);
}

#[test]
fn what_a_vocabulary_lacks_is_named() {
    type Change = fn(&mut GgufVocab);
    let cases: [(&str, Change, ErrorKind, &str); 13] = [
        ("bpe.json", |v| v.model = "rwkv".into(), ErrorKind::UnsupportedModel, "\"rwkv\""),
        ("bpe.json", |v| v.pre = Some("qwen9".into()), ErrorKind::UnsupportedModel, "\"qwen9\""),
        ("bpe.json", |v| v.merges = TokenList::default(), ErrorKind::InvalidFile, "merges"),
        ("bpe.json", |v| v.merges = ["ab"].into_iter().collect(), ErrorKind::InvalidFile, "merges[0]"),
        ("bpe.json", |v| v.tokens = TokenList::default(), ErrorKind::InvalidFile, "tokens"),
        ("bpe.json", |v| v.add_bos = Some(true), ErrorKind::InvalidFile, "bos_token_id"),
        ("bpe.json", |v| v.token_types.truncate(3), ErrorKind::InvalidFile, "token_type"),
        ("spm.json", |v| v.scores.truncate(3), ErrorKind::InvalidFile, "scores"),
        ("spm.json", |v| v.bos = Some(u32::MAX), ErrorKind::InvalidFile, "bos_token_id"),
        ("unigram.json", |v| v.scores.truncate(3), ErrorKind::InvalidFile, "scores"),
        ("unigram.json", |v| v.scores[7] = f32::NAN, ErrorKind::InvalidFile, "scores[7]"),
        ("spm.json", |v| v.precompiled_charsmap = vec![1], ErrorKind::InvalidFile, "precompiled_charsmap"),
        (
            "spm.json",
            |v| v.tokens = (0..v.tokens.len()).map(|_| "x").collect(),
            ErrorKind::InvalidFile,
            "byte token",
        ),
    ];
    for (name, change, kind, named) in cases {
        let mut vocab = vocab(name);
        change(&mut vocab);
        let e = Tokenizer::from_gguf(vocab).unwrap_err();
        assert_eq!(e.kind(), kind, "{e}");
        assert!(e.to_string().contains(named), "{e}");
    }
    for damaged in ["", "{}", "[]", "{\"model\":{\"type\":\"BPE\"}}"] {
        assert_eq!(
            Tokenizer::from_json(damaged.as_bytes()).unwrap_err().kind(),
            ErrorKind::InvalidFile,
            "{damaged}"
        );
    }
    assert_eq!(
        Tokenizer::from_folder(std::path::Path::new("no/such")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn metadata_gives_the_same_tokenizer() {
    let v = json("spm.json");
    let texts = |key: &str| v[key].as_array().unwrap().iter().map(|s| s.as_str().unwrap().to_owned());
    let types: Vec<i32> =
        v["token_types"].as_array().unwrap().iter().map(|n| n.as_i64().unwrap() as i32).collect();
    let scores: Vec<f32> =
        v["scores"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap() as f32).collect();
    let mut keys = MetadataBuilder::new();
    keys.set("tokenizer.ggml.model", "llama");
    let e = GgufVocab::from_metadata(&keys.clone().build()).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidFile && e.to_string().contains("tokenizer.ggml.tokens"), "{e}");
    keys.set_strs("tokenizer.ggml.tokens", texts("tokens"));
    keys.set_numbers("tokenizer.ggml.token_type", &types);
    keys.set_numbers("tokenizer.ggml.scores", &scores);
    keys.set("tokenizer.ggml.bos_token_id", 1u32);
    keys.set("tokenizer.ggml.eos_token_id", 2u32);
    keys.set("tokenizer.ggml.padding_token_id", 999_999u32);
    keys.set("tokenizer.ggml.add_eos_token", true);
    let from_keys = Tokenizer::from_gguf(GgufVocab::from_metadata(&keys.build()).unwrap()).unwrap();
    let encoding = from_keys.encode("the fox", EncodeOptions::default()).unwrap();
    assert_eq!((encoding.ids[0], *encoding.ids.last().unwrap()), (1, 2));
    assert_eq!(from_keys.special_tokens().pad, None, "an id beyond the vocabulary is ignored");
    let bare = tokenizer("spm.json").encode("the fox", BARE).unwrap().ids;
    assert_eq!(encoding.ids[1..encoding.len() - 1], bare);
}
