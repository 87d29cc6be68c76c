use rlx_ir::OpSet;
use rlx_ir::text::parse;

const DECLARED: &str = r#"graph @t(N, R) {
  %x = input "x" : f32[N, 8]
  %w = input "w" : f32[8]
  %m = input "m" : q8_0[8, 32]
  %k = input "k" : f16[N, 32]
  %ids = input "ids" : i32[N]
  %q = input "q" : f32[N, 4, 8]
  %f = input "f" : f32[3]
  %s = input "s" : i32[R + 1]
  %l = input "l" : i32[R]
  %t = input "t" : i32[R, 6]
  %p = input "p" : f16[9, 16, 2, 8]
  %c = input "c" : bool[1, N, N]
  %b = input "b" : f32[4, N, 64]
  %g = input "g" : f32[8]
  %r = input "r" : f16[N, 8]
  %e = input "e" : i32[N, 2]
  %c2 = input "c2" : f32[N, 2]
  %x32 = input "x32" : f32[N, 32]
  %m3 = input "m3" : q8_0[4, 64, 32]
  %d3 = input "d3" : q4_0[4, 32, 64]
"#;

const NODES: &[&str] = &[
    "gelu %x",
    "gelu %x {approximate = tanh}",
    "silu %x",
    "glu %x {activation = gelu_tanh}",
    "softmax %x {axis = -1}",
    "softmax %x {axis = 0, scale = 0.125}",
    "layer_norm %x, %w {eps = 1e-12}",
    "layer_norm %x, %w, %g {eps = 1e-5}",
    "rms_norm %x, %w {eps = 1e-6}",
    "rms_norm %x, %w {eps = 1e-6, unit_offset}",
    "linear %k, %m",
    "linear %k, %m, %g, %r {bias, residual, activation = gelu}",
    "linear %k, %m, %g {bias, activation = sigmoid}",
    "linear %k, %m, %r {residual}",
    "embedding %m, %ids {dtype = f32}",
    "embedding %x, %ids {scale = 19.5, dtype = bf16}",
    "rope %q, %ids, %f {style = half}",
    "rope %q, %ids, %f {style = interleaved, scale = 1.25}",
    "attention %q, %q, %q, %s {mask = none, scale = 0.125}",
    "attention %q, %q, %q, %s {mask = causal, scale = 0.125, softcap = 50.0}",
    "attention %q, %q, %q, %s {mask = sliding_window, window = 512, scale = 1.0}",
    "attention %q, %q, %q, %s {mask = local, window = 64, scale = 1.0}",
    "attention %q, %q, %q, %s, %c {mask = custom, scale = 1.0}",
    "attention %q, %q, %q, %s, %b {mask = bias, scale = 1.0}",
    "paged_attention %q, %p, %p, %s, %l, %t {mask = sliding_window, window = 7, scale = 0.5, softcap = 30.0}",
    "pool %x, %s {mode = mean}",
    "pool %x, %s {mode = cls}",
    "pool %x, %s {mode = last}",
    "pool %x, %s {mode = max}",
    "l2_normalize %x {eps = 1e-9}",
    "moe %x32, %c2, %e, %m3, %m3, %d3 {activation = silu}",
];

#[test]
fn every_attribute_prints_as_it_parses() {
    let ops = OpSet::builtin();
    for node in NODES {
        let text = format!("{DECLARED}  %y = {node}\n  return %y\n}}\n");
        let graph = parse(&text, &ops).unwrap_or_else(|e| panic!("{node}: {e}"));
        assert_eq!(graph.to_string(), text);
    }
    for node in
        ["add_layer_norm %x, %x, %w, %g {eps = 1e-5}", "add_rms_norm %x, %x, %w {eps = 1e-5, unit_offset}"]
    {
        let text = format!("{DECLARED}  %y, %z = {node}\n  return %y, %z\n}}\n");
        let graph = parse(&text, &ops).unwrap_or_else(|e| panic!("{node}: {e}"));
        assert_eq!(graph.to_string(), text);
    }
}
