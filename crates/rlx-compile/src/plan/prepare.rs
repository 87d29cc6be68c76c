//! Weight-only work: what is computed from weights and constants alone, once at load.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rlx_ir::text::literal;
use rlx_ir::{DType, OpRef, Tensor, TensorType, WeightInit};
use rustc_hash::FxHashSet;
use sha2::{Digest, Sha256};

use crate::target::Layout;

/// An expression of fewer ops is written in full.
const MAX_WRITTEN_OPS: usize = 32;

/// A weight in the form and layout that a step wants.
#[derive(Clone, Debug)]
pub struct PreparedWeight {
    /// Its values.
    pub expr: Arc<WeightExpr>,
    /// The layout, chosen by the backend.
    pub layout: Layout,
}

impl PreparedWeight {
    /// Dtype and sizes.
    pub fn ty(&self) -> &TensorType {
        self.expr.ty()
    }

    /// What tells this weight from others of the same source: expression and layout.
    pub fn key(&self) -> String {
        format!("{} as {}", self.expr, self.layout)
    }
}

/// A value that depends on weights and constants alone.
#[derive(Clone, Debug)]
pub enum WeightExpr {
    /// A weight of the model, by name.
    Source {
        /// The name in the weight source.
        name: String,
        /// Dtype and sizes that the graph wants; the source converts where it holds another dtype.
        ty: TensorType,
        /// Where its values come from.
        init: WeightInit,
    },
    /// A constant of the graph.
    Const(Arc<Tensor>),
    /// An op on such values.
    Op(OpExpr),
}

/// A result of an op on values that depend on weights and constants alone.
///
/// Operands may be shared, and nest as deep as a graph is long: whoever walks them goes without recursion, and sees each once.
#[derive(Clone, Debug)]
pub struct OpExpr {
    /// The op.
    pub op: OpRef,
    /// Its operands.
    pub operands: Vec<Arc<WeightExpr>>,
    /// Which of its results.
    pub index: usize,
    /// The types of all its results.
    pub results: Vec<TensorType>,
    /// What [`digest`](Self::digest) gives, once it was asked for.
    digest: OnceLock<[u8; 32]>,
}

impl OpExpr {
    /// The result `index` of `op` on `operands`, whose results have the types `results`.
    pub fn new(
        op: OpRef,
        operands: Vec<Arc<WeightExpr>>,
        index: usize,
        results: impl Into<Vec<TensorType>>,
    ) -> Self {
        Self { op, operands, index, results: results.into(), digest: OnceLock::new() }
    }

    /// The operands that are ops themselves.
    pub fn inner(&self) -> impl Iterator<Item = &OpExpr> {
        self.operands.iter().filter_map(|e| if let WeightExpr::Op(op) = &**e { Some(op) } else { None })
    }

    /// The number of ops in it, each as often as it is read; at most `most`.
    fn ops_up_to(&self, most: usize) -> usize {
        let (mut count, mut stack) = (0, vec![self]);
        while let Some(expr) = stack.pop() {
            count += 1;
            if count >= most {
                return most;
            }
            stack.extend(expr.inner().take(most));
        }
        count
    }

    /// The SHA-256 of the ops, attributes and leaves.
    fn digest(&self) -> [u8; 32] {
        for operand in &self.operands {
            for expr in operand.ops_in_order(|op| op.digest.get().is_some()) {
                if let WeightExpr::Op(op) = expr {
                    op.own_digest();
                }
            }
        }
        self.own_digest()
    }

    /// The digest, where the operands have theirs.
    fn own_digest(&self) -> [u8; 32] {
        *self.digest.get_or_init(|| {
            let mut text = String::new();
            let write_op = &mut |f: &mut String, op: &OpExpr| write_hex(f, &op.own_digest());
            // Writing into a string does not fail.
            let _ = self.write(&mut text, write_op);
            Sha256::digest(text.as_bytes()).into()
        })
    }

    /// Name, attributes, result and operands, of which `write_op` writes those that are ops.
    fn write<W: fmt::Write>(
        &self,
        f: &mut W,
        write_op: &mut dyn FnMut(&mut W, &OpExpr) -> fmt::Result,
    ) -> fmt::Result {
        write!(f, "{}", self.op.name())?;
        let attrs = self.op.attrs();
        if !attrs.is_empty() {
            write!(f, " {attrs}")?;
        }
        if self.index > 0 {
            write!(f, "#{}", self.index)?;
        }
        f.write_str("(")?;
        for (i, operand) in self.operands.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            match &**operand {
                WeightExpr::Op(op) => write_op(f, op)?,
                leaf => write!(f, "{leaf}")?,
            }
        }
        f.write_str(")")
    }
}

