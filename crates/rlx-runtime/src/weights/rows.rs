//! Reading a weight expression row by row, so that neither a source nor a converted copy has to be resident as a whole.
//!
//! An expression is opened op by op, operands first, so that what is shared is computed once, however deep it lies.
//!
//! Weights, casts between float and block dtypes, and concatenation along the first axis are streamed. Other weight-only ops are
//! evaluated by the reference interpreter: they are rare and small (an offset added to a norm, say).

use std::collections::HashMap;
use std::ops::Range;

use rlx_compile::plan::{OpExpr, WeightExpr};
use rlx_ir::attrs::AttrValue;
use rlx_ir::convert::{BlockEncoder, convert_row};
use rlx_ir::op::{self, EvalContext};
use rlx_ir::{Bindings, DType, ErrorKind, Op, Tensor, TensorType, WeightInit, interp};

use super::bytes::WeightBytes;
use super::source::{WeightData, WeightSource};
use crate::error::{Error, Result};

/// Rows of a weight, in order or not: the last axis is a row.
pub trait RowSource {
    /// Dtype and sizes of the whole.
    fn ty(&self) -> &TensorType;

    /// The number of rows: the product of all axes but the last; 1 for a scalar.
    fn rows(&self) -> usize {
        let shape = &self.ty().shape;
        shape[..shape.len().saturating_sub(1)].iter().product()
    }

    /// Elements per row; 1 for a scalar.
    fn row_elems(&self) -> usize {
        self.ty().shape.last().copied().unwrap_or(1)
    }

    /// Bytes per row.
    ///
    /// # Errors
    /// `InvalidArgument` where the row is no multiple of the block.
    fn row_bytes(&self) -> Result<usize> {
        match self.ty().dtype.row_bytes(self.row_elems()) {
            Some(bytes) => Ok(bytes),
            None => rlx_ir::bail!(InvalidArgument, "rows of {} are no multiple of the block", self.ty()),
        }
    }

    /// Reads `rows` into `out`, which has exactly their bytes. File pages that were read are given back to the system.
    ///
    /// # Errors
    /// Errors of the source; `InvalidArgument` where `rows` is out of range or `out` has another size.
    fn read(&mut self, rows: Range<usize>, out: &mut [u8]) -> Result<()>;

    /// All bytes without a copy, where the source holds them in this very form.
    fn whole(&self) -> Option<WeightBytes> {
        None
    }
}

/// Opens `expr` for reading.
///
/// # Errors
/// Errors of the source; `InvalidFile` where a tensor has another shape than the graph wants.
pub fn open_rows(expr: &WeightExpr, source: &dyn WeightSource) -> Result<Box<dyn RowSource>> {
    let order = expr.ops_in_order(|_| false);
    let mut open = Opened::default();
    for op in order.iter().filter_map(|e| as_op(e)) {
        op.inner().for_each(|inner| *open.readers.entry(inner).or_default() += 1);
    }
    for &inner in &order {
        let Some(op) = as_op(inner) else { continue };
        let (mut parts, mut depth) = (Vec::with_capacity(op.operands.len()), 0);
        for operand in &op.operands {
            parts.push(match as_op(operand) {
                Some(operand) => {
                    let part = open.take(operand)?;
                    depth = depth.max(part.depth);
                    part.rows
                }
                None => open_one(operand, Vec::new(), source)?,
            });
        }
        let rows = open_one(inner, parts, source)?;
        let depth = if rows.whole().is_some() { 0 } else { depth + 1 };
        let part = Part { rows, depth };
        open.parts.insert(op, if depth < MAX_STREAMS { part } else { part.resident()? });
    }
    match as_op(expr) {
        Some(op) => Ok(open.take(op)?.rows),
        None => open_one(expr, Vec::new(), source),
    }
}

/// Conversions that read each other row by row, at most: the rows of a longer chain are kept in between.
const MAX_STREAMS: usize = 16;

