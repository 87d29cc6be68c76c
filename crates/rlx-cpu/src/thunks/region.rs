//! `fused_region`: a chain of elementwise ops, run tile by tile so that values in between stay in the first-level cache.

use rlx_compile::{OpFacts, Support};
use rlx_ir::ops::activation::gelu::{Approximate, Gelu};
use rlx_ir::ops::activation::silu::Silu;
use rlx_ir::ops::elementwise::binary::Binary as BinaryOp;
use rlx_ir::ops::elementwise::compare::Compare;
use rlx_ir::ops::elementwise::select::Select;
use rlx_ir::ops::elementwise::unary::Unary as UnaryOp;
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::{DType, Def, Graph, Node, bail};

use super::binary::{binary_function, repeats_over};
use super::compare::comparison;
use super::unary::unary_function;
use super::{StepCall, Thunk};
use crate::backend::support::{Entry, all_dense, require};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::elementwise::{Binary, Comparison, Unary, binary, compare_tile, select_tile, unary};
use crate::pool::chunks;

/// `fused_region`.
pub(crate) static REGION: Entry = Entry::new("fused_region", supports, build);

/// Elements of a tile: a few tiles of f32 fit the first-level cache.
const TILE: usize = 1024;

/// Tiles of one task.
const TASK_TILES: usize = 16;

/// An op of the body; operands and result are slots.
#[derive(Clone, Copy, Debug)]
enum Instruction {
    Unary(Unary, usize, usize),
    Binary(Binary, usize, usize, usize),
    /// Its result is a condition, which takes the first bytes of its slot.
    Compare(Comparison, usize, usize, usize),
    /// Of a condition and two values.
    Select([usize; 3], usize),
}

impl Instruction {
    fn result(self) -> usize {
        let (Self::Unary(_, _, slot)
        | Self::Binary(_, _, _, slot)
        | Self::Compare(_, _, _, slot)
        | Self::Select(_, slot)) = self;
        slot
    }
}

/// The body as instructions over slots: operands first, then constants, then results.
#[derive(Clone, Debug)]
struct Program {
    operands: usize,
    constants: Vec<Vec<f32>>,
    instructions: Vec<Instruction>,
    result: usize,
}

fn unary_of(node: &Node) -> Option<Unary> {
    if let Some(op) = node.op.downcast::<UnaryOp>() {
        return unary_function(op.kind);
    }
    if let Some(gelu) = node.op.downcast::<Gelu>() {
        return Some(if gelu.approximate == Approximate::Tanh { Unary::GeluTanh } else { Unary::Gelu });
    }
    node.op.is::<Silu>().then_some(Unary::Silu)
}

/// The instruction of a node whose operands and result are these slots.
fn instruction(
    body: &Graph,
    node: &Node,
    operand: impl Fn(usize) -> Option<usize>,
    slot: usize,
) -> Option<Instruction> {
    if let Some(function) = unary_of(node) {
        return Some(Instruction::Unary(function, operand(0)?, slot));
    }
    if let Some(op) = node.op.downcast::<BinaryOp>() {
        return Some(Instruction::Binary(binary_function(op.kind)?, operand(0)?, operand(1)?, slot));
    }
    if let Some(op) = node.op.downcast::<Compare>() {
        if body.ty(node.operands[0]).dtype != DType::F32 {
            return None;
        }
        return Some(Instruction::Compare(comparison(op.kind), operand(0)?, operand(1)?, slot));
    }
    if node.op.is::<Select>() {
        return Some(Instruction::Select([operand(0)?, operand(1)?, operand(2)?], slot));
    }
    None
}

/// The program of a body, where the kernel can run it: f32, but for conditions in between; one result; and operands that repeat
/// over it.
fn compile(body: &Graph) -> Option<Program> {
    let &[output] = body.outputs() else { return None };
    let whole = body.ty(output);
    let mut slots = vec![None; body.values().len()];
    let mut next = 0;
    let mut take = || {
        next += 1;
        next - 1
    };
    for (value, _) in body.inputs() {
        slots[value.index()] = Some(take());
    }
    let operands = body.inputs().count();
    let mut constants = Vec::new();
    for value in body.value_ids() {
        if let Def::Const(tensor) = &body.value(value).def {
            constants.push(tensor.to_f32().ok()?);
            slots[value.index()] = Some(take());
        }
    }
    let mut instructions = Vec::new();
    for node in body.nodes() {
        let result = *node.results.first()?;
        let slot = take();
        let operand = |i: usize| slots[node.operands[i].index()];
        let instruction = instruction(body, node, operand, slot)?;
        if body.ty(result).shape != whole.shape {
            return None;
        }
        instructions.push(instruction);
        slots[result.index()] = Some(slot);
    }
    let between =
        |info: &rlx_ir::ValueInfo| matches!(info.def, Def::Result { .. }) && info.ty.dtype == DType::Bool;
    let fits = |info: &rlx_ir::ValueInfo| {
        (info.ty.dtype == DType::F32 || between(info)) && repeats_over(whole, &info.ty)
    };
    if whole.dtype != DType::F32 || !body.values().iter().all(fits) {
        return None;
    }
    // The result is written where it belongs, so an op must make it, and nothing after it matters.
    let result = slots[output.index()]?;
    instructions.retain(|i| i.result() <= result);
    (result >= operands + constants.len()).then_some(Program { operands, constants, instructions, result })
}