impl Drop for OpExpr {
    fn drop(&mut self) {
        let mut operands = std::mem::take(&mut self.operands);
        while let Some(operand) = operands.pop() {
            if let Some(WeightExpr::Op(mut op)) = Arc::into_inner(operand) {
                operands.append(&mut op.operands);
            }
        }
    }
}

impl fmt::Display for OpExpr {
    /// In full where it is short; else operands that are ops are told by their hashes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.ops_up_to(MAX_WRITTEN_OPS) < MAX_WRITTEN_OPS {
            return self.write(f, &mut |f, op| write!(f, "{op}"));
        }
        self.write(f, &mut |f, op| {
            write!(f, "{} sha256 ", op.op.name())?;
            write_hex(f, &op.digest())
        })
    }
}

impl WeightExpr {
    /// Dtype and sizes.
    pub fn ty(&self) -> &TensorType {
        match self {
            Self::Source { ty, .. } => ty,
            Self::Const(t) => t.ty(),
            Self::Op(OpExpr { results, index, .. }) => &results[*index],
        }
    }

    /// The ops in it, itself among them, each once, operands before what reads them; without those that `skip` names and what
    /// is in them alone.
    pub fn ops_in_order(&self, skip: impl Fn(&OpExpr) -> bool) -> Vec<&Self> {
        let (mut order, mut seen) = (Vec::new(), FxHashSet::default());
        let mut stack = vec![(self, false)];
        while let Some((expr, operands_done)) = stack.pop() {
            let Self::Op(op) = expr else { continue };
            if operands_done {
                order.push(expr);
            } else if !skip(op) && seen.insert(std::ptr::from_ref(expr)) {
                stack.push((expr, true));
                stack.extend(op.operands.iter().rev().map(|e| (&**e, false)));
            }
        }
        order
    }
}

impl fmt::Display for WeightExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Source { name, ty, init } => {
                write!(f, "{name:?}: {ty}")?;
                match init {
                    WeightInit::External => Ok(()),
                    WeightInit::Seed(seed) => write!(f, " = seed {seed}"),
                    WeightInit::Inline(t) => write!(f, " = {}", digest(t)),
                }
            }
            Self::Const(t) => write!(f, "const {} = {}", t.ty(), digest(t)),
            Self::Op(op) => write!(f, "{op}"),
        }
    }
}

fn write_hex<W: fmt::Write>(f: &mut W, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

/// The values where they are few, else their SHA-256. Weights with equal keys are shared by all that a runtime loads, and what
/// is hashed comes from users: two constants must neither meet by chance nor be made to meet.
fn digest(t: &Tensor) -> String {
    if t.elems() <= 4 && t.dtype() != DType::Bool {
        return literal(t);
    }
    let mut text = "sha256 ".to_owned();
    // Writing into a string does not fail.
    let _ = write_hex(&mut text, &Sha256::digest(t.bytes()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(ty: &TensorType, bytes: &[u8]) -> String {
        WeightExpr::Const(Arc::new(Tensor::from_bytes(ty.clone(), bytes.to_vec()).unwrap())).to_string()
    }

    /// Constants of one type have one key only where all their bits are equal.
    #[test]
    fn constants_that_differ_in_a_bit_have_different_keys() {
        for dtype in DType::SCALARS {
            for elems in [1, 4, 5] {
                let ty = TensorType::new(dtype, [elems]);
                let size = ty.bytes().unwrap();
                // Infinity, NaN of two payloads, zeros of both signs, and integers that f64 cannot hold are among these.
                for base in [vec![0; size], vec![0xff; size], [0, 0, 0, 0, 0, 0, 0xf0, 0x7f].repeat(5)] {
                    let base = &base[..size];
                    let known = key(&ty, base);
                    assert_eq!(key(&ty, base), known);
                    for bit in 0..8 * size {
                        let mut other = base.to_vec();
                        other[bit / 8] ^= 1 << (bit % 8);
                        assert_ne!(key(&ty, &other), known, "{ty}, bit {bit} of {base:?}");
                    }
                }
            }
        }
        let large = |v: i64| key(&TensorType::new(DType::I64, [1]), &v.to_le_bytes());
        assert_ne!(large(9_007_199_254_740_992), large(9_007_199_254_740_993));
        assert_eq!(large(9_007_199_254_740_993), "const i64[1] = [9007199254740993]");
    }
}
