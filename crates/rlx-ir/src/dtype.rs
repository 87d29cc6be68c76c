//! Element types.

use crate::quant::BlockType;

/// The element type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16: the upper half of a binary32.
    BF16,
    /// IEEE 754 binary64.
    F64,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer: the type of indices, positions and lengths.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 8-bit integer.
    U8,
    /// Unsigned 32-bit integer.
    U32,
    /// One byte, 0 or 1.
    Bool,
    /// Blocks along the last axis.
    Block(BlockType),
}

impl DType {
    /// Every type that is not a block type.
    pub const SCALARS: [Self; 11] = [
        Self::F32,
        Self::F16,
        Self::BF16,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U32,
        Self::Bool,
    ];

    /// The name in the text form: `f32`, `q4_k`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::F64 => "f64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U32 => "u32",
            Self::Bool => "bool",
            Self::Block(b) => b.name(),
        }
    }

    /// The type of that name in the text form.
    pub fn from_name(name: &str) -> Option<Self> {
        let blocks = BlockType::ALL.iter().map(|&b| Self::Block(b));
        Self::SCALARS.into_iter().chain(blocks).find(|d| d.name() == name)
    }

    /// The elements that are stored together: 1, or the block's.
    pub fn block_elems(self) -> usize {
        match self {
            Self::Block(b) => b.block_elems(),
            _ => 1,
        }
    }

    /// The bytes of one element, or of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::BF16 | Self::I16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 => 8,
            Self::Block(b) => b.block_bytes(),
        }
    }

    /// The bytes of a row of `elems` elements; `None` where `elems` is no multiple of the block, or on overflow.
    pub fn row_bytes(self, elems: usize) -> Option<usize> {
        if !elems.is_multiple_of(self.block_elems()) {
            return None;
        }
        (elems / self.block_elems()).checked_mul(self.block_bytes())
    }

    /// Whether this is f16, bf16, f32 or f64.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }

    /// Whether this is a signed or unsigned integer (`bool` is not).
    pub fn is_int(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64 | Self::U8 | Self::U32)
    }

    /// Whether this is a block type.
    pub fn is_block(self) -> bool {
        matches!(self, Self::Block(_))
    }

    /// The unit roundoff of a float type: half the distance from 1 to the next larger value. 0 for exact types.
    pub fn unit_roundoff(self) -> f64 {
        match self {
            Self::F64 => f64::EPSILON / 2.0,
            Self::F32 => f64::from(f32::EPSILON) / 2.0,
            Self::F16 => 2f64.powi(-11),
            Self::BF16 => 2f64.powi(-8),
            _ => 0.0,
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
