//! The examples, run.
#![cfg(feature = "cpu")]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

#[allow(dead_code)]
#[path = "../examples/custom_op.rs"]
mod custom_op;
#[allow(dead_code)]
#[path = "../examples/embed.rs"]
mod embed;
#[allow(dead_code)]
#[path = "../examples/generate.rs"]
mod generate;
#[allow(dead_code)]
#[path = "../examples/graph.rs"]
mod graph;

#[test]
fn graph_runs_at_both_sizes() {
    let sums = graph::run().unwrap();
    assert_eq!(sums.iter().map(|s| s.0).collect::<Vec<_>>(), [1, 3]);
    for (tokens, sum) in sums {
        // Each of 4 elements per token is 1 + 2 * 1.
        assert!((sum - 12.0 * tokens as f32).abs() < 1e-3, "{sum}");
    }
}

#[test]
fn custom_op_means_the_same_everywhere() {
    let results = custom_op::run().unwrap();
    let names: Vec<&str> = results.iter().map(|r| r.0).collect();
    assert_eq!(names, ["interpreted", "kernel", "decomposed"]);
    for (how, values) in results {
        for (value, expected) in values.iter().zip([0.0, -1.0 / 3.0, 2.0 / 3.0, 4.0]) {
            assert!((value - expected).abs() < 1e-6, "{how}: {values:?}");
        }
    }
}

#[test]
fn generate_gives_what_it_was_asked_for() {
    let path = common::llama_gguf("example");
    let generation = generate::run(&path.0, "w1 w2", 8).unwrap();
    assert!(generation.token_ids.len() <= 8 && !generation.text.is_empty(), "{generation:?}");
    assert_eq!(generation.token_ids, generate::run(&path.0, "w1 w2", 8).unwrap().token_ids);
}

#[test]
fn embed_finds_the_nearest_text() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../rlx-models/models/all-MiniLM-L6-v2-q8_0.gguf");
    let texts =
        ["a cat on a mat", "quarterly revenue", "a kitten on a rug", "profits of the last three months"];
    assert_eq!(embed::run(model, &texts).unwrap(), [2, 3, 0, 1]);
}
