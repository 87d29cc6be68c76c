//! The raw network of a decoder on dense inputs.
#![allow(clippy::unwrap_used)]

#[path = "common/models.rs"]
mod models;

use models::{distance, fixture, runtime, tensor};
use rlx_ir::ErrorKind;
use rlx_models::files::ModelFiles;
use rlx_models::forward::{ForwardInput, forward};
use rlx_models::options::LoadOptions;

#[test]
fn logits_agree_with_the_reference_and_padding_is_zero() {
    for name in ["llama", "llama3_rope_scaling", "mistral", "qwen2", "qwen3", "qwen3_moe", "gemma3_text"] {
        agrees(name);
    }
}

fn agrees(name: &str) {
    let expected = fixture(name).join("expected.safetensors");
    let ids = tensor(&expected, "input_ids").to_i64().unwrap();
    let logits = tensor(&expected, "logits").to_f32().unwrap();
    let (len, vocab_size) = (ids.len(), logits.len() / ids.len());
    let files = ModelFiles::open(&fixture(name)).unwrap();
    // The same text twice: padded on the left by an id that no model has, and on the right.
    let padding = [-1i64; 2];
    let padded: Vec<i64> = [&padding[..], &ids, &ids, &padding].concat();
    let mask = padded.iter().map(|id| *id >= 0).collect();
    let input = ForwardInput::new(padded, Some(mask), 2, len + 2).unwrap();
    let output = forward(&runtime(), &files, &LoadOptions::default(), &input).unwrap();
    assert_eq!((output.name, output.shape), ("logits", [2, len + 2, vocab_size]));
    let (left, right) = output.values.split_at((len + 2) * vocab_size);
    let worst = distance(&left[2 * vocab_size..], &logits).max(distance(&right[..len * vocab_size], &logits));
    println!("{name}: logits are off by {worst:.1e}");
    assert!(worst < 2e-4, "{name}: {worst}");
    assert!(left[..2 * vocab_size].iter().chain(&right[len * vocab_size..]).all(|v| *v == 0.0));

    let beyond = ForwardInput::new(vec![vocab_size as i64], None, 1, 1).unwrap();
    let e = forward(&runtime(), &files, &LoadOptions::default(), &beyond).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("input_ids[0, 0]"), "{e}");
}
