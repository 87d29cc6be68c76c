//! `fused_region`: elementwise ops that one kernel runs, as an inner graph.
//!
//! Shapes: the operands are those that the body declares as inputs, in order; each broadcasts to the one shape that all
//! results have. Symbols in the body are declared in the body and mean those of the graph around it.
//! Dtypes: as the body says.
//! Numerics: those of the body, op by op, each rounded to its dtype: putting ops into a region changes no result. A kernel may
//! keep intermediate values in f32; the tolerance counts the roundings that it then leaves out.

use std::collections::HashMap;
use std::sync::Arc;

use crate::attrs::{AttrReader, AttrValue, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Def, Graph, Node};
use crate::interp::{RunData, run};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::activation::gelu::Gelu;
use crate::ops::activation::silu::Silu;
use crate::ops::elementwise::binary::Binary;
use crate::ops::elementwise::cast::Cast;
use crate::ops::elementwise::compare::Compare;
use crate::ops::elementwise::select::Select;
use crate::ops::elementwise::unary::Unary;
use crate::ops::util::broadcast_shapes;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType, Type};

/// Elementwise ops that one kernel runs.
#[derive(Clone, Debug, PartialEq)]
pub struct FusedRegion {
    /// The ops, over inputs and constants.
    pub body: Graph,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "fused_region", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(FusedRegion { body: reader.graph("body")? }))
}

/// Whether `op` works on each element by itself, so that a region may hold it.
pub fn is_elementwise(op: &dyn Op) -> bool {
    op.is::<Unary>()
        || op.is::<Binary>()
        || op.is::<Compare>()
        || op.is::<Select>()
        || op.is::<Cast>()
        || op.is::<Gelu>()
        || op.is::<Silu>()
}

impl FusedRegion {
    /// The shape of all results, and the check of what a body may hold.
    fn result_shape(&self) -> Result<Shape> {
        let body = &self.body;
        if let Some(node) = body.nodes().iter().find(|n| !is_elementwise(n.op.as_ref())) {
            crate::bail!(InvalidArgument, "the body may hold elementwise ops only, not {}", node.op.name());
        }
        for info in body.values() {
            if matches!(info.def, Def::Weight { .. } | Def::State(_)) {
                crate::bail!(
                    InvalidArgument,
                    "the body may not declare %{}: only inputs and constants",
                    info.name
                );
            }
        }
        let Some((&first, rest)) = body.outputs().split_first() else {
            crate::bail!(InvalidArgument, "the body returns nothing");
        };
        let shape = body.ty(first).shape.clone();
        for &output in rest {
            if body.ty(output).shape != shape {
                let (name, ty) = (&body.value(output).name, body.ty(output));
                crate::bail!(
                    InvalidArgument,
                    "result %{name} is {ty}, but all results must have shape {shape}"
                );
            }
        }
        for &output in body.outputs() {
            if !matches!(body.value(output).def, Def::Result { .. }) {
                crate::bail!(InvalidArgument, "result %{} is computed by no op", body.value(output).name);
            }
        }
        // What is not returned must fit as well: a kernel walks the results' shape.
        for info in body.values() {
            if broadcast_shapes(&info.ty.shape, &shape).ok().as_ref() != Some(&shape) {
                let (name, ty) = (&info.name, &info.ty);
                crate::bail!(
                    InvalidArgument,
                    "%{name} is {ty}, which does not broadcast to the results' {shape}"
                );
            }
        }
        Ok(shape)
    }
}

impl Op for FusedRegion {
    fn name(&self) -> &str {
        "fused_region"
    }

    fn tier(&self) -> Tier {
        Tier::Composite
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().with("body", AttrValue::Graph(Box::new(self.body.clone())))
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        let inputs: Vec<(Value, &str)> = self.body.inputs().collect();
        check_arity(operands, inputs.len()..=inputs.len())?;
        self.result_shape()?;
        for (i, (operand, (value, name))) in operands.iter().zip(&inputs).enumerate() {
            let declared = self.body.ty(*value);
            if operand != declared {
                return Err(operand_error(i, format!("{declared}, as the body declares {name:?}"), operand));
            }
        }
        Ok(self.body.outputs().iter().map(|&v| self.body.ty(v).clone()).collect())
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        // Every value of the body is returned, since the error of a result comes from all of them.
        let mut all = self.body.clone();
        let results: Vec<Value> = all.nodes().iter().flat_map(|n| n.results.iter().copied()).collect();
        all.outputs = results.clone();
        let mut data = RunData { bindings: cx.bindings.clone(), ..RunData::default() };
        let mut known: HashMap<Value, (Tensor, Vec<f64>)> = HashMap::new();
        for (&tensor, (value, name)) in cx.operands.iter().zip(self.body.inputs()) {
            data.inputs.insert(name.to_owned(), tensor.clone());
            known.insert(value, (tensor.clone(), vec![0.0; tensor.elems()]));
        }
        for value in self.body.value_ids() {
            if let Def::Const(tensor) = &self.body.value(value).def {
                known.insert(value, ((**tensor).clone(), vec![0.0; tensor.elems()]));
            }
        }
        let evaluated: HashMap<Value, Evaluated> = results.into_iter().zip(run(&all, &mut data)?).collect();
        for node in self.body.nodes() {
            let result = node.results[0];
            let Some(value) = evaluated.get(&result) else { continue };
            let returned = self.body.outputs().contains(&result);
            let terms = error_terms(node, value, &known, cx, returned)?;
            known.insert(result, (value.tensor.clone(), terms));
        }
        let outputs = self.body.outputs().iter().filter_map(|v| {
            let (value, (_, terms)) = (evaluated.get(v)?, known.get(v)?);
            Some(Evaluated { abs_terms: Some(terms.clone()), ..value.clone() })
        });
        Ok(outputs.collect())
    }

    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        let flops = self.body.nodes().iter().fold(Dim::constant(0), |sum, node| {
            sum + node.op.cost(&self.body.operand_types(node), &self.body.result_types(node)).flops
        });
        Cost::of_types(flops, operands, results)
    }

    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut map: HashMap<Value, Value> =
            self.body.inputs().map(|(v, _)| v).zip(operands.iter().copied()).collect();
        for value in self.body.value_ids() {
            if let Def::Const(tensor) = &self.body.value(value).def {
                let constant = b.shared_constant(tensor.clone());
                map.insert(value, constant);
            }
        }
        let lookup = |map: &HashMap<Value, Value>, v: &Value| {
            let missing =
                || Error::new(crate::ErrorKind::Bug, "fused_region: a value of the body is undefined");
            map.get(v).copied().ok_or_else(missing)
        };
        for node in self.body.nodes() {
            let inner = node.operands.iter().map(|v| lookup(&map, v)).collect::<Result<Vec<_>>>()?;
            let results = b.emit_ref(node.op.clone(), &inner)?;
            map.extend(node.results.iter().copied().zip(results));
        }
        self.body.outputs().iter().map(|v| lookup(&map, v)).collect::<Result<Vec<_>>>().map(Some)
    }
}

