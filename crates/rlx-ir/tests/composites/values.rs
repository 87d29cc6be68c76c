use super::{close, f32s, floats, i32s, try_run, values};
use rlx_ir::DType;
use rlx_ir::ops::activation::Activation;

/// `%x` through `op`.
fn unary(op: &str, shape: &[usize], x: &[f64]) -> Vec<f64> {
    let text = format!("graph @t {{ %x = input \"x\" : f32{shape:?}\n %y = {op}\n return %y }}");
    values(&text, &[("x", f32s(shape, x))])
}

#[test]
fn activations_have_their_known_values() {
    // From tables of the normal distribution, and tanh(sqrt(2 / pi) * 1.044715).
    close(&unary("gelu %x", &[3], &[-1.0, 0.0, 1.0]), &[-0.158_655_25, 0.0, 0.841_344_75], 1e-7);
    close(&unary("gelu %x {approximate = tanh}", &[2], &[-1.0, 1.0]), &[-0.158_808, 0.841_192], 1e-6);
    close(&unary("silu %x", &[2], &[-1.0, 1.0]), &[-0.268_941_42, 0.731_058_58], 1e-7);
    for op in ["gelu %x", "gelu %x {approximate = tanh}", "silu %x"] {
        let y = unary(op, &[4], &[-200.0, 200.0, f64::NAN, 1e30]);
        assert_eq!((y[0].abs() < 1e-30, y[1], y[2].is_nan()), (true, 200.0, true), "{op}: {y:?}");
    }
}

#[test]
fn slopes_are_derivatives() {
    for (word, activation) in Activation::WORDS {
        assert_eq!(activation.name(), *word);
        for x in [-3.0, -0.8, -0.1, 0.3, 1.0, 4.0] {
            let h = 1e-5;
            let measured = (activation.apply(x + h) - activation.apply(x - h)) / (2.0 * h);
            assert!((measured - activation.slope(x)).abs() < 1e-8, "{word} at {x}");
        }
    }
}

#[test]
fn the_gate_is_the_first_half() {
    let y = unary("glu %x {activation = silu}", &[2, 4], &[1.0, 0.0, 3.0, 4.0, -1.0, 1.0, 2.0, 0.5]);
    close(&y, &[0.731_058_58 * 3.0, 0.0, -0.268_941_42 * 2.0, 0.731_058_58 * 0.5], 1e-6);
    close(&unary("glu %x {activation = relu}", &[1, 4], &[-1.0, 2.0, 3.0, 4.0]), &[0.0, 8.0], 0.0);
}

#[test]
fn layer_norm_subtracts_the_mean_and_divides_by_the_deviation() {
    let text = r#"graph @t { %x = input "x" : f32[2, 4]
        %w = const f32[4] = [1.0, 1.0, 2.0, 1.0]
        %b = const f32[4] = [0.0, 0.0, 0.0, 10.0]
        %y = layer_norm %x, %w, %b {eps = 0.0}
        return %y }"#;
    let x = f32s(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 10001.0, 10002.0, 10003.0, 10004.0]);
    // Mean 2.5, variance 1.25.
    let (a, b) = (1.5 / 1.25f64.sqrt(), 0.5 / 1.25f64.sqrt());
    close(&values(text, &[("x", x)]), &[-a, -b, 2.0 * b, 10.0 + a, -a, -b, 2.0 * b, 10.0 + a], 1e-6);
    let text = text.replace("eps = 0.0", "eps = 3.75");
    let y = values(&text, &[("x", f32s(&[2, 4], &[1.0, 2.0, 3.0, 4.0, 7.0, 7.0, 7.0, 7.0]))]);
    close(&y[4..], &[0.0, 0.0, 0.0, 10.0], 0.0);
    close(&y[..1], &[-1.5 / 5f64.sqrt()], 1e-6);
}

#[test]
fn rms_norm_divides_by_the_root_mean_square() {
    let text = r#"graph @t { %x = input "x" : f32[1, 2]
        %w = const f32[2] = [1.0, 3.0]
        %y = rms_norm %x, %w {eps = 0.0}
        %z = rms_norm %x, %w {eps = 0.0, unit_offset}
        return %y, %z }"#;
    let out = try_run(text, &[("x", f32s(&[1, 2], &[3.0, 4.0]))]).unwrap();
    let rms = 12.5f64.sqrt();
    close(&out[0].tensor.to_f64().unwrap(), &[3.0 / rms, 12.0 / rms], 1e-6);
    close(&out[1].tensor.to_f64().unwrap(), &[6.0 / rms, 16.0 / rms], 1e-6);
}

