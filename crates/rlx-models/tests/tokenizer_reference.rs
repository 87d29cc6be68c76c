//! Tokenizers built from GGUF vocabularies give the ids of the reference tokenizers.
//!
//! `data/make.py` makes the vocabularies and asks the references.

#![allow(clippy::unwrap_used)]

mod common;

use common::{data, json, vocab};
use rlx_models::text::{EncodeOptions, SpecialText, StreamDecoder, Tokenizer};
use serde_json::Value;

const BARE: EncodeOptions = EncodeOptions { add_special: false, parse_special: true };
const LITERAL: EncodeOptions = EncodeOptions { add_special: false, parse_special: false };

fn cases(name: &str) -> Vec<(String, Vec<u32>, Option<String>)> {
    let case = |c: &Value| {
        let ids = c["ids"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as u32).collect();
        (c["text"].as_str().unwrap().to_owned(), ids, c["text_back"].as_str().map(str::to_owned))
    };
    json(name)["cases"].as_array().unwrap().iter().map(case).collect()
}

fn streamed(tokenizer: &Tokenizer, ids: &[u32]) -> String {
    let mut decoder = StreamDecoder::new(tokenizer).with_special(SpecialText::Keep);
    let mut text: String = ids.iter().map(|&id| decoder.push(id)).collect();
    text += &decoder.finish();
    text
}

#[test]
fn byte_level_bpe_gives_the_ids_of_the_reference_and_the_text_back() {
    let tokenizer = Tokenizer::from_gguf(vocab("bpe.json")).unwrap();
    for (text, ids, _) in cases("bpe.json") {
        assert_eq!(tokenizer.encode(&text, BARE).unwrap().ids, ids, "{text:?}");
        assert_eq!(tokenizer.decode(&ids, SpecialText::Keep).unwrap(), text);
        assert_eq!(streamed(&tokenizer, &ids), text);
    }
}

#[test]
fn special_tokens_are_text_unless_asked_for() {
    for (name, token, end) in [("bpe.json", "<|end|>", 0), ("spm.json", "</s>", 2)] {
        let tokenizer = Tokenizer::from_gguf(vocab(name)).unwrap();
        assert_eq!(tokenizer.encode(token, BARE).unwrap().ids, [end]);
        let literal = tokenizer.encode(token, LITERAL).unwrap().ids;
        assert!(!literal.contains(&end) && !literal.is_empty());
        assert_eq!(tokenizer.decode(&literal, SpecialText::Skip).unwrap(), token);
        assert_eq!(tokenizer.decode(&[end], SpecialText::Skip).unwrap(), "");
        assert!(tokenizer.special_tokens().stop.contains(&end));
    }
}

#[test]
fn wordpiece_gives_the_ids_of_the_reference() {
    let tokenizer = Tokenizer::from_gguf(vocab("wordpiece.json")).unwrap();
    assert!(tokenizer.lowercases());
    for (text, ids, _) in cases("wordpiece.json") {
        let encoding = tokenizer.encode(&text, EncodeOptions::default()).unwrap();
        assert_eq!(encoding.ids, ids, "{text:?}");
        assert_eq!((encoding.num_prefix, encoding.num_suffix), (1, 1));
    }
    let ids = tokenizer.encode("the lazy dog , the fox", BARE).unwrap().ids;
    assert_eq!(tokenizer.decode(&ids, SpecialText::Skip).unwrap(), "the lazy dog, the fox");
}

#[test]
fn sentencepiece_gives_the_ids_and_the_text_of_the_reference() {
    for name in ["spm.json", "spm_plain.json", "spm_no_bytes.json"] {
        let tokenizer = Tokenizer::from_gguf(vocab(name)).unwrap();
        for (text, ids, back) in cases(name) {
            assert_eq!(tokenizer.encode(&text, LITERAL).unwrap().ids, ids, "{name}: {text:?}");
            assert_eq!(Some(tokenizer.decode(&ids, SpecialText::Keep).unwrap()), back, "{name}: {text:?}");
            assert_eq!(Some(streamed(&tokenizer, &ids)), back, "{name}: {text:?}");
        }
    }
}

