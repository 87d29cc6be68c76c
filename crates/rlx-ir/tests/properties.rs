//! Properties of sizes and of the text form, over random values.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rlx_ir::ops::index::scatter::ScatterMode;
use rlx_ir::ops::reduce::reduce::KeepDims;
use rlx_ir::quant::BlockType;
use rlx_ir::text::{PrintOptions, parse, print};
use rlx_ir::{Bound, Builder, DType, Dim, Graph, OpSet, Value};

const SYMBOLS: [&str; 3] = ["N", "M", "R"];

/// An expression as it is written: evaluated without any normal form.
#[derive(Clone, Debug)]
enum Expr {
    Const(i64),
    Symbol(usize),
    Add(Box<Expr>, Box<Expr>),
    Sub(Box<Expr>, Box<Expr>),
    Mul(Box<Expr>, Box<Expr>),
    Div(Box<Expr>, i64),
}

impl Expr {
    fn dim(&self) -> Dim {
        match self {
            Self::Const(c) => Dim::constant(*c),
            Self::Symbol(s) => Dim::symbol(SYMBOLS[*s]),
            Self::Add(a, b) => a.dim() + b.dim(),
            Self::Sub(a, b) => a.dim() - b.dim(),
            Self::Mul(a, b) => a.dim() * b.dim(),
            Self::Div(a, by) => a.dim().floor_div(&Dim::constant(*by)),
        }
    }

    fn value(&self, sizes: [i64; 3]) -> i64 {
        match self {
            Self::Const(c) => *c,
            Self::Symbol(s) => sizes[*s],
            Self::Add(a, b) => a.value(sizes) + b.value(sizes),
            Self::Sub(a, b) => a.value(sizes) - b.value(sizes),
            Self::Mul(a, b) => a.value(sizes) * b.value(sizes),
            Self::Div(a, by) => a.value(sizes).div_euclid(*by),
        }
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![(-9i64..10).prop_map(Expr::Const), (0usize..3).prop_map(Expr::Symbol)];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let pair = (inner.clone(), inner.clone()).prop_map(|(a, b)| (Box::new(a), Box::new(b)));
        prop_oneof![
            pair.clone().prop_map(|(a, b)| Expr::Add(a, b)),
            pair.clone().prop_map(|(a, b)| Expr::Sub(a, b)),
            pair.prop_map(|(a, b)| Expr::Mul(a, b)),
            (inner, 1i64..5).prop_map(|(a, by)| Expr::Div(Box::new(a), by)),
        ]
    })
}

fn lookup(sizes: [i64; 3]) -> impl Fn(&str) -> Option<i64> {
    move |name| SYMBOLS.iter().position(|s| *s == name).map(|i| sizes[i])
}

proptest! {
    #[test]
    fn the_normal_form_has_the_value_of_the_expression(e in expr(), sizes in [0i64..8, 0i64..8, 0i64..8]) {
        prop_assert_eq!(e.dim().eval(&lookup(sizes)), Ok(e.value(sizes)));
    }

    #[test]
    fn equal_forms_have_equal_values_and_the_difference_is_zero(a in expr(), b in expr(), sizes in [0i64..8, 0i64..8, 0i64..8]) {
        if a.dim() == b.dim() {
            prop_assert_eq!(a.value(sizes), b.value(sizes));
        }
        let sum = |x: &Expr, y: &Expr| x.dim() + y.dim();
        prop_assert_eq!(sum(&a, &b), sum(&b, &a));
        prop_assert_eq!(a.dim() - a.dim(), Dim::constant(0));
        prop_assert_eq!((a.dim() + b.dim()) * b.dim(), a.dim() * b.dim() + b.dim() * b.dim());
    }

    #[test]
    fn the_upper_bound_is_above_every_value(e in expr(), max in [0i64..8, 0i64..8, 0i64..8], joint in 0i64..20, part in [0i64..8, 0i64..8, 0i64..8]) {
        let mut bounds: Vec<Bound> = SYMBOLS.iter().zip(max).map(|(s, max)| Bound { of: Dim::symbol(s), max }).collect();
        let sizes = [0, 1, 2].map(|i| part[i].min(max[i]));
        if sizes[0] * sizes[1] <= joint {
            bounds.push(Bound { of: Dim::symbol("N") * Dim::symbol("M"), max: joint });
        }
        let bound = e.dim().upper_bound(&bounds);
        prop_assert!(bound.is_some_and(|b| b >= e.value(sizes)), "{:?} of {}: {}", bound, e.dim(), e.value(sizes));
    }

    #[test]
    fn sizes_print_and_parse_to_themselves(e in expr()) {
        let text = format!("graph @g(N, M, R) {{\n  %x = input \"x\" : f32[{}]\n}}", e.dim());
        let graph = parse(&text, &OpSet::builtin());
        if e.dim().as_const().is_some_and(|size| size < 0) {
            prop_assert!(graph.is_err());
            return Ok(());
        }
        let graph = graph.unwrap();
        prop_assert_eq!(&graph.values()[0].ty.shape[0], &e.dim());
    }
}