#[test]
fn the_norm_after_a_residual_sees_the_rounded_sum() {
    for norm in ["add_layer_norm", "add_rms_norm"] {
        let plain = norm.trim_start_matches("add_");
        let text = format!(
            "graph @t {{ %x = input \"x\" : f16[1, 2]\n %r = input \"r\" : f16[1, 2]
            %w = const f16[2] = [1.0, 1.0]
            %s, %n = {norm} %x, %r, %w {{eps = 0.0}}
            %sum = add %x, %r
            %norm = {plain} %sum, %w {{eps = 0.0}}
            return %s, %n, %norm }}"
        );
        // 2048 + 1 is a tie in f16 and rounds to 2048.
        let x = floats(DType::F16, &[1, 2], &[2048.0, 2050.0]);
        let r = floats(DType::F16, &[1, 2], &[1.0, 0.0]);
        let out = try_run(&text, &[("x", x), ("r", r)]).unwrap();
        assert_eq!(out[0].tensor.to_f64().unwrap(), [2048.0, 2050.0], "{norm}");
        assert_eq!(out[1].tensor, out[2].tensor, "{norm}");
    }
}

#[test]
fn softmax_weighs_by_exponentials() {
    let ln2 = std::f64::consts::LN_2;
    close(&unary("softmax %x {axis = -1}", &[1, 2], &[0.0, ln2]), &[1.0 / 3.0, 2.0 / 3.0], 1e-7);
    close(&unary("softmax %x {axis = 0}", &[2, 1], &[1e4, 1e4 + ln2]), &[1.0 / 3.0, 2.0 / 3.0], 1e-3);
    let y = unary("softmax %x {axis = -1, scale = -2.0}", &[1, 2], &[0.0, ln2]);
    close(&y, &[0.8, 0.2], 1e-7);
    let inf = f64::INFINITY;
    close(&unary("softmax %x {axis = 1}", &[2, 2], &[-inf, -inf, -inf, 5.0]), &[0.0, 0.0, 0.0, 1.0], 0.0);
    let lowest = f64::from(f32::MIN);
    close(&unary("softmax %x {axis = 1}", &[1, 2], &[lowest, lowest]), &[0.5, 0.5], 0.0);
    assert!(unary("softmax %x {axis = 1}", &[1, 2], &[f64::NAN, 1.0]).iter().all(|v| v.is_nan()));
}

#[test]
fn linear_adds_bias_before_and_residual_after_the_activation() {
    let text = r#"graph @t { %x = input "x" : f32[1, 2]
        %w = const f32[2, 2] = [3.0, 4.0, 5.0, 6.0]
        %b = const f32[2] = [-20.0, 1.0]
        %r = const f32[1, 2] = [0.5, -0.5]
        %y = linear %x, %w
        %z = linear %x, %w, %b, %r {bias, residual, activation = relu}
        %u = linear %x, %w, %r {residual}
        return %y, %z, %u }"#;
    let out = try_run(text, &[("x", f32s(&[1, 2], &[1.0, 2.0]))]).unwrap();
    let all: Vec<Vec<f64>> = out.iter().map(|e| e.tensor.to_f64().unwrap()).collect();
    assert_eq!(all, [vec![11.0, 17.0], vec![0.5, 17.5], vec![11.5, 16.5]]);
}

#[test]
fn linear_means_the_decoded_values_of_blocks() {
    let text = r#"graph @t { %x = input "x" : f32[1, 32]
        %f = weight "f" : f32[2, 32] = seed 3
        %q = quantize %f {to = q8_0}
        %d = dequantize %q {to = f32}
        %y = linear %x, %q
        %z = linear %x, %d
        return %y, %z }"#;
    let x: Vec<f64> = (0..32).map(|i| f64::from(i) - 15.5).collect();
    let out = try_run(text, &[("x", f32s(&[1, 32], &x))]).unwrap();
    assert_eq!(out[0].tensor, out[1].tensor);
}

#[test]
fn embedding_scales_the_rows_of_ids() {
    let text = r#"graph @t { %ids = input "ids" : i32[2, 1]
        %t = const f16[3, 2] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        %y = embedding %t, %ids {scale = 2.0, dtype = f32}
        return %y }"#;
    let out = try_run(text, &[("ids", i32s(&[2, 0]).with_shape([2, 1]).unwrap())]).unwrap();
    assert_eq!(out[0].tensor, f32s(&[2, 1, 2], &[8.0, 10.0, 0.0, 2.0]));
}