fn as_op(expr: &WeightExpr) -> Option<&OpExpr> {
    if let WeightExpr::Op(op) = expr { Some(op) } else { None }
}

/// What was opened of an expression and is still to be read.
#[derive(Default)]
struct Opened {
    parts: HashMap<*const OpExpr, Part>,
    /// How often each is still to be taken.
    readers: HashMap<*const OpExpr, usize>,
}

impl Opened {
    /// The rows of `op`: those that are kept where it is read again later.
    fn take(&mut self, op: &OpExpr) -> Result<Part> {
        let op = std::ptr::from_ref(op);
        let Some(part) = self.parts.remove(&op) else {
            rlx_ir::bail!(Bug, "an operand of a weight expression was not opened");
        };
        let again = match self.readers.get_mut(&op) {
            Some(readers) => {
                *readers = readers.saturating_sub(1);
                *readers > 0
            }
            None => false,
        };
        if !again {
            return Ok(part);
        }
        let part = part.resident()?;
        let (ty, bytes) = (part.rows.ty().clone(), part.rows.whole());
        self.parts.insert(op, part);
        match bytes {
            Some(bytes) => Ok(Part { rows: Box::new(Direct { data: WeightData { ty, bytes } }), depth: 0 }),
            None => rlx_ir::bail!(Bug, "the rows of {ty} were not kept"),
        }
    }
}

/// The rows of an op in an expression.
struct Part {
    rows: Box<dyn RowSource>,
    /// How many sources read each other for a row; 0 where the rows are there.
    depth: usize,
}

impl Part {
    /// The same with all rows there.
    fn resident(mut self) -> Result<Self> {
        if self.rows.whole().is_some() {
            return Ok(self);
        }
        let (ty, rows) = (self.rows.ty().clone(), self.rows.rows());
        let bytes = WeightBytes::filled(ty.bytes()?, |out| self.rows.read(0..rows, out))?;
        Ok(Self { rows: Box::new(Direct { data: WeightData { ty, bytes } }), depth: 0 })
    }
}

/// Opens `expr`, whose operands are open.
fn open_one(
    expr: &WeightExpr,
    mut parts: Vec<Box<dyn RowSource>>,
    source: &dyn WeightSource,
) -> Result<Box<dyn RowSource>> {
    Ok(match expr {
        WeightExpr::Const(t) => Box::new(Direct::of_tensor(t)),
        WeightExpr::Source { name, ty, init } => match init {
            WeightInit::Inline(t) => Box::new(Direct::of_tensor(t)),
            WeightInit::Seed(seed) => Box::new(Direct::of_tensor(&interp::seeded(ty, *seed)?)),
            WeightInit::External => {
                let data = source.weight(name)?;
                let converts = data.ty.dtype == ty.dtype || (streams(data.ty.dtype) && streams(ty.dtype));
                if data.ty.shape != ty.shape || !converts {
                    // Tensors in memory are the program's own.
                    let kind = match data.bytes {
                        WeightBytes::Mapped(..) => ErrorKind::InvalidFile,
                        _ => ErrorKind::InvalidArgument,
                    };
                    let what = format!("tensor {name:?} is {}, but the graph wants {ty}", data.ty);
                    return Err(Error::new(kind, what));
                }
                let direct = Box::new(Direct { data });
                if direct.data.ty.dtype == ty.dtype {
                    direct
                } else {
                    let converted = Converted::new(direct, ty.clone(), BlockEncoder::ForLoad);
                    Box::new(Converted { tensor: Some(name.clone()), ..converted })
                }
            }
        },
        WeightExpr::Op(OpExpr { op, index, results, .. }) => {
            let ty = &results[*index];
            match (op.name(), parts.len()) {
                ("cast" | "quantize" | "dequantize", 1)
                    if streams(ty.dtype) && streams(parts[0].ty().dtype) =>
                {
                    Box::new(Converted::new(parts.remove(0), ty.clone(), BlockEncoder::Searching))
                }
                ("concat", _) if concat_axis(&**op) == Some(0) && ty.shape.len() > 1 => {
                    Box::new(Stacked { parts, ty: ty.clone() })
                }
                _ => Box::new(Direct::of_tensor(&evaluate(&**op, &mut parts, *index, results)?)),
            }
        }
    })
}

