//! `kv_write`: writes the keys or values of new tokens into the pages of a state.
//!
//! Shapes: `state[P, page_len, Hkv, D], x[N, Hkv, D], slots[N] -> state`, where a slot is `page * page_len + offset`. Dtypes: the
//! state is f16, f32 or bf16, `x` any float, slots i32. Numerics: `x` is rounded once to the state's dtype. A negative slot
//! skips its token, one beyond the pages is an error; of several tokens for one slot the last wins.

use std::sync::Arc;

use crate::attrs::AttrReader;
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::op::{Cost, EvalContext, Evaluated, Op, OpDef, OpRef, Tier, check_arity, operand_error};
use crate::tensor::Tensor;
use crate::types::{TensorType, Type};

/// Writes keys or values of new tokens into the pages of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KvWrite;

/// The row of the op table.
pub(crate) const DEF: OpDef = OpDef { name: "kv_write", tier: Tier::Core, parse };

fn parse(_: &mut AttrReader<'_>) -> Result<OpRef> {
    Ok(Arc::new(KvWrite))
}

impl Op for KvWrite {
    fn name(&self) -> &str {
        "kv_write"
    }

    fn infer(&self, operands: &[Type]) -> Result<Vec<Type>> {
        check_arity(operands, 3..=3)?;
        let (state, x, slots) = (&operands[0], &operands[1], &operands[2]);
        let (true, [_, _, heads, head_dim]) =
            (matches!(state.dtype, DType::F16 | DType::F32 | DType::BF16), state.shape.dims())
        else {
            return Err(operand_error(0, "pages [P, page_len, Hkv, D] of f16, f32 or bf16", state));
        };
        let fits = |dims: &[Dim]| matches!(dims, [_, h, d] if h == heads && d == head_dim);
        if !x.dtype.is_float() || !fits(x.shape.dims()) {
            return Err(operand_error(1, format!("a float of shape [N, {heads}, {head_dim}]"), x));
        }
        let expected = Type::new(DType::I32, [x.shape[0].clone()]);
        if *slots != expected {
            return Err(operand_error(2, expected, slots));
        }
        Ok(vec![state.clone()])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> Result<Vec<Evaluated>> {
        let (mut state, x) = (cx.operands[0].clone(), cx.operands[1]);
        let [pages, page_len, heads, head_dim] = *state.shape() else {
            crate::bail!(Bug, "kv_write of {}", state.ty());
        };
        let rounded = TensorType::new(state.dtype(), x.shape());
        let rounded = Tensor::from_f64(rounded, &x.to_f64()?)?;
        let (slots, row) = (pages * page_len, heads * head_dim * state.dtype().block_bytes());
        for (token, slot) in cx.operands[2].to_i64()?.into_iter().enumerate() {
            let Ok(at) = usize::try_from(slot) else { continue };
            if at >= slots {
                crate::bail!(
                    InvalidArgument,
                    "slot {slot} of token {token} is beyond the {slots} slots of {pages} pages"
                );
            }
            let from = &rounded.bytes()[token * row..][..row];
            state.bytes_mut()[at * row..][..row].copy_from_slice(from);
        }
        Ok(vec![Evaluated::moved(state)])
    }

    fn cost(&self, operands: &[Type], _results: &[Type]) -> Cost {
        // Pages that get no token are not touched.
        let written = Type::new(operands[0].dtype, operands[1].shape.clone());
        Cost::of_types(Dim::constant(0), &operands[1..], &[written])
    }

    fn writes_state(&self) -> bool {
        true
    }
}

impl Builder {
    /// `state` with the tokens `x` in their slots.
    ///
    /// # Errors
    /// `InvalidArgument` where shapes or dtypes do not fit.
    pub fn kv_write(&mut self, state: Value, x: Value, slots: Value) -> Result<Value> {
        self.emit_one(KvWrite, &[state, x, slots])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::{RunData, run};
    use crate::ops::testing::{eval_one, eval_refusal, floats, infer_one, ints, refusal, round_trip, ty};

    #[test]
    fn tokens_fit_the_pages() {
        let state = "f16[8, 16, 2, 64]";
        assert_eq!(infer_one(&KvWrite, &[state, "f32[N, 2, 64]", "i32[N]"]), state);
        assert!(
            refusal(&KvWrite, &["f64[8, 16, 2, 64]", "f32[N, 2, 64]", "i32[N]"]).starts_with("operand 0")
        );
        assert!(refusal(&KvWrite, &["f16[8, 2, 64]", "f32[N, 2, 64]", "i32[N]"]).starts_with("operand 0"));
        for x in ["f32[N, 1, 64]", "f32[N, 2, 32]", "f32[N, 128]", "i32[N, 2, 64]"] {
            let message = refusal(&KvWrite, &[state, x, "i32[N]"]);
            assert!(message.starts_with("operand 1: expected a float of shape [N, 2, 64]"), "{message}");
        }
        for slots in ["i64[N]", "i32[M]", "i32[N, 1]"] {
            let message = refusal(&KvWrite, &[state, "f32[N, 2, 64]", slots]);
            assert!(message.starts_with("operand 2: expected i32[N]"), "{message}");
        }
    }

    #[test]
    fn slots_are_written_skipped_and_overwritten() {
        // Two pages of two slots, one head of two.
        let state = floats(DType::F16, &[2, 2, 1, 2], &[1., 1., 2., 2., 3., 3., 4., 4.]);
        let x = [10., 11., 20., 21., 30., 31., 1.0 + 2f64.powi(-11), 65520.0];
        let x = floats(DType::F32, &[4, 1, 2], &x);
        let slots = ints(DType::I32, &[4], &[3, -1, 0, 3]);
        let y = eval_one(KvWrite, &[state, x, slots]).to_f64().unwrap();
        assert_eq!(y, [30., 31., 2., 2., 3., 3., 1., f64::INFINITY]);
    }

    #[test]
    fn a_slot_beyond_the_pages_is_an_error() {
        let state = floats(DType::F32, &[1, 2, 1, 1], &[0., 0.]);
        let x = floats(DType::F32, &[2, 1, 1], &[1., 2.]);
        let message = eval_refusal(KvWrite, &[state, x, ints(DType::I32, &[2], &[1, 2])]);
        assert!(message.contains("slot 2 of token 1 is beyond the 2 slots of 1 pages"), "{message}");
    }

    #[test]
    fn a_run_replaces_the_state() {
        let mut b = Builder::new("t");
        let state = b.state("kv", DType::BF16, [1, 2, 1, 1]).unwrap();
        let x = b.input("x", DType::F32, [1, 1, 1]).unwrap();
        let slots = b.input("slots", DType::I32, [1]).unwrap();
        let first = b.kv_write(state, x, slots).unwrap();
        let graph = b.finish(&[first]).unwrap();
        let mut data = RunData::default().state("kv", floats(DType::BF16, &[1, 2, 1, 1], &[5., 6.]));
        for (slot, value) in [(0, 7.0), (1, 8.0)] {
            data = data.input("x", Tensor::f32([1, 1, 1], &[value]).unwrap());
            data = data.input("slots", Tensor::i32([1], &[slot]).unwrap());
            run(&graph, &mut data).unwrap();
        }
        assert_eq!(data.states["kv"].to_f64().unwrap(), [7.0, 8.0]);
    }

    #[test]
    fn only_the_tokens_are_moved() {
        let operands = [ty("f16[100, 16, 2, 4]"), ty("f32[N, 2, 4]"), ty("i32[N]")];
        let cost = KvWrite.cost(&operands, &operands[..1]);
        assert_eq!(cost.bytes_read, Dim::symbol("N") * 36.into());
        assert_eq!(cost.bytes_written, Dim::symbol("N") * 16.into());
    }

    #[test]
    fn the_text_form_round_trips() {
        let types = ["f16[8, 16, 2, 64]", "f32[N, 2, 64]", "i32[N]"];
        assert_eq!(round_trip(KvWrite, &types), "kv_write %x0, %x1, %x2");
    }
}
