//! Every composite gives the same through its decomposition, within the tolerance that its own evaluation states.

use std::collections::{BTreeSet, HashMap};

use rlx_ir::interp::{RunData, SplitMix64, run};
use rlx_ir::op::{Evaluated, Tier};
use rlx_ir::text::parse;
use rlx_ir::{Builder, DType, Def, Graph, OpSet, Tensor, TensorType, Value};

/// The graph with every composite replaced until core ops are left.
fn decomposed(graph: &Graph) -> Graph {
    let mut graph = graph.clone();
    while graph.nodes().iter().any(|n| n.op.tier() == Tier::Composite) {
        let mut b = Builder::like(&graph);
        let mut map: HashMap<Value, Value> = HashMap::new();
        for value in graph.value_ids() {
            if !matches!(graph.value(value).def, Def::Result { .. }) {
                map.insert(value, b.declare_like(graph.value(value)).unwrap());
            }
        }
        for node in graph.nodes() {
            let operands: Vec<Value> = node.operands.iter().map(|v| map[v]).collect();
            let parts = node.op.decompose(&mut b, &operands).unwrap();
            assert_eq!(parts.is_some(), node.op.tier() == Tier::Composite, "{}", node.op.name());
            let results = parts.unwrap_or_else(|| b.emit_ref(node.op.clone(), &operands).unwrap());
            for (&old, &new) in node.results.iter().zip(&results) {
                assert_eq!(b.ty(new), graph.ty(old), "{}", node.op.name());
                map.insert(old, new);
            }
        }
        let outputs: Vec<Value> = graph.outputs().iter().map(|v| map[v]).collect();
        graph = b.finish(&outputs).unwrap();
    }
    graph
}

/// One random case: the declarations with their data, and the node.
struct Case {
    declared: Vec<(String, Tensor)>,
    node: String,
    results: usize,
}

struct Generator(SplitMix64);