#[test]
fn rope_turns_pairs_by_position_times_frequency() {
    let run = |style: &str, x: &[f64]| {
        let text = format!(
            "graph @t {{ %x = input \"x\" : f32[2, 1, 5]\n %p = const i32[2] = [0, 3]
            %f = const f32[2] = [{}, 0.0]
            %y = rope %x, %p, %f {{style = {style}, scale = 2.0}}\n return %y }}",
            std::f32::consts::FRAC_PI_6
        );
        values(&text, &[("x", f32s(&[2, 1, 5], x))])
    };
    // A quarter turn takes (a, b) to (-b, a); the last element is beyond the pairs.
    let x = [1.0, 2.0, 3.0, 4.0, 5.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    close(&run("half", &x), &[2.0, 4.0, 6.0, 8.0, 5.0, -6.0, 4.0, 2.0, 8.0, 5.0], 1e-6);
    close(&run("interleaved", &x), &[2.0, 4.0, 6.0, 8.0, 5.0, -4.0, 2.0, 6.0, 8.0, 5.0], 1e-6);
}

#[test]
fn pooling_gives_zeros_for_empty_sequences() {
    let x = [9.0, 9.0, 1.0, -1.0, 3.0, -5.0, 2.0, 0.0];
    // Token 0 belongs to no sequence; sequences hold tokens 1 to 2, none, and 3.
    for (mode, want) in [
        ("mean", [2.0, -3.0, 0.0, 0.0, 2.0, 0.0]),
        ("cls", [1.0, -1.0, 0.0, 0.0, 2.0, 0.0]),
        ("last", [3.0, -5.0, 0.0, 0.0, 2.0, 0.0]),
        ("max", [3.0, -1.0, 0.0, 0.0, 2.0, 0.0]),
    ] {
        let text = format!(
            "graph @t(N, R) {{ %x = input \"x\" : f32[N, 2]\n %s = input \"s\" : i32[R + 1]
            %r = input \"r\" : f32[R]\n %y = pool %x, %s {{mode = {mode}}}\n return %y }}"
        );
        let inputs = [("x", f32s(&[4, 2], &x)), ("s", i32s(&[1, 3, 3, 4])), ("r", f32s(&[3], &[0.0; 3]))];
        assert_eq!(values(&text, &inputs), want, "{mode}");
    }
}

#[test]
fn l2_normalize_gives_length_one_but_keeps_zeros() {
    let y = unary("l2_normalize %x {eps = 1e-12}", &[3, 2], &[3.0, 4.0, 0.0, 0.0, 1e-13, 0.0]);
    close(&y, &[0.6, 0.8, 0.0, 0.0, 0.1, 0.0], 1e-7);
}

#[test]
fn each_token_goes_through_its_own_experts() {
    let text = r#"graph @t { %x = input "x" : f32[2, 2]
        %s = const f32[2, 2] = [0.5, 2.0, 1.0, 3.0]
        %e = input "e" : i32[2, 2]
        %g = const f32[3, 1, 2] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]
        %u = const f32[3, 1, 2] = [1.0, 1.0, 2.0, 0.0, 0.0, nan]
        %d = const f32[3, 2, 1] = [1.0, 0.0, 0.0, 1.0, 5.0, 5.0]
        %y = moe %x, %s, %e, %g, %u, %d {activation = relu}
        return %y }"#;
    let run = |experts: [i32; 4]| {
        let experts = i32s(&experts).with_shape([2, 2]).unwrap();
        values(text, &[("x", f32s(&[2, 2], &[1.0, 2.0, 3.0, 4.0])), ("e", experts)])
    };
    // Of (1, 2): expert 0 gives 1 * 3 forward, expert 1 gives 2 * 2; of (3, 4): 3 * 7 and 4 * 6. Expert 2 is nobody's.
    assert_eq!(run([0, 1, 1, 0]), [0.5 * 3.0, 2.0 * 4.0, 3.0 * 21.0, 24.0]);
    assert_eq!(run([0, 0, 1, -1]), [2.5 * 3.0, 0.0, 0.0, 24.0]);
    assert_eq!(run([3, i32::MIN, i32::MAX, -1]), [0.0; 4]);
    assert!(run([0, 1, 2, 0])[2].is_nan());
}
