//! What an op is: one trait that holds everything that is true of an op on every device.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::error::{Error, ErrorKind, Result};
use crate::symbols::Bindings;
use crate::tensor::Tensor;
use crate::text::is_word;
use crate::types::{TensorType, Type};
use crate::view::View;

/// Whether backends must run an op, or may leave it to its decomposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Every backend must run it.
    Core,
    /// [`Op::decompose`] gives it in terms of others; a backend may have a kernel of its own.
    Composite,
}

/// An op with its attributes.
///
/// Shape and dtype rule, cost, reference evaluation and text form are all here, so that each has one place. An op is
/// immutable and shared; graphs hold it as an [`OpRef`].
pub trait Op: fmt::Debug + Send + Sync + Any {
    /// The name in the text form.
    fn name(&self) -> &str;

    /// The tier.
    fn tier(&self) -> Tier {
        Tier::Core
    }

    /// The attributes, such that the op's parser makes an equal op of them.
    fn attrs(&self) -> Attrs {
        Attrs::new()
    }

    /// The types of the results, from those of the operands.
    ///
    /// # Errors
    /// `InvalidArgument` where the operands do not fit; see [`operand_error`].
    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>>;

    /// Evaluates the op, slowly and obviously, accumulating in f64 and rounding each result once.
    ///
    /// # Errors
    /// `InvalidArgument` where the data is out of range (an index, say).
    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>>;

    /// Floating point operations and bytes moved. The default counts no flops, and each operand and result once.
    fn cost(&self, operands: &[Type], results: &[Type]) -> Cost {
        Cost::of_types(Dim::constant(0), operands, results)
    }

    /// Emits the same meaning in other ops; `None` for primitives.
    ///
    /// # Errors
    /// An error of the builder.
    fn decompose(&self, _builder: &mut Builder, _operands: &[Value]) -> Result<Option<Vec<Value>>> {
        Ok(None)
    }

    /// Whether the first operand is a state that the first result continues (the op writes it in place).
    fn writes_state(&self) -> bool {
        false
    }

    /// Pairs of sizes of which the first must not exceed the second, where symbols decide: [`infer`](Self::infer) cannot
    /// see it, and an op that becomes a view has no kernel that could refuse it. Checked when sizes are bound.
    fn conditions(&self, _operands: &[Type]) -> Vec<(Dim, Dim)> {
        Vec::new()
    }

    /// For ops that only rearrange or repeat the elements of their one operand: the result as a view of the
    /// operand's buffer. `None` where strides cannot say it, or the op computes something.
    fn view(&self, _operand: &View, _result: &Type) -> Option<View> {
        None
    }
}

impl dyn Op {
    /// This op as `T`, if it is one.
    pub fn downcast<T: Op>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref()
    }

    /// Whether this op is a `T`.
    pub fn is<T: Op>(&self) -> bool {
        self.downcast::<T>().is_some()
    }
}

/// A shared op.
pub type OpRef = Arc<dyn Op>;

/// What an op does and moves, as expressions over the graph's symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Floating point (or integer) operations; a multiply-add counts as two.
    pub flops: Dim,
    /// Bytes read.
    pub bytes_read: Dim,
    /// Bytes written.
    pub bytes_written: Dim,
}

impl Cost {
    /// `flops`, with each operand read once and each result written once.
    pub fn of_types(flops: Dim, operands: &[Type], results: &[Type]) -> Self {
        let sum = |types: &[Type]| types.iter().fold(Dim::constant(0), |sum, t| sum + t.bytes());
        Self { flops, bytes_read: sum(operands), bytes_written: sum(results) }
    }
}

/// What [`Op::eval`] works on.
#[derive(Debug)]
pub struct EvalContext<'a> {
    /// The operands, dense.
    pub operands: &'a [&'a Tensor],
    /// Dtypes and sizes of the results.
    pub results: &'a [TensorType],
    /// The sizes of the symbols.
    pub bindings: &'a Bindings,
}

/// A result of the reference evaluation, with what a tolerance is derived from.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// The result, rounded once.
    pub tensor: Tensor,
    /// The result before rounding, where the op has one in f64.
    pub exact: Option<Vec<f64>>,
    /// Per element the sum of the absolute values of all terms that were added up; `None` for ops that only move or
    /// round values.
    pub abs_terms: Option<Vec<f64>>,
    /// The number of terms that were added up per element (the reduction length K).
    pub terms: usize,
}

