//! Graphs through compiler, plan and thunks give what the interpreter gives.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::sync::Arc;

use rlx_cpu::CpuBackend;
use rlx_ir::env::Settings;
use rlx_ir::interp::{RunData, run};
use rlx_ir::{Bindings, ErrorKind, OpSet, Tensor, text};
use rlx_runtime::weights::{MemoryWeights, NoWeights};
use rlx_runtime::{Backend as _, RunContext, Runtime, Session, SessionOptions, Strategy};

fn runtime() -> Runtime {
    let backend = CpuBackend::new(std::num::NonZeroUsize::new(2)).expect("threads start");
    Runtime::new(vec![Arc::new(backend)], Settings::defaults())
}

const GRAPH: &str = r#"graph @g(N <= 64) {
  %x = input "x" : f32[N, 32]
  %w = weight "w" : q8_0[48, 32] = seed 1
  %b = weight "b" : f32[48] = seed 2
  %y = linear %x, %w, %b {bias, activation = gelu}
  %h = slice %y {axis = 1, start = 16, len = 16}
  %t = reshape %h {shape = [N, 4, 4]}
  %p = transpose %t {perm = [1, 0, 2]}
  %s = matmul %p, %p {transpose_b}
  %e = exp %s
  return %e, %y
}"#;

#[test]
fn a_compiled_graph_gives_what_the_interpreter_gives_for_every_size() {
    let graph = text::parse(GRAPH, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    let mut context = session.context(&[]).unwrap();
    for n in [1usize, 7, 64, 0, 3] {
        let x: Vec<f32> = (0..n * 32).map(|i| ((i * 37 % 101) as f32 - 50.0) / 60.0).collect();
        context.bind(&[("N", n)]).unwrap();
        context.set("x", &x).unwrap();
        context.run().unwrap();
        let mut data = RunData::default().input("x", Tensor::f32([n, 32], &x).unwrap());
        let expected = run(&graph, &mut data).unwrap();
        for (i, e) in expected.iter().enumerate() {
            assert_eq!(context.output_shape(i).unwrap(), e.tensor.shape());
            for (got, want) in context.output::<f32>(i).unwrap().iter().zip(e.tensor.to_f32().unwrap()) {
                assert!((got - want).abs() <= 1e-5 * want.abs().max(1.0), "{n}: {got} {want}");
            }
        }
    }
}

#[test]
fn an_elementwise_chain_runs_as_one_region() {
    let text = r#"graph @chain(N <= 4096) {
      %x = input "x" : f32[N, 7]
      %b = weight "b" : f32[7] = seed 3
      %c = const f32[] = [0.5]
      %1 = add %x, %b
      %2 = mul %1, %c
      %3 = tanh %2
      %4 = sub %3, %x
      return %4
    }"#;
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    assert_eq!(session.kernels(), ["fused region"], "{}", session.plan());
    let mut context = session.context(&[]).unwrap();
    for n in [3000usize, 1, 0] {
        let x: Vec<f32> = (0..n * 7).map(|i| ((i * 37 % 101) as f32 - 50.0) / 20.0).collect();
        context.bind(&[("N", n)]).unwrap();
        context.set("x", &x).unwrap();
        context.run().unwrap();
        let mut data = RunData::default().input("x", Tensor::f32([n, 7], &x).unwrap());
        let expected = run(&graph, &mut data).unwrap().remove(0).tensor.to_f32().unwrap();
        for (got, want) in context.output::<f32>(0).unwrap().iter().zip(expected) {
            assert!((got - want).abs() <= 1e-6, "{got} {want}");
        }
    }
}

#[test]
fn a_chain_with_a_choice_runs_as_one_region() {
    let text = r#"graph @chain(N <= 4096) {
      %x = input "x" : f32[N, 7]
      %c = const f32[] = [0.5]
      %p = gt %x, %c
      %1 = mul %x, %c
      %2 = select %p, %x, %1
      %3 = sign %2
      %4 = pow %3, %c
      return %4
    }"#;
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    assert_eq!(session.kernels(), ["fused region"], "{}", session.plan());
    let mut context = session.context(&[]).unwrap();
    let x: Vec<f32> = (0..300 * 7).map(|i| ((i * 37 % 101) as f32 - 50.0) / 20.0).collect();
    context.bind(&[("N", 300)]).unwrap();
    context.set("x", &x).unwrap();
    context.run().unwrap();
    let mut data = RunData::default().input("x", Tensor::f32([300, 7], &x).unwrap());
    let expected = run(&graph, &mut data).unwrap().remove(0).tensor.to_f32().unwrap();
    for (got, want) in context.output::<f32>(0).unwrap().iter().zip(expected) {
        assert!(got == &want || got.is_nan() && want.is_nan(), "{got} {want}");
    }
}

