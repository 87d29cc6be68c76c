use super::{close, f32s, i32s, refusal, values};
use rlx_ir::{DType, Tensor, TensorType};

/// The mean of `v` over the keys that each query sees: queries of zero make all scores 0, and values of powers of two
/// show which keys were seen.
fn seen(attrs: &str, mask: Option<(&str, Tensor)>) -> Vec<f64> {
    let (declared, operand) = match &mask {
        Some((ty, _)) => (format!("%m = input \"m\" : {ty}"), ", %m"),
        None => (String::new(), ""),
    };
    let text = format!(
        "graph @t {{ %q = input \"q\" : f32[6, 1, 2]\n %v = input \"v\" : f32[6, 1, 1]
        %s = input \"s\" : i32[4]\n {declared}
        %y = attention %q, %q, %v, %s{operand} {{{attrs}, scale = 1.0}}\n return %y }}"
    );
    let v: Vec<f64> = (0..6).map(|i| f64::from(1 << i)).collect();
    // Token 0 and 5 are in no sequence; sequence 0 is empty, 1 holds tokens 1 to 3, 2 holds token 4.
    let mut inputs =
        vec![("q", f32s(&[6, 1, 2], &[0.0; 12])), ("v", f32s(&[6, 1, 1], &v)), ("s", i32s(&[1, 1, 4, 5]))];
    inputs.extend(mask.map(|(_, m)| ("m", m)));
    values(&text, &inputs)
}

#[test]
fn each_mask_kind_shows_its_keys() {
    let third = 14.0 / 3.0;
    close(&seen("mask = none", None), &[0.0, third, third, third, 16.0, 0.0], 1e-6);
    close(&seen("mask = causal", None), &[0.0, 2.0, 3.0, third, 16.0, 0.0], 1e-6);
    close(&seen("mask = sliding_window, window = 2", None), &[0.0, 2.0, 3.0, 6.0, 16.0, 0.0], 1e-6);
    close(&seen("mask = local, window = 1", None), &[0.0, 3.0, third, 6.0, 16.0, 0.0], 1e-6);
    close(&seen("mask = local, window = 0", None), &[0.0, 2.0, 4.0, 8.0, 16.0, 0.0], 1e-6);
}

#[test]
fn a_mask_operand_counts_keys_within_their_sequence() {
    let bits = [0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1];
    let mask = Tensor::from_i64(TensorType::new(DType::Bool, [1, 6, 3]), &bits).unwrap();
    // Query 1 sees keys 0 and 2, query 2 none, query 3 all; query 4 has one key, which is hidden.
    let want = [0.0, 5.0, 0.0, 14.0 / 3.0, 0.0, 0.0];
    close(&seen("mask = custom", Some(("bool[1, 6, 3]", mask))), &want, 1e-6);
    let bias: Vec<f64> = bits.iter().map(|b| if *b == 0 { f64::NEG_INFINITY } else { 3.0 }).collect();
    close(&seen("mask = bias", Some(("f32[1, 6, 3]", f32s(&[1, 6, 3], &bias)))), &want, 1e-6);
    let mut bias = [0.0; 18];
    bias[3] = 3f64.ln();
    let want = [0.0, (3.0 * 2.0 + 4.0 + 8.0) / 5.0, 14.0 / 3.0, 14.0 / 3.0, 16.0, 0.0];
    close(&seen("mask = bias", Some(("f32[1, 6, 3]", f32s(&[1, 6, 3], &bias)))), &want, 1e-6);
}

#[test]
fn scores_are_scaled_then_capped() {
    let text = |attrs: &str| {
        format!(
            "graph @t {{ %q = const f32[2, 2, 1] = [1.0, 2.0, 1.0, 2.0]
            %k = const f32[2, 1, 1] = [0.0, 4.0]\n %v = const f32[2, 1, 1] = [0.0, 1.0]
            %s = const i32[2] = [0, 2]
            %y = attention %q, %k, %v, %s {{mask = none, {attrs}}}\n return %y }}"
        )
    };
    let weight = |score: f64| score.exp() / (1.0 + score.exp());
    // Both heads read the one key head.
    let (a, b) = (weight(2.0), weight(4.0));
    close(&values(&text("scale = 0.5"), &[]), &[a, b, a, b], 1e-6);
    let capped = |score: f64| weight(3.0 * (score / 3.0).tanh());
    let (a, b) = (capped(2.0), capped(4.0));
    close(&values(&text("scale = 0.5, softcap = 3.0"), &[]), &[a, b, a, b], 1e-6);
}

