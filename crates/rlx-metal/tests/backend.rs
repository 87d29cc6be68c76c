//! What the backend asks of a device: command buffers, barriers, waits; and what it refuses.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::sync::Arc;

use rlx_ir::env::Settings;
use rlx_ir::{Bindings, ErrorKind, OpSet, text};
use rlx_metal::MetalBackend;
use rlx_metal::driver::simulator::{Recorded, SimulatorDriver};
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{Backend as _, RunContext, Runtime, Session, SessionOptions, Strategy, Timing};
use rlx_simulator::Mode;

type Backend = Arc<MetalBackend<SimulatorDriver>>;

/// Two ways from the input to the last op.
const DIAMOND: &str = "graph @diamond(N <= 64) {
  %x = input \"x\" : f32[N, 33]
  %w = weight \"w\" : f32[33] = seed 1
  %a = softmax %x {axis = -1} in \"left\"
  %b = rms_norm %x, %w {eps = 1e-6} in \"right\"
  %c = softmax %a {axis = -1} in \"left\"
  %s, %y = add_rms_norm %b, %c, %w {eps = 1e-6} in \"end\"
  return %s, %y
}";

fn session(backend: &Backend, graph: &str, options: &SessionOptions<'_>) -> rlx_runtime::Result<Session> {
    let graph = text::parse(graph, &OpSet::builtin()).unwrap();
    Session::compile(&Runtime::new(vec![backend.clone()], Settings::defaults()), &graph, &NoWeights, options)
}

fn compiled(backend: &Backend, graph: &str) -> Session {
    session(backend, graph, &SessionOptions::default()).unwrap()
}

fn inputs(n: usize) -> Vec<f32> {
    (0..n * 33).map(|i| (i as f32 * 0.37).sin()).collect()
}

/// A context with `n` rows in it.
fn ready(session: &Session, n: usize) -> rlx_runtime::Result<RunContext> {
    let mut context = session.context(&[])?;
    context.bind(&[("N", n)])?;
    context.input::<f32>("x")?.copy_from_slice(&inputs(n));
    Ok(context)
}

fn outputs(session: &Session, n: usize) -> rlx_runtime::Result<Vec<Vec<f32>>> {
    let mut context = ready(session, n)?;
    context.run()?;
    (0..2).map(|i| Ok(context.output::<f32>(i)?.to_vec())).collect()
}

#[test]
fn a_barrier_stands_where_a_launch_needs_what_one_before_it_wrote() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let session = compiled(&backend, DIAMOND);
    backend.driver().take_recording();
    outputs(&session, 5).unwrap();
    let recording = backend.driver().take_recording();
    assert_eq!((recording.command_buffers.len(), recording.waits), (1, 1));
    let kinds: Vec<&str> = recording.command_buffers[0]
        .iter()
        .map(|command| match command {
            Recorded::Barrier { .. } => "barrier",
            Recorded::Dispatch(d) => d.kernel.as_str(),
        })
        .collect();
    let wanted =
        ["softmax_f32", "rms_norm_f32_f32", "barrier", "softmax_f32", "barrier", "add_rms_norm_f32_f32"];
    assert_eq!(kinds, wanted);
    let groups: Vec<&str> = recording.dispatches().map(|d| &*d.groups[0]).collect();
    assert_eq!(groups, ["left", "right", "left", "end"]);
    let row = 33 * 4;
    let last = recording.dispatches().last().unwrap();
    assert_eq!((last.read_bytes, last.written_bytes), (2 * 5 * row + row, 2 * 5 * row));
}

#[test]
fn a_barrier_that_is_missing_is_found() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let session = compiled(&backend, DIAMOND);
    backend.driver().ignore_barriers(true);
    let e = outputs(&session, 5).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Device);
    assert!(e.message().contains("UnorderedDispatches"), "{e}");
    // The context and the device go on.
    backend.driver().ignore_barriers(false);
    outputs(&session, 5).unwrap();
}

#[test]
fn the_order_of_threads_does_not_matter() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let session = compiled(&backend, DIAMOND);
    backend.driver().set_seed(0);
    let natural = outputs(&session, 7).unwrap();
    for seed in [1, 1000] {
        backend.driver().set_seed(seed);
        assert_eq!(outputs(&session, 7).unwrap(), natural);
    }
}

