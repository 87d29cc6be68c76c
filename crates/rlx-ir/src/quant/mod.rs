//! Block formats: layout, scalar decode and encode, one file per format.
//!
//! A block format stores a fixed number of consecutive elements of the last axis in a fixed number of bytes.
//! [`BlockType`] names the formats.

/// A block-quantised element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(non_camel_case_types)]
pub enum BlockType {
    /// 32 elements of 4 bits with one f16 scale, symmetric around 8: 18 bytes.
    Q4_0,
    /// 32 elements of 4 bits with an f16 scale and an f16 minimum: 20 bytes.
    Q4_1,
    /// 32 elements of 8 bits with one f16 scale: 34 bytes.
    Q8_0,
    /// 256 elements of 4 bits in 8 sub-blocks with 6-bit scales and minimums: 144 bytes.
    Q4_K,
    /// 256 elements of 6 bits in 16 sub-blocks with 8-bit scales: 210 bytes.
    Q6_K,
    /// 32 elements of 8 bits with one f32 scale: 36 bytes. The format of quantised activations: it is never in a
    /// file, and its f32 scale keeps it exact in range where an f16 scale would overflow or vanish.
    Q8_F32,
}

impl BlockType {
    /// Every block type.
    pub const ALL: [Self; 6] = [Self::Q4_0, Self::Q4_1, Self::Q8_0, Self::Q4_K, Self::Q6_K, Self::Q8_F32];

    /// The name in the text form, lower case: `q4_k`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Q4_0 => "q4_0",
            Self::Q4_1 => "q4_1",
            Self::Q8_0 => "q8_0",
            Self::Q4_K => "q4_k",
            Self::Q6_K => "q6_k",
            Self::Q8_F32 => "q8_f32",
        }
    }

    /// The elements in one block.
    pub fn block_elems(self) -> usize {
        match self {
            Self::Q4_0 | Self::Q4_1 | Self::Q8_0 | Self::Q8_F32 => 32,
            Self::Q4_K | Self::Q6_K => 256,
        }
    }

    /// The bytes of one block.
    pub fn block_bytes(self) -> usize {
        match self {
            Self::Q4_0 => 18,
            Self::Q4_1 => 20,
            Self::Q8_0 => 34,
            Self::Q4_K => 144,
            Self::Q6_K => 210,
            Self::Q8_F32 => 36,
        }
    }
}