/// Whether rows of this dtype are converted to others.
fn streams(dtype: DType) -> bool {
    dtype.is_float() || dtype.is_block()
}

fn concat_axis(op: &dyn Op) -> Option<i64> {
    op.attrs().iter().find(|(n, _)| *n == "axis").and_then(|(_, v)| match v {
        AttrValue::Int(axis) => Some(*axis),
        _ => None,
    })
}

fn evaluate(
    op: &dyn Op,
    parts: &mut [Box<dyn RowSource>],
    index: usize,
    results: &[TensorType],
) -> Result<Tensor> {
    let mut operands = Vec::new();
    for part in parts {
        let mut tensor = Tensor::zeros(part.ty().clone())?;
        let rows = part.rows();
        part.read(0..rows, tensor.bytes_mut())?;
        operands.push(tensor);
    }
    let operands: Vec<&Tensor> = operands.iter().collect();
    let cx = EvalContext { operands: &operands, results, bindings: &Bindings::new() };
    let mut outs = op::evaluate(op, &cx).map_err(|e| e.context(op.name()))?;
    if index >= outs.len() {
        rlx_ir::bail!(Bug, "{} has no result {index}", op.name());
    }
    Ok(outs.swap_remove(index).tensor)
}

fn check(source: &(impl RowSource + ?Sized), rows: &Range<usize>, out: &[u8]) -> Result<()> {
    let fits = rows.start <= rows.end && rows.end <= source.rows();
    if !fits || source.row_bytes()?.checked_mul(rows.len()) != Some(out.len()) {
        rlx_ir::bail!(InvalidArgument, "rows {rows:?} of {} do not fit {} bytes", source.ty(), out.len());
    }
    Ok(())
}

/// Bytes that are there in the wanted form.
struct Direct {
    data: WeightData,
}

impl Direct {
    fn of_tensor(t: &Tensor) -> Self {
        Self { data: WeightData { ty: t.ty().clone(), bytes: WeightBytes::owned(t.bytes()) } }
    }
}

impl RowSource for Direct {
    fn ty(&self) -> &TensorType {
        &self.data.ty
    }

    fn read(&mut self, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        check(self, &rows, out)?;
        let row = self.row_bytes()?;
        let range = rows.start * row..rows.end * row;
        out.copy_from_slice(&self.data.bytes[range.clone()]);
        self.data.bytes.release(range);
        Ok(())
    }

    fn whole(&self) -> Option<WeightBytes> {
        Some(self.data.bytes.clone())
    }
}

/// Rows converted to another float or block dtype.
struct Converted {
    /// Its name, where it is a whole tensor of the source.
    tensor: Option<String>,
    inner: Box<dyn RowSource>,
    ty: TensorType,
    encoder: BlockEncoder,
    raw: Vec<u8>,
    floats: Vec<f32>,
}

impl Converted {
    fn new(inner: Box<dyn RowSource>, ty: TensorType, encoder: BlockEncoder) -> Self {
        Self { tensor: None, inner, ty, encoder, raw: Vec::new(), floats: Vec::new() }
    }
}

impl RowSource for Converted {
    fn ty(&self) -> &TensorType {
        &self.ty
    }

