//! Concrete tensors of the reference interpreter: dense bytes with dtype and sizes.

use half::{bf16, f16};

use crate::convert::{bf16_from_f64, bf16_from_i64, f16_from_f64, f16_from_i64};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::types::TensorType;

/// A dense tensor in row-major order, little endian.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    ty: TensorType,
    bytes: Vec<u8>,
}

impl Tensor {
    /// A tensor over `bytes`.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of bytes is not what the type needs.
    pub fn from_bytes(ty: TensorType, bytes: Vec<u8>) -> Result<Self> {
        let need = ty.bytes()?;
        if bytes.len() != need {
            crate::bail!(InvalidArgument, "{ty} needs {need} bytes, got {}", bytes.len());
        }
        Ok(Self { ty, bytes })
    }

    /// All zero bytes (for block types: blocks of zero bytes, which decode to zeros).
    ///
    /// # Errors
    /// `InvalidArgument` where the type has no byte size; `Device` where there is no memory for it.
    pub fn zeros(ty: TensorType) -> Result<Self> {
        let size = ty.bytes()?;
        // Zeroed pages cost nothing until they are touched, unlike a reserved vector that is filled.
        let Ok(bytes) = bytemuck::allocation::try_zeroed_vec::<u8>(size) else {
            crate::bail!(Device, "{ty}: {size} bytes of memory cannot be had")
        };
        Ok(Self { ty, bytes })
    }

    /// Rounds each value once to the tensor's dtype; integers take the value toward zero, saturating; `bool` takes
    /// whether it is not 0; block types encode row by row.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn from_f64(ty: TensorType, values: &[f64]) -> Result<Self> {
        if values.len() != ty.elems() {
            crate::bail!(InvalidArgument, "{ty} needs {} values, got {}", ty.elems(), values.len());
        }
        let bytes = match ty.dtype {
            DType::F32 => pack(values, |v| (v as f32).to_le_bytes()),
            DType::F16 => pack(values, |v| f16_from_f64(v).to_le_bytes()),
            DType::BF16 => pack(values, |v| bf16_from_f64(v).to_le_bytes()),
            DType::F64 => pack(values, f64::to_le_bytes),
            DType::I8 => pack(values, |v| (v as i8).to_le_bytes()),
            DType::I16 => pack(values, |v| (v as i16).to_le_bytes()),
            DType::I32 => pack(values, |v| (v as i32).to_le_bytes()),
            DType::I64 => pack(values, |v| (v as i64).to_le_bytes()),
            DType::U8 => pack(values, |v| [v as u8]),
            DType::U32 => pack(values, |v| (v as u32).to_le_bytes()),
            DType::Bool => pack(values, |v| [u8::from(v != 0.0)]),
            DType::Block(block) => {
                let floats: Vec<f32> = values.iter().map(|&v| v as f32).collect();
                let mut bytes = vec![0; ty.bytes()?];
                let row = ty.shape.last().copied().unwrap_or(1);
                let row_bytes = ty.dtype.row_bytes(row).unwrap_or(0);
                if row > 0 {
                    for (x, out) in floats.chunks(row).zip(bytes.chunks_mut(row_bytes)) {
                        block.encode(x, None, out)?;
                    }
                }
                bytes
            }
        };
        Ok(Self { ty, bytes })
    }

    /// Converts integers to the tensor's dtype: exact for integer types that hold the value, wrapping otherwise; float
    /// types round once.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds, or the dtype is a block type.
    pub fn from_i64(ty: TensorType, values: &[i64]) -> Result<Self> {
        if values.len() != ty.elems() {
            crate::bail!(InvalidArgument, "{ty} needs {} values, got {}", ty.elems(), values.len());
        }
        let bytes = match ty.dtype {
            DType::F32 => pack(values, |v| (v as f32).to_le_bytes()),
            DType::F64 => pack(values, |v| (v as f64).to_le_bytes()),
            DType::I8 => pack(values, |v| (v as i8).to_le_bytes()),
            DType::I16 => pack(values, |v| (v as i16).to_le_bytes()),
            DType::I32 => pack(values, |v| (v as i32).to_le_bytes()),
            DType::I64 => pack(values, i64::to_le_bytes),
            DType::U8 => pack(values, |v| [v as u8]),
            DType::U32 => pack(values, |v| (v as u32).to_le_bytes()),
            DType::Bool => pack(values, |v| [u8::from(v != 0)]),
            DType::F16 => pack(values, |v| f16_from_i64(v).to_le_bytes()),
            DType::BF16 => pack(values, |v| bf16_from_i64(v).to_le_bytes()),
            DType::Block(b) => crate::bail!(InvalidArgument, "{} cannot be made of integers", b.name()),
        };
        Ok(Self { ty, bytes })
    }

    /// An f32 tensor.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn f32(shape: impl Into<Vec<usize>>, values: &[f32]) -> Result<Self> {
        Self::from_bytes(TensorType::new(DType::F32, shape), bytemuck::cast_slice(values).to_vec())
    }

    /// An i32 tensor.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn i32(shape: impl Into<Vec<usize>>, values: &[i32]) -> Result<Self> {
        Self::from_bytes(TensorType::new(DType::I32, shape), bytemuck::cast_slice(values).to_vec())
    }

    /// Dtype and sizes.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    /// The sizes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }

    /// The number of elements.
    pub fn elems(&self) -> usize {
        self.ty.elems()
    }

    /// The bytes in row-major order, little endian.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, mutable.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The bytes, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The same bytes under another shape of as many elements.
    ///
    /// # Errors
    /// `InvalidArgument` where the number of bytes differs.
    pub fn with_shape(self, shape: impl Into<Vec<usize>>) -> Result<Self> {
        Self::from_bytes(TensorType::new(self.ty.dtype, shape), self.bytes)
    }

    /// The values as f64: exact for all types but large 64-bit integers; block types give their decoded values.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn to_f64(&self) -> Result<Vec<f64>> {
        Ok(match self.ty.dtype {
            DType::F32 => unpack(&self.bytes, |b| f64::from(f32::from_le_bytes(b))),
            DType::F16 => unpack(&self.bytes, |b| f16::from_le_bytes(b).to_f64()),
            DType::BF16 => unpack(&self.bytes, |b| bf16::from_le_bytes(b).to_f64()),
            DType::F64 => unpack(&self.bytes, f64::from_le_bytes),
            DType::I8 => unpack(&self.bytes, |b| f64::from(i8::from_le_bytes(b))),
            DType::I16 => unpack(&self.bytes, |b| f64::from(i16::from_le_bytes(b))),
            DType::I32 => unpack(&self.bytes, |b| f64::from(i32::from_le_bytes(b))),
            DType::I64 => unpack(&self.bytes, |b| i64::from_le_bytes(b) as f64),
            DType::U8 => unpack(&self.bytes, |[b]| f64::from(b)),
            DType::U32 => unpack(&self.bytes, |b| f64::from(u32::from_le_bytes(b))),
            DType::Bool => unpack(&self.bytes, |[b]| f64::from(u8::from(b != 0))),
            DType::Block(block) => {
                let mut floats = vec![0f32; self.elems()];
                block.decode(&self.bytes, &mut floats)?;
                floats.into_iter().map(f64::from).collect()
            }
        })
    }

    /// The values as i64; floats take the value toward zero, saturating.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn to_i64(&self) -> Result<Vec<i64>> {
        Ok(match self.ty.dtype {
            DType::I8 => unpack(&self.bytes, |b| i64::from(i8::from_le_bytes(b))),
            DType::I16 => unpack(&self.bytes, |b| i64::from(i16::from_le_bytes(b))),
            DType::I32 => unpack(&self.bytes, |b| i64::from(i32::from_le_bytes(b))),
            DType::I64 => unpack(&self.bytes, i64::from_le_bytes),
            DType::U8 => unpack(&self.bytes, |[b]| i64::from(b)),
            DType::U32 => unpack(&self.bytes, |b| i64::from(u32::from_le_bytes(b))),
            DType::Bool => unpack(&self.bytes, |[b]| i64::from(b != 0)),
            _ => self.to_f64()?.into_iter().map(|v| v as i64).collect(),
        })
    }

    /// The values as f32.
    ///
    /// # Errors
    /// An error of the block decoder.
    pub fn to_f32(&self) -> Result<Vec<f32>> {
        Ok(self.to_f64()?.into_iter().map(|v| v as f32).collect())
    }
}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.ty)?;
        if self.dtype().is_int() {
            f.debug_list().entries(self.to_i64().unwrap_or_default().iter().take(16)).finish()?;
        } else {
            f.debug_list().entries(self.to_f64().unwrap_or_default().iter().take(16)).finish()?;
        }
        f.write_str(if self.elems() > 16 { "..." } else { "" })
    }
}

