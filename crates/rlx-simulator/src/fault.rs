//! What a kernel or a dispatch did wrong.

use std::fmt;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Bytes outside of the range that is bound, or an index beyond an array of known size.
    OutOfRange,
    /// A write to a buffer that is bound for reading.
    WriteToReadOnly,
    /// An access that is not aligned to its size.
    Misaligned,
    /// A read of bytes that nobody wrote.
    Unwritten,
    /// Two threads of a threadgroup touch the same bytes with no barrier between, and one writes.
    RaceInGroup,
    /// Two threadgroups of a dispatch touch the same bytes, and one writes.
    RaceBetweenGroups,
    /// Two dispatches touch the same bytes with no ordering between, and one writes.
    UnorderedDispatches,
    /// A barrier that not all threads of a threadgroup reach.
    BarrierNotReached,
    /// A simdgroup's function or barrier that not all its lanes reach.
    SimdNotReached,
    /// An access to memory that is not the kernel's at all.
    ForeignMemory,
    /// A function of a simdgroup's matrices to which its lanes pass different arguments.
    NotUniform,
    /// A dispatch that does not fit the kernel: bindings, arguments, geometry.
    Launch,
}

/// What a kernel or a dispatch did wrong: the first fault ends a dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The kernel, the place and the threads.
    pub message: String,
}

impl Fault {
    /// The fault of the runtime's number `code`; `None` for 0, which is no fault.
    pub(crate) fn from_code(code: u32, kernel: &str, message: &str) -> Option<Self> {
        let kind = match code {
            0 => return None,
            1 => FaultKind::OutOfRange,
            2 => FaultKind::WriteToReadOnly,
            3 => FaultKind::Misaligned,
            4 => FaultKind::Unwritten,
            5 => FaultKind::RaceInGroup,
            6 => FaultKind::RaceBetweenGroups,
            7 => FaultKind::UnorderedDispatches,
            8 => FaultKind::BarrierNotReached,
            9 => FaultKind::SimdNotReached,
            10 => FaultKind::ForeignMemory,
            _ => FaultKind::NotUniform,
        };
        Some(Self { kind, message: format!("{kernel}: {message}") })
    }

    pub(crate) fn launch(kernel: &str, message: impl fmt::Display) -> Self {
        Self { kind: FaultKind::Launch, message: format!("{kernel}: {message}") }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Fault {}
