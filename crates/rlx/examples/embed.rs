//! Texts to vectors, and which text is nearest to which.
//!
//! `cargo run --release --example embed --features bundled-model`, or with the path of a model behind `--`.

use std::error::Error;

use rlx::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    let model = std::env::args().nth(1).unwrap_or("all-MiniLM-L6-v2".to_owned());
    let texts = ["a cat on a mat", "a kitten on a rug", "quarterly revenue"];
    for (text, nearest) in texts.iter().zip(run(&model, &texts)?) {
        println!("{text}: nearest is {}", texts[nearest]);
    }
    Ok(())
}

/// For each text the index of the other one that is nearest to it.
pub fn run(model: &str, texts: &[&str]) -> Result<Vec<usize>, Box<dyn Error>> {
    let runtime = Runtime::detect()?;
    let model = EmbeddingModel::load(&runtime, model)?;
    let vectors = model.embed(texts)?;
    // Vectors of this model have the length 1: their product is the cosine of the angle between them.
    let cosine = |a: usize, b: usize| vectors[a].iter().zip(&vectors[b]).map(|(x, y)| x * y).sum::<f32>();
    let nearest = |a: usize| {
        let others = (0..texts.len()).filter(|&b| b != a);
        others.max_by(|&b, &c| cosine(a, b).total_cmp(&cosine(a, c))).unwrap_or(a)
    };
    Ok((0..texts.len()).map(nearest).collect())
}