#[test]
fn query_heads_share_key_heads_in_order() {
    let text = r#"graph @t { %q = const f32[1, 4, 1] = [0.0, 0.0, 0.0, 0.0]
        %k = const f32[1, 2, 1] = [0.0, 0.0]
        %v = const f32[1, 2, 1] = [7.0, 9.0]
        %s = const i32[2] = [0, 1]
        %y = attention %q, %k, %v, %s {mask = causal, scale = 1.0}
        return %y }"#;
    assert_eq!(values(text, &[]), [7.0, 7.0, 9.0, 9.0]);
}

#[test]
fn another_sequence_cannot_spoil_a_result() {
    let text = r#"graph @t { %q = input "q" : f32[2, 1, 1]
        %s = const i32[3] = [0, 1, 2]
        %y = attention %q, %q, %q, %s {mask = none, scale = 1.0}
        return %y }"#;
    let y = values(text, &[("q", f32s(&[2, 1, 1], &[f64::NAN, 3.0]))]);
    assert!(y[0].is_nan() && y[1] == 3.0, "{y:?}");
}

fn paged(mask: &str, lengths: &[i32], table: &[i32]) -> (String, Vec<(&'static str, Tensor)>) {
    let text = format!(
        "graph @t {{ %q = input \"q\" : f32[4, 1, 1]\n %k = input \"k\" : f16[3, 2, 1, 1]
        %v = input \"v\" : f32[3, 2, 1, 1]\n %s = input \"s\" : i32[3]\n %l = input \"l\" : i32[2]
        %t = input \"t\" : i32[2, 2]
        %y = paged_attention %q, %k, %v, %s, %l, %t {{mask = {mask}, scale = 1.0}}\n return %y }}"
    );
    // Slots hold 1, 2 | 4, 8 | 16, not a number.
    let v = f32s(&[3, 2, 1, 1], &[1.0, 2.0, 4.0, 8.0, 16.0, f64::NAN]);
    let k = super::floats(DType::F16, &[3, 2, 1, 1], &[0.0, 0.0, 0.0, 0.0, 0.0, f64::NAN]);
    let inputs = vec![
        ("q", f32s(&[4, 1, 1], &[0.0; 4])),
        ("k", k),
        ("v", v),
        ("s", i32s(&[0, 1, 3])),
        ("l", i32s(lengths)),
        ("t", i32s(table).with_shape([2, 2]).unwrap()),
    ];
    (text, inputs)
}

#[test]
fn pages_are_read_in_the_order_of_the_table() {
    // Sequence 0: one new token, 1 key in page 2. Sequence 1: two new tokens, at positions 1 and 2 of 3; pages 1, 0.
    let run = |mask: &str| {
        let (text, inputs) = paged(mask, &[1, 3], &[2, -7, 1, 0]);
        values(&text, &inputs)
    };
    close(&run("none"), &[16.0, 13.0 / 3.0, 13.0 / 3.0, 0.0], 1e-6);
    close(&run("causal"), &[16.0, 6.0, 13.0 / 3.0, 0.0], 1e-6);
    close(&run("sliding_window, window = 2"), &[16.0, 6.0, 4.5, 0.0], 1e-6);
    close(&run("local, window = 0"), &[16.0, 8.0, 1.0, 0.0], 1e-6);
}

#[test]
fn lengths_and_pages_that_cannot_be_are_refused() {
    let fails = |lengths: &[i32], table: &[i32], what: &str| {
        let (text, inputs) = paged("causal", lengths, table);
        let message = refusal(&text, &inputs);
        assert!(message.contains(what), "{message}");
    };
    fails(&[1, 1], &[2, 0, 1, 0], "lengths[1] is 1, but 2 tokens are new");
    fails(&[5, 3], &[2, 0, 1, 0], "2 pages hold 4");
    fails(&[1, 3], &[2, 0, 1, 3], "table[1, 1] is 3, but there are 3 pages");
}
