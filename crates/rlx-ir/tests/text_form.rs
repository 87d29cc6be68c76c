//! The text form: what is printed parses to an equal graph, and the interpreter runs it.

use rlx_ir::interp::{RunData, run};
use rlx_ir::text::parse;
use rlx_ir::{Builder, DType, OpSet, Tensor};

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
