use rlx_ir::OpSet;
use rlx_ir::text::parse;

use super::*;

const ALL: [Numerics; 3] = [Numerics::Exact, Numerics::Reassociates, Numerics::LowersPrecision];

/// `BODY` of a graph, whose result is `%y`.
fn graph(body: &str) -> Graph {
    parse(&format!("graph @g(N <= 8) {{ {body} return %y }}"), &OpSet::builtin()).unwrap()
}

fn checked(before: &str, after: &str, numerics: Numerics) -> Result<()> {
    let (before, after) = (graph(before), graph(after));
    let mut data = RunData::default();
    fill(&before, &mut data).unwrap();
    same_meaning(&before, &after, &data, numerics)
}

/// No class lets `after` pass for `before`, in any of the dtypes that stand for `DTYPE`.
fn refused(before: &str, after: &str) {
    for (dtype, numerics) in ["f32", "f16", "bf16"].iter().flat_map(|d| ALL.map(|n| (d, n))) {
        let [b, a] = [before, after].map(|text| text.replace("DTYPE", dtype));
        assert!(checked(&b, &b, numerics).is_ok());
        assert!(checked(&b, &a, numerics).is_err(), "{dtype}, {numerics:?}: {before} became {after}");
    }
}

const INPUTS: &str = r#"%x = input "x" : DTYPE[N, 384] %w = weight "w" : DTYPE[384] %b = weight "b" : DTYPE[384]
    %m = weight "m" : DTYPE[96, 384] %c = weight "c" : DTYPE[96]"#;

#[test]
fn what_changes_the_meaning_is_refused_by_every_class() {
    for (before, after) in [
        // Values near zero, which a tolerance beside 1 would not see.
        ("%y = softmax %x {axis = 1}", "%z = const DTYPE[] = [0.0] %y = mul %x, %z"),
        ("%y = softmax %x {axis = 1}", "%y = softmax %x {axis = 0}"),
        ("%z = const DTYPE[] = [0.24] %y = add %x, %z", "%z = const DTYPE[] = [1.0] %y = mul %x, %z"),
        ("%y = linear %x, %m, %c {bias}", "%y = linear %x, %m"),
        (
            "%y = linear %x, %m, %c {bias, activation = gelu}",
            "%y = linear %x, %m, %c {bias, activation = silu}",
        ),
        ("%y = layer_norm %x, %w, %b {eps = 1e-5}", "%y = layer_norm %x, %w {eps = 1e-5}"),
        ("%y = rms_norm %x, %w {eps = 1e-5}", "%y = rms_norm %x, %w {eps = 1e-4}"),
        ("%y = layer_norm %x, %w, %b {eps = 1e-5}", "%y = layer_norm %x, %w, %b {eps = 1e-6}"),
        ("%y = reduce_mean %x {axes = [1], keep_dims}", "%y = reduce_sum %x {axes = [1], keep_dims}"),
        ("%y = softmax %x {axis = 1, scale = 0.125}", "%y = softmax %x {axis = 1, scale = 0.12625}"),
    ] {
        refused(&format!("{INPUTS} {before}"), &format!("{INPUTS} {after}"));
    }
    let scaled = |scale: &str| {
        format!("{INPUTS} %s = const f64[] = [{scale}] %t = cast %s {{to = DTYPE}} %y = mul %x, %t")
    };
    refused(&scaled("0.5"), &scaled("0.505"));
}

/// The error of one constant is no excuse for another: 1 % is more than a rounding to any dtype but bf16.
#[test]
fn a_constant_may_be_rounded_and_no_more() {
    let x = r#"%x = input "x" : f32[N, 32]"#;
    let of = |c: &str| format!("{x} %s = const f32[] = [{c}] %y = mul %x, %s");
    let folded = |c: &str| {
        format!("{x} %a = const f32[] = [{c}] %b = const f32[] = [0.3] %s = mul %a, %b %y = mul %x, %s")
    };
    assert!(checked(&folded("0.7"), &of("0.21"), Numerics::Reassociates).is_ok());
    assert!(checked(&folded("0.7"), &of("0.21001"), Numerics::Reassociates).is_err());
    assert!(checked(&folded("0.7"), &of("0.2121"), Numerics::LowersPrecision).is_err());
}

/// Between nodes of 16 bits another order rounds other sums: where those are larger, the precision is lower.
#[test]
fn another_order_of_sums_is_no_change_but_for_exact_passes() {
    let before = format!("{INPUTS} %s = add %x, %w %y = add %s, %b");
    let after = format!("{INPUTS} %s = add %w, %b %y = add %x, %s");
    for dtype in ["f32", "f16", "bf16"] {
        let [b, a] = [&before, &after].map(|text| text.replace("DTYPE", dtype));
        assert!(checked(&b, &a, Numerics::Exact).is_err(), "{dtype}");
        assert_eq!(checked(&b, &a, Numerics::Reassociates).is_ok(), dtype == "f32", "{dtype}");
        checked(&b, &a, Numerics::LowersPrecision).unwrap();
    }
}

/// Rounding in between is a class of its own.
#[test]
fn a_rounding_that_was_not_there_lowers_the_precision() {
    let inputs = INPUTS.replace("DTYPE", "f32");
    let before = format!("{inputs} %y = matmul %x, %m {{transpose_b}}");
    let by = |dtype: &str| {
        format!(
            "{inputs} %h = cast %x {{to = {dtype}}} %k = cast %m {{to = {dtype}}} %p = matmul %h, %k {{transpose_b}}
             %y = cast %p {{to = f32}}"
        )
    };
    for dtype in ["f16", "bf16"] {
        assert!(checked(&before, &by(dtype), Numerics::Reassociates).is_err(), "{dtype}");
        checked(&before, &by(dtype), Numerics::LowersPrecision).unwrap();
    }
    let quantized = format!("{inputs} %q = quantize %x {{to = q8_f32}} %y = matmul %q, %m {{transpose_b}}");
    assert!(checked(&before, &quantized, Numerics::Reassociates).is_err());
    checked(&before, &quantized, Numerics::LowersPrecision).unwrap();
}

#[test]
fn integers_are_compared_as_integers() {
    let one = |v: i64| Tensor::from_i64(TensorType::new(DType::I64, [1]), &[v]).unwrap();
    let large = 9_007_199_254_740_992;
    assert!(near(&one(large), &one(large), 0.0).is_ok());
    for relative in [0.0, 1e-3] {
        let e = near(&one(large), &one(large + 1), relative).unwrap_err();
        assert!(e.message().contains("was 9007199254740992 and is 9007199254740993"), "{e}");
    }
}