/// Applies what `code` says to one of `values`; `false` where the operands do not fit.
fn grow(b: &mut Builder, values: &mut Vec<Value>, code: [usize; 5]) -> bool {
    let [op, first, second, p, q] = code;
    let (x, y) = (values[first % values.len()], values[second % values.len()]);
    let rank = b.shape(x).rank();
    let axis = (p % 4) as i64 - 2;
    let scalars = DType::SCALARS;
    let keep = if q.is_multiple_of(2) { KeepDims::Yes } else { KeepDims::No };
    let result = match op % 20 {
        0 => b.add(x, y),
        1 => b.lt(x, y),
        2 => b.eq(x, y),
        3 => b.lt(x, y).and_then(|cond| b.select(cond, x, y)),
        4 => b.cast(x, scalars[p % scalars.len()]),
        5 => b.reduce_sum(x, &[axis], keep),
        6 => b.reduce_max(x, &[axis], keep),
        7 => b.reduce_mean(x, &[-1, 0], keep),
        8 => b.reshape(x, [b.shape(x).elems()]),
        9 => b.transpose(x, (0..rank).rev().collect::<Vec<_>>()),
        10 => b.broadcast(x, [vec![Dim::from(p % 3), "M".into()], b.shape(x).dims().to_vec()].concat()),
        11 => b.slice_step(x, axis, p % 3, Dim::symbol("N").floor_div(&3.into()), q % 3),
        12 => b.concat(&[x, y], axis),
        13 => b.pad(x, vec![Dim::from(p % 3); rank], vec![Dim::symbol("R"); rank], q as f64 * 0.1),
        14 => b.iota([Dim::symbol("N") * 2.into(), p.into()], axis, scalars[q % scalars.len()]),
        15 => b.gather(x, y, axis),
        16 => b.gather(x, y, axis).and_then(|rows| b.scatter(x, y, rows, axis, ScatterMode::Add)),
        17 => {
            b.quantize(x, BlockType::ALL[p % BlockType::ALL.len()]).and_then(|q| b.dequantize(q, DType::BF16))
        }
        18 => b.argmax(x, axis),
        _ => b.top_k(x, p % 5).map(|(values, indices)| if q.is_multiple_of(2) { values } else { indices }),
    };
    result.map(|value| values.push(value)).is_ok()
}

fn graph(codes: &[[usize; 5]]) -> (Graph, usize) {
    let mut b = Builder::new("random");
    let n = b.symbol("N", 64);
    let m = b.unbounded_symbol("M");
    b.symbol("R", 4);
    b.bound(n.clone() * m, 100);
    let mut values = vec![
        b.input("x", DType::F32, [n.clone(), 256.into()]).unwrap(),
        b.input("h", DType::F16, [n.clone(), 1.into()]).unwrap(),
        b.input("ids", DType::I32, [n]).unwrap(),
        b.scalar(DType::F32, 0.1).unwrap(),
    ];
    let grown = codes.iter().filter(|code| grow(&mut b, &mut values, **code)).count();
    let last = *values.last().unwrap();
    (b.finish(&[last]).unwrap(), grown)
}

fn codes() -> impl Strategy<Value = Vec<[usize; 5]>> {
    prop::collection::vec([0usize..20, 0usize..8, 0usize..8, 0usize..12, 0usize..12], 0..12)
}

#[test]
fn random_graphs_use_every_op() {
    let used = (0..20).filter(|&op| {
        let tries = (0..4096).map(|i| [op, i % 4, i / 4 % 4, i / 16 % 12, i / 192 % 12]);
        tries.into_iter().any(|code| graph(&[code]).1 == 1)
    });
    assert_eq!(used.count(), 20);
}

proptest! {
    #[test]
    fn random_graphs_print_and_parse_to_themselves(codes in codes()) {
        let (graph, _) = graph(&codes);
        for types in [false, true] {
            let text = print(&graph, PrintOptions { types });
            let parsed = parse(&text, &OpSet::builtin());
            prop_assert_eq!(parsed.map(|g| print(&g, PrintOptions { types })), Ok(text));
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "(graph|@g|%x|=|\\{|\\}|\\[|\\]|N|/|\\(|\\)|-|[0-9]{1,20}|\"|\\PC| |\n){0,40}") {
        let _ = parse(&text, &OpSet::builtin());
    }

    #[test]
    fn a_damaged_text_is_parsed_or_refused(codes in codes(), damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, any::<prop::sample::Index>()), 1..4)) {
        let mut words: Vec<String> = graph(&codes).0.to_string().split_inclusive([' ', ',', '\n', '[']).map(str::to_owned).collect();
        for (at, kind, other) in damage {
            let (at, other) = (at.index(words.len()), other.index(words.len()));
            match kind {
                0 => words[at].clear(),
                1 => words.swap(at, other),
                2 => words[at] = words[other].clone(),
                3 => words.truncate(at + 1),
                k => words[at] = ["-1", "9223372036854775808", "{", "graph @g {", "/ 0", "nan", "\"", "%"][k - 4].to_owned(),
            }
        }
        // What is accepted is sound, and prints and parses again.
        if let Ok(graph) = parse(&words.concat(), &OpSet::builtin()) {
            let text = graph.to_string();
            prop_assert_eq!(parse(&text, &OpSet::builtin()).map(|g| g.to_string()), Ok(text));
        }
    }
}