impl Generator {
    fn below(&mut self, n: usize) -> usize {
        self.0.below(n)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.0.below(from.len())]
    }

    fn float_dtype(&mut self) -> DType {
        self.pick(&[DType::F32, DType::F32, DType::F16, DType::BF16, DType::F64])
    }

    fn floats(&mut self, dtype: DType, shape: &[usize], size: f64) -> Tensor {
        let ty = TensorType::new(dtype, shape);
        let values: Vec<f64> = (0..ty.elems()).map(|_| (self.0.uniform() * 2.0 - 1.0) * size).collect();
        Tensor::from_f64(ty, &values).unwrap()
    }

    fn ints(&mut self, shape: &[usize], below: usize) -> Tensor {
        let ty = TensorType::new(DType::I32, shape);
        let values: Vec<i64> = (0..ty.elems()).map(|_| self.below(below) as i64).collect();
        Tensor::from_i64(ty, &values).unwrap()
    }

    /// Starts of sequences over `tokens`, some empty, with tokens before and after them.
    fn starts(&mut self, sequences: usize, tokens: usize) -> Vec<i32> {
        let mut starts: Vec<i32> = (0..=sequences).map(|_| self.below(tokens + 1) as i32).collect();
        starts.sort_unstable();
        if self.below(2) == 0 {
            starts[sequences] = tokens as i32;
            starts[0] = 0;
        }
        starts
    }

    fn mask(&mut self, kinds: &[&str]) -> String {
        let kind = self.pick(kinds);
        match kind {
            "sliding_window" => format!("mask = {kind}, window = {}", 1 + self.below(4)),
            "local" => format!("mask = {kind}, window = {}", self.below(4)),
            _ => format!("mask = {kind}"),
        }
    }

    fn scores(&mut self) -> String {
        let cap = if self.below(2) == 0 { ", softcap = 2.5" } else { "" };
        format!("scale = {:?}{cap}", self.pick(&[0.125, 1.0, -0.5]))
    }

    fn case(&mut self, op: &str) -> Case {
        let (n, r) = (self.below(9), 1 + self.below(4));
        let width = 1 + self.below(7);
        let dtype = self.float_dtype();
        let x = self.floats(dtype, &[n, width], 4.0);
        let weight = |g: &mut Self| {
            let dtype = g.pick(&[dtype, DType::F32]);
            g.floats(dtype, &[width], 2.0)
        };
        let eps = self.pick(&["1e-5", "0.25"]);
        let mut results = 1;
        let n_by = |rest: &str| format!("[N, {rest}]");
        let activations = ["none", "gelu", "gelu_tanh", "silu", "relu", "tanh", "sigmoid"];
        let (declared, node) = match op {
            "gelu" => {
                let attrs = self.pick(&["", " {approximate = tanh}"]);
                (vec![(n_by(&width.to_string()), x)], format!("gelu %0{attrs}"))
            }
            "silu" => (vec![(n_by(&width.to_string()), x)], "silu %0".to_owned()),
            "glu" => {
                let x = self.floats(dtype, &[n, 2 * width], 3.0);
                let activation = self.pick(&activations);
                (vec![(n_by(&(2 * width).to_string()), x)], format!("glu %0 {{activation = {activation}}}"))
            }
            "softmax" => {
                let mut values = x.to_f64().unwrap();
                for v in &mut values {
                    *v = if self.below(3) == 0 { f64::NEG_INFINITY } else { *v };
                }
                let x = Tensor::from_f64(x.ty().clone(), &values).unwrap();
                let (axis, scale) = (self.pick(&[-1, 0, 1]), self.pick(&["", ", scale = 3.0"]));
                (vec![(n_by(&width.to_string()), x)], format!("softmax %0 {{axis = {axis}{scale}}}"))
            }
            "layer_norm" | "add_layer_norm" | "rms_norm" | "add_rms_norm" => {
                let mut declared = vec![(n_by(&width.to_string()), x)];
                if op.starts_with("add_") {
                    results = 2;
                    declared.push((n_by(&width.to_string()), self.floats(dtype, &[n, width], 4.0)));
                }
                declared.push((format!("[{width}]"), weight(self)));
                let mut flag = "";
                if op.ends_with("layer_norm") {
                    if self.below(2) == 0 {
                        declared.push((format!("[{width}]"), weight(self)));
                    }
                } else {
                    flag = self.pick(&["", ", unit_offset"]);
                }
                let names: Vec<String> = (0..declared.len()).map(|i| format!("%{i}")).collect();
                (declared, format!("{op} {} {{eps = {eps}{flag}}}", names.join(", ")))
            }
            "linear" => {
                let (k, out) = (32, 1 + self.below(5));
                let quantised = self.below(4) == 0;
                let x_dtype = if quantised { DType::from_name("q8_f32").unwrap() } else { dtype };
                let w_dtype = DType::from_name(self.pick(&["f32", "f16", "q8_0", "q4_0"])).unwrap();
                let result = if quantised { DType::F32 } else { dtype };
                let mut declared = vec![
                    (n_by("32"), self.floats(x_dtype, &[n, k], 2.0)),
                    (format!("[{out}, 32]"), self.floats(w_dtype, &[out, k], 1.0)),
                ];
                let mut attrs = Vec::new();
                if self.below(2) == 0 {
                    declared.push((format!("[{out}]"), self.floats(DType::F32, &[out], 1.0)));
                    attrs.push("bias".to_owned());
                }
                if self.below(2) == 0 {
                    declared.push((n_by(&out.to_string()), self.floats(result, &[n, out], 1.0)));
                    attrs.push("residual".to_owned());
                }
                attrs.push(format!("activation = {}", self.pick(&activations)));
                let names: Vec<String> = (0..declared.len()).map(|i| format!("%{i}")).collect();
                (declared, format!("linear {} {{{}}}", names.join(", "), attrs.join(", ")))
            }
            "moe" => {
                let (experts, chosen, k, inner) =
                    (1 + self.below(4), self.below(4), 32, 32 * (1 + self.below(2)));
                let matrices = |g: &mut Self, rows: usize, columns: usize| {
                    let dtype = DType::from_name(g.pick(&["f32", "f16", "q8_0", "q4_0"])).unwrap();
                    let tensor = g.floats(dtype, &[experts, rows, columns], 1.0);
                    (format!("[{experts}, {rows}, {columns}]"), tensor)
                };
                let indices: Vec<i64> = (0..n * chosen).map(|_| self.below(experts + 2) as i64 - 1).collect();
                let ty = TensorType::new(DType::I32, [n, chosen]);
                let weights = self.pick(&[dtype, DType::F32]);
                let declared = vec![
                    (n_by("32"), self.floats(dtype, &[n, k], 1.0)),
                    (n_by(&chosen.to_string()), self.floats(weights, &[n, chosen], 1.0)),
                    (n_by(&chosen.to_string()), Tensor::from_i64(ty, &indices).unwrap()),
                    matrices(self, inner, k),
                    matrices(self, inner, k),
                    matrices(self, k, inner),
                ];
                let activation = self.pick(&activations);
                (declared, format!("moe %0, %1, %2, %3, %4, %5 {{activation = {activation}}}"))
            }
            "embedding" => {
                let table_dtype = DType::from_name(self.pick(&["f32", "bf16", "q8_0", "q4_k"])).unwrap();
                let scale = self.pick(&["", "scale = 3.7, "]);
                let table = self.floats(table_dtype, &[5, 256], 1.0);
                let declared = vec![("[5, 256]".to_owned(), table), ("[N]".to_owned(), self.ints(&[n], 5))];
                let to = self.pick(&["f32", "f16"]);
                (declared, format!("embedding %0, %1 {{{scale}dtype = {to}}}"))
            }
            "rope" => {
                let (heads, head_dim) = (1 + self.below(3), 2 + self.below(7));
                let pairs = 1 + self.below(head_dim / 2);
                let declared = vec![
                    (n_by(&format!("{heads}, {head_dim}")), self.floats(dtype, &[n, heads, head_dim], 2.0)),
                    ("[N]".to_owned(), self.ints(&[n], 1000)),
                    (format!("[{pairs}]"), self.floats(DType::F32, &[pairs], 1.0)),
                ];
                let (style, scale) = (self.pick(&["half", "interleaved"]), self.pick(&["", ", scale = 1.2"]));
                (declared, format!("rope %0, %1, %2 {{style = {style}{scale}}}"))
            }
            "attention" => {
                let (kv, group) = (1 + self.below(2), 1 + self.below(3));
                let (d, dv, heads) = (1 + self.below(5), 1 + self.below(4), kv * group);
                let kv_dtype = self.pick(&[dtype, DType::F32]);
                let mut declared = vec![
                    (n_by(&format!("{heads}, {d}")), self.floats(dtype, &[n, heads, d], 2.0)),
                    (n_by(&format!("{kv}, {d}")), self.floats(kv_dtype, &[n, kv, d], 2.0)),
                    (n_by(&format!("{kv}, {dv}")), self.floats(kv_dtype, &[n, kv, dv], 2.0)),
                    (format!("[{}]", r + 1), super::i32s(&self.starts(r, n))),
                ];
                let mask = self.mask(&["none", "causal", "sliding_window", "local", "custom", "bias"]);
                let (mask_heads, keys) = (self.pick(&[1, heads]), n.max(1) + self.below(2));
                let operand = match mask.as_str() {
                    "mask = custom" => {
                        let bits = self.ints(&[mask_heads, n, keys], 2).to_i64().unwrap();
                        let ty = TensorType::new(DType::Bool, [mask_heads, n, keys]);
                        declared.push((
                            format!("[{mask_heads}, N, {keys}]"),
                            Tensor::from_i64(ty, &bits).unwrap(),
                        ));
                        ", %4"
                    }
                    "mask = bias" => {
                        let mut bias = self.floats(DType::F32, &[mask_heads, n, keys], 2.0).to_f64().unwrap();
                        for v in &mut bias {
                            *v = if self.below(4) == 0 { f64::NEG_INFINITY } else { *v };
                        }
                        let bias = super::f32s(&[mask_heads, n, keys], &bias);
                        declared.push((format!("[{mask_heads}, N, {keys}]"), bias));
                        ", %4"
                    }
                    _ => "",
                };
                let scores = self.scores();
                (declared, format!("attention %0, %1, %2, %3{operand} {{{mask}, {scores}}}"))
            }
            "paged_attention" => {
                let (kv, group, pages, page_len) =
                    (1 + self.below(2), 1 + self.below(3), 7, 1 + self.below(3));
                let (d, dv, heads) = (1 + self.below(5), 1 + self.below(4), kv * group);
                let starts = self.starts(r, n);
                let mut lengths = Vec::new();
                let mut pages_each = 1;
                for pair in starts.windows(2) {
                    let length = (pair[1] - pair[0]) as usize + self.below(4);
                    pages_each = pages_each.max(length.div_ceil(page_len));
                    lengths.push(length as i32);
                }
                let mut table = Vec::new();
                for length in &lengths {
                    for t in 0..pages_each {
                        let used = t * page_len < *length as usize;
                        table.push(if used { self.below(pages) as i32 } else { self.pick(&[-1, 1 << 20]) });
                    }
                }
                let declared = vec![
                    (n_by(&format!("{heads}, {d}")), self.floats(dtype, &[n, heads, d], 2.0)),
                    (
                        format!("[{pages}, {page_len}, {kv}, {d}]"),
                        self.floats(DType::F16, &[pages, page_len, kv, d], 2.0),
                    ),
                    (
                        format!("[{pages}, {page_len}, {kv}, {dv}]"),
                        self.floats(DType::BF16, &[pages, page_len, kv, dv], 2.0),
                    ),
                    (format!("[{}]", r + 1), super::i32s(&starts)),
                    (format!("[{r}]"), super::i32s(&lengths)),
                    (
                        format!("[{r}, {pages_each}]"),
                        super::i32s(&table).with_shape([r, pages_each]).unwrap(),
                    ),
                ];
                let (mask, scores) =
                    (self.mask(&["none", "causal", "sliding_window", "local"]), self.scores());
                (declared, format!("paged_attention %0, %1, %2, %3, %4, %5 {{{mask}, {scores}}}"))
            }
            "pool" => {
                let mode = self.pick(&["mean", "cls", "last", "max"]);
                let starts = super::i32s(&self.starts(r, n));
                let declared = vec![(n_by(&width.to_string()), x), (format!("[{}]", r + 1), starts)];
                (declared, format!("pool %0, %1 {{mode = {mode}}}"))
            }
            "l2_normalize" => {
                (vec![(n_by(&width.to_string()), x)], "l2_normalize %0 {eps = 1e-12}".to_owned())
            }
            "fused_region" => {
                let other = self.floats(dtype, &[width], 2.0);
                let declared = vec![(n_by(&width.to_string()), x), (format!("[{width}]"), other)];
                let node = format!(
                    "fused_region %0, %1 {{body = graph @r(N) {{
                        %a = input \"a\" : {dtype}[N, {width}]\n %b = input \"b\" : {dtype}[{width}]
                        %s = mul %a, %b\n %t = tanh %s\n %g = silu %t\n %d = sub %g, %a
                        %c = lt %d, %b\n %e = select %c, %d, %b\n return %e }}}}"
                );
                (declared, node)
            }
            _ => panic!("no case for {op}: add one"),
        };
        Case { declared, node, results }
    }
}

