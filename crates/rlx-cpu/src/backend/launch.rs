//! The one place where a plan's buffers become slices.
//!
//! A [`Memory`] owns the arena, the inputs and the states of a context. For each step, [`Memory::open`] computes the byte
//! range of every operand and result under the bound sizes, checks that it lies inside its buffer, and that what the step
//! writes overlaps nothing else that it touches; only then are slices made. A result that takes over an operand's memory
//! (an in-place step, a written state) is given as the result alone.

use std::ops::Range;
use std::sync::Arc;

use memmap2::MmapMut;
use rlx_compile::plan::{Home, Operand, Plan, Sizes, Step};
use rlx_ir::bail;

use super::weights::CpuWeight;
use crate::error::{Error, Result};

/// Bytes whose pages are committed as they are touched, zero at first, aligned to a page.
#[derive(Debug)]
pub(crate) struct Region(Option<MmapMut>);

impl Region {
    pub(crate) fn new(bytes: u64) -> Result<Self> {
        let Ok(len) = usize::try_from(bytes) else {
            bail!(Device, "{bytes} bytes are more than this machine addresses")
        };
        if len == 0 {
            return Ok(Self(None));
        }
        match MmapMut::map_anon(len) {
            Ok(map) => Ok(Self(Some(map))),
            Err(e) => bail!(Device, "{len} bytes of memory cannot be had: {e}"),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |m| m.len())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.as_deref().unwrap_or_default()
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_deref_mut().unwrap_or_default()
    }
}

/// The memory of one context.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) arena: Region,
    pub(crate) inputs: Vec<Region>,
    pub(crate) states: Vec<Region>,
}

/// What a step reads as operand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read<'a> {
    /// Bytes from the operand's first element to its last.
    Bytes(&'a [u8]),
    /// A prepared weight.
    Weight(&'a CpuWeight),
    /// The operand's bytes are in the result that takes over its memory.
    InPlace,
}

/// Slices of one step.
#[derive(Debug)]
pub(crate) struct Opened<'a> {
    pub(crate) reads: Vec<Read<'a>>,
    pub(crate) writes: Vec<&'a mut [u8]>,
}

/// A range of bytes of the arena (0), an input or a state.
#[derive(Clone, Debug, PartialEq)]
struct Span {
    region: (u8, u32),
    range: Range<usize>,
}

impl Span {
    fn overlaps(&self, other: &Self) -> bool {
        self.region == other.region
            && self.range.start < other.range.end
            && other.range.start < self.range.end
    }
}

impl Memory {
    /// Makes the slices of `step`.
    pub(crate) fn open<'a>(
        &'a mut self,
        plan: &Plan,
        step: &Step,
        sizes: &Sizes,
        weights: &'a [Arc<CpuWeight>],
    ) -> Result<Opened<'a>> {
        let written = step.results.iter().map(|o| self.span(plan, o, sizes)).collect::<Result<Vec<_>>>()?;
        for (i, a) in written.iter().enumerate() {
            if written[i + 1..].iter().any(|b| a.overlaps(b)) {
                bail!(Bug, "{}: two results share memory", step.action.name());
            }
        }
        let mut reads = Vec::with_capacity(step.operands.len());
        for operand in &step.operands {
            if let Home::Weight(index) = plan.buffer(operand.buffer).home {
                match weights.get(index as usize) {
                    Some(weight) => reads.push(Read::Weight(weight)),
                    None => bail!(Bug, "{}: weight {index} was not prepared", step.action.name()),
                }
                continue;
            }
            let span = self.span(plan, operand, sizes)?;
            match written.iter().find(|w| w.overlaps(&span)) {
                None => {
                    let (base, len) = self.base(span.region)?;
                    reads.push(Read::Bytes(slice(base, len, &span.range)?));
                }
                Some(w) if *w == span => reads.push(Read::InPlace),
                Some(_) => bail!(Bug, "{}: a result overlaps operand {}", step.action.name(), operand.ty),
            }
        }
        let mut writes = Vec::with_capacity(written.len());
        for span in &written {
            let (base, len) = self.base(span.region)?;
            writes.push(slice_mut(base, len, &span.range)?);
        }
        Ok(Opened { reads, writes })
    }

    /// The bytes of a dense operand, for reading outputs.
    pub(crate) fn output(&self, plan: &Plan, operand: &Operand, sizes: &Sizes) -> Result<&[u8]> {
        let span = self.span(plan, operand, sizes)?;
        let region = match span.region {
            (0, _) => &self.arena,
            (1, i) => &self.inputs[i as usize],
            (_, i) => &self.states[i as usize],
        };
        match region.bytes().get(span.range) {
            Some(bytes) => Ok(bytes),
            None => bail!(Bug, "an output lies outside its buffer"),
        }
    }

    fn base(&mut self, region: (u8, u32)) -> Result<(*mut u8, usize)> {
        let list = match region.0 {
            0 => Some(&mut self.arena),
            1 => self.inputs.get_mut(region.1 as usize),
            _ => self.states.get_mut(region.1 as usize),
        };
        match list {
            Some(r) => {
                let len = r.len();
                Ok((r.bytes_mut().as_mut_ptr(), len))
            }
            None => bail!(Bug, "buffer {region:?} does not exist"),
        }
    }

    fn span(&self, plan: &Plan, operand: &Operand, sizes: &Sizes) -> Result<Span> {
        let buffer = plan.buffer(operand.buffer);
        let (region, start, reserved) = match buffer.home {
            Home::Arena { offset, reserved } => ((0, 0), offset as usize, reserved as usize),
            Home::Input(i) => ((1, i), 0, self.inputs.get(i as usize).map_or(0, Region::len)),
            Home::State(i) => ((2, i), 0, self.states.get(i as usize).map_or(0, Region::len)),
            Home::Weight(_) => bail!(Bug, "a weight has no place in a context"),
        };
        let span = operand.span(sizes);
        if span.end > reserved {
            bail!(Bug, "bytes {span:?} of {} exceed its buffer of {reserved}", operand.ty);
        }
        Ok(Span { region, range: start + span.start..start + span.end })
    }
}

fn inside(len: usize, range: &Range<usize>) -> Result<()> {
    if range.start <= range.end && range.end <= len {
        return Ok(());
    }
    bail!(Bug, "bytes {range:?} lie outside a buffer of {len}")
}

fn slice<'a>(base: *mut u8, len: usize, range: &Range<usize>) -> Result<&'a [u8]> {
    inside(len, range)?;
    // SAFETY: `base` points to `len` initialised bytes of a region that the caller's `&'a mut Memory` keeps alive and
    // borrowed for 'a, and `range` lies inside. `Memory::open` has checked that nothing that the step writes overlaps it.
    Ok(unsafe { std::slice::from_raw_parts(base.add(range.start), range.len()) })
}

fn slice_mut<'a>(base: *mut u8, len: usize, range: &Range<usize>) -> Result<&'a mut [u8]> {
    inside(len, range)?;
    // SAFETY: as in `slice`; `Memory::open` has checked that this range overlaps no other slice that it hands out.
    Ok(unsafe { std::slice::from_raw_parts_mut(base.add(range.start), range.len()) })
}