#[test]
fn steps_can_be_timed_one_by_one() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let session = compiled(&backend, DIAMOND);
    let want = outputs(&session, 6).unwrap();
    let mut context = ready(&session, 6).unwrap();
    for timing in [Timing::PerStep, Timing::Off] {
        context.set_timing(timing);
        context.run().unwrap();
        let steps = if timing == Timing::Off { 0 } else { session.plan().steps.len() };
        assert_eq!(context.timings().len(), steps);
        assert_eq!(context.output::<f32>(1).unwrap(), want[1]);
    }
}

#[test]
fn a_context_goes_on_after_a_run_that_failed() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let session = compiled(&backend, DIAMOND);
    let want = outputs(&session, 6).unwrap();
    let mut context = ready(&session, 6).unwrap();
    for (timing, good) in [(Timing::Off, 0), (Timing::PerStep, 0), (Timing::PerStep, 1)] {
        context.set_timing(timing);
        backend.driver().fail_after(good);
        let e = context.run().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Device);
        assert!(e.message().contains("reset"), "{e}");
        context.set_timing(Timing::Off);
        context.run().unwrap();
        assert_eq!(context.output::<f32>(1).unwrap(), want[1]);
    }
}

#[test]
fn nothing_is_bound_after_binding_failed() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let graph = text::parse(DIAMOND, &OpSet::builtin()).unwrap();
    let session = Session::compile(
        &Runtime::new(vec![backend.clone()], Settings::defaults()),
        &graph,
        &NoWeights,
        &SessionOptions::default(),
    );
    let plan = session.unwrap().plan().clone();
    let weights = rlx_runtime::weights::WeightStore::new();
    let weights = weights.prepare(&plan, &*backend, &NoWeights, &|_, _| {}).unwrap();
    let executable = backend.build(plan, weights, Strategy::Thunks).unwrap();
    let mut context = executable.context(&Bindings::new()).unwrap();
    for (n, fits) in [(3, true), (65, false)] {
        let mut sizes = Bindings::new();
        sizes.bind("N", n).unwrap();
        assert_eq!(context.bind(&sizes).is_ok(), fits);
    }
    assert!(context.run().unwrap_err().message().contains("call bind first"));
    // The same for typed contexts, which want inputs too.
    let session = compiled(&backend, DIAMOND);
    let mut context = session.context(&[]).unwrap();
    context.bind(&[("N", 3)]).unwrap();
    assert!(context.run().unwrap_err().message().contains("input \"x\" is missing"));
    context.set("x", &inputs(3)).unwrap();
    context.run().unwrap();
    assert!(context.bind(&[("N", 65)]).is_err());
    assert!(context.output_bytes(0).unwrap_err().message().contains("call bind first"));
}

#[test]
fn a_run_that_nobody_waits_for_ends_before_its_memory_is_touched() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let graph =
        "graph @g(N <= 512) {\n%x = input \"x\" : f32[N, 64]\n%y = softmax %x {axis = -1}\nreturn %y\n}";
    let graph = text::parse(graph, &OpSet::builtin()).unwrap();
    let plan = Arc::new(rlx_compile::build_plan(&graph, &*backend).unwrap());
    let executable = backend.build(plan, Vec::new(), Strategy::Thunks).unwrap();
    let mut context = executable.context(&Bindings::new()).unwrap();
    let mut sizes = Bindings::new();
    sizes.bind("N", 512).unwrap();
    context.bind(&sizes).unwrap();
    for run in 1..=3 {
        std::mem::forget(context.submit().unwrap());
        let first = f32::from_le_bytes(context.output(0).unwrap()[..4].try_into().unwrap());
        assert_eq!((first, backend.driver().take_recording().waits), (1.0 / 64.0, 1), "run {run}");
    }
    // What is leaked twice is waited for by the second.
    std::mem::forget(context.submit().unwrap());
    context.run().unwrap();
    assert_eq!(backend.driver().take_recording().waits, 2);
}

#[test]
fn contexts_run_beside_each_other() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let session = compiled(&backend, DIAMOND);
    let want: Vec<_> = (1..9).map(|n| outputs(&session, n).unwrap()).collect();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for (n, want) in (1..9).zip(&want) {
                    assert_eq!(&outputs(&session, n).unwrap(), want);
                }
            });
        }
    });
}

