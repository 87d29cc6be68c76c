//! From thunks and bound sizes to the commands of a command buffer, with the barriers that they need.

use std::sync::Arc;

use rlx_compile::plan::{Home, Operand, Sizes};
use rlx_ir::bail;
use rlx_kernels::Access;
use rlx_kernels::call::Bound;

use super::context::Memory;
use super::executable::{Shared, Thunk};
use super::launch::bytes_mut;
use crate::driver::{Command, CommandList, Dispatch, Driver, Memory as _, Pipeline, Range};
use crate::error::{Error, Result};

/// Argument structs begin at multiples of this.
pub(super) const ARGS_ALIGN: usize = 16;

/// The byte range of an operand under the bound sizes.
pub(super) fn range<D: Driver>(
    shared: &Shared<D>,
    memory: &Memory<D>,
    operand: &Operand,
    sizes: &Sizes,
) -> Result<Range<D>> {
    let (whole, start, reserved) = match shared.plan.buffer(operand.buffer).home {
        Home::Arena { offset, reserved } => {
            (&memory.arena, usize::try_from(offset).ok(), usize::try_from(reserved).ok())
        }
        Home::Input(i) => (&memory.inputs[i as usize], Some(0), Some(memory.inputs[i as usize].bytes)),
        Home::State(i) => (&memory.states[i as usize], Some(0), Some(memory.states[i as usize].bytes)),
        Home::Weight(i) => match shared.weights.get(i as usize) {
            Some(weight) => (&weight.0, Some(0), Some(weight.0.bytes)),
            None => bail!(Bug, "weight {i} was not prepared"),
        },
    };
    let span = operand.span(sizes);
    let (Some(start), Some(reserved)) = (start, reserved) else {
        bail!(Device, "the arena is larger than this machine addresses")
    };
    if span.end > reserved {
        bail!(Bug, "bytes {span:?} of {} exceed its buffer of {reserved}", operand.ty);
    }
    Ok(Range { buffer: whole.buffer.clone(), offset: whole.offset + start + span.start, bytes: span.len() })
}

/// The commands of all thunks, or of one.
pub(super) fn commands<D: Driver>(
    shared: &Shared<D>,
    memory: &mut Memory<D>,
    thunks: &[Thunk],
    sizes: &Sizes,
) -> Result<CommandList<D>> {
    let prepared = thunks.iter().map(|t| t.prepare(sizes)).collect::<Result<Vec<_>>>()?;
    let total = prepared.iter().map(|p| p.args.len().next_multiple_of(ARGS_ALIGN)).sum::<usize>().max(1);
    if memory.args.buffer.bytes() < total {
        let buffer = Arc::new(shared.machine.driver.buffer(total, 4)?);
        memory.args = Range { buffer, offset: 0, bytes: total };
    }
    let mut encoder = Encoder { list: CommandList::default(), pending: Vec::new(), group: Arc::from("") };
    let mut args_at = 0;
    let limits = shared.machine.driver.facts().limits;
    for (thunk, prepared) in thunks.iter().zip(prepared) {
        let place = |e: Error| e.context(format!("step {}, {}", thunk.steps.start, prepared.kernel.name));
        let pipeline = shared.machine.pipelines.get(&shared.machine.driver, &prepared.kernel)?;
        let geometry = prepared.kernel.geometry(prepared.work, limits, pipeline.max_threads());
        let Some(geometry) = geometry.map_err(|e| place(e.into()))? else {
            continue;
        };
        let mut args =
            Range { buffer: memory.args.buffer.clone(), offset: args_at, bytes: prepared.args.len() };
        bytes_mut(&mut args)?.copy_from_slice(&prepared.args);
        args_at += prepared.args.len().next_multiple_of(ARGS_ALIGN);
        let operand = |o: &Operand| range(shared, memory, o, sizes).map_err(place);
        let mut bindings = Vec::with_capacity(prepared.bindings.len());
        let mut begins = Vec::new();
        for bound in &prepared.bindings {
            bindings.push(match *bound {
                Bound::Nothing => None,
                Bound::Operand(at) => Some(operand(&thunk.operands[at])?),
                Bound::Result(at) => Some(operand(&thunk.results[at])?),
            });
        }
        for result in &thunk.results {
            if matches!(shared.plan.buffer(result.buffer).home, Home::Arena { .. }) {
                begins.push(operand(result)?);
            }
        }
        encoder.group(&thunk.group);
        let kernel = prepared.kernel;
        encoder.dispatch(Dispatch { kernel, pipeline, args, bindings, geometry, begins });
    }
    encoder.group(&Arc::from(""));
    Ok(encoder.list)
}

struct Encoder<D: Driver> {
    list: CommandList<D>,
    /// What was touched since a barrier, and whether it was written.
    pending: Vec<(Range<D>, bool)>,
    group: Arc<str>,
}

impl<D: Driver> Encoder<D> {
    /// Commands that follow belong to the group of this label; to none where it is empty.
    fn group(&mut self, label: &Arc<str>) {
        if *label == self.group {
            return;
        }
        if !self.group.is_empty() {
            self.list.commands.push(Command::PopGroup);
        }
        if !label.is_empty() {
            self.list.commands.push(Command::PushGroup(label.clone()));
        }
        self.group = label.clone();
    }

    /// A launch, after a barrier where it touches what one before it writes, or writes what one before it touches.
    fn dispatch(&mut self, dispatch: Dispatch<D>) {
        let touched: Vec<(Range<D>, bool)> = dispatch
            .bindings
            .iter()
            .zip(&dispatch.kernel.buffers)
            .filter_map(|(range, b)| Some((range.clone()?, b.access == Access::Write)))
            .collect();
        let mut buffers: Vec<Arc<D::Buffer>> = Vec::new();
        for (range, writes) in &touched {
            let conflict =
                self.pending.iter().any(|(other, wrote)| (*writes || *wrote) && range.overlaps(other));
            if conflict && !buffers.iter().any(|b| Arc::ptr_eq(b, &range.buffer)) {
                buffers.push(range.buffer.clone());
            }
        }
        if !buffers.is_empty() {
            self.pending.retain(|(range, _)| !buffers.iter().any(|b| Arc::ptr_eq(b, &range.buffer)));
            self.list.commands.push(Command::Barrier(buffers));
        }
        self.pending.extend(touched);
        self.list.commands.push(Command::Dispatch(dispatch));
    }
}
