//! The text form: what is printed parses to an equal graph, and the interpreter runs it.

use std::sync::Arc;

use rlx_ir::attrs::Attrs;
use rlx_ir::interp::{RunData, run};
use rlx_ir::op::{EvalContext, Evaluated, OpDef, Tier};
use rlx_ir::text::parse;
use rlx_ir::{Builder, DType, ErrorKind, Graph, Op, OpSet, Tensor, Type};

const FFN: &str = r#"graph @ffn(N <= 8192, R, N * R <= 65536) {
  %x = input "x" : f32[N, 2]
  %w = weight "w" : f32[3, 2] = [1.0, 2.0, 3.0, -4.0, 0.5, 0.0]
  %t = weight "t" : f32[3] = seed 7
  %c = const f32[] = [0.1]
  %i = const i32[2] = [1, -2]
  %p = const q8_f32[32] = bytes "000000000000000000000000000000000000000000000000000000000000000000000000"
  %5 = matmul %x, %w {transpose_b} in "layers.0"
  %7 = add %5, %c
  return %7
}
"#;

#[test]
fn printing_what_was_parsed_gives_the_same_text() {
    let graph = parse(FFN, &OpSet::builtin()).unwrap();
    assert_eq!(graph.to_string(), FFN);
}

#[test]
fn the_interpreter_runs_a_parsed_graph() {
    let graph =
        parse(&FFN.replace("(N <= 8192, R, N * R <= 65536)", "(N <= 8192)"), &OpSet::builtin()).unwrap();
    let mut data = RunData::default().input("x", Tensor::f32([1, 2], &[10.0, 1.0]).unwrap());
    let out = run(&graph, &mut data).unwrap();
    let expected = [12.1f32, 26.1, 5.1];
    for (got, want) in out[0].tensor.to_f32().unwrap().iter().zip(expected) {
        assert!((got - want).abs() < 1e-5, "{got} {want}");
    }
}

#[test]
fn stated_types_are_checked() {
    let text = FFN.replace("%7 = add %5, %c", "%7 = add %5, %c : f32[N, 4]");
    let e = parse(&text, &OpSet::builtin()).unwrap_err();
    assert!(e.message().contains("f32[N, 3]"), "{e}");
}

#[test]
fn errors_name_line_op_and_operand() {
    let text = FFN.replace("%c = const f32[] = [0.1]", "%c = const f64[] = [0.1]");
    let e = parse(&text, &OpSet::builtin()).unwrap_err();
    assert!(e.message().starts_with("line 9: add(%5: f32[N, 3], %c: f64[]): operand 1: expected f32"), "{e}");
}

#[test]
fn a_size_over_its_bound_is_refused() {
    let mut b = Builder::new("g");
    let n = b.symbol("N", 4);
    let x = b.input("x", DType::F32, [n]).unwrap();
    let y = b.neg(x).unwrap();
    let graph = b.finish(&[y]).unwrap();
    let mut data = RunData::default().input("x", Tensor::f32([5], &[0.0; 5]).unwrap());
    let e = run(&graph, &mut data).unwrap_err();
    assert!(e.message().contains("N is 5"), "{e}");
}

/// A graph of one input whose size is the symbol `symbol`.
fn named(graph: &str, symbol: &str) -> rlx_ir::Result<Graph> {
    let mut b = Builder::new(graph);
    let n = b.symbol(symbol, 8);
    let x = b.input("x", DType::F32, [n])?;
    let y = b.neg(x)?;
    b.finish(&[y])
}

#[test]
fn every_name_of_a_graph_parses_again() {
    for name in ["", "g", "1x", "a b", "ü", "org/name", "x\"y", "%q", "\\", "a\nb", "@", "\u{1}"] {
        let graph = named(name, "N").unwrap();
        let again = parse(&graph.to_string(), &OpSet::builtin()).unwrap();
        assert_eq!((again.name(), again.to_string()), (name, graph.to_string()));
    }
    assert!(named("org/name", "N").unwrap().to_string().starts_with("graph @\"org/name\"(N <= 8)"));
    assert!(named("a.b_1", "N").unwrap().to_string().starts_with("graph @a.b_1(N <= 8)"));
}

#[test]
fn symbols_that_the_text_cannot_hold_are_refused() {
    for symbol in ["1x", "", "a b", "ü", "N*M", "a/b.c-d", "inf", "nan", "graph"] {
        let e = named("g", symbol).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("`symbols`"), "{symbol}: {e}");
    }
    for symbol in ["N", "_", "N.1", "seed", "input"] {
        let graph = named("g", symbol).unwrap();
        assert_eq!(parse(&graph.to_string(), &OpSet::builtin()).unwrap().to_string(), graph.to_string());
    }
}

/// An op of any name.
#[derive(Debug)]
struct Called(&'static str);

impl Op for Called {
    fn name(&self) -> &str {
        self.0
    }

    fn infer(&self, operands: &[Type]) -> rlx_ir::Result<Vec<Type>> {
        Ok(operands.to_vec())
    }

    fn eval(&self, cx: &EvalContext<'_>) -> rlx_ir::Result<Vec<Evaluated>> {
        Ok(cx.operands.iter().map(|&t| Evaluated::moved(t.clone())).collect())
    }
}

fn row(name: &'static str) -> OpDef {
    OpDef { name, tier: Tier::Core, parse: |_| Ok(Arc::new(Called("mine"))) }
}

#[test]
fn ops_that_the_text_cannot_hold_are_refused() {
    for name in ["", "a b", "1x", "ü", "input", "weight", "a-b"] {
        let e = OpSet::builtin().with([row(name)]).unwrap_err();
        assert!(e.message().contains("is no name of an op"), "{e}");
        let mut b = Builder::new("g");
        let x = b.input("x", DType::F32, [2]).unwrap();
        let y = b.emit_one(Called(name), &[x]).unwrap();
        let e = b.finish(&[y]).unwrap_err();
        assert!(e.message().contains("is no name of an op"), "{e}");
    }
    let ops = OpSet::builtin().with([row("mine"), row("other")]).unwrap();
    assert_eq!(ops.make("mine", Attrs::new()).unwrap().name(), "mine");
    let e = ops.make("other", Attrs::new()).unwrap_err();
    assert!(e.message().contains("makes one that is called mine"), "{e}");
}

#[test]
fn what_no_memory_holds_is_an_error_of_the_run() {
    for node in [
        "broadcast %x {shape = [1099511627776]}",
        "iota {shape = [1099511627776], axis = 0, dtype = f32}",
        "pad %x {low = [0], high = [1099511627776], value = 0.0}",
    ] {
        let text = format!("graph @g {{\n  %x = input \"x\" : f32[1]\n  %y = {node}\n  return %y\n}}");
        let graph = parse(&text, &OpSet::builtin()).unwrap_or_else(|e| panic!("{node}: {e}"));
        let mut data = RunData::default().input("x", Tensor::f32([1], &[1.0]).unwrap());
        let e = run(&graph, &mut data).unwrap_err();
        assert!(
            e.kind() == ErrorKind::Device && e.message().contains("bytes of memory cannot be had"),
            "{e}"
        );
    }
}
