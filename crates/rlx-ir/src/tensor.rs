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
            DType::F32 => pack(&ty, values, |v| (v as f32).to_le_bytes())?,
            DType::F16 => pack(&ty, values, |v| f16_from_f64(v).to_le_bytes())?,
            DType::BF16 => pack(&ty, values, |v| bf16_from_f64(v).to_le_bytes())?,
            DType::F64 => pack(&ty, values, f64::to_le_bytes)?,
            DType::I8 => pack(&ty, values, |v| (v as i8).to_le_bytes())?,
            DType::I16 => pack(&ty, values, |v| (v as i16).to_le_bytes())?,
            DType::I32 => pack(&ty, values, |v| (v as i32).to_le_bytes())?,
            DType::I64 => pack(&ty, values, |v| (v as i64).to_le_bytes())?,
            DType::U8 => pack(&ty, values, |v| [v as u8])?,
            DType::U32 => pack(&ty, values, |v| (v as u32).to_le_bytes())?,
            DType::Bool => pack(&ty, values, |v| [u8::from(v != 0.0)])?,
            DType::Block(block) => {
                let mut floats: Vec<f32> = room(&ty, values.len())?;
                floats.extend(values.iter().map(|&v| v as f32));
                let mut bytes = Self::zeros(ty.clone())?.bytes;
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
            DType::F32 => pack(&ty, values, |v| (v as f32).to_le_bytes())?,
            DType::F64 => pack(&ty, values, |v| (v as f64).to_le_bytes())?,
            DType::I8 => pack(&ty, values, |v| (v as i8).to_le_bytes())?,
            DType::I16 => pack(&ty, values, |v| (v as i16).to_le_bytes())?,
            DType::I32 => pack(&ty, values, |v| (v as i32).to_le_bytes())?,
            DType::I64 => pack(&ty, values, i64::to_le_bytes)?,
            DType::U8 => pack(&ty, values, |v| [v as u8])?,
            DType::U32 => pack(&ty, values, |v| (v as u32).to_le_bytes())?,
            DType::Bool => pack(&ty, values, |v| [u8::from(v != 0)])?,
            DType::F16 => pack(&ty, values, |v| f16_from_i64(v).to_le_bytes())?,
            DType::BF16 => pack(&ty, values, |v| bf16_from_i64(v).to_le_bytes())?,
            DType::Block(b) => crate::bail!(InvalidArgument, "{} cannot be made of integers", b.name()),
        };
        Ok(Self { ty, bytes })
    }

    /// A tensor of the dtype that `T` is.
    ///
    /// ```
    /// use rlx_ir::{DType, Tensor};
    /// let mask = Tensor::of([3], &[true, false, true])?;
    /// assert_eq!((mask.dtype(), mask.values::<bool>()?), (DType::Bool, vec![true, false, true]));
    /// # Ok::<(), rlx_ir::Error>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` where the number of values is not what the shape holds.
    pub fn of<T: Scalar>(shape: impl Into<Vec<usize>>, values: &[T]) -> Result<Self> {
        Self::from_bytes(TensorType::new(T::DTYPE, shape), bytemuck::cast_slice(values).to_vec())
    }

    /// The values, of the dtype that `T` is.
    ///
    /// # Errors
    /// `InvalidArgument` where the tensor has another dtype, or holds a byte that is no `bool`.
    pub fn values<T: Scalar>(&self) -> Result<Vec<T>> {
        if self.dtype() != T::DTYPE {
            crate::bail!(InvalidArgument, "a tensor of {} was asked for {}", self.dtype(), T::DTYPE);
        }
        let mut out = room(&self.ty, self.bytes.len() / size_of::<T>())?;
        for bytes in self.bytes.chunks_exact(size_of::<T>()) {
            match bytemuck::checked::try_pod_read_unaligned(bytes) {
                Ok(value) => out.push(value),
                Err(_) => crate::bail!(InvalidArgument, "{}: {bytes:?} is no {}", self.ty, T::DTYPE),
            }
        }
        Ok(out)
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
            DType::F32 => unpack(&self.ty, &self.bytes, |b| f64::from(f32::from_le_bytes(b)))?,
            DType::F16 => unpack(&self.ty, &self.bytes, |b| f16::from_le_bytes(b).to_f64())?,
            DType::BF16 => unpack(&self.ty, &self.bytes, |b| bf16::from_le_bytes(b).to_f64())?,
            DType::F64 => unpack(&self.ty, &self.bytes, f64::from_le_bytes)?,
            DType::I8 => unpack(&self.ty, &self.bytes, |b| f64::from(i8::from_le_bytes(b)))?,
            DType::I16 => unpack(&self.ty, &self.bytes, |b| f64::from(i16::from_le_bytes(b)))?,
            DType::I32 => unpack(&self.ty, &self.bytes, |b| f64::from(i32::from_le_bytes(b)))?,
            DType::I64 => unpack(&self.ty, &self.bytes, |b| i64::from_le_bytes(b) as f64)?,
            DType::U8 => unpack(&self.ty, &self.bytes, |[b]| f64::from(b))?,
            DType::U32 => unpack(&self.ty, &self.bytes, |b| f64::from(u32::from_le_bytes(b)))?,
            DType::Bool => unpack(&self.ty, &self.bytes, |[b]| f64::from(u8::from(b != 0)))?,
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
            DType::I8 => unpack(&self.ty, &self.bytes, |b| i64::from(i8::from_le_bytes(b)))?,
            DType::I16 => unpack(&self.ty, &self.bytes, |b| i64::from(i16::from_le_bytes(b)))?,
            DType::I32 => unpack(&self.ty, &self.bytes, |b| i64::from(i32::from_le_bytes(b)))?,
            DType::I64 => unpack(&self.ty, &self.bytes, i64::from_le_bytes)?,
            DType::U8 => unpack(&self.ty, &self.bytes, |[b]| i64::from(b))?,
            DType::U32 => unpack(&self.ty, &self.bytes, |b| i64::from(u32::from_le_bytes(b)))?,
            DType::Bool => unpack(&self.ty, &self.bytes, |[b]| i64::from(b != 0))?,
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

/// Types of Rust that are a dtype: f32, f64, `half::f16`, `half::bf16`, `bool`, and the integers from i8 to i64, u8 and u32.
pub trait Scalar: bytemuck::NoUninit + bytemuck::CheckedBitPattern {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! scalars {
    ($($ty:ty: $dtype:ident;)*) => {
        $(impl Scalar for $ty {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

scalars! {
    f32: F32;
    f16: F16;
    bf16: BF16;
    f64: F64;
    i8: I8;
    i16: I16;
    i32: I32;
    i64: I64;
    u8: U8;
    u32: U32;
    bool: Bool;
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

/// No values yet, with room for `len` of a tensor of type `ty`.
///
/// # Errors
/// `Device` where there is no memory for them.
pub(crate) fn room<T>(ty: &TensorType, len: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    if values.try_reserve_exact(len).is_err() {
        let size = len.saturating_mul(size_of::<T>());
        crate::bail!(Device, "{ty}: {size} bytes of memory cannot be had");
    }
    Ok(values)
}

fn pack<T: Copy, const B: usize>(
    ty: &TensorType,
    values: &[T],
    convert: impl Fn(T) -> [u8; B],
) -> Result<Vec<u8>> {
    let mut out = room(ty, values.len().saturating_mul(B))?;
    for &v in values {
        out.extend_from_slice(&convert(v));
    }
    Ok(out)
}

fn unpack<T, const B: usize>(
    ty: &TensorType,
    bytes: &[u8],
    convert: impl Fn([u8; B]) -> T,
) -> Result<Vec<T>> {
    let chunks = bytes.as_chunks::<B>().0;
    let mut out = room(ty, chunks.len())?;
    out.extend(chunks.iter().map(|b| convert(*b)));
    Ok(out)
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
    fn values_of_every_scalar_type_come_back() {
        fn check<T: Scalar + PartialEq + std::fmt::Debug>(values: [T; 2]) {
            let t = Tensor::of([2], &values).unwrap();
            assert_eq!((t.dtype(), t.values::<T>().unwrap().as_slice()), (T::DTYPE, values.as_slice()));
            assert!(Tensor::of([3], &values).is_err());
        }
        check([1.5f32, -0.0]);
        check([f16::from_f32(1.5), f16::MAX]);
        check([bf16::from_f32(1.5), bf16::MAX]);
        check([1.5f64, f64::MAX]);
        check([-1i8, 1]);
        check([-1i16, 1]);
        check([-1i32, 1]);
        check([i64::MIN, 1]);
        check([255u8, 1]);
        check([u32::MAX, 1]);
        check([true, false]);
        let byte = Tensor::from_bytes(TensorType::new(DType::Bool, [1]), vec![2]).unwrap();
        assert!(byte.values::<bool>().is_err() && byte.values::<u8>().is_err());
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
