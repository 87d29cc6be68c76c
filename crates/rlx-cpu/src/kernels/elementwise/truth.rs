//! The elements of `bool`.

use bytemuck::{Pod, Zeroable};

use super::{Scalar, Wide};

/// A `bool` in memory: any byte but 0 is true, and what kernels write is 0 or 1.
#[derive(Clone, Copy, Debug, Zeroable, Pod)]
#[repr(transparent)]
pub struct Truth(u8);

impl Truth {
    /// Whether it is true.
    #[inline(always)]
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Truth {
    #[inline(always)]
    fn from(x: bool) -> Self {
        Self(x.into())
    }
}

impl PartialEq for Truth {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl PartialOrd for Truth {
    #[inline(always)]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl Scalar for Truth {
    #[inline(always)]
    fn widen(self) -> Wide {
        Wide::Int(self.get().into())
    }

    /// Whether it is not 0; NaN is not.
    #[inline(always)]
    fn narrow(x: Wide) -> Self {
        Self::from(match x {
            Wide::Single(x) => x != 0.0,
            Wide::Double(x) => x != 0.0,
            Wide::Int(x) => x != 0,
        })
    }
}