/// How far an operand is moved to see how a result follows, relative to its own absolute terms.
const NUDGE: f64 = 1.0 / (1 << 20) as f64;

/// The absolute terms of a node's result: its own, and those of its operands times its slope, which is measured by
/// moving each operand both ways. A condition that an error could flip is not counted.
fn error_terms(
    node: &Node,
    value: &Evaluated,
    known: &HashMap<Value, (Tensor, Vec<f64>)>,
    cx: &EvalContext<'_>,
    returned: bool,
) -> Result<Vec<f64>> {
    let ty = value.tensor.ty();
    let zeros = vec![0.0; ty.elems()];
    if !ty.dtype.is_float() {
        return Ok(zeros);
    }
    let widen = |t: &Tensor, ty: &TensorType| Tensor::from_f64(ty.clone(), &t.to_f64()?);
    let wide_ty = |t: &TensorType| {
        let dtype = if t.dtype.is_float() { DType::F64 } else { t.dtype };
        TensorType::new(dtype, t.shape.clone())
    };
    let mut operands = Vec::with_capacity(node.operands.len());
    for operand in &node.operands {
        let Some((tensor, terms)) = known.get(operand) else { return Ok(zeros) };
        let tensor = match tensor.dtype().is_float() {
            true => widen(tensor, &wide_ty(tensor.ty()))?,
            false => tensor.clone(),
        };
        operands.push((tensor, terms));
    }
    let result_ty = wide_ty(ty);
    let eval = |tensors: &[&Tensor]| {
        let results = std::slice::from_ref(&result_ty);
        let cx = EvalContext { operands: tensors, results, bindings: cx.bindings };
        node.op.eval(&cx)?.remove(0).tensor.to_f64()
    };
    let originals: Vec<&Tensor> = operands.iter().map(|(t, _)| t).collect();
    let base = eval(&originals)?;
    let mut sum = value.abs_terms.clone().unwrap_or(zeros);
    for (i, (tensor, terms)) in operands.iter().enumerate() {
        if terms.iter().all(|t| *t == 0.0) {
            continue;
        }
        let mut slope = vec![0f64; sum.len()];
        for direction in [NUDGE, -NUDGE] {
            let x = tensor.to_f64()?;
            let moved: Vec<f64> = x.iter().zip(*terms).map(|(x, t)| x + direction * t).collect();
            let moved = Tensor::from_f64(tensor.ty().clone(), &moved)?;
            let mut tensors = originals.clone();
            tensors[i] = &moved;
            for (s, (y, y0)) in slope.iter_mut().zip(eval(&tensors)?.iter().zip(&base)) {
                let change = ((y - y0) / NUDGE).abs();
                *s = s.max(if change.is_finite() { change } else { 0.0 });
            }
        }
        sum.iter_mut().zip(slope).for_each(|(s, slope)| *s += slope);
    }
    if !returned && ty.dtype.unit_roundoff() > DType::F32.unit_roundoff() {
        // The tolerance multiplies by 4 u of the accumulator, which is f32.
        let rounding = ty.dtype.unit_roundoff() / (4.0 * DType::F32.unit_roundoff());
        sum.iter_mut().zip(&base).for_each(|(s, v)| *s += v.abs() * rounding);
    }
    Ok(sum)
}

impl Builder {
    /// Elementwise ops that one kernel runs; `operands` are the inputs of the body in order.
    ///
    /// # Errors
    /// `InvalidArgument` where the body holds other ops, or the operands do not fit.
    pub fn fused_region(&mut self, body: Graph, operands: &[Value]) -> Result<Vec<Value>> {
        self.emit(FusedRegion { body }, operands)
    }
}
