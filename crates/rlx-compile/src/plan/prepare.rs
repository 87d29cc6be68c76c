//! Weight-only work: what is computed from weights and constants alone, once at load.

use std::fmt;
use std::sync::Arc;

use rlx_ir::text::literal;
use rlx_ir::{DType, OpRef, Tensor, TensorType, WeightInit};
use sha2::{Digest, Sha256};

use crate::target::Layout;

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
    Op {
        /// The op.
        op: OpRef,
        /// Its operands.
        operands: Vec<Arc<WeightExpr>>,
        /// Which of its results.
        index: usize,
        /// The types of all its results.
        results: Vec<TensorType>,
    },
}

impl WeightExpr {
    /// Dtype and sizes.
    pub fn ty(&self) -> &TensorType {
        match self {
            Self::Source { ty, .. } => ty,
            Self::Const(t) => t.ty(),
            Self::Op { results, index, .. } => &results[*index],
        }
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
            Self::Op { op, operands, index, .. } => {
                write!(f, "{}", op.name())?;
                let attrs = op.attrs();
                if !attrs.is_empty() {
                    write!(f, " {attrs}")?;
                }
                if *index > 0 {
                    write!(f, "#{index}")?;
                }
                f.write_str("(")?;
                for (i, operand) in operands.iter().enumerate() {
                    write!(f, "{}{operand}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
        }
    }
}

/// The values where they are few, else their SHA-256. Weights with equal keys are shared by all that a runtime loads, and what
/// is hashed comes from users: two constants must neither meet by chance nor be made to meet.
fn digest(t: &Tensor) -> String {
    if t.elems() <= 4 && t.dtype() != DType::Bool {
        return literal(t);
    }
    Sha256::digest(t.bytes()).iter().fold("sha256 ".to_owned(), |text, byte| format!("{text}{byte:02x}"))
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