impl Evaluated {
    /// A result that has no rounding but to its dtype.
    pub fn moved(tensor: Tensor) -> Self {
        Self { tensor, exact: None, abs_terms: None, terms: 1 }
    }

    /// A result of arithmetic: `values` are rounded to `ty`, `abs_terms` are the sums of absolute terms over
    /// reductions of length `terms`.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn computed(ty: &TensorType, values: Vec<f64>, abs_terms: Vec<f64>, terms: usize) -> Result<Self> {
        let tensor = Tensor::from_f64(ty.clone(), &values)?;
        Ok(Self { tensor, exact: Some(values), abs_terms: Some(abs_terms), terms: terms.max(1) })
    }

    /// As [`computed`](Self::computed), for ops without a reduction: the absolute terms are the values themselves.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn elementwise(ty: &TensorType, values: Vec<f64>) -> Result<Self> {
        let abs = values.iter().map(|v| v.abs()).collect();
        Self::computed(ty, values, abs, 1)
    }

    /// The largest error that a kernel may have at each element, which accumulates with unit roundoff
    /// `accumulator`: `u_out |ref| + 4 u_acc sqrt(K) sum|terms|`.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn tolerance(&self, accumulator: f64) -> Result<Vec<f64>> {
        let dtype = self.tensor.dtype();
        let reference = self.tensor.to_f64()?;
        let out_error = |v: f64| {
            let smallest = if dtype == crate::DType::F16 { 2f64.powi(-25) } else { 0.0 };
            (dtype.unit_roundoff() * v.abs()).max(smallest)
        };
        let k = (self.terms as f64).sqrt();
        Ok(match &self.abs_terms {
            None => reference.iter().map(|_| 0.0).collect(),
            Some(abs) => {
                reference.iter().zip(abs).map(|(&v, &a)| out_error(v) + 4.0 * accumulator * k * a).collect()
            }
        })
    }
}

/// What kind of error a mistake within `op` is: `Bug` for a built-in op, `InvalidArgument` for one of the program's own.
pub fn fault_of(op: &dyn Op) -> ErrorKind {
    let built_in = crate::ops::TABLE.iter().any(|def| def.name == op.name());
    if built_in { ErrorKind::Bug } else { ErrorKind::InvalidArgument }
}

