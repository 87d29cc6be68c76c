//! What is wrong on purpose is found: values read before they are there, wherever they lie.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;

use rlx_compile::plan::Home;
use rlx_ir::{Bindings, ErrorKind, OpSet, text};
use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::SimulatorDriver;
use rlx_runtime::weights::{NoWeights, open_rows};
use rlx_runtime::{Backend as _, Context, Strategy};
use rlx_simulator::Mode;

type Backend = Arc<MetalBackend<SimulatorDriver>>;

fn bound(n: usize) -> Bindings {
    let mut bindings = Bindings::new();
    bindings.bind("N", n).unwrap();
    bindings
}

fn assert_unwritten<T: std::fmt::Debug>(result: rlx_runtime::Result<T>, kernel: &str) {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Device);
    assert!(e.message().contains("Unwritten: ") && e.message().contains(kernel), "{e}");
}

const CHAIN: &str = "graph @chain(N <= 64) {
  %x = input \"x\" : f32[N, 33]
  %w = weight \"w\" : f32[33] = seed 1
  %a = rms_norm %x, %w {eps = 1e-6}
  %y = softmax %a {axis = -1}
  return %y
}";

/// A context of the chain, in which nobody checks that inputs are given; where `wrong`, its second value has the place of the
/// first, as if the first were no longer needed when the second begins.
fn chain(backend: &Backend, wrong: bool) -> rlx_runtime::Result<Box<dyn Context>> {
    let graph = text::parse(CHAIN, &OpSet::builtin()).unwrap();
    let mut plan = rlx_compile::build_plan(&graph, &**backend).unwrap();
    let homes = [0, 1].map(|step| plan.steps[step].results[0].buffer.index());
    assert!(matches!(plan.buffers[homes[0]].home, Home::Arena { .. }));
    if wrong {
        plan.buffers[homes[1]].home = plan.buffers[homes[0]].home;
    }
    let mut weights = Vec::new();
    for prepared in &plan.prepare {
        let mut rows = open_rows(&prepared.expr, &NoWeights)?;
        weights.push(Arc::new(backend.prepare(&prepared.layout, &mut *rows)?));
    }
    let executable = backend.build(Arc::new(plan), weights, Strategy::Thunks)?;
    executable.context(&Bindings::new())
}

fn run_chain(backend: &Backend, wrong: bool) -> rlx_runtime::Result<()> {
    let mut context = chain(backend, wrong)?;
    context.bind(&bound(5))?;
    context.input(0)?.fill(0);
    context.run()
}

#[test]
fn a_value_whose_place_is_taken_before_it_is_read_is_found() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    run_chain(&backend, false).unwrap();
    assert_unwritten(run_chain(&backend, true), "softmax_f32");
}

#[test]
fn an_input_that_was_never_given_is_found() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let mut context = chain(&backend, false).unwrap();
    context.bind(&bound(5)).unwrap();
    assert_unwritten(context.run(), "rms_norm_f32_f32");
    context.input(0).unwrap().fill(0);
    context.run().unwrap();
}

#[test]
fn an_input_that_was_given_for_fewer_rows_is_found() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let mut context = chain(&backend, false).unwrap();
    for n in [5, 3, 9] {
        context.bind(&bound(n)).unwrap();
        if n < 9 {
            context.input(0).unwrap().fill(0);
            context.run().unwrap();
        }
    }
    assert_unwritten(context.run(), "rms_norm_f32_f32");
}

/// Writes `written` tokens into pages of two, and attends over `length` from the last `queries` of them.
fn attend(
    backend: &Backend,
    (queries, written, length): (usize, usize, usize),
    by_host: bool,
) -> rlx_runtime::Result<()> {
    let session = common::session(
        backend,
        "graph @paged(N <= 16, T <= 40) {
  %q = input \"q\" : f32[N, 2, 32]
  %new = input \"new\" : f16[T, 1, 32]
  %slots = input \"slots\" : i32[T]
  %starts = input \"starts\" : i32[2]
  %lengths = input \"lengths\" : i32[1]
  %table = input \"table\" : i32[1, 20]
  %k = state \"k\" : f16[40, 2, 1, 32]
  %v = state \"v\" : f16[40, 2, 1, 32]
  %k1 = kv_write %k, %new, %slots
  %v1 = kv_write %v, %new, %slots
  %y = paged_attention %q, %k1, %v1, %starts, %lengths, %table {mask = none, scale = 0.2}
  return %y
}",
    );
    let mut context = session.context(&[])?;
    context.bind(&[("N", queries), ("T", written)])?;
    context.input::<f32>("q")?.fill(0.5);
    context.input_bytes("new")?.fill(0x34);
    // Every other page.
    let slot = |token: usize| (token / 2 * 4 + token % 2) as i32;
    context.input::<i32>("slots")?.iter_mut().enumerate().for_each(|(token, s)| *s = slot(token));
    context.input::<i32>("starts")?.copy_from_slice(&[0, queries as i32]);
    context.input::<i32>("lengths")?.copy_from_slice(&[length as i32]);
    context.input::<i32>("table")?.iter_mut().enumerate().for_each(|(at, page)| *page = 2 * at as i32);
    if by_host {
        context.state("k")?.fill(0);
        context.state("v")?.fill(0);
    }
    context.run()
}

/// Tiles of 32 keys end with the last key too, also where a page or a tile is half full.
#[test]
fn keys_that_nobody_wrote_are_found() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    for (queries, kernel) in
        [(1, "paged_attention_rows_32_f32_f16"), (16, "paged_attention_tiles_32_f32_f16")]
    {
        for written in [17, 35] {
            attend(&backend, (queries, written, written), false).unwrap();
            assert_unwritten(attend(&backend, (queries, written, written + 1), false), kernel);
            // What the host writes is there as well.
            attend(&backend, (queries, written, written + 1), true).unwrap();
        }
    }
}
