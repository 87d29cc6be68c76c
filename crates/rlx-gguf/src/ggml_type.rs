//! The tensor types of ggml: one table of id, name and block.

use rlx_ir::quant::BlockType as B;
use rlx_ir::{DType, bail};

use crate::{Error, Result};

/// A tensor type that ggml knows. RLX can compute with it where [`dtype`](Self::dtype) is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GgmlType {
    id: u32,
    name: &'static str,
    block_elems: usize,
    block_bytes: usize,
    dtype: Option<DType>,
}

/// A type that RLX computes with: its block comes from the dtype.
const fn known(id: u32, name: &'static str, dtype: DType) -> GgmlType {
    let (block_elems, block_bytes) = match dtype {
        DType::Block(b) => (b.block_elems(), b.block_bytes()),
        DType::F64 | DType::I64 => (1, 8),
        DType::F32 | DType::I32 => (1, 4),
        DType::F16 | DType::BF16 | DType::I16 => (1, 2),
        _ => (1, 1),
    };
    GgmlType { id, name, block_elems, block_bytes, dtype: Some(dtype) }
}

/// A type that RLX can only name and measure.
const fn other(id: u32, name: &'static str, block_elems: usize, block_bytes: usize) -> GgmlType {
    GgmlType { id, name, block_elems, block_bytes, dtype: None }
}

static TYPES: [GgmlType; 35] = [
    known(0, "F32", DType::F32),
    known(1, "F16", DType::F16),
    known(2, "Q4_0", DType::Block(B::Q4_0)),
    known(3, "Q4_1", DType::Block(B::Q4_1)),
    known(6, "Q5_0", DType::Block(B::Q5_0)),
    known(7, "Q5_1", DType::Block(B::Q5_1)),
    known(8, "Q8_0", DType::Block(B::Q8_0)),
    known(9, "Q8_1", DType::Block(B::Q8_1)),
    known(10, "Q2_K", DType::Block(B::Q2_K)),
    known(11, "Q3_K", DType::Block(B::Q3_K)),
    known(12, "Q4_K", DType::Block(B::Q4_K)),
    known(13, "Q5_K", DType::Block(B::Q5_K)),
    known(14, "Q6_K", DType::Block(B::Q6_K)),
    known(15, "Q8_K", DType::Block(B::Q8_K)),
    known(16, "IQ2_XXS", DType::Block(B::IQ2_XXS)),
    known(17, "IQ2_XS", DType::Block(B::IQ2_XS)),
    known(18, "IQ3_XXS", DType::Block(B::IQ3_XXS)),
    known(19, "IQ1_S", DType::Block(B::IQ1_S)),
    known(20, "IQ4_NL", DType::Block(B::IQ4_NL)),
    known(21, "IQ3_S", DType::Block(B::IQ3_S)),
    known(22, "IQ2_S", DType::Block(B::IQ2_S)),
    known(23, "IQ4_XS", DType::Block(B::IQ4_XS)),
    known(24, "I8", DType::I8),
    known(25, "I16", DType::I16),
    known(26, "I32", DType::I32),
    known(27, "I64", DType::I64),
    known(28, "F64", DType::F64),
    known(29, "IQ1_M", DType::Block(B::IQ1_M)),
    known(30, "BF16", DType::BF16),
    known(34, "TQ1_0", DType::Block(B::TQ1_0)),
    known(35, "TQ2_0", DType::Block(B::TQ2_0)),
    known(39, "MXFP4", DType::Block(B::MXFP4)),
    known(40, "NVFP4", DType::Block(B::NVFP4)),
    known(41, "Q1_0", DType::Block(B::Q1_0)),
    other(42, "Q2_0", 64, 18),
];

/// Ids that ggml once had.
const REMOVED: [(u32, &str); 8] = [
    (4, "Q4_2"),
    (5, "Q4_3"),
    (31, "Q4_0_4_4"),
    (32, "Q4_0_4_8"),
    (33, "Q4_0_8_8"),
    (36, "IQ4_NL_4_4"),
    (37, "IQ4_NL_4_8"),
    (38, "IQ4_NL_8_8"),
];

