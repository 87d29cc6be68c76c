//! Time of passes and plan on graphs of a real model's size, in milliseconds: `cargo bench -p rlx-compile`.
//!
//! Llama: 30 layers of 9 nodes and more (SmolLM2-135M). The numbers are medians of many compilations in one process, and of
//! one compilation in each of many processes, as users have it: there, memory is touched for the first time.

use std::time::Instant;

use rlx_compile::{AnyTarget, CompileOptions, build_plan, run_passes};
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::attention::{mask::Mask, paged_attention::PagedAttention};
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::norm::rms_norm::RmsNorm;
use rlx_ir::ops::position::rope::RopeStyle;
use rlx_ir::quant::BlockType;
use rlx_ir::{Builder, DType, Graph, Tensor};

fn llama(layers: usize) -> rlx_ir::Result<Graph> {
    let mut b = Builder::new("llama");
    let (n, r, t, p) = (b.symbol("N", 512), b.symbol("R", 64), b.symbol("T", 64), b.unbounded_symbol("P"));
    let ids = b.input("ids", DType::I32, [n.clone()])?;
    let positions = b.input("positions", DType::I32, [n.clone()])?;
    let slots = b.input("slots", DType::I32, [n.clone()])?;
    let starts = b.input("starts", DType::I32, [r.clone() + 1.into()])?;
    let lengths = b.input("lengths", DType::I32, [r.clone()])?;
    let table = b.input("table", DType::I32, [r, t])?;
    let block = DType::Block(BlockType::Q4_1);
    let tokens = b.weight("token_embd", block, [49152, 576])?;
    let frequencies = b.constant(Tensor::f32([32], &[0.5; 32])?);
    let norm = RmsNorm { eps: 1e-5, unit_offset: false };
    let plain = Linear { bias: false, residual: false, activation: Activation::None };
    let mut x = b.embedding(tokens, ids, Embedding { scale: 1.0, dtype: DType::F32 })?;
    for i in 0..layers {
        b.set_scope(format!("layers.{i}"));
        let w = b.weight(&format!("{i}.attn_norm"), DType::F32, [576])?;
        let h = b.rms_norm(x, w, norm)?;
        let project = |b: &mut Builder, x, name: &str, rows: usize, depth: usize| {
            let w = b.weight(&format!("{i}.{name}"), block, [rows, depth])?;
            b.linear(x, w, plain, None, None)
        };
        let q = project(&mut b, h, "q", 576, 576)?;
        let k = project(&mut b, h, "k", 192, 576)?;
        let v = project(&mut b, h, "v", 192, 576)?;
        let q = b.reshape(q, [n.clone(), 9.into(), 64.into()])?;
        let k = b.reshape(k, [n.clone(), 3.into(), 64.into()])?;
        let v = b.reshape(v, [n.clone(), 3.into(), 64.into()])?;
        let q = b.rope(q, positions, frequencies, RopeStyle::Interleaved, 1.0)?;
        let k = b.rope(k, positions, frequencies, RopeStyle::Interleaved, 1.0)?;
        let shape = [p.clone(), 32.into(), 3.into(), 64.into()];
        let ks = b.state(&format!("k.{i}"), DType::F16, shape.clone())?;
        let vs = b.state(&format!("v.{i}"), DType::F16, shape)?;
        let ks = b.kv_write(ks, k, slots)?;
        let vs = b.kv_write(vs, v, slots)?;
        let attention = PagedAttention { mask: Mask::Causal, scale: 0.125, softcap: None };
        let a = b.paged_attention(q, ks, vs, starts, lengths, table, attention)?;
        let a = b.reshape(a, [n.clone(), 576.into()])?;
        let o = project(&mut b, a, "o", 576, 576)?;
        x = b.add(x, o)?;
        let w = b.weight(&format!("{i}.ffn_norm"), DType::F32, [576])?;
        let h = b.rms_norm(x, w, norm)?;
        let gate = project(&mut b, h, "gate", 1536, 576)?;
        let up = project(&mut b, h, "up", 1536, 576)?;
        let gate = b.silu(gate)?;
        let h = b.mul(gate, up)?;
        let down = project(&mut b, h, "down", 576, 1536)?;
        x = b.add(x, down)?;
    }
    let w = b.weight("norm", DType::F32, [576])?;
    let h = b.rms_norm(x, w, norm)?;
    let y = b.linear(h, tokens, plain, None, None)?;
    b.finish(&[y])
}

/// Processes that compile once.
const PROCESSES: usize = 41;

/// The word that makes a process compile once, and print the milliseconds of passes and plan.
const ONCE: &str = "once";

fn compile(graph: Graph) -> rlx_compile::Result<([f64; 2], usize)> {
    let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let start = Instant::now();
    let (out, _) = run_passes(graph, &AnyTarget, &CompileOptions::default())?;
    let passes = ms(start);
    let start = Instant::now();
    let plan = build_plan(&out, &AnyTarget)?;
    Ok(([passes, ms(start)], plan.steps.len()))
}

fn print(what: &str, times: impl Iterator<Item = f64>) {
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    println!("  {what}: median {:.2} ms, least {:.2} ms", times[times.len() / 2], times[0]);
}

fn print_all(times: &[[f64; 2]]) {
    print("passes", times.iter().map(|t| t[0]));
    print("plan", times.iter().map(|t| t[1]));
    print("both", times.iter().map(|t| t[0] + t[1]));
}

/// The times of one compilation in a process of its own.
fn in_a_process() -> Result<[f64; 2], Box<dyn std::error::Error>> {
    let output = std::process::Command::new(std::env::current_exe()?).arg(ONCE).output()?;
    let text = String::from_utf8(output.stdout)?;
    let times: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    times.try_into().map_err(|_| "a process printed other than two numbers".into())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let graph = llama(30)?;
    if std::env::args().any(|arg| arg == ONCE) {
        let ([passes, plan], _) = compile(graph)?;
        println!("{passes} {plan}");
        return Ok(());
    }
    let (mut times, mut steps) = (Vec::new(), 0);
    for _ in 0..101 {
        let (time, count) = compile(graph.clone())?;
        times.push(time);
        steps = count;
    }
    println!("llama 30 layers, {} nodes to {steps} steps, in one process", graph.nodes().len());
    print_all(&times);
    println!("each in a process of its own");
    print_all(&(0..PROCESSES).map(|_| in_a_process()).collect::<Result<Vec<_>, _>>()?);
    println!("by stage");
    let options = CompileOptions::default();
    let cx = rlx_compile::passes::PassContext { target: &AnyTarget, precision: &options.precision };
    let mut at = graph;
    for stage in rlx_compile::STAGES {
        let mut times = Vec::new();
        let mut next = None;
        for _ in 0..51 {
            let copy = at.clone();
            let start = Instant::now();
            next = Some((stage.pass.run)(copy, &cx)?.0);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        print(stage.name, times.into_iter());
        at = next.unwrap_or(at);
    }
    Ok(())
}
