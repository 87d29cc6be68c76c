use super::{f32s, i32s, refusal};
use rlx_ir::OpSet;
use rlx_ir::text::parse;

const DECLARED: &str = r#"graph @t(N, R) {
  %x = input "x" : f32[N, 8]
  %odd = input "odd" : f32[N, 7]
  %i = input "i" : i32[N]
  %w = input "w" : f32[8]
  %w7 = input "w7" : f32[7]
  %m = input "m" : f32[3, 8]
  %q = input "q" : f32[N, 4, 8]
  %k3 = input "k3" : f32[N, 3, 8]
  %v1 = input "v1" : f32[R, 4, 8]
  %s = input "s" : i32[R + 1]
  %l = input "l" : i32[R]
  %t = input "t" : i32[R, 6]
  %p = input "p" : f16[9, 16, 2, 8]
  %c = input "c" : bool[2, N, N]
  %f = input "f" : f32[5]
  %scalar = input "scalar" : f32[]
  %cw = input "cw" : f32[N, 2]
  %ce = input "ce" : i32[N, 2]
  %ce3 = input "ce3" : i32[N, 3]
  %eg = input "eg" : f16[5, 6, 8]
  %ed = input "ed" : f16[5, 8, 6]
"#;

const REFUSED: &[(&str, &str)] = &[
    ("gelu %i", "operand 0: expected a float, got i32[N]"),
    ("gelu %x {approximate = erf}", "attribute approximate must be one of none, tanh"),
    ("silu %x, %x", "expected 1 operands, got 2"),
    ("silu %x {eps = 1.0}", "silu: unknown attribute eps"),
    ("glu %odd {activation = silu}", "operand 0: expected an even last axis, got f32[N, 7]"),
    ("glu %x", "attribute activation is missing"),
    ("softmax %x {axis = 2}", "axis 2 is out of range for rank 2"),
    ("softmax %scalar {axis = 0}", "operand 0: expected a float of rank 1 or more"),
    ("layer_norm %x, %w7 {eps = 0.1}", "operand 1: expected a float of shape [8], got f32[7]"),
    ("layer_norm %x, %w, %i {eps = 0.1}", "operand 2: expected a float of shape [8], got i32[N]"),
    ("layer_norm %x, %w {eps = -1.0}", "eps must be finite and not negative"),
    ("rms_norm %x, %w {eps = nan}", "eps must be finite and not negative"),
    ("rms_norm %x, %m {eps = 0.1}", "operand 1: expected a float of shape [8], got f32[3, 8]"),
    (
        "add_rms_norm %x, %odd, %w {eps = 0.1}",
        "operand 1: expected the type of operand 0, f32[N, 8], got f32[N, 7]",
    ),
    ("add_layer_norm %x, %x {eps = 0.1}", "expected 3 to 4 operands, got 2"),
    ("moe %x, %cw, %ce, %eg, %eg {activation = silu}", "expected 6 operands, got 5"),
    ("moe %x, %cw, %ce, %eg, %eg, %ed", "attribute activation is missing"),
    ("moe %q, %cw, %ce, %eg, %eg, %ed {activation = silu}", "operand 0: expected a float [N, H]"),
    ("moe %x, %ce, %ce, %eg, %eg, %ed {activation = silu}", "operand 1: expected a float [N, K]"),
    (
        "moe %x, %cw, %ce3, %eg, %eg, %ed {activation = silu}",
        "operand 2: expected an index for each weight: i32[N, 2]",
    ),
    (
        "moe %x, %cw, %ce, %ed, %eg, %ed {activation = silu}",
        "operand 3: expected a float or block type [E, F, 8]",
    ),
    (
        "moe %x, %cw, %ce, %eg, %m, %ed {activation = silu}",
        "operand 4: expected a float or block type of the gate's shape",
    ),
    (
        "moe %x, %cw, %ce, %eg, %eg, %eg {activation = silu}",
        "operand 5: expected a float or block type [5, 8, 6]",
    ),
    ("linear %odd, %m", "operand 1: expected a matrix with K = 7"),
    ("linear %x, %q", "operand 1: expected a weight [N, K]"),
    ("linear %x, %m, %w {bias}", "operand 2: expected a float of shape [3], got f32[8]"),
    (
        "linear %x, %m, %x {residual}",
        "operand 2: expected a residual of the result's type, f32[N, 3], got f32[N, 8]",
    ),
    ("linear %x, %m, %x", "expected 2 operands, got 3"),
    ("linear %x, %m {activation = elu}", "attribute activation must be one of none, gelu"),
    ("embedding %q, %i {dtype = f32}", "operand 0: expected a table [V, H]"),
    ("embedding %m, %x {dtype = f32}", "operand 1: expected ids as i32, i64 or u32"),
    ("embedding %m, %i {dtype = i8}", "dtype must be a float type, got i8"),
    ("rope %x, %i, %w {style = half}", "operand 0: expected a float [N, H, D] with constant D"),
    ("rope %q, %l, %w {style = half}", "operand 1: expected a position for each token: i32[N], got i32[R]"),
    ("rope %q, %i, %f {style = half}", "operand 2: expected at most 4 frequencies as f32, got f32[5]"),
    (
        "attention %q, %k3, %k3, %s {mask = none, scale = 1.0}",
        "operand 1: expected a constant number of heads that divides the 4",
    ),
    (
        "attention %q, %v1, %v1, %s {mask = none, scale = 1.0}",
        "operand 1: expected a key for each of the N tokens",
    ),
    (
        "attention %q, %q, %k3, %s {mask = none, scale = 1.0}",
        "operand 2: expected a float [N, Hkv, Dv], aligned with the keys",
    ),
    (
        "attention %q, %q, %q, %x {mask = none, scale = 1.0}",
        "operand 3: expected the starts of the sequences",
    ),
    ("attention %q, %q, %q, %s {mask = custom, scale = 1.0}", "expected 5 operands, got 4"),
    (
        "attention %q, %q, %q, %s, %c {mask = custom, scale = 1.0}",
        "operand 4: expected bool [1 or 4, N, S], got bool[2, N, N]",
    ),
    ("attention %q, %q, %q, %s, %c {mask = bias, scale = 1.0}", "operand 4: expected a float [1 or 4, N, S]"),
    ("attention %q, %q, %q, %s {mask = sliding_window, window = 0, scale = 1.0}", "window must be 1 to"),
    ("attention %q, %q, %q, %s {mask = causal, window = 3, scale = 1.0}", "unknown attribute window"),
    ("attention %q, %q, %q, %s {mask = local, scale = 1.0}", "attribute window is missing"),
    ("attention %q, %q, %q, %s {mask = all, scale = 1.0}", "attribute mask must be one of none, causal"),
    ("attention %q, %q, %q, %s {mask = none, scale = inf}", "scale must be finite"),
    (
        "attention %q, %q, %q, %s {mask = none, scale = 1.0, softcap = 0.0}",
        "softcap must be finite and above 0",
    ),
    ("paged_attention %q, %p, %p, %s, %l, %t {mask = custom, scale = 1.0}", "mask custom needs an operand"),
    (
        "paged_attention %q, %p, %p, %s, %i, %t {mask = none, scale = 1.0}",
        "operand 4: expected a length for each sequence: i32[R], got i32[N]",
    ),
    (
        "paged_attention %q, %p, %p, %s, %l, %l {mask = none, scale = 1.0}",
        "operand 5: expected pages of each sequence: i32[R, T]",
    ),
    (
        "paged_attention %q, %q, %p, %s, %l, %t {mask = none, scale = 1.0}",
        "operand 1: expected a float [P, page_len, Hkv, D]",
    ),
    ("pool %q, %s {mode = mean}", "operand 0: expected a float [N, H]"),
    ("pool %x, %s {mode = first}", "attribute mode must be one of mean, cls, last, max"),
    ("l2_normalize %x {eps = 0.0}", "eps must be finite and above 0"),
];