impl GgmlType {
    /// Every type that ggml knows, by rising id.
    pub fn all() -> &'static [Self] {
        &TYPES
    }

    /// The type with this id. Errors: `UnsupportedModel` that names the id, and the name of an id that was removed.
    pub fn from_id(id: u32) -> Result<&'static Self> {
        if let Some(found) = TYPES.iter().find(|t| t.id == id) {
            return Ok(found);
        }
        match REMOVED.iter().find(|(removed, _)| *removed == id) {
            Some((_, name)) => bail!(
                UnsupportedModel,
                "type {id} ({name}) was removed from ggml: convert the model again from its source"
            ),
            None => bail!(UnsupportedModel, "type {id} is not known"),
        }
    }

    /// The type with ggml's name (`Q4_K`), in either case.
    pub fn from_name(name: &str) -> Option<&'static Self> {
        TYPES.iter().find(|t| t.name.eq_ignore_ascii_case(name))
    }

    /// The type that stores `dtype`; `None` where no file can hold it (`q8_f32`, `u8`, `bool`).
    pub fn from_dtype(dtype: DType) -> Option<&'static Self> {
        TYPES.iter().find(|t| t.dtype == Some(dtype))
    }

    /// The id in the file.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// ggml's name: `Q4_K`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The elements of one block: 1 where the type has none.
    pub fn block_elems(&self) -> usize {
        self.block_elems
    }

    /// The bytes of one block, or of one element.
    pub fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// RLX's type; `None` where RLX cannot compute with it.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
    }

    /// The bytes of a tensor of `shape` (outermost first). Errors: `InvalidFile` where the last axis is no multiple of
    /// the block, or the size overflows.
    pub fn tensor_bytes(&self, shape: &[usize]) -> Result<usize> {
        let row = shape.last().copied().unwrap_or(1);
        if !row.is_multiple_of(self.block_elems) {
            bail!(
                InvalidFile,
                "the last axis is {row}, which is no multiple of {}'s block of {}",
                self.name,
                self.block_elems
            );
        }
        // Checked over all axes: a zero must not hide an overflow that other readers of the shape would meet.
        let elems = shape.iter().try_fold(1usize, |n, &d| n.checked_mul(d.max(1)));
        let bytes = elems.and_then(|n| (n / self.block_elems).max(1).checked_mul(self.block_bytes));
        match bytes {
            Some(_) if shape.contains(&0) => Ok(0),
            Some(bytes) => Ok(bytes),
            None => bail!(InvalidFile, "the size of shape {shape:?} overflows"),
        }
    }
}

impl std::fmt::Display for GgmlType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    #[test]
    fn the_table_agrees_with_the_dtypes() {
        for t in GgmlType::all() {
            assert_eq!(GgmlType::from_id(t.id).unwrap(), t);
            assert_eq!(GgmlType::from_name(&t.name.to_lowercase()), Some(t));
            if let Some(dtype) = t.dtype {
                assert_eq!((t.block_elems, t.block_bytes), (dtype.block_elems(), dtype.block_bytes()));
                assert_eq!(GgmlType::from_dtype(dtype), Some(t));
                assert_eq!(dtype.name(), t.name.to_lowercase());
            }
        }
        assert!(TYPES.is_sorted_by_key(|t| t.id));
        for block in B::ALL.into_iter().filter(|b| *b != B::Q8_F32) {
            assert!(GgmlType::from_dtype(DType::Block(block)).is_some(), "{block:?}");
        }
        assert_eq!(GgmlType::from_dtype(DType::Block(B::Q8_F32)), None);
    }

    #[test]
    fn ids_that_are_not_known_are_refused_by_name() {
        for (id, name) in REMOVED {
            let e = GgmlType::from_id(id).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
            assert!(e.message().contains(name) && e.message().contains(&id.to_string()), "{e}");
        }
        assert!(GgmlType::from_id(4711).unwrap_err().message().contains("4711"));
    }

    #[test]
    fn sizes_are_checked() {
        let q4_k = GgmlType::from_name("q4_k").unwrap();
        assert_eq!(q4_k.tensor_bytes(&[3, 512]).unwrap(), 3 * 288);
        assert_eq!(q4_k.tensor_bytes(&[0, 512]).unwrap(), 0);
        assert!(q4_k.tensor_bytes(&[512, 3]).is_err());
        let f32 = GgmlType::from_id(0).unwrap();
        assert_eq!(f32.tensor_bytes(&[]).unwrap(), 4);
        for shape in [[usize::MAX, 2], [usize::MAX / 2, 1], [1 << 40, 1 << 40]] {
            assert!(f32.tensor_bytes(&shape).is_err());
        }
        assert!(f32.tensor_bytes(&[1 << 40, 0, 1 << 40]).is_err());
    }
}
