//! Helpers for the unit tests of ops: types from text, inference, evaluation and round trips through a graph.
#![allow(dead_code)]

use crate::builder::{Builder, Value};
use crate::error::Result;
use crate::graph::Graph;
use crate::interp::{RunData, run};
use crate::op::{Evaluated, Op, OpRef, OpSet};
use crate::tensor::Tensor;
use crate::text::parse;
use crate::types::{TensorType, Type};
use crate::{DType, Dim};

/// A type from its text, over the symbols N, M and R.
pub(crate) fn ty(text: &str) -> Type {
    let graph = format!("graph @t(N, M, R) {{ %x = input \"x\" : {text} }}");
    let graph = parse(&graph, &OpSet::builtin()).unwrap();
    graph.values()[0].ty.clone()
}

/// The texts of the result types.
pub(crate) fn infer(op: &dyn Op, operands: &[&str]) -> Result<Vec<String>> {
    let types: Vec<Type> = operands.iter().map(|t| ty(t)).collect();
    Ok(op.infer(&types)?.iter().map(ToString::to_string).collect())
}

/// The text of the only result type.
pub(crate) fn infer_one(op: &dyn Op, operands: &[&str]) -> String {
    let results = infer(op, operands).unwrap();
    assert_eq!(results.len(), 1);
    results[0].clone()
}

/// Why the operands do not fit.
pub(crate) fn refusal(op: &dyn Op, operands: &[&str]) -> String {
    infer(op, operands).unwrap_err().message().to_owned()
}

fn build(op: OpRef, operands: &[Type]) -> Result<Graph> {
    let mut b = Builder::new("t");
    for name in ["N", "M", "R"] {
        b.unbounded_symbol(name);
    }
    let mut inputs: Vec<Value> = Vec::new();
    for (i, ty) in operands.iter().enumerate() {
        let name = format!("x{i}");
        let declare = if i == 0 && op.writes_state() { Builder::state } else { Builder::input };
        inputs.push(declare(&mut b, &name, ty.dtype, ty.shape.clone())?);
    }
    let results = b.emit_ref(op, &inputs)?;
    b.finish(&results)
}

/// Evaluates through a graph whose operands have these types; symbols that no operand gives are 0.
pub(crate) fn try_eval_as(op: impl Op, operands: &[(&str, Tensor)]) -> Result<Vec<Evaluated>> {
    let types: Vec<Type> = operands.iter().map(|(t, _)| ty(t)).collect();
    try_eval_types(std::sync::Arc::new(op), &types, operands.iter().map(|(_, t)| t.clone()))
}

/// Evaluates through a graph whose operands have the tensors' own types.
pub(crate) fn try_eval(op: impl Op, operands: &[Tensor]) -> Result<Vec<Evaluated>> {
    let types: Vec<Type> = operands.iter().map(|t| Type::new(t.dtype(), t.shape())).collect();
    try_eval_types(std::sync::Arc::new(op), &types, operands.iter().cloned())
}

fn try_eval_types(
    op: OpRef,
    types: &[Type],
    operands: impl Iterator<Item = Tensor>,
) -> Result<Vec<Evaluated>> {
    let graph = build(op, types)?;
    let mut data = RunData::default();
    for (i, tensor) in operands.enumerate() {
        let name = format!("x{i}");
        if graph.states().any(|(_, n)| n == name) {
            data.states.insert(name, tensor);
        } else {
            data.inputs.insert(name, tensor);
        }
    }
    for symbol in ["N", "M", "R"] {
        let dims = |t: &Type| t.shape.dims().iter().any(|d| d.as_symbol() == Some(symbol));
        if !types.iter().any(dims) {
            data.bindings.bind(symbol, 0)?;
        }
    }
    run(&graph, &mut data)
}

/// The results of evaluation.
pub(crate) fn eval(op: impl Op, operands: &[Tensor]) -> Vec<Tensor> {
    try_eval(op, operands).unwrap().into_iter().map(|e| e.tensor).collect()
}

/// The only result of evaluation.
pub(crate) fn eval_one(op: impl Op, operands: &[Tensor]) -> Tensor {
    let mut results = eval(op, operands);
    assert_eq!(results.len(), 1);
    results.remove(0)
}

/// Why evaluation fails.
pub(crate) fn eval_refusal(op: impl Op, operands: &[Tensor]) -> String {
    try_eval(op, operands).unwrap_err().message().to_owned()
}

/// Prints a graph with `op`, parses it, and expects the same text, and an op with the same attributes; returns the
/// line of the op.
pub(crate) fn round_trip(op: impl Op, operands: &[&str]) -> String {
    let types: Vec<Type> = operands.iter().map(|t| ty(t)).collect();
    let graph = build(std::sync::Arc::new(op), &types).unwrap();
    let text = graph.to_string();
    let parsed = parse(&text, &OpSet::builtin()).unwrap_or_else(|e| panic!("{e}\n{text}"));
    assert_eq!(parsed.to_string(), text);
    assert_eq!(format!("{:?}", parsed.nodes()[0].op), format!("{:?}", graph.nodes()[0].op));
    let line = text.lines().rev().find(|l| l.contains("= ") && !l.contains("return")).unwrap_or("");
    line.split_once("= ").map_or("", |p| p.1).to_owned()
}

/// Why attributes do not make an op: `attrs` is the text in braces.
pub(crate) fn attr_refusal(name: &str, attrs: &str) -> String {
    let text = format!("graph @t(N, M, R) {{ %x = input \"x\" : f32[N, 4]\n %y = {name} %x {{{attrs}}} }}");
    parse(&text, &OpSet::builtin()).unwrap_err().message().to_owned()
}

/// A tensor of integers, of any scalar dtype.
pub(crate) fn ints(dtype: DType, shape: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_i64(TensorType::new(dtype, shape), values).unwrap()
}

/// A tensor of numbers, rounded to any dtype.
pub(crate) fn floats(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_f64(TensorType::new(dtype, shape), values).unwrap()
}

/// A constant size.
pub(crate) fn dim(value: i32) -> Dim {
    Dim::from(value)
}