    fn read(&mut self, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        check(self, &rows, out)?;
        let (from, from_bytes, to_bytes) =
            (self.inner.ty().dtype, self.inner.row_bytes()?, self.row_bytes()?);
        let elems = self.row_elems();
        // A few hundred KB at a time keep the raw rows in cache.
        let step = (1usize << 18).div_ceil(from_bytes.max(1)).max(1);
        let mut start = rows.start;
        for piece in out.chunks_mut((step * to_bytes).max(1)) {
            let count = piece.len() / to_bytes.max(1);
            self.raw.resize(count * from_bytes, 0);
            self.inner.read(start..start + count, &mut self.raw)?;
            for (raw, out) in self.raw.chunks(from_bytes).zip(piece.chunks_mut(to_bytes)) {
                let to = (self.ty.dtype, out);
                let converted = convert_row((from, raw), to, elems, self.encoder, &mut self.floats);
                converted.map_err(|e| match &self.tensor {
                    Some(name) => e.context(format_args!("tensor {name:?}")),
                    None => e,
                })?;
            }
            start += count;
        }
        Ok(())
    }
}

/// Parts one after another along the first axis.
struct Stacked {
    parts: Vec<Box<dyn RowSource>>,
    ty: TensorType,
}

impl RowSource for Stacked {
    fn ty(&self) -> &TensorType {
        &self.ty
    }

    fn read(&mut self, rows: Range<usize>, out: &mut [u8]) -> Result<()> {
        check(self, &rows, out)?;
        let row = self.row_bytes()?;
        let (mut first, mut rest) = (0, out);
        for part in &mut self.parts {
            let end = first + part.rows();
            let (from, to) = (rows.start.clamp(first, end), rows.end.clamp(first, end));
            let (piece, left) = rest.split_at_mut((to - from) * row);
            rest = left;
            if from < to {
                part.read(from - first..to - first, piece)?;
            }
            first = end;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::MemoryWeights;
    use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
    use rlx_ir::ops::elementwise::cast::Cast;
    use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
    use rlx_ir::{DType, OpSet, text};
    use std::sync::Arc;

    fn source_expr(name: &str, dtype: DType, shape: &[usize]) -> Arc<WeightExpr> {
        let ty = TensorType::new(dtype, shape);
        Arc::new(WeightExpr::Source { name: name.into(), ty, init: WeightInit::External })
    }

    #[test]
    fn rows_convert_and_stack_like_the_interpreter() {
        let text = r#"graph @g {
          %a = weight "a" : f32[3, 32] = seed 1
          %b = weight "b" : f32[2, 32] = seed 2
          %c = concat %a, %b {axis = 0}
          return %c
        }"#;
        let graph = text::parse(text, &OpSet::builtin()).unwrap();
        let expected = interp::run(&graph, &mut interp::RunData::default()).unwrap().remove(0).tensor;
        let a = interp::seeded(&TensorType::new(DType::F32, [3, 32]), 1).unwrap();
        let b = interp::seeded(&TensorType::new(DType::F32, [2, 32]), 2).unwrap();
        let weights = MemoryWeights::new([("a".to_owned(), a), ("b".to_owned(), b)]);
        let operands = vec![source_expr("a", DType::F32, &[3, 32]), source_expr("b", DType::F32, &[2, 32])];
        let op = graph.nodes()[0].op.clone();
        let expr = WeightExpr::Op(OpExpr::new(op, operands, 0, vec![expected.ty().clone()]));
        let mut rows = open_rows(&expr, &weights).unwrap();
        let mut out = vec![0u8; 3 * 128];
        rows.read(1..4, &mut out).unwrap();
        assert_eq!(out, expected.bytes()[128..4 * 128]);
    }

    /// A node on weights alone gives what the interpreter does, bit for bit, whichever way its rows are read.
    #[test]
    fn conversions_of_weights_are_those_of_the_interpreter() {
        let wide = |ty: TensorType| {
            // Values whose rounding to f32 decides their rounding to f16 or bf16, sums of a seed's, and large ones.
            let mut values = interp::seeded(&ty, 7).unwrap().to_f64().unwrap();
            values[..4].copy_from_slice(&[
                1.0 + 2f64.powi(-11) + 2f64.powi(-40),
                1.0 + 2f64.powi(-8) + 2f64.powi(-40),
                -1.0 - 2f64.powi(-11) - 2f64.powi(-40),
                1.0 + 2f64.powi(-24) + 2f64.powi(-50),
            ]);
            Tensor::from_f64(ty, &values).unwrap()
        };
        let large = [16_777_217, 16_842_753, (1 << 53) + 1, (1 << 62) + (1 << 54) + 1, i64::MIN, -1, 0, 255];
        let integers = |dtype| {
            let values: Vec<i64> = (0..256).map(|i| large[i % 8]).collect();
            Tensor::from_i64(TensorType::new(dtype, [2, 128]), &values).unwrap()
        };
        let of = |dtype| match dtype {
            d if DType::is_float(d) => wide(TensorType::new(d, [2, 128])),
            DType::Block(_) => interp::seeded(&TensorType::new(dtype, [2, 128]), 3).unwrap(),
            _ => integers(dtype),
        };
        let floats = [DType::F64, DType::F32, DType::F16, DType::BF16];
        let blocks = ["q8_0", "q4_0", "q5_1", "q8_f32", "iq4_nl"].map(|n| DType::from_name(n).unwrap());
        let ints = [DType::I64, DType::I32, DType::U32, DType::I16, DType::I8, DType::U8, DType::Bool];
        let every = |from: &[DType], to: &[DType], op: &'static str| -> Vec<(DType, DType, &'static str)> {
            from.iter().flat_map(|&f| to.iter().map(move |&t| (f, t, op))).collect()
        };
        let mut cases = every(&floats, &floats, "cast");
        cases.extend(every(&ints, &floats, "cast"));
        cases.extend(every(&floats, &blocks, "quantize"));
        cases.extend(every(&blocks, &floats, "dequantize"));
        for (from, to, op) in cases {
            let x = of(from);
            let text = format!(
                "graph @g {{ %w = weight \"w\" : {from}[2, 128] %y = {op} %w {{to = {to}}} return %y }}"
            );
            let graph = text::parse(&text, &OpSet::builtin()).unwrap();
            let weights = |_: &str, _: &TensorType| Ok(x.clone());
            let mut data = interp::RunData { weights: Some(&weights), ..interp::RunData::default() };
            let expected = interp::run(&graph, &mut data).unwrap().remove(0).tensor;
            let operands = vec![source_expr("w", from, &[2, 128])];
            let results = vec![expected.ty().clone()];
            let expr = WeightExpr::Op(OpExpr::new(graph.nodes()[0].op.clone(), operands, 0, results));
            let weights = MemoryWeights::new([("w".to_owned(), x.clone())]);
            let mut out = vec![0u8; expected.bytes().len()];
            open_rows(&expr, &weights).unwrap().read(0..2, &mut out).unwrap();
            assert!(out == expected.bytes(), "{op} of {from} to {to}");
        }
    }