#[test]
fn unigram_gives_the_ids_and_the_text_of_the_reference() {
    for name in ["unigram.json", "unigram_bytes.json"] {
        let tokenizer = Tokenizer::from_gguf(vocab(name)).unwrap();
        for (text, ids, back) in cases(name) {
            assert_eq!(tokenizer.encode(&text, LITERAL).unwrap().ids, ids, "{name}: {text:?}");
            if !text.starts_with('▁') {
                // Of marks of spaces in the text itself sentencepiece drops all in front when it decodes.
                assert_eq!(
                    Some(tokenizer.decode(&ids, SpecialText::Keep).unwrap()),
                    back,
                    "{name}: {text:?}"
                );
                assert_eq!(Some(streamed(&tokenizer, &ids)), back, "{name}: {text:?}");
            }
        }
    }
    // As XLM-RoBERTa has it: BOS and EOS around a text, and a mask that takes the space before it along.
    let mut xlm_roberta = vocab("unigram.json");
    (xlm_roberta.add_bos, xlm_roberta.add_eos) = (Some(true), None);
    let mask = xlm_roberta.tokens.iter().position(|t| t == b"<mask>").unwrap() as u32;
    xlm_roberta.lstrip = vec![mask];
    let (bos, eos) = (xlm_roberta.bos.unwrap(), xlm_roberta.eos.unwrap());
    let tokenizer = Tokenizer::from_gguf(xlm_roberta).unwrap();
    let encoding = tokenizer.encode("a <mask>", EncodeOptions::default()).unwrap();
    let a = tokenizer.encode("a", BARE).unwrap().ids;
    assert_eq!(encoding.ids, [&[bos], &a[..], &[mask, eos]].concat());
}

/// The texts of `awkward.json`, and the ids that a model's own tokenizer gives them.
#[test]
fn the_shipped_model_gives_awkward_texts_the_ids_of_its_tokenizer_json() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("models/all-MiniLM-L6-v2-q8_0.gguf");
    let gguf = rlx_gguf::Gguf::open(path).unwrap();
    let vocab = rlx_models::text::GgufVocab::from_metadata(gguf.metadata()).unwrap();
    let tokenizer = Tokenizer::from_gguf(vocab).unwrap();
    let awkward = json("awkward.json");
    let (texts, ids) = (awkward["texts"].as_array().unwrap(), awkward["minilm"].as_array().unwrap());
    assert!(texts.len() == ids.len() && texts.len() >= 200);
    for (text, ids) in texts.iter().zip(ids) {
        let found = tokenizer.encode(text.as_str().unwrap(), EncodeOptions::default()).unwrap().ids;
        assert_eq!(serde_json::json!(found), *ids, "{text}");
    }
}

#[test]
fn tokenizer_json_loses_its_padding_and_truncation() {
    for name in ["bpe", "wordpiece"] {
        let file = std::fs::read(data(&format!("{name}_tokenizer.json"))).unwrap();
        assert!(String::from_utf8_lossy(&file).contains("\"max_length\":"), "the file asks for truncation");
        let tokenizer = Tokenizer::from_json(&file).unwrap();
        for (text, ids, _) in cases(&format!("{name}.json")) {
            assert_eq!(tokenizer.encode(&text, EncodeOptions::default()).unwrap().ids, ids, "{text:?}");
        }
    }
}

#[test]
fn tokenizer_json_and_gguf_decode_alike() {
    for name in ["bpe", "wordpiece"] {
        let from_json =
            Tokenizer::from_json(&std::fs::read(data(&format!("{name}_tokenizer.json"))).unwrap()).unwrap();
        let from_gguf = Tokenizer::from_gguf(vocab(&format!("{name}.json"))).unwrap();
        assert_eq!(from_json.vocab_size(), from_gguf.vocab_size());
        for (text, ids, _) in cases(&format!("{name}.json")) {
            let decoded = from_json.decode(&ids, SpecialText::Skip).unwrap();
            assert_eq!(decoded, from_gguf.decode(&ids, SpecialText::Skip).unwrap(), "{text:?}");
            if name == "bpe" {
                assert_eq!(streamed(&from_json, &ids), text);
            }
        }
        for id in 0..from_json.vocab_size() as u32 {
            assert_eq!(from_json.token_bytes(id), from_gguf.token_bytes(id), "token {id}");
        }
        assert_eq!(from_json.token_bytes(1_000_000), None);
    }
}

#[test]
fn tokenizer_json_takes_special_tokens_for_text_when_asked_to() {
    let tokenizer = Tokenizer::from_json(&std::fs::read(data("bpe_tokenizer.json")).unwrap()).unwrap();
    assert_eq!(tokenizer.encode("<|end|>", BARE).unwrap().ids, [0]);
    let literal = tokenizer.encode("<|end|>", LITERAL).unwrap().ids;
    assert!(!literal.contains(&0));
    assert_eq!(tokenizer.decode(&literal, SpecialText::Skip).unwrap(), "<|end|>");
}

#[test]
fn added_tokens_survive_truncation() {
    let from_json = Tokenizer::from_json(&std::fs::read(data("wordpiece_tokenizer.json")).unwrap()).unwrap();
    let from_gguf = Tokenizer::from_gguf(vocab("wordpiece.json")).unwrap();
    for tokenizer in [from_json, from_gguf] {
        let mut encoding = tokenizer.encode("the quick brown fox jumps", EncodeOptions::default()).unwrap();
        let whole = encoding.clone();
        assert!(encoding.truncate(4));
        assert_eq!(encoding.ids, [whole.ids[0], whole.ids[1], whole.ids[2], whole.ids[whole.len() - 1]]);
    }
}