impl Case {
    fn text(&self) -> String {
        let mut text = "graph @t(N) {\n".to_owned();
        for (i, (shape, tensor)) in self.declared.iter().enumerate() {
            text += &format!("  %{i} = input \"x{i}\" : {}{shape}\n", tensor.dtype());
        }
        let results: Vec<String> = (0..self.results).map(|i| format!("%y{i}")).collect();
        let results = results.join(", ");
        text + &format!("  {results} = {}\n  return {results}\n}}\n", self.node)
    }

    fn run(&self, graph: &Graph) -> Vec<Evaluated> {
        let mut data = RunData::default();
        for (i, (_, tensor)) in self.declared.iter().enumerate() {
            data.inputs.insert(format!("x{i}"), tensor.clone());
        }
        run(graph, &mut data).unwrap_or_else(|e| panic!("{e}\n{graph}\n{data:?}"))
    }
}

fn compare(direct: &Evaluated, parts: &Evaluated, place: &str) {
    assert_eq!(direct.tensor.ty(), parts.tensor.ty());
    let accumulator = if direct.tensor.dtype() == DType::F64 { DType::F64 } else { DType::F32 };
    let tolerance = direct.tolerance(accumulator.unit_roundoff()).unwrap();
    let exact = direct.exact.clone().unwrap_or(direct.tensor.to_f64().unwrap());
    for (i, (got, want)) in parts.tensor.to_f64().unwrap().iter().zip(&exact).enumerate() {
        // The tolerance is taken at the rounded reference, half a unit away from the exact one.
        let allowed = tolerance[i] * (1.0 + 1e-2);
        let fits = got == want || (got - want).abs() <= allowed || (got.is_nan() && want.is_nan());
        assert!(fits, "element {i}: {got}, not {want} within {allowed}\n{place}");
    }
}

