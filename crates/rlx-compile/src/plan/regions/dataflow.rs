//! Who wrote what a step reads, and who reads what it wrote: by buffers, in the order of the steps, so that memory which is
//! taken over or is a state is followed too.

use std::ops::Range;

use rlx_ir::Op;
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::matmul::matmul::MatMul;
use rlx_ir::ops::quant::quantize::Quantize;

use super::super::{Action, BufferId, Operand, Step};
use super::{ResultRef, Role};

/// An operand of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub step: usize,
    pub operand: usize,
}

impl At {
    pub(super) fn new(step: usize, operand: usize) -> Self {
        Self { step, operand }
    }
}

/// Who reads a result.
#[derive(Clone, Copy, Debug, Default)]
struct Readers {
    /// The first one; a step that reads it twice counts once.
    first: usize,
    /// The last one; [`OUTSIDE`] where the result outlives the steps.
    last: usize,
    steps: usize,
}

/// The last reader of what is returned, or is a version of a state.
const OUTSIDE: usize = usize::MAX;

pub(super) struct Dataflow<'a> {
    pub steps: &'a [Step],
    /// Where the operands of each step start in `writers`.
    operand_starts: Vec<usize>,
    writers: Vec<Option<ResultRef>>,
    /// Where the results of each step start in `readers`.
    result_starts: Vec<usize>,
    readers: Vec<Readers>,
}

impl<'a> Dataflow<'a> {
    pub(super) fn new(steps: &'a [Step], outputs: &[Operand], buffers: usize) -> Self {
        let operands = steps.iter().map(|s| s.operands.len()).sum();
        let mut flow = Self {
            steps,
            operand_starts: Vec::with_capacity(steps.len()),
            writers: Vec::with_capacity(operands),
            result_starts: Vec::with_capacity(steps.len()),
            readers: Vec::with_capacity(steps.len() + steps.len() / 4),
        };
        let mut last_writer: Vec<Option<ResultRef>> = vec![None; buffers];
        for (index, step) in steps.iter().enumerate() {
            flow.operand_starts.push(flow.writers.len());
            for operand in &step.operands {
                let writer = last_writer[operand.buffer.index()];
                flow.writers.push(writer);
                if let Some(result) = writer {
                    flow.note_reader(result, index);
                }
            }
            flow.result_starts.push(flow.readers.len());
            for (at, result) in step.results.iter().enumerate() {
                last_writer[result.buffer.index()] = Some(ResultRef { step: index, index: at });
                flow.readers.push(Readers::default());
                if result.role == Role::State {
                    flow.note_reader(ResultRef { step: index, index: at }, OUTSIDE);
                }
            }
        }
        for writer in outputs.iter().filter_map(|o| last_writer[o.buffer.index()]) {
            flow.note_reader(writer, OUTSIDE);
        }
        flow
    }

    fn note_reader(&mut self, result: ResultRef, reader: usize) {
        let readers = &mut self.readers[self.result_starts[result.step] + result.index];
        if readers.steps == 0 {
            readers.first = reader;
        }
        if readers.steps == 0 || readers.last != reader {
            readers.steps += 1;
            readers.last = readers.last.max(reader);
        }
    }

    fn readers(&self, result: ResultRef) -> Readers {
        self.readers[self.result_starts[result.step] + result.index]
    }

