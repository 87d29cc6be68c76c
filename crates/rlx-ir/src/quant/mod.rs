//! Block formats: layout, scalar decode and encode, one file per format.
//!
//! A block format stores a fixed number of consecutive elements of the last axis in a fixed number of bytes.
//! [`BlockType`] names the formats; each format's module holds `ELEMS`, `BYTES` and the byte offset of every field,
//! from which the kernels of all devices derive theirs.
//!
//! - Decoding is exact: each value is made by the f32 operations that the format's module states, in that order, each
//!   rounded once (no fused multiply-add). Any bytes decode; a damaged scale gives NaN or infinities, never a panic.
//! - Encoding searches the scales (and minimums) that give the least weighted squared error; see [`BlockType::encode`].
//! - All fields are little endian.

use crate::{DType, Error, ErrorKind, Result, bail};

mod affine;
mod bits;
mod codebook;
pub mod e2m1;
mod float;
mod grid_fit;
pub mod grids;
mod k_fit;
pub mod k_scales;
mod search;
mod ternary;

pub use float::{decode_bf16, decode_f16, encode_bf16, encode_f16};

/// One table: variant, module, name in the text form.
macro_rules! block_types {
    ($($(#[$doc:meta])* $variant:ident = $module:ident, $name:literal;)*) => {
        $(pub mod $module;)*

        /// A block-quantised element type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[allow(non_camel_case_types)]
        pub enum BlockType {
            $($(#[$doc])* $variant,)*
        }

        impl BlockType {
            /// Every block type.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name in the text form, lower case: `q4_k`.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The elements in one block.
            pub const fn block_elems(self) -> usize {
                match self { $(Self::$variant => $module::ELEMS,)* }
            }

            /// The bytes of one block.
            pub const fn block_bytes(self) -> usize {
                match self { $(Self::$variant => $module::BYTES,)* }
            }

            fn decode_blocks(self, blocks: &[u8], out: &mut [f32]) {
                match self { $(Self::$variant => each_decoded(blocks, out, $module::decode_block),)* }
            }

            fn encode_blocks(self, x: &[f32], weights: &[f32], out: &mut [u8]) {
                match self { $(Self::$variant => each_encoded(x, weights, out, $module::encode_block),)* }
            }
        }
    };
}

block_types! {
    /// 32 elements of 4 bits with one f16 scale, symmetric around 8: 18 bytes.
    Q4_0 = q4_0, "q4_0";
    /// 32 elements of 4 bits with an f16 scale and an f16 minimum: 20 bytes.
    Q4_1 = q4_1, "q4_1";
    /// 32 elements of 5 bits with one f16 scale, symmetric around 16: 22 bytes.
    Q5_0 = q5_0, "q5_0";
    /// 32 elements of 5 bits with an f16 scale and an f16 minimum: 24 bytes.
    Q5_1 = q5_1, "q5_1";
    /// 32 elements of 8 bits with one f16 scale: 34 bytes.
    Q8_0 = q8_0, "q8_0";
    /// 32 elements of 8 bits with an f16 scale and an f16 sum: 36 bytes. ggml's activation format beside the 5-bit and
    /// 4-bit types with a minimum.
    Q8_1 = q8_1, "q8_1";
    /// 256 elements of 2 bits in 16 sub-blocks with 4-bit scales and minimums: 84 bytes.
    Q2_K = q2_k, "q2_k";
    /// 256 elements of 3 bits in 16 sub-blocks with 6-bit scales: 110 bytes.
    Q3_K = q3_k, "q3_k";
    /// 256 elements of 4 bits in 8 sub-blocks with 6-bit scales and minimums: 144 bytes.
    Q4_K = q4_k, "q4_k";
    /// 256 elements of 5 bits in 8 sub-blocks with 6-bit scales and minimums: 176 bytes.
    Q5_K = q5_k, "q5_k";
    /// 256 elements of 6 bits in 16 sub-blocks with 8-bit scales: 210 bytes.
    Q6_K = q6_k, "q6_k";
    /// 256 elements of 8 bits with one f32 scale and 16 sums: 292 bytes. ggml's activation format beside the K types.
    Q8_K = q8_k, "q8_k";
    /// 32 elements of 4 bits that select unevenly spaced values, with one f16 scale: 18 bytes.
    IQ4_NL = iq4_nl, "iq4_nl";
    /// 256 elements of 4 bits that select the values of IQ4_NL, in 8 sub-blocks with 6-bit scales: 136 bytes.
    IQ4_XS = iq4_xs, "iq4_xs";
    /// 256 ternary elements, five to a byte, with one f16 scale: 54 bytes.
    TQ1_0 = tq1_0, "tq1_0";
    /// 256 ternary elements of 2 bits with one f16 scale: 66 bytes.
    TQ2_0 = tq2_0, "tq2_0";
    /// 32 elements of 4-bit floats with a power of two as scale: 17 bytes.
    MXFP4 = mxfp4, "mxfp4";
    /// 64 elements of 4-bit floats in 4 sub-blocks with 8-bit floats as scales: 36 bytes.
    NVFP4 = nvfp4, "nvfp4";
    /// 128 elements of 1 bit with one f16 scale: 18 bytes.
    Q1_0 = q1_0, "q1_0";
    /// 256 elements in 8 sub-blocks with 3-bit scales, groups of 8 from a grid of 2048 ternary points: 50 bytes.
    IQ1_S = iq1_s, "iq1_s";
    /// 256 elements in 16 sub-blocks with 3-bit scales, groups of 8 from a grid of 2048 ternary points: 56 bytes.
    IQ1_M = iq1_m, "iq1_m";
    /// 256 elements in 8 sub-blocks with 4-bit scales, groups of 8 from a grid of 256 points: 66 bytes.
    IQ2_XXS = iq2_xxs, "iq2_xxs";
    /// 256 elements in 16 sub-blocks with 4-bit scales, groups of 8 from a grid of 512 points: 74 bytes.
    IQ2_XS = iq2_xs, "iq2_xs";
    /// 256 elements in 16 sub-blocks with 4-bit scales, groups of 8 from a grid of 1024 points: 82 bytes.
    IQ2_S = iq2_s, "iq2_s";
    /// 256 elements in 8 sub-blocks with 4-bit scales, groups of 4 from a grid of 256 points: 98 bytes.
    IQ3_XXS = iq3_xxs, "iq3_xxs";
    /// 256 elements in 8 sub-blocks with 4-bit scales, groups of 4 from a grid of 512 points: 110 bytes.
    IQ3_S = iq3_s, "iq3_s";
    /// 32 elements of 8 bits with one f32 scale: 36 bytes. The format of quantised activations: it is never in a
    /// file, and its f32 scale keeps it exact in range where an f16 scale would overflow or vanish.
    Q8_F32 = q8_f32, "q8_f32";
}

impl BlockType {
    /// The type of that name in the text form.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// Whether [`encode`](Self::encode) weighs errors by importances. As in ggml, the types of 8 bits, of one bit, of
    /// ternary digits and of 4-bit floats do not.
    pub const fn uses_importance(self) -> bool {
        use BlockType::{MXFP4, NVFP4, Q1_0, Q8_0, Q8_1, Q8_F32, Q8_K, TQ1_0, TQ2_0};
        !matches!(self, Q8_0 | Q8_1 | Q8_K | Q8_F32 | Q1_0 | TQ1_0 | TQ2_0 | MXFP4 | NVFP4)
    }

    /// Whether this is a format of quantised activations, not of weights in files.
    pub const fn is_activation(self) -> bool {
        matches!(self, Self::Q8_1 | Self::Q8_K | Self::Q8_F32)
    }

    /// Decodes a run of whole blocks, exactly.
    ///
    /// Shapes: `blocks` holds n blocks ([`block_bytes`](Self::block_bytes) each), `out` n times
    /// [`block_elems`](Self::block_elems) values. Errors: `InvalidArgument` where the two lengths do not agree.
    ///
    /// ```
    /// use rlx_ir::quant::BlockType;
    /// let mut block = [0u8; 34];
    /// block[1] = 0x3c; // the scale, f16 1.0
    /// block[2] = 5;
    /// let mut out = [0.0; 32];
    /// BlockType::Q8_0.decode(&block, &mut out)?;
    /// assert_eq!(out[..2], [5.0, 0.0]);
    /// # Ok::<(), rlx_ir::Error>(())
    /// ```
    pub fn decode(&self, blocks: &[u8], out: &mut [f32]) -> Result<()> {
        self.check_lengths("decode", out.len(), blocks.len())?;
        self.decode_blocks(blocks, out);
        Ok(())
    }

    /// Whether the type has so few bits that encoding without importances costs much of a model's quality.
    pub const fn needs_importance(self) -> bool {
        matches!(self, Self::IQ1_S | Self::IQ1_M | Self::IQ2_XXS | Self::IQ2_XS)
    }

    /// Encodes one row.
    ///
    /// Minimises the sum of `importance[i] * (x[i] - decoded[i])^2` per block; an absent `importance` counts as ones, as it
    /// always does for the formats that [do not use it](Self::uses_importance). The activation formats (`q8_1`, `q8_k`,
    /// `q8_f32`) take the largest magnitude as 127 and search nothing.
    ///
    /// Shapes: `x` is a whole row, a multiple of the block; `importance` has its length; `out` has
    /// [`DType::row_bytes`] of it. Errors: `InvalidArgument` where lengths do not agree or an importance is negative or
    /// not finite; `NonFinite` where `x` holds a value that is not finite, or too large for the format's scale. The
    /// activation format `q8_f32` takes any value: see its module.
    pub fn encode(&self, x: &[f32], importance: Option<&[f32]>, out: &mut [u8]) -> Result<()> {
        self.check_lengths("encode", x.len(), out.len())?;
        if let Some(importance) = importance {
            if importance.len() != x.len() {
                bail!(
                    InvalidArgument,
                    "encode {}: {} importances for {} values",
                    self.name(),
                    importance.len(),
                    x.len()
                );
            }
            if let Some(i) = importance.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
                bail!(
                    InvalidArgument,
                    "encode {}: importance {i} is {}, expected a finite value of at least 0",
                    self.name(),
                    importance[i]
                );
            }
        }
        if *self == Self::Q8_F32 {
            self.encode_blocks(x, x, out);
            return Ok(());
        }
        self.check_finite(x)?;
        self.encode_blocks(x, &search::weights(x, importance), out);
        self.check_range(x, out)
    }

    /// Encodes one row without importances, for conversions while a model loads: as [`encode`](Self::encode), but `q8_0`
    /// takes the largest magnitude as 127 and searches nothing, and a block of it that holds a value that is not finite
    /// decodes to NaN: only what reaches the block is spoilt, as with the weights that were converted.
    ///
    /// Shapes and errors: as for [`encode`](Self::encode).
    pub fn encode_for_load(&self, x: &[f32], out: &mut [u8]) -> Result<()> {
        if *self != Self::Q8_0 {
            return self.encode(x, None, out);
        }
        self.check_lengths("encode", x.len(), out.len())?;
        for (x, out) in x.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
            q8_0::encode_plain(x, out);
        }
        self.check_range(x, out)
    }

    fn check_finite(self, x: &[f32]) -> Result<()> {
        match x.iter().position(|v| !v.is_finite()) {
            Some(i) => bail!(NonFinite, "encode {}: value {i} is {}", self.name(), x[i]),
            None => Ok(()),
        }
    }

    /// Refuses a row beyond the range of the scales: its blocks do not decode to finite values, or stay far from `x`.
    fn check_range(self, x: &[f32], blocks: &[u8]) -> Result<()> {
        let (elems, bytes) = (self.block_elems(), self.block_bytes());
        let mut decoded = [0f32; 256];
        let decoded = &mut decoded[..elems];
        for (x, block) in x.chunks_exact(elems).zip(blocks.chunks_exact(bytes)) {
            self.decode_blocks(block, decoded);
            let largest = x.iter().fold(0f32, |m, v| m.max(v.abs()));
            let clipped = self == Self::NVFP4 && largest > nvfp4::LARGEST;
            // A block of values that are not finite is no block beyond the range.
            if x.iter().any(|v| !v.is_finite()) {
                continue;
            }
            if clipped || decoded.iter().any(|v| !v.is_finite()) {
                bail!(
                    NonFinite,
                    "encode {}: a block with values up to {largest:e} is beyond the range of its scale",
                    self.name()
                );
            }
        }
        Ok(())
    }

    fn check_lengths(self, what: &str, elems: usize, bytes: usize) -> Result<()> {
        match DType::Block(self).row_bytes(elems) {
            Some(expected) if expected == bytes => Ok(()),
            Some(expected) => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("{what} {}: {elems} values take {expected} bytes, got {bytes}", self.name()),
            )),
            None => Err(Error::new(
                ErrorKind::InvalidArgument,
                format!(
                    "{what} {}: {elems} values are no multiple of the block of {}",
                    self.name(),
                    self.block_elems()
                ),
            )),
        }
    }
}

fn each_decoded<const B: usize, const E: usize>(
    blocks: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; B], &mut [f32; E]),
) {
    for (block, out) in blocks.as_chunks().0.iter().zip(out.as_chunks_mut().0) {
        decode(block, out);
    }
}

fn each_encoded<const B: usize, const E: usize>(
    x: &[f32],
    weights: &[f32],
    out: &mut [u8],
    encode: impl Fn(&[f32; E], &[f32; E], &mut [u8; B]),
) {
    let rows = x.as_chunks().0.iter().zip(weights.as_chunks().0);
    for ((x, weights), out) in rows.zip(out.as_chunks_mut().0) {
        // A block that matters nowhere is encoded as if it mattered everywhere alike.
        let weights = if weights.iter().any(|w| *w > 0.0) { weights } else { &[1.0; E] };
        encode(x, weights, out);
    }
}
