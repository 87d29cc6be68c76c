//! Weight-only work: what is computed from weights and constants alone, once at load.

use std::fmt;
use std::sync::Arc;

use rlx_ir::{OpRef, Tensor, TensorType, WeightInit};

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

/// The values where they are few, else their FNV-1a hash of 128 bits.
fn digest(t: &Tensor) -> String {
    if let (true, Ok(values)) = (t.elems() <= 4, t.to_f64()) {
        return format!("{values:?}");
    }
    let hash = t.bytes().iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |h, &b| {
        (h ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    });
    format!("hash {hash:032x}")
}