/// Evaluates `op`, and checks that it gives what it inferred.
///
/// # Errors
/// What the op reports; `Device` where there is no memory for operands or results of these sizes; `InvalidArgument`, for a built-in op `Bug`, where it gives results of other types than
/// [`cx.results`](EvalContext::results).
pub fn evaluate(op: &dyn Op, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
    for ty in cx.operands.iter().map(|t| t.ty()).chain(cx.results) {
        check_memory(ty)?;
    }
    let outs = op.eval(cx)?;
    if outs.iter().map(|o| o.tensor.ty()).eq(cx.results) {
        return Ok(outs);
    }
    let list = |types: &mut dyn Iterator<Item = &TensorType>| {
        types.map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let (expected, got) = (list(&mut cx.results.iter()), list(&mut outs.iter().map(|o| o.tensor.ty())));
    let what = format!("eval of {}: expected ({expected}), as inferred, got ({got})", op.name());
    Err(Error::new(fault_of(op), what))
}

/// Evaluations hold f64 values, or positions, and their absolute terms beside the result.
const WORKING_BYTES: usize = 24;

/// Smaller values are evaluated without asking for the memory before.
const SMALL_ELEMS: usize = 1 << 16;

/// Whether an op can be evaluated on values of type `ty`: so that evaluations need not ask at each list that they make.
fn check_memory(ty: &TensorType) -> Result<()> {
    // An axis of 0 makes it empty, but strides of the others must be there.
    let extent = ty.shape.iter().try_fold(WORKING_BYTES, |all, &size| all.checked_mul(size.max(1)));
    if extent.is_none() {
        crate::bail!(InvalidArgument, "the size of {ty} overflows");
    }
    if ty.elems() > SMALL_ELEMS {
        crate::tensor::room::<[u8; WORKING_BYTES]>(ty, ty.elems())?;
    }
    Ok(())
}

/// An error about operand `index`: what was expected and what came.
pub fn operand_error(index: usize, expected: impl fmt::Display, got: impl fmt::Display) -> Error {
    Error::new(ErrorKind::InvalidArgument, format!("operand {index}: expected {expected}, got {got}"))
}

/// Checks the number of operands.
///
/// # Errors
/// `InvalidArgument` where it is not within `range`.
pub fn check_arity(operands: &[Type], range: std::ops::RangeInclusive<usize>) -> Result<()> {
    if range.contains(&operands.len()) {
        return Ok(());
    }
    let (lo, hi) = (range.start(), range.end());
    let expected = match (lo == hi, *hi == usize::MAX) {
        (true, _) => format!("{lo}"),
        (_, true) => format!("at least {lo}"),
        _ => format!("{lo} to {hi}"),
    };
    crate::bail!(InvalidArgument, "expected {expected} operands, got {}", operands.len())
}

/// Whether an op may have this name: a word of the text form that is no declaration there.
pub(crate) fn check_op_name(name: &str) -> Result<()> {
    if !is_word(name) || matches!(name, "input" | "state" | "weight" | "const") {
        crate::bail!(
            InvalidArgument,
            "{name:?} is no name of an op: it begins with an ASCII letter or _, goes on with these, digits and points, and is \
             none of input, state, weight and const"
        );
    }
    Ok(())
}

/// Makes an op from its attributes.
pub type ParseOp = fn(&mut AttrReader<'_>) -> Result<OpRef>;

/// One row of the table of ops.
#[derive(Clone, Copy)]
pub struct OpDef {
    /// The name in the text form.
    pub name: &'static str,
    /// The tier.
    pub tier: Tier,
    /// Makes the op from its attributes.
    pub parse: ParseOp,
}

impl fmt::Debug for OpDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?})", self.name, self.tier)
    }
}

/// The ops that parser, verifier, compiler and session know: the built-in table and a user's own.
#[derive(Clone, Debug)]
pub struct OpSet(Arc<BTreeMap<&'static str, OpDef>>);

impl OpSet {
    /// The built-in ops.
    pub fn builtin() -> Self {
        Self(Arc::new(crate::ops::TABLE.iter().map(|d| (d.name, *d)).collect()))
    }

    /// The built-in ops and `more`.
    ///
    /// # Errors
    /// `InvalidArgument` where a name is taken, or is none that the text form can hold: it begins with an ASCII letter or `_`, goes
    /// on with these, digits and `.`, and is none of `input`, `state`, `weight` and `const`.
    pub fn with(&self, more: impl IntoIterator<Item = OpDef>) -> Result<Self> {
        let mut table = (*self.0).clone();
        for def in more {
            if let Err(e) = check_op_name(def.name) {
                crate::bail!(InvalidArgument, "{e}");
            }
            if table.insert(def.name, def).is_some() {
                crate::bail!(InvalidArgument, "an op named {} is already there", def.name);
            }
        }
        Ok(Self(Arc::new(table)))
    }

    /// The definition of `name`.
    pub fn get(&self, name: &str) -> Option<&OpDef> {
        self.0.get(name)
    }

    /// All definitions, by name.
    pub fn iter(&self) -> impl Iterator<Item = &OpDef> {
        self.0.values()
    }

    /// Makes the op `name` from its attributes.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is unknown, an attribute is missing, wrong or unknown, or the definition makes an op of
    /// another name.
    pub fn make(&self, name: &str, attrs: Attrs) -> Result<OpRef> {
        let Some(def) = self.get(name) else {
            crate::bail!(InvalidArgument, "unknown op {name}");
        };
        let mut reader = AttrReader::new(def.name, attrs);
        let op = (def.parse)(&mut reader)?;
        reader.finish()?;
        if op.name() != def.name {
            crate::bail!(
                InvalidArgument,
                "the definition of the op {name} makes one that is called {}; both must have one name",
                op.name()
            );
        }
        Ok(op)
    }
}

impl Default for OpSet {
    fn default() -> Self {
        Self::builtin()
    }
}