#[test]
fn every_composite_equals_its_decomposition() {
    let ops = OpSet::builtin();
    let composites: BTreeSet<&str> =
        ops.iter().filter(|d| d.tier == Tier::Composite).map(|d| d.name).collect();
    assert!(composites.len() >= 16);
    for op in composites {
        for seed in 0..60 {
            let case = Generator(SplitMix64::new(seed)).case(op);
            let text = case.text();
            let graph = parse(&text, &ops).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let parts = decomposed(&graph);
            let again = parse(&parts.to_string(), &ops).unwrap();
            assert_eq!(again, parts);
            let place = format!("seed {seed}\n{text}\n{parts}\n{:?}", case.declared);
            for (direct, parts) in case.run(&graph).iter().zip(&case.run(&parts)) {
                compare(direct, parts, &place);
            }
        }
    }
}

#[test]
fn what_is_not_seen_cannot_spoil_a_decomposition() {
    let text = r#"graph @t(N) { %q = input "q" : f32[N, 1, 1]
        %s = const i32[4] = [0, 1, 2, 3]
        %y = attention %q, %q, %q, %s {mask = none, scale = 1.0}
        %v = reshape %q {shape = [N, 1]}
        %mean = pool %v, %s {mode = mean}
        %max = pool %v, %s {mode = max}
        return %y, %mean, %max }"#;
    let graph = decomposed(&parse(text, &OpSet::builtin()).unwrap());
    let q = super::f32s(&[3, 1, 1], &[f64::NAN, 3.0, f64::INFINITY]);
    for out in run(&graph, &mut RunData::default().input("q", q)).unwrap() {
        let y = out.tensor.to_f64().unwrap();
        assert!(!y[0].is_finite() && y[1] == 3.0 && !y[2].is_finite(), "{y:?}");
    }
}

#[test]
fn no_tokens_give_no_rows() {
    for op in ["attention", "pool", "rope", "softmax", "layer_norm", "linear"] {
        for seed in 0..200 {
            let case = Generator(SplitMix64::new(seed)).case(op);
            if case.declared[0].1.shape()[0] == 0 {
                let graph = parse(&case.text(), &OpSet::builtin()).unwrap();
                let (direct, parts) = (case.run(&graph), case.run(&decomposed(&graph)));
                assert_eq!(direct[0].tensor, parts[0].tensor, "{op}");
                break;
            }
            assert!(seed < 199, "{op}: no seed gives an empty token axis");
        }
    }
}