fn pack<T: Copy, const B: usize>(values: &[T], convert: impl Fn(T) -> [u8; B]) -> Vec<u8> {
    let mut out = Vec::with_capacity(values.len() * B);
    for &v in values {
        out.extend_from_slice(&convert(v));
    }
    out
}

fn unpack<T, const B: usize>(bytes: &[u8], convert: impl Fn([u8; B]) -> T) -> Vec<T> {
    bytes.as_chunks::<B>().0.iter().map(|b| convert(*b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_memory_holds_is_an_error() {
        for (dtype, sizes) in
            [(DType::F32, vec![1 << 61, 1]), (DType::U8, vec![1 << 62]), (DType::F32, vec![1 << 60])]
        {
            let ty = TensorType::new(dtype, sizes);
            assert!(Tensor::zeros(ty.clone()).is_err(), "{ty}");
            assert!(crate::interp::seeded(&ty, 1).is_err(), "{ty}");
        }
    }

    #[test]
    fn every_scalar_type_round_trips_small_integers() {
        for dtype in DType::SCALARS {
            let ty = TensorType::new(dtype, [2, 2]);
            let t = Tensor::from_i64(ty, &[0, 1, 1, 0]).unwrap();
            assert_eq!(t.to_i64().unwrap(), [0, 1, 1, 0], "{dtype}");
            assert_eq!(t.to_f64().unwrap(), [0.0, 1.0, 1.0, 0.0], "{dtype}");
        }
    }

    #[test]
    fn a_wrong_number_of_bytes_is_refused() {
        assert!(Tensor::from_bytes(TensorType::new(DType::F32, [3]), vec![0; 11]).is_err());
        assert!(TensorType::new(DType::F32, [usize::MAX, 2]).bytes().is_err());
    }
}
