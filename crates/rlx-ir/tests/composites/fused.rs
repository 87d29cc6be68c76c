use super::{f32s, floats, refusal, try_run};
use rlx_ir::text::parse;
use rlx_ir::{DType, OpSet};

const REGION: &str = r#"graph @t(N) {
  %x = input "x" : f32[N, 2]
  %b = input "b" : f32[2]
  %y, %z = fused_region %x, %b {body = graph @r(N) {
      %a = input "a" : f32[N, 2]
      %c = input "c" : f32[2]
      %half = const f32[] = [0.5]
      %0 = add %a, %c
      %1 = mul %0, %half
      %2 = gelu %1 {approximate = tanh}
      %3 = gt %a, %c
      %4 = select %3, %2, %half
      %5 = cast %1 {to = f16}
      return %4, %5
    }}
  return %y, %z
}
"#;

#[test]
fn a_region_prints_with_its_body() {
    let graph = parse(REGION, &OpSet::builtin()).unwrap();
    let text = graph.to_string();
    assert_eq!(parse(&text, &OpSet::builtin()).unwrap().to_string(), text);
    let words = |t: &str| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(&text), words(REGION));
}

#[test]
fn a_region_computes_what_its_body_says() {
    let inputs = [("x", f32s(&[1, 2], &[1.0, -3.0])), ("b", f32s(&[2], &[1.0, 1.0]))];
    let out = try_run(&REGION.replace("gt %a, %c", "ge %a, %c"), &inputs).unwrap();
    super::close(&out[0].tensor.to_f64().unwrap(), &[0.841_192, 0.5], 1e-6);
    assert_eq!(out[1].tensor, floats(DType::F16, &[1, 2], &[1.0, -1.0]));
}

#[test]
fn the_tolerance_grows_along_the_body() {
    // (x + 1e6) - 1e6 loses what the sum rounds off, although the last difference is exact.
    let text = r#"graph @t { %x = input "x" : f32[1]
        %y = fused_region %x {body = graph @r {
            %a = input "a" : f32[1]
            %big = const f32[] = [1e6]
            %s = add %a, %big
            %d = sub %s, %big
            return %d }}
        return %y }"#;
    let out = &try_run(text, &[("x", f32s(&[1], &[0.3]))]).unwrap()[0];
    let tolerance = out.tolerance(DType::F32.unit_roundoff()).unwrap()[0];
    // The terms of the sum, 1e6, and those of the difference, 2e6, times 4 u.
    let expected = 4.0 * DType::F32.unit_roundoff() * 3e6;
    assert!((tolerance / expected - 1.0).abs() < 1e-3, "{tolerance} {expected}");
    let error = (out.tensor.to_f64().unwrap()[0] - 0.3).abs();
    assert!(error > 0.01 && error < tolerance, "{error} {tolerance}");
}

#[test]
fn what_a_region_cannot_hold_is_refused() {
    let fails = |from: &str, to: &str, what: &str| {
        let text = REGION.replace(from, to);
        assert_ne!(text, REGION, "{from}");
        let message = refusal(&text, &[]);
        assert!(message.contains(what), "{message}");
    };
    fails("%1 = mul %0, %half", "%1 = softmax %0 {axis = -1}", "elementwise ops only, not softmax");
    fails("%half = const f32[] = [0.5]", "%half = weight \"w\" : f32[2]", "may not declare %half");
    fails(
        "fused_region %x, %b",
        "fused_region %b, %x",
        "operand 0: expected f32[N, 2], as the body declares \"a\"",
    );
    fails("fused_region %x, %b", "fused_region %x", "expected 2 operands, got 1");
    fails("return %4, %5\n", "return %4, %a\n", "result %a is computed by no op");
    fails("%5 = cast %1", "%5 = cast %c", "result %5 is f16[2], but all results must have shape [N, 2]");
    fails("return %4, %5\n", "", "the body returns nothing");
    let wide = REGION.replace(
        "%half = const f32[] = [0.5]",
        "%half = const f32[] = [0.5]\n %w = const f32[1, 1, 1] = [0.5]",
    );
    assert!(refusal(&wide, &[]).contains("%w is f32[1, 1, 1], which does not broadcast"));
}
