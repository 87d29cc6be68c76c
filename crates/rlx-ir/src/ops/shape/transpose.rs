//! `transpose`: axes in another order.
//!
//! Shapes: `[d0, d1, ...] -> [d(perm[0]), d(perm[1]), ...]`; `perm` names every axis once. Dtypes: any; a block type keeps its
//! last axis last. Numerics: moves bytes only; a view.

use std::sync::Arc;

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::error::{Error, Result};
use crate::op::{EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::ops::util::{Units, for_each_index, strides, take_units};
use crate::types::Type;
use crate::view::View;

/// Axes in another order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// For each axis of the result the operand's axis.
    pub perm: Vec<usize>,
}

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "transpose", tier: Tier::Core, parse };

fn parse(reader: &mut AttrReader<'_>) -> Result<OpRef> {
    let perm: Option<Vec<usize>> =
        reader.ints("perm")?.into_iter().map(|axis| usize::try_from(axis).ok()).collect();
    match perm {
        Some(perm) => Ok(Arc::new(Transpose { perm })),
        None => crate::bail!(InvalidArgument, "transpose: an axis of perm is negative"),
    }
}

impl Op for Transpose {
    fn name(&self) -> &str {
        "transpose"
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().ints("perm", self.perm.iter().map(|&axis| i64::try_from(axis).unwrap_or(i64::MAX)))
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        let x = &operands[0];
        let mut sorted = self.perm.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            let expected =
                format!("rank {} to fit perm {:?}, which names each axis once", sorted.len(), self.perm);
            return Err(operand_error(0, expected, x));
        }
        if x.dtype.is_block() && self.perm.last() != x.rank().checked_sub(1).as_ref() {
            return Err(operand_error(0, "a dtype without blocks, as the last axis moves", x));
        }
        let dims: Vec<_> = self.perm.iter().map(|&axis| x.shape[axis].clone()).collect();
        Ok(vec![Type::new(x.dtype, dims)])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let x = cx.operands[0];
        let from = strides(&Units::of(x.ty()).shape);
        let mut positions = Vec::new();
        for_each_index(&Units::of(&cx.results[0]).shape, |index| {
            positions.push(index.iter().zip(&self.perm).map(|(i, &axis)| i * from[axis]).sum());
        });
        Ok(vec![Evaluated::moved(take_units(x, &cx.results[0], positions)?)])
    }

    fn view(&self, operand: &View, _result: &Type) -> Option<View> {
        Some(operand.permute(&self.perm))
    }
}

impl Builder {
    /// `x` with axis `perm[i]` as axis `i`.
    ///
    /// # Errors
    /// `InvalidArgument` where `perm` does not name each axis once, or the last axis of blocks moves.
    pub fn transpose(&mut self, x: Value, perm: impl Into<Vec<usize>>) -> Result<Value> {
        self.emit_one(Transpose { perm: perm.into() }, &[x])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;
    use crate::ops::testing::{attr_refusal, eval_one, infer_one, ints, refusal, round_trip};
    use crate::quant::BlockType;
    use crate::tensor::Tensor;
    use crate::types::TensorType;

    fn by(perm: &[usize]) -> Transpose {
        Transpose { perm: perm.to_vec() }
    }

    #[test]
    fn dims_follow_their_axes() {
        assert_eq!(infer_one(&by(&[2, 0, 1]), &["f16[N, M, 3]"]), "f16[3, N, M]");
        assert_eq!(infer_one(&by(&[]), &["f16[]"]), "f16[]");
        assert_eq!(infer_one(&by(&[1, 0, 2]), &["q4_0[2, 3, 32]"]), "q4_0[3, 2, 32]");
    }

    #[test]
    fn a_perm_that_is_none_is_refused() {
        for perm in [&[0][..], &[0, 0], &[0, 2], &[0, 1, 2]] {
            assert!(refusal(&by(perm), &["f32[N, 2]"]).starts_with("operand 0: expected rank"), "{perm:?}");
        }
        assert!(refusal(&by(&[1, 0]), &["q4_0[32, 32]"]).contains("without blocks"));
        assert!(attr_refusal("transpose", "perm = [-1, 0]").contains("negative"));
        assert!(attr_refusal("transpose", "").contains("perm is missing"));
    }

    #[test]
    fn three_axes_rotate() {
        let x = ints(DType::I16, &[2, 1, 3], &[1, 2, 3, 4, 5, 6]);
        let y = eval_one(by(&[2, 0, 1]), &[x]);
        assert_eq!((y.shape(), y.to_i64().unwrap()), (&[3usize, 2, 1][..], vec![1, 4, 2, 5, 3, 6]));
    }

    #[test]
    fn blocks_move_whole() {
        // Four blocks of 18 bytes, each filled with its own number.
        let bytes: Vec<u8> = (0..4u8).flat_map(|b| [b; 18]).collect();
        let ty = TensorType::new(DType::Block(BlockType::Q4_0), [2, 2, 32]);
        let y = eval_one(by(&[1, 0, 2]), &[Tensor::from_bytes(ty, bytes).unwrap()]);
        let firsts: Vec<u8> = y.bytes().chunks(18).map(|b| b[0]).collect();
        assert_eq!(firsts, [0, 2, 1, 3]);
    }

    #[test]
    fn the_text_form_round_trips() {
        assert_eq!(round_trip(by(&[1, 2, 0]), &["f32[N, 1, 2]"]), "transpose %x0 {perm = [1, 2, 0]}");
    }
}