fn supports(facts: &OpFacts<'_>) -> Support {
    let program = facts.op.downcast::<FusedRegion>().and_then(|r| compile(&r.body));
    require(&[
        (
            program.is_some(),
            "f32 arithmetic, comparisons and choices with one result, over which operands repeat",
        ),
        (all_dense(facts), "dense operands"),
    ])
}

fn build(facts: &OpFacts<'_>) -> Result<Box<dyn Thunk>> {
    match facts.op.downcast::<FusedRegion>().and_then(|r| compile(&r.body)) {
        Some(program) => Ok(Box::new(program)),
        None => bail!(Bug, "fused_region without a program"),
    }
}

impl Program {
    /// Fills one tile of the result of `whole` elements, whose first element is number `start`.
    fn tile(
        &self,
        cpu: Cpu<'_>,
        inputs: &[&[f32]],
        (start, whole): (usize, usize),
        slots: &mut [Vec<f32>],
        out: &mut [f32],
    ) -> Result<()> {
        let count = out.len();
        // An input of the result's size is read where it is.
        let in_place = |i: usize| inputs.get(i).is_some_and(|x| x.len() == whole);
        for (i, (input, slot)) in inputs.iter().zip(slots.iter_mut()).enumerate() {
            if !in_place(i) {
                slot.resize(count, 0.0);
                repeat_into(input, start, slot);
            }
        }
        for instruction in &self.instructions {
            let result = instruction.result();
            let (before, after) = slots.split_at_mut(result);
            let value = |i: usize| if in_place(i) { &inputs[i][start..][..count] } else { &before[i][..] };
            let out = if result == self.result {
                &mut *out
            } else {
                after[0].resize(count, 0.0);
                &mut after[0][..]
            };
            match *instruction {
                Instruction::Unary(function, a, _) => unary(cpu, function, value(a), out)?,
                Instruction::Binary(function, a, b, _) => binary(cpu, function, value(a), value(b), out)?,
                Instruction::Compare(function, a, b, _) => {
                    let out = &mut bytemuck::cast_slice_mut(out)[..count];
                    compare_tile(cpu, function, [value(a), value(b)], out);
                }
                Instruction::Select([condition, a, b], _) => {
                    let condition = &bytemuck::cast_slice(&before[condition])[..count];
                    select_tile(cpu, condition, [value(a), value(b)], out);
                }
            }
        }
        Ok(())
    }
}

/// Elements `start..` of `input` repeated for ever.
fn repeat_into(input: &[f32], start: usize, out: &mut [f32]) {
    let mut at = start % input.len().max(1);
    let mut rest = out;
    while !rest.is_empty() && !input.is_empty() {
        let count = rest.len().min(input.len() - at);
        let (piece, left) = rest.split_at_mut(count);
        piece.copy_from_slice(&input[at..at + count]);
        rest = left;
        at = 0;
    }
}

impl Thunk for Program {
    fn kernel(&self) -> &str {
        "fused region"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let out = call.write::<f32>(0)?;
        let mut inputs = (0..self.operands).map(|i| call.read::<f32>(i)).collect::<Result<Vec<_>>>()?;
        inputs.extend(self.constants.iter().map(Vec::as_slice));
        let (cpu, whole) = (call.cpu, out.len());
        let failed = std::sync::Mutex::new(None);
        chunks(cpu.pool, out, TILE * TASK_TILES, |task, out| {
            let mut slots = vec![Vec::new(); inputs.len() + self.instructions.len()];
            for (i, tile) in out.chunks_mut(TILE).enumerate() {
                let start = (task * TASK_TILES + i) * TILE;
                if let Err(e) = self.tile(cpu, &inputs, (start, whole), &mut slots, tile) {
                    *failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(e);
                }
            }
        })?;
        match failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            Some(e) => Err(e),
            None => Ok(()),
        }
    }
}
