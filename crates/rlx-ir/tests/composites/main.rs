//! Composite ops: values worked out by hand, refusals, text form, and the agreement with their decompositions.

#![allow(clippy::unwrap_used, clippy::panic)]

mod attention;
mod decompose;
mod errors;
mod fused;
mod text_form;
mod values;

use rlx_ir::interp::{RunData, run};
use rlx_ir::op::Evaluated;
use rlx_ir::text::parse;
use rlx_ir::{DType, OpSet, Tensor, TensorType};

/// Runs the text of a graph on inputs by name.
pub fn try_run(text: &str, inputs: &[(&str, Tensor)]) -> rlx_ir::Result<Vec<Evaluated>> {
    let graph = parse(text, &OpSet::builtin())?;
    let mut data = RunData::default();
    for (name, tensor) in inputs {
        data.inputs.insert((*name).to_owned(), tensor.clone());
    }
    run(&graph, &mut data)
}

/// The values of the first result.
pub fn values(text: &str, inputs: &[(&str, Tensor)]) -> Vec<f64> {
    try_run(text, inputs).unwrap_or_else(|e| panic!("{e}"))[0].tensor.to_f64().unwrap()
}

/// Why a graph cannot be parsed or run.
pub fn refusal(text: &str, inputs: &[(&str, Tensor)]) -> String {
    match try_run(text, inputs) {
        Ok(_) => panic!("not refused:\n{text}"),
        Err(e) => e.message().to_owned(),
    }
}

/// A tensor of numbers, rounded to `dtype`.
pub fn floats(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_f64(TensorType::new(dtype, shape), values).unwrap()
}

/// An f32 tensor.
pub fn f32s(shape: &[usize], values: &[f64]) -> Tensor {
    floats(DType::F32, shape, values)
}

/// An i32 vector.
pub fn i32s(values: &[i32]) -> Tensor {
    Tensor::i32([values.len()], values).unwrap()
}

/// Expects equal values, or values that differ by at most `tolerance`.
#[track_caller]
pub fn close(got: &[f64], want: &[f64], tolerance: f64) {
    assert_eq!(got.len(), want.len(), "{got:?} {want:?}");
    for (i, (g, w)) in got.iter().zip(want).enumerate() {
        let same = g == w || (g.is_nan() && w.is_nan()) || (g - w).abs() <= tolerance;
        assert!(same, "element {i}: {g}, not {w}\n{got:?}\n{want:?}");
    }
}