    /// A file of f64 for a graph in f16.
    #[test]
    fn a_source_of_another_float_type_rounds_once() {
        let v = 1.000_488_281_250_909;
        let x = Tensor::from_f64(TensorType::new(DType::F64, [1, 1]), &[v]).unwrap();
        let weights = MemoryWeights::new([("w".to_owned(), x)]);
        let mut out = [0u8; 2];
        open_rows(&source_expr("w", DType::F16, &[1, 1]), &weights).unwrap().read(0..1, &mut out).unwrap();
        let t = Tensor::from_bytes(TensorType::new(DType::F16, [1, 1]), out.to_vec()).unwrap();
        assert_eq!(t.to_f64().unwrap(), [1.000_976_562_5]);
    }

    fn of_op(op: impl Op, operands: &[&Arc<WeightExpr>], to: DType) -> Arc<WeightExpr> {
        let operands = operands.iter().map(|&e| e.clone()).collect();
        Arc::new(WeightExpr::Op(OpExpr::new(Arc::new(op), operands, 0, vec![TensorType::new(to, [2])])))
    }

    fn read(expr: &WeightExpr) -> Vec<f32> {
        let w = MemoryWeights::new([("w".to_owned(), Tensor::f32([2], &[0.5, -1.0]).unwrap())]);
        let mut rows = open_rows(expr, &w).unwrap();
        let mut out = vec![0u8; expr.ty().bytes().unwrap()];
        rows.read(0..1, &mut out).unwrap();
        Tensor::from_bytes(expr.ty().clone(), out).unwrap().to_f32().unwrap()
    }

