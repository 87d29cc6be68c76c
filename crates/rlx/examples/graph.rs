//! A graph by hand: build it, look at its text form, compile it once, run it at two sizes without copying inputs or outputs.
//!
//! `cargo run --example graph`

use std::error::Error;

use rlx::ir::ops::matmul::linear::Linear;
use rlx::ir::ops::norm::rms_norm::RmsNorm;
use rlx::prelude::*;

fn main() -> Result<(), Box<dyn Error>> {
    for (tokens, sum) in run()? {
        println!("{tokens} tokens: the outputs add up to {sum}");
    }
    Ok(())
}

/// Runs the graph on 1 and on 3 tokens; gives the number of tokens and the sum of the outputs.
pub fn run() -> Result<Vec<(usize, f32)>, Box<dyn Error>> {
    let runtime = Runtime::detect()?;

    // x + linear(rms_norm(x)), for up to 64 tokens of 4 elements.
    let mut b = Builder::new("block");
    let n = b.symbol("N", 64);
    let x = b.input("x", DType::F32, [n, 4.into()])?;
    let scale = b.weight("norm.weight", DType::F32, [4])?;
    let w = b.weight("linear.weight", DType::F32, [4, 4])?;
    let normed = b.rms_norm(x, scale, RmsNorm { eps: 1e-6, unit_offset: false })?;
    let y = b.linear(normed, w, Linear::default(), None, Some(x))?;
    let graph = b.finish(&[y])?;
    println!("{graph}");

    // Weights by name: here from memory, in a model from its files.
    let twice_the_identity: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 2.0 } else { 0.0 }).collect();
    let weights = MemoryWeights::new([
        ("norm.weight".to_owned(), Tensor::f32([4], &[1.0; 4])?),
        ("linear.weight".to_owned(), Tensor::f32([4, 4], &twice_the_identity)?),
    ]);
    let session = Session::compile(&runtime, &graph, &weights, &SessionOptions::default())?;
    let mut context = session.context(&[])?;

    let mut sums = Vec::new();
    for tokens in [1, 3] {
        context.bind(&[("N", tokens)])?;
        // This is the memory that the first kernel reads.
        context.input::<f32>("x")?.fill(1.0);
        context.run()?;
        sums.push((tokens, context.output::<f32>(0)?.iter().sum()));
    }
    Ok(sums)
}
