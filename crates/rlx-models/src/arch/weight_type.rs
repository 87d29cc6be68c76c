//! In which type a weight is used.

use rlx_ir::{Builder, DType, Value};

use super::fit;
use crate::Result;
use crate::files::NamedWeights;

/// In which type the matrices of a model are used; norms and biases always are f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WeightType {
    /// As the files hold them.
    #[default]
    AsStored,
    /// Converted while they load, to this type or the nearest that their rows allow; see [`fit`].
    Convert(DType),
}

impl WeightType {
    /// The type in which a matrix with rows of `columns` elements that is stored as `stored` is used.
    pub fn of(self, stored: DType, columns: usize) -> DType {
        match self {
            Self::Convert(to) => fit(to, columns),
            // Arithmetic on f64 is for the reference interpreter.
            Self::AsStored if stored == DType::F64 => DType::F32,
            _ => stored,
        }
    }

    /// The same for tables that are small beside the matrices (positions, say): they are not worth the error of a block
    /// type.
    #[must_use]
    pub fn without_blocks(self) -> Self {
        match self {
            Self::Convert(to) if to.is_block() => Self::AsStored,
            other => other,
        }
    }

    /// Declares the matrix `name` of this shape.
    ///
    /// # Errors
    /// `NotFound` where it is missing, `InvalidFile` where it has another shape.
    pub fn matrix(
        self,
        b: &mut Builder,
        weights: &NamedWeights,
        name: &str,
        shape: [usize; 2],
    ) -> Result<Value> {
        let stored = weights.expect(name, &shape)?.dtype;
        Ok(b.weight(name, self.of(stored, shape[1]), shape)?)
    }

    /// Declares the stack of matrices `name` of this shape.
    ///
    /// # Errors
    /// As [`matrix`](Self::matrix).
    pub fn stack(
        self,
        b: &mut Builder,
        weights: &NamedWeights,
        name: &str,
        shape: [usize; 3],
    ) -> Result<Value> {
        let stored = weights.expect(name, &shape)?.dtype;
        Ok(b.weight(name, self.of(stored, shape[2]), shape)?)
    }
}

/// Declares the vector `name` (a norm's weight, a bias) of this length, as f32.
///
/// # Errors
/// `NotFound` where it is missing, `InvalidFile` where it has another shape.
pub fn vector(b: &mut Builder, weights: &NamedWeights, name: &str, len: usize) -> Result<Value> {
    weights.expect(name, &[len])?;
    Ok(b.weight(name, DType::F32, [len])?)
}

#[cfg(test)]
mod tests {
    use rlx_ir::quant::BlockType;

    use super::*;

    #[test]
    fn a_type_that_does_not_fit_gives_way_to_f16() {
        let q8_0 = DType::Block(BlockType::Q8_0);
        let to = WeightType::Convert(q8_0);
        assert_eq!(to.of(DType::F32, 64), q8_0);
        assert_eq!(to.of(DType::F32, 48), DType::F16);
        assert_eq!(to.of(DType::F16, 48), DType::F16);
        assert_eq!(WeightType::AsStored.of(q8_0, 64), q8_0);
        assert_eq!(WeightType::AsStored.of(DType::F64, 64), DType::F32);
    }
}