#[test]
fn what_does_not_fit_is_named() {
    for (node, expected) in REFUSED {
        let text = format!("{DECLARED}  %y = {node}\n  return %y\n}}\n");
        let message = parse(&text, &OpSet::builtin()).expect_err(node).message().to_owned();
        assert!(message.contains(expected), "{node}: {message}");
    }
}

#[test]
fn data_out_of_range_is_refused() {
    let pool = r#"graph @t { %x = input "x" : f32[2, 1]
        %s = input "s" : i32[3]
        %y = pool %x, %s {mode = mean}
        return %y }"#;
    for starts in [[0, 2, 1], [-1, 0, 2], [0, 1, 3]] {
        let message = refusal(pool, &[("x", f32s(&[2, 1], &[0.0; 2])), ("s", i32s(&starts))]);
        assert!(message.contains("starts must ascend within 0 to 2"), "{message}");
    }
    let embedding = r#"graph @t { %t = const f32[2, 1] = [0.0, 1.0]
        %i = input "i" : i32[1]
        %y = embedding %t, %i {dtype = f32}
        return %y }"#;
    for id in [-1, 2] {
        let message = refusal(embedding, &[("i", i32s(&[id]))]);
        assert!(message.contains(&format!("id {id} is outside of the table of 2 rows")), "{message}");
    }
    let narrow = r#"graph @t { %q = input "q" : f32[2, 1, 1]
        %s = const i32[2] = [0, 2]
        %m = const f32[1, 2, 1] = [0.0, 0.0]
        %y = attention %q, %q, %q, %s, %m {mask = bias, scale = 1.0}
        return %y }"#;
    let message = refusal(narrow, &[("q", f32s(&[2, 1, 1], &[0.0; 2]))]);
    assert!(message.contains("the mask has 1 keys, but a sequence has 2 tokens"), "{message}");
}
