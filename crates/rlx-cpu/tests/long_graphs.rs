//! Graphs whose chains are longer than any stack: nothing on the way from text to results recurses over them.

#![allow(clippy::unwrap_used)] // helpers of tests

use std::sync::Arc;

use rlx_cpu::CpuBackend;
use rlx_ir::env::Settings;
use rlx_ir::{Builder, DType, Graph, OpSet, Tensor, Value, text};
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{Runtime, Session, SessionOptions};

/// Frames of a few dozen bytes would overflow the 2 MiB of a test's stack.
const LENGTH: usize = 60_000;

/// What a chain does at step `i` to `y`, which began as `x`.
type Link = fn(&mut Builder, usize, [Value; 2]) -> rlx_ir::Result<Value>;

fn chain(length: usize, of_weights: bool, link: Link) -> Graph {
    let mut b = Builder::new("chain");
    let x = if of_weights {
        b.constant(Tensor::f32([64, 65], &[0.25; 64 * 65]).unwrap())
    } else {
        b.input("x", DType::F32, [64, 65]).unwrap()
    };
    let mut y = x;
    for i in 0..length {
        y = link(&mut b, i, [y, x]).unwrap();
    }
    let input = b.input("y", DType::F32, [64, 65]).unwrap();
    let y = b.max(y, input).unwrap();
    b.finish(&[y]).unwrap()
}

/// The first element of the result.
fn run(graph: &Graph) -> f32 {
    let graph = text::parse(&graph.to_string(), &OpSet::builtin()).unwrap();
    let backend = CpuBackend::new(std::num::NonZeroUsize::new(2)).unwrap();
    let runtime = Runtime::new(vec![Arc::new(backend)], Settings::defaults());
    let session = Session::compile(&runtime, &graph, &NoWeights, &SessionOptions::default()).unwrap();
    let mut context = session.context(&[]).unwrap();
    context.bind(&[]).unwrap();
    if graph.inputs().any(|(_, name)| name == "x") {
        context.set("x", &[0.25f32; 64 * 65]).unwrap();
    }
    context.set("y", &[-1e9f32; 64 * 65]).unwrap();
    context.run().unwrap();
    context.output::<f32>(0).unwrap()[0]
}

fn add(b: &mut Builder, _: usize, [y, x]: [Value; 2]) -> rlx_ir::Result<Value> {
    b.add(y, x)
}

/// Views that undo each other.
fn turn(b: &mut Builder, i: usize, [y, _]: [Value; 2]) -> rlx_ir::Result<Value> {
    match i % 4 {
        0 | 1 => b.transpose(y, [1, 0]),
        2 => b.reshape(y, [64 * 65]),
        _ => b.reshape(y, [64, 65]),
    }
}

/// The sum is read by the next step twice.
fn share(b: &mut Builder, _: usize, [y, x]: [Value; 2]) -> rlx_ir::Result<Value> {
    let t = b.tanh(y)?;
    let y = b.sub(y, t)?;
    b.max(y, x)
}

#[test]
fn long_chains_run() {
    assert_eq!(run(&chain(LENGTH, false, add)), 0.25 * (LENGTH + 1) as f32);
    assert_eq!(run(&chain(LENGTH, false, turn)), 0.25);
    assert_eq!(run(&chain(LENGTH / 8, false, share)), 0.25);
}

#[test]
fn long_chains_of_work_on_weights_are_prepared() {
    assert_eq!(run(&chain(LENGTH, true, add)), 0.25 * (LENGTH + 1) as f32);
    assert_eq!(run(&chain(LENGTH, true, turn)), 0.25);
    assert_eq!(run(&chain(LENGTH / 8, true, share)), 0.25);
}
