//! A continuation of a prompt, token by token.
//!
//! `cargo run --release --example generate -- MODEL.gguf "Once upon a time"`

use std::error::Error;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use rlx::models::language::Generation;
use rlx::models::sampling::SamplingParams;
use rlx::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(model), Some(prompt)) = (args.next(), args.next()) else {
        return Err("usage: generate MODEL PROMPT".into());
    };
    let generation = run(Path::new(&model), &prompt, 64)?;
    println!(
        "\n{} tokens, ended by {}, {:.1} tokens per second",
        generation.token_ids.len(),
        generation.finish_reason.name(),
        generation.timings.decode_tok_per_s()
    );
    Ok(())
}

/// Prints the continuation as it comes, and gives it whole.
pub fn run(model: &Path, prompt: &str, max_tokens: i64) -> Result<Generation, Box<dyn Error>> {
    let runtime = Runtime::detect()?;
    let model =
        LanguageModel::load(&runtime, model, &LanguageOptions { context: 256, ..Default::default() })?;
    let memory = model.memory()?;
    println!("{} bytes of weights, {} reserved for keys and values", memory.weights, memory.kv_reserved);

    // From another thread, `cancel.cancel()` would end it early; so does `Break` from the callback.
    let options = GenerateOptions {
        max_tokens,
        sampling: SamplingParams::default().temperature(0.7).seed(1),
        stop: vec!["\n\n".to_owned()],
        ..GenerateOptions::default()
    };
    let mut out = std::io::stdout();
    let generation = model.generate(prompt, &options, |event| match event {
        GenerateEvent::Text(piece) if write!(out, "{piece}").and_then(|()| out.flush()).is_err() => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    })?;
    Ok(generation)
}