#[test]
fn no_rows_are_no_launch() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let session = compiled(&backend, DIAMOND);
    backend.driver().take_recording();
    assert!(outputs(&session, 0).unwrap().iter().all(Vec::is_empty));
    assert_eq!(backend.driver().take_recording().dispatches().count(), 0);
}

#[test]
fn kernels_are_compiled_once() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    compiled(&backend, DIAMOND);
    let first = backend.driver().take_recording().pipelines;
    assert!(first.contains(&"softmax_f32".to_owned()), "{first:?}");
    compiled(&backend, DIAMOND);
    assert_eq!(backend.driver().take_recording().pipelines, Vec::<String>::new());
}

#[test]
fn what_the_device_cannot_do_is_refused_with_a_reason() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let options = SessionOptions { strategy: Some(Strategy::Captured), ..SessionOptions::default() };
    let e = session(&backend, DIAMOND, &options).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedOnDevice);
    // Nor does it take another strategy in silence.
    let graph = text::parse(DIAMOND, &OpSet::builtin()).unwrap();
    let plan = Arc::new(rlx_compile::build_plan(&graph, &*backend).unwrap());
    let e = backend.build(plan, Vec::new(), Strategy::Captured).err().unwrap();
    assert_eq!(e.message(), "device metal has no strategy captured; it has thunks");
    let e = session(&backend, &DIAMOND.replace("f32", "f64"), &SessionOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedOnDevice);
    assert!(e.message().contains("f64"), "{e}");
    // 32 bits do not count the elements at the bound.
    let large = "graph @g(N <= 200000000) {\n%x = input \"x\" : f32[N, 33]\n%y = gelu %x\nreturn %y\n}";
    let e = session(&backend, large, &SessionOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedOnDevice);
    assert!(e.message().contains("32 bits"), "{e}");
}

#[test]
fn kernels_may_take_fewer_threads_than_the_device() {
    let Some(backend) = common::backend(Mode::Hooked) else { return };
    let want = outputs(&compiled(&backend, DIAMOND), 7).unwrap();
    let Some(small) = common::backend(Mode::Hooked) else { return };
    small.driver().limit_threads(33);
    assert_eq!(outputs(&compiled(&small, DIAMOND), 7).unwrap(), want);
    assert!(small.driver().take_recording().dispatches().all(|d| d.geometry.threads == 32));
    // A tile of a product takes four simdgroups.
    let product =
        "graph @g(N <= 64) {\n%x = input \"x\" : f32[N, 33]\n%y = matmul %x, %x {transpose_b}\nreturn %y\n}";
    let e = session(&small, product, &SessionOptions::default()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedOnDevice);
    assert!(e.message().contains("at most 32 fit"), "{e}");
}

#[test]
fn values_that_lie_outside_are_refused_before_a_run() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let run = |starts: &str, ids: i32| {
        let graph = format!(
            "graph @g(N <= 64) {{\n%ids = input \"ids\" : i32[N]\n%starts = const i32[3] = {starts}\n%t = weight \"t\" : \
             f32[10, 33] = seed 1\n%e = embedding %t, %ids {{dtype = f32}}\n%y = pool %e, %starts {{mode = max}}\nreturn %y\n}}"
        );
        let mut context = compiled(&backend, &graph).context(&[])?;
        context.bind(&[("N", 4)])?;
        context.input::<i32>("ids")?.fill(ids);
        context.run()
    };
    run("[0, 1, 4]", 9).unwrap();
    let e = run("[0, 1, 5]", 9).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.message().contains("starts[2] is 5"), "{e}");
    let e = run("[0, 1, 4]", 10).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.message().contains("id 10 is outside"), "{e}");
}

#[test]
fn nothing_runs_before_sizes_are_bound() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let session = compiled(&backend, DIAMOND);
    let mut context = session.context(&[]).unwrap();
    assert_eq!(context.run().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(context.bind(&[("N", 65)]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(context.run().unwrap_err().kind(), ErrorKind::InvalidArgument);
    context.bind(&[("N", 64)]).unwrap();
    let e = context.run().unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("\"x\" is missing"), "{e}");
    context.input::<f32>("x").unwrap().fill(1.0);
    context.run().unwrap();
}
