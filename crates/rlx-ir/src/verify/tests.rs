//! For each invariant a sound graph that is broken in one place.

use std::sync::Arc;

use super::verify;
use crate::graph::{Def, Graph, NodeId, Value, WeightInit};
use crate::tensor::Tensor;
use crate::text::parse;
use crate::types::Type;
use crate::{DType, Dim, ErrorKind, OpSet};

const SOUND: &str = r#"graph @g(N <= 8) {
  %x = input "x" : f32[N, 32]
  %y = input "y" : f32[N, 32]
  %w = weight "w" : f32[2] = [1.0, 2.0]
  %c = const f32[1] = [0.5]
  %kv = state "kv" : f16[1, 4, 1, 32]
  %slots = input "slots" : i32[N]
  %k = input "k" : f32[N, 1, 32]
  %a = add %x, %y
  %b = mul %a, %c
  %v, %i = top_k %b {k = 4}
  %kv2 = kv_write %kv, %k, %slots
  %kv3 = kv_write %kv2, %k, %slots
  return %v, %kv3
}"#;

fn sound() -> Graph {
    parse(SOUND, &OpSet::builtin()).unwrap()
}

fn find(graph: &Graph, name: &str) -> Value {
    graph.value_ids().find(|v| &*graph.value(*v).name == name).unwrap()
}

fn node(graph: &Graph, result: &str) -> usize {
    let value = find(graph, result);
    graph.nodes().iter().position(|n| n.results.contains(&value)).unwrap()
}

/// Breaks a sound graph and expects the rule and a part of the message.
fn breaks(rule: &str, what: &str, change: impl FnOnce(&mut Graph)) {
    let mut graph = sound();
    verify(&graph).unwrap();
    change(&mut graph);
    let e = verify(&graph).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Bug);
    assert!(e.message().contains(&format!("verifier rule `{rule}`")), "{e}");
    assert!(e.message().contains(what), "{e}");
}

#[test]
fn rule_1_types() {
    breaks("types", "%a = add: result is f32[N, 33], but the op infers f32[N, 32]", |g| {
        let a = find(g, "a");
        g.values[a.index()].ty = Type::new(DType::F32, [Dim::symbol("N"), 33.into()]);
    });
    breaks("types", "operand 1: expected f32", |g| {
        let y = find(g, "y");
        g.values[y.index()].ty.dtype = DType::F16;
    });
}

#[test]
fn rule_2_order() {
    breaks("order", "%b is used before it is defined", |g| {
        let (at, b) = (node(g, "a"), find(g, "b"));
        g.nodes[at].operands[1] = b;
    });
    breaks("order", "%a is used before it is defined", |g| {
        let (at, a) = (node(g, "a"), find(g, "a"));
        g.nodes[at].operands[0] = a;
    });
}

#[test]
fn rule_3_results() {
    breaks("results", "does not point back", |g| {
        let a = find(g, "a");
        g.values[a.index()].def = Def::Result { node: NodeId(1), index: 0 };
    });
    breaks("results", "does not point back", |g| {
        let i = find(g, "i");
        let Def::Result { index, .. } = &mut g.values[i.index()].def else { panic!("no result") };
        *index = 0;
    });
    breaks("results", "the op has 2 results", |g| {
        let at = node(g, "v");
        g.nodes[at].results.pop();
    });
    breaks("results", "belongs to no node", |g| {
        let mut orphan = g.values[find(g, "a").index()].clone();
        orphan.name = "orphan".into();
        g.values.push(orphan);
    });
}

#[test]
fn rule_4_names() {
    for name in ["x", "", "a b", "\u{e9}", "%a"] {
        breaks("names", "not unique or not well formed", |g| {
            let y = find(g, "y");
            g.values[y.index()].name = name.into();
        });
    }
}

#[test]
fn rule_5_declarations() {
    breaks("declarations", "\"x\" is declared twice", |g| {
        let y = find(g, "y");
        g.values[y.index()].def = Def::Input("x".into());
    });
    breaks("declarations", "sizes must be constants", |g| {
        let w = find(g, "w");
        g.values[w.index()].ty.shape = [Dim::symbol("N")].into();
        g.values[w.index()].def = Def::Weight { name: "w".into(), init: WeightInit::External };
    });
    breaks("declarations", "%w: its values have another type", |g| {
        let w = find(g, "w");
        g.values[w.index()].ty.shape = [3].into();
    });
    breaks("declarations", "%c: its values have another type", |g| {
        let c = find(g, "c");
        g.values[c.index()].def = Def::Const(Arc::new(Tensor::i32([1], &[1]).unwrap()));
    });
    breaks("declarations", "multiple of 256", |g| {
        let x = find(g, "x");
        g.values[x.index()].ty.dtype = DType::from_name("q4_k").unwrap();
    });
}

#[test]
fn rule_6_symbols() {
    breaks("symbols", "symbol M is not declared", |g| {
        let x = find(g, "x");
        g.values[x.index()].ty.shape = [Dim::symbol("N").floor_div(&Dim::symbol("M"))].into();
    });
    breaks("symbols", "symbol M is not declared", |g| {
        g.symbols.bound(Dim::symbol("N") * Dim::symbol("M"), 4);
    });
}

#[test]
fn rule_7_state() {
    breaks("state", "%kv was overwritten by %kv2", |g| {
        let (at, kv) = (node(g, "kv3"), find(g, "kv"));
        g.nodes[at].operands[0] = kv;
    });
    // A node that only reads the old version, after the write.
    let text = SOUND.replace("return %v, %kv3", "%late = neg %kv2\n return %v, %kv3, %late");
    let e = parse(&text, &OpSet::builtin()).unwrap_err();
    assert!(e.message().contains("rule `state`: %late = neg: %kv2 was overwritten by %kv3"), "{e}");
    // Before the write it may.
    let text = SOUND.replace("%kv3 = kv_write", "%early = neg %kv2\n %kv3 = kv_write");
    parse(&text, &OpSet::builtin()).unwrap();
    // What is written must be a state.
    let text = SOUND.replace("%kv = state", "%kv = input");
    let e = parse(&text, &OpSet::builtin()).unwrap_err();
    assert!(e.message().contains("rule `state`: %kv2 = kv_write: %kv is no state"), "{e}");
}

#[test]
fn rule_8_outputs() {
    breaks("outputs", "a returned value is none of this graph", |g| g.outputs.push(Value::new(1000, g.mark)));
    breaks("outputs", "%kv2 is an overwritten state", |g| {
        let kv2 = find(g, "kv2");
        g.outputs.push(kv2);
    });
}