#[test]
fn sizes_beyond_the_bound_and_wrong_inputs_are_refused() {
    let graph = text::parse(GRAPH, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    let mut context = session.context(&[]).unwrap();
    assert!(context.run().unwrap_err().message().contains("bind"));
    assert!(context.bind(&[("N", 65)]).unwrap_err().message().contains("at most 64"));
    context.bind(&[("N", 2)]).unwrap();
    assert!(context.set("x", &[0f32; 3]).unwrap_err().message().contains("64 values"));
    assert!(context.input::<i32>("x").unwrap_err().message().contains("f32"));
    assert!(context.input::<f32>("y").unwrap_err().message().contains("no input"));
}

#[test]
fn a_graph_without_symbols_is_bound_from_the_start() {
    let mut context = context("graph @g { %x = input \"x\" : f32[2]\n %y = neg %x\n return %y }");
    context.set("x", &[1.0f32, -2.0]).unwrap();
    context.run().unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [-1.0, 2.0]);
    // Binding what is bound changes nothing.
    context.bind(&[]).unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [-1.0, 2.0]);
}

fn context(text: &str) -> RunContext {
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    session.context(&[]).unwrap()
}

fn assert_refused<T: std::fmt::Debug>(result: rlx_runtime::Result<T>, what: &str) {
    let e = result.unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(what), "{e:?}");
}

const TWO_INPUTS: &str = r#"graph @g(N <= 8, M <= 8) {
  %x = input "x" : f32[N, 2]
  %i = input "i" : i32[M]
  %y = gather %x, %i {axis = 0}
  return %y
}"#;

#[test]
fn outputs_are_there_only_after_a_run_with_the_bound_sizes() {
    let mut context = context(TWO_INPUTS);
    let sizes = [("N", 2), ("M", 1)];
    context.bind(&sizes).unwrap();
    context.set("x", &[1f32, 2.0, 3.0, 4.0]).unwrap();
    context.set("i", &[1]).unwrap();
    assert_refused(context.output::<f32>(0), "nothing ran");
    assert_refused(context.output_bytes(0), "nothing ran");
    context.run().unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [3.0, 4.0]);
    // A failed run leaves none.
    context.set("i", &[7]).unwrap();
    assert!(context.run().is_err());
    assert_refused(context.output::<f32>(0), "failed");
    context.set("i", &[0]).unwrap();
    context.run().unwrap();
    context.bind(&sizes).unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [1.0, 2.0]);
    context.bind(&[("N", 2), ("M", 2)]).unwrap();
    assert_refused(context.output_bytes(0), "nothing ran");
}

#[test]
fn a_run_wants_every_input_whose_size_changed() {
    let mut context = context(TWO_INPUTS);
    context.bind(&[("N", 2), ("M", 1)]).unwrap();
    context.set("i", &[0]).unwrap();
    assert_refused(context.set("x", &[0f32; 3]), "4 values");
    assert_refused(context.run(), "input \"x\" is missing");
    context.set("x", &[1f32, 2.0, 3.0, 4.0]).unwrap();
    context.run().unwrap();
    context.bind(&[("N", 2), ("M", 2)]).unwrap();
    assert_refused(context.run(), "input \"i\" is missing");
    context.set("i", &[1, 0]).unwrap();
    context.run().unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [3.0, 4.0, 1.0, 2.0]);
}

#[test]
fn nothing_is_bound_after_binding_failed() {
    let mut context = context(TWO_INPUTS);
    let sizes = [("N", 2), ("M", 1)];
    for wrong in [&[("N", 9), ("M", 1)][..], &[("N", 2)], &[("N", 2), ("M", 1), ("K", 1)]] {
        context.bind(&sizes).unwrap();
        context.set("x", &[1f32, 2.0, 3.0, 4.0]).unwrap();
        context.set("i", &[0]).unwrap();
        context.run().unwrap();
        assert!(context.bind(wrong).is_err());
        assert_refused(context.run(), "call bind first");
        assert_refused(context.output_bytes(0), "call bind first");
        assert_refused(context.input::<f32>("x"), "call bind first");
    }
}

#[test]
fn a_context_of_the_backend_is_not_bound_after_binding_failed() {
    let graph = text::parse(TWO_INPUTS, &OpSet::builtin()).unwrap();
    let backend = CpuBackend::new(std::num::NonZeroUsize::new(1)).unwrap();
    let plan = Arc::new(rlx_compile::build_plan(&graph, &backend).unwrap());
    let executable = backend.build(plan, Vec::new(), Strategy::Thunks).unwrap();
    let mut context = executable.context(&Bindings::new()).unwrap();
    let sizes = |n| {
        let mut sizes = Bindings::new();
        sizes.bind("N", n).unwrap();
        sizes.bind("M", 1).unwrap();
        sizes
    };
    context.bind(&sizes(2)).unwrap();
    assert_refused(context.bind(&sizes(9)), "at most 8");
    assert_refused(context.run(), "call bind first");
}