    /// Written out, the expression would have 2^60 ops.
    #[test]
    fn shared_operands_are_computed_once() {
        let mut a = source_expr("w", DType::F32, &[2]);
        let mut expected = [0.5f32, -1.0];
        for _ in 0..60 {
            let t = of_op(Unary { kind: UnaryKind::Relu }, &[&a], DType::F32);
            a = of_op(Binary { kind: BinaryKind::Sub }, &[&a, &t], DType::F32);
            expected = expected.map(|v| v - v.max(0.0));
        }
        assert_eq!(read(&a), expected);
        // A cast streams, and is read twice.
        let wide = of_op(Cast { to: DType::F64 }, &[&source_expr("w", DType::F32, &[2])], DType::F64);
        let twice = of_op(Binary { kind: BinaryKind::Add }, &[&wide, &wide], DType::F64);
        assert_eq!(read(&twice), [1.0, -2.0]);
    }

    #[test]
    fn expressions_may_be_as_deep_as_graphs_are_long() {
        let mut a = source_expr("w", DType::F32, &[2]);
        for i in 0..100_000 {
            let to = if i % 2 == 0 { DType::F16 } else { DType::F32 };
            a = of_op(Cast { to }, &[&a], to);
        }
        assert_eq!(read(&a), [0.5, -1.0]);
        assert!(a.to_string().len() < 200, "{a}");
    }

    #[test]
    fn long_expressions_that_differ_in_a_leaf_have_different_keys() {
        let chain = |name: &str, length: usize| {
            let mut a = source_expr(name, DType::F32, &[2]);
            for _ in 0..length {
                a = of_op(Binary { kind: BinaryKind::Sub }, &[&a, &a], DType::F32);
            }
            a.to_string()
        };
        for length in [1, 4, 5, 6, 100] {
            assert_eq!(chain("w", length), chain("w", length));
            assert_ne!(chain("w", length), chain("v", length));
            assert_ne!(chain("w", length), chain("w", length + 1));
        }
    }

    #[test]
    fn a_wrong_shape_is_refused_by_name() {
        let w = MemoryWeights::new([("w".to_owned(), Tensor::f32([2, 2], &[0.0; 4]).unwrap())]);
        let e = open_rows(&source_expr("w", DType::F32, &[2, 3]), &w).err().unwrap();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("\"w\""), "{e}");
    }

    #[test]
    fn what_a_type_cannot_hold_is_told_with_the_tensor() {
        let values = Tensor::f32([1, 32], &[1e30; 32]).unwrap();
        let w = MemoryWeights::new([("w".to_owned(), values)]);
        let q8_0 = DType::Block(rlx_ir::quant::BlockType::Q8_0);
        let mut rows = open_rows(&source_expr("w", q8_0, &[1, 32]), &w).unwrap();
        let e = rows.read(0..1, &mut [0; 34]).unwrap_err();
        assert!(e.kind() == ErrorKind::NonFinite && e.message().starts_with("tensor \"w\""), "{e}");
    }

    #[test]
    fn f32_rows_become_f16_rows() {
        let w = MemoryWeights::new([("w".to_owned(), Tensor::f32([2, 1], &[1.0, 0.1]).unwrap())]);
        let mut rows = open_rows(&source_expr("w", DType::F16, &[2, 1]), &w).unwrap();
        let mut out = [0u8; 4];
        rows.read(0..2, &mut out).unwrap();
        let t = Tensor::from_bytes(TensorType::new(DType::F16, [2, 1]), out.to_vec()).unwrap();
        assert_eq!(t.to_f32().unwrap(), [1.0, 0.099_975_586]);
    }
}