    /// The op of a step; none for a copy.
    pub(super) fn op(&self, step: usize) -> Option<&'a dyn Op> {
        match &self.steps[step].action {
            Action::Op(op) => Some(&**op),
            Action::Copy => None,
        }
    }

    pub(super) fn op_as<T: Op>(&self, step: usize) -> Option<&'a T> {
        self.op(step)?.downcast()
    }

    pub(super) fn is<T: Op>(&self, step: usize) -> bool {
        self.op_as::<T>(step).is_some()
    }

    /// What the step does, in a word.
    pub(super) fn name(&self, step: usize) -> &'a str {
        self.steps[step].action.name()
    }

    pub(super) fn operand(&self, at: At) -> Option<&'a Operand> {
        self.steps[at.step].operands.get(at.operand)
    }

    /// The result that an operand reads; none for what comes from outside.
    pub(super) fn writer(&self, at: At) -> Option<ResultRef> {
        self.operand(at)?;
        self.writers[self.operand_starts[at.step] + at.operand]
    }

    /// Whether two operands read the same elements.
    pub(super) fn same(&self, a: At, b: At) -> bool {
        let (Some(x), Some(y)) = (self.operand(a), self.operand(b)) else { return false };
        self.writer(a) == self.writer(b) && x == y
    }

    /// Whether an operand reads all of a result as it was written: no part of it, in no other order or shape.
    pub(super) fn is_whole(&self, at: At) -> bool {
        let (Some(operand), Some(writer)) = (self.operand(at), self.writer(at)) else { return false };
        let result = &self.steps[writer.step].results[writer.index];
        (&operand.shape, &operand.strides, operand.offset) == (&result.shape, &result.strides, result.offset)
    }

    /// The step that reads `result`, where it is the only one, and the result is not used outside.
    pub(super) fn only_reader(&self, result: ResultRef) -> Option<usize> {
        let readers = self.readers(result);
        (readers.steps == 1 && readers.last != OUTSIDE).then_some(readers.first)
    }

    /// The step that reads `result` last, where the result is not used outside.
    pub(super) fn last_reader(&self, result: ResultRef) -> Option<usize> {
        let readers = self.readers(result);
        (readers.steps > 0 && readers.last != OUTSIDE).then_some(readers.last)
    }

    /// Whether the step is a product with a weight.
    pub(super) fn is_product(&self, step: usize) -> bool {
        let is_weight = || self.operand(At::new(step, 1)).is_some_and(|w| w.role == Role::Weight);
        match self.op(step) {
            Some(op) => {
                op.is::<Linear>()
                    || (matches!(op.downcast(), Some(MatMul { transpose_b: true })) && is_weight())
            }
            None => false,
        }
    }

    /// The operand that is the residual in a product's epilogue.
    pub(super) fn residual(&self, product: usize) -> Option<At> {
        let (_, residual) = self.op_as::<Linear>(product)?.operand_positions();
        residual.map(|operand| At::new(product, operand))
    }

    /// Whether the step only brings its operand into another type or layout.
    pub(super) fn is_conversion(&self, step: usize) -> bool {
        match self.op(step) {
            Some(op) => op.is::<Cast>() || op.is::<Quantize>(),
            None => true,
        }
    }

    /// The operand that `at` was converted from, through the steps that are added to `conversions`.
    pub(super) fn unconverted(&self, mut at: At, conversions: &mut Vec<usize>) -> At {
        while let Some(writer) = self.writer(at).filter(|w| self.is_conversion(w.step)) {
            conversions.push(writer.step);
            at = At::new(writer.step, 0);
        }
        at
    }

    /// The step that reads `result` alone, and the operand by which it does, through the conversions that are added to
    /// `conversions`.
    pub(super) fn converted(&self, mut result: ResultRef, conversions: &mut Vec<usize>) -> Option<At> {
        loop {
            let reader = self.only_reader(result)?;
            if !self.is_conversion(reader) {
                let operands = 0..self.steps[reader].operands.len();
                return operands.map(|o| At::new(reader, o)).find(|&at| self.writer(at) == Some(result));
            }
            conversions.push(reader);
            result = ResultRef { step: reader, index: 0 };
        }
    }

    /// What goes into the steps of a range, and what comes out.
    pub(super) fn boundary(&self, range: &Range<usize>) -> (Vec<BufferId>, Vec<ResultRef>) {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for step in range.clone() {
            for (index, operand) in self.steps[step].operands.iter().enumerate() {
                let inside = self.writer(At::new(step, index)).is_some_and(|w| w.step >= range.start);
                if !inside && operand.role != Role::Weight && !inputs.contains(&operand.buffer) {
                    inputs.push(operand.buffer);
                }
            }
            for index in 0..self.steps[step].results.len() {
                let result = ResultRef { step, index };
                let readers = self.readers(result);
                if readers.steps > 0 && readers.last >= range.end {
                    outputs.push(result);
                }
            }
        }
        (inputs, outputs)
    }
}