#[test]
fn symbols_that_are_unknown_or_given_twice_are_refused() {
    let mut context = context(TWO_INPUTS);
    assert_refused(context.bind(&[("N", 2), ("M", 1), ("K", 3)]), "no symbol \"K\"; the symbols are: N, M");
    assert_refused(context.bind(&[("N", 3), ("N", 4), ("M", 1)]), "symbol N is given as 4");
    let graph = text::parse(TWO_INPUTS, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    assert_refused(session.context(&[("P", 3)]), "no symbol \"P\"");
}

#[test]
fn a_size_that_would_be_negative_is_named() {
    let text = "graph @g(N <= 8) { %x = input \"x\" : f32[N]\n
        %y = slice %x {axis = 0, start = 5, len = N - 5}\n return %y }";
    let mut context = context(text);
    assert_refused(context.bind(&[("N", 3)]), "N - 5 is -2");
}

#[test]
fn weights_of_another_shape_or_dtype_are_named() {
    let text = "graph @g { %x = input \"x\" : f32[2, 4]\n %w = weight \"w\" : f32[4]\n
        %y = mul %x, %w\n return %y }";
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    for (tensor, what) in [
        (Tensor::f32([3], &[0.0; 3]).unwrap(), "tensor \"w\" is f32[3], but the graph wants f32[4]"),
        (Tensor::i32([4], &[0; 4]).unwrap(), "tensor \"w\" is i32[4], but the graph wants f32[4]"),
    ] {
        let weights = MemoryWeights::new([("w".to_owned(), tensor)]);
        assert_refused(Session::compile(&runtime(), &graph, &weights, &SessionOptions::default()), what);
    }
}

#[test]
fn a_range_beyond_its_axis_is_refused_when_sizes_are_bound() {
    let text = "graph @g(N <= 8, M <= 8) { %x = input \"x\" : f32[N]\n
        %y = slice %x {axis = 0, start = M, len = 2}\n return %y }";
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    let session = Session::compile(&runtime(), &graph, &NoWeights, &SessionOptions::default()).unwrap();
    let mut context = session.context(&[]).unwrap();
    context.bind(&[("N", 5), ("M", 3)]).unwrap();
    let error = context.bind(&[("N", 5), ("M", 4)]).unwrap_err();
    assert!(error.message().contains("M + 2 is 6"), "{error}");
    assert!(context.output_shape(0).is_err());
}

/// The two constants are one number as f64.
#[test]
fn constants_that_are_nearly_equal_are_not_shared() {
    let (low, high) = (9_007_199_254_740_992_i64, 9_007_199_254_740_993);
    let runtime = runtime();
    let run = |text: &str, outputs: usize| -> Vec<i64> {
        let graph = text::parse(text, &OpSet::builtin()).unwrap();
        let session = Session::compile(&runtime, &graph, &NoWeights, &SessionOptions::default()).unwrap();
        let mut context = session.context(&[]).unwrap();
        context.bind(&[]).unwrap();
        context.set("x", &[0i64]).unwrap();
        context.run().unwrap();
        (0..outputs).map(|i| context.output::<i64>(i).unwrap()[0]).collect()
    };
    let both = format!(
        r#"graph @g {{
          %x = input "x" : i64[1]
          %a = const i64[1] = [{low}]
          %b = const i64[1] = [{high}]
          %y = max %x, %a
          %z = max %x, %b
          return %y, %z
        }}"#
    );
    assert_eq!(run(&both, 2), [low, high]);
    // Weights outlive the session that they were prepared for only while another holds them.
    let one = |c: i64| {
        format!(
            r#"graph @g {{ %x = input "x" : i64[1] %c = const i64[1] = [{c}] %y = max %x, %c return %y }}"#
        )
    };
    let graphs = [one(low), one(high)].map(|text| text::parse(&text, &OpSet::builtin()).unwrap());
    let sessions =
        graphs.map(|g| Session::compile(&runtime, &g, &NoWeights, &SessionOptions::default()).unwrap());
    let got = sessions.each_ref().map(|session| {
        let mut context = session.context(&[]).unwrap();
        context.bind(&[]).unwrap();
        context.set("x", &[0i64]).unwrap();
        context.run().unwrap();
        context.output::<i64>(0).unwrap()[0]
    });
    assert_eq!(got, [low, high]);
}
