//! Thunks: one prepared call per step. A thunk knows what the plan fixed (dtypes, attributes) and reads sizes from the
//! binding; the kernels know nothing of plans.

/// `$run` with `$T` as the type of Rust that is the dtype of a number, `$else` for other dtypes.
macro_rules! with_number {
    ($dtype:expr, $T:ident => $run:expr, $other:ident => $else:expr) => {{
        use half::{bf16, f16};
        use rlx_ir::DType;
        with_number!(@arms $dtype, $T => $run, $other => $else;
            F32 f32, F16 f16, BF16 bf16, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U32 u32)
    }};
    (@arms $dtype:expr, $T:ident => $run:expr, $other:ident => $else:expr; $($name:ident $ty:ty),*) => {
        match $dtype {
            $(DType::$name => {
                type $T = $ty;
                $run
            })*
            $other => $else,
        }
    };
}

pub(crate) mod argmax;
pub(crate) mod attention;
pub(crate) mod binary;
pub(crate) mod compare;
pub(crate) mod concat;
pub(crate) mod convert;
pub(crate) mod copy;
pub(crate) mod gather;
pub(crate) mod iota;
pub(crate) mod linear;
pub(crate) mod matmul;
pub(crate) mod moe;
pub(crate) mod norm;
pub(crate) mod pad;
pub(crate) mod product;
pub(crate) mod reduce;
pub(crate) mod reference;
pub(crate) mod region;
pub(crate) mod rows;
pub(crate) mod scatter;
pub(crate) mod select;
pub(crate) mod top_k;
pub(crate) mod unary;
pub(crate) mod views;

use std::fmt::Debug;

use bytemuck::Pod;
use rlx_compile::plan::{Operand, Sizes, Step};
use rlx_ir::{Bindings, Type, bail};

use crate::backend::launch::Read;
use crate::backend::support::Entry;
use crate::backend::weights::CpuWeight;
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::matmul::{Packed, PackedStack};

/// The ops that have kernels.
pub(crate) fn entries() -> impl Iterator<Item = &'static Entry> {
    let families: [&'static [Entry]; 10] = [
        std::slice::from_ref(&linear::LINEAR),
        std::slice::from_ref(&matmul::MATMUL),
        unary::ENTRIES,
        binary::ENTRIES,
        compare::ENTRIES,
        norm::ENTRIES,
        rows::ENTRIES,
        attention::ENTRIES,
        reduce::ENTRIES,
        views::ENTRIES,
    ];
    let single = [
        &argmax::ARGMAX,
        &gather::GATHER,
        &iota::IOTA,
        &pad::PAD,
        &binary::GLU,
        &select::SELECT,
        &region::REGION,
        &moe::MOE,
        &top_k::TOP_K,
        &scatter::SCATTER,
        &concat::CONCAT,
    ];
    families.into_iter().flatten().chain(convert::ENTRIES).chain(single)
}

/// Elements from token to token of operand `index`, whose tokens have no gaps inside.
pub(crate) fn token_stride(call: &StepCall<'_>, index: usize) -> usize {
    if call.step.operands[index].dense {
        call.shape(index)[1..].iter().product()
    } else {
        call.strides(index)[0]
    }
}

/// `axis` of a value of type `ty`, counted from the front; a negative one counts from the back.
pub(crate) fn axis_of(axis: i64, ty: &Type) -> Result<usize> {
    let rank = ty.rank();
    let resolved = if axis < 0 { axis + i64::try_from(rank).unwrap_or(0) } else { axis };
    match usize::try_from(resolved) {
        Ok(axis) if axis < rank => Ok(axis),
        _ => bail!(Bug, "{ty} has no axis {axis}"),
    }
}

/// The number of elements before `axis`, along it, and after it.
pub(crate) fn around(shape: &[usize], axis: usize) -> [usize; 3] {
    let product = |sizes: &[usize]| sizes.iter().product();
    [product(&shape[..axis]), shape[axis], product(&shape[axis + 1..])]
}

/// A step, ready to run.
pub(crate) trait Thunk: Debug + Send + Sync {
    /// The kernel's name, for people.
    fn kernel(&self) -> &str;

    /// Runs the step.
    fn run(&self, call: &mut StepCall<'_>) -> Result<()>;
}

/// One call of a thunk: sizes and slices.
#[derive(Debug)]
pub(crate) struct StepCall<'a> {
    pub(crate) cpu: Cpu<'a>,
    pub(crate) bindings: &'a Bindings,
    pub(crate) sizes: &'a Sizes,
    pub(crate) step: &'a Step,
    pub(crate) reads: Vec<Read<'a>>,
    pub(crate) writes: Vec<&'a mut [u8]>,
}

impl<'a> StepCall<'a> {
    /// The sizes of operand `index`.
    pub(crate) fn shape(&self, index: usize) -> Vec<usize> {
        self.sizes_of(&self.step.operands[index])
    }

    /// The sizes of result `index`.
    pub(crate) fn result_shape(&self, index: usize) -> Vec<usize> {
        self.sizes_of(&self.step.results[index])
    }

    fn sizes_of(&self, operand: &Operand) -> Vec<usize> {
        operand.shape.iter().map(|&s| self.sizes.get(s)).collect()
    }

    /// The strides of operand `index`, in elements.
    pub(crate) fn strides(&self, index: usize) -> Vec<usize> {
        self.step.operands[index].strides.iter().map(|&s| self.sizes.get(s)).collect()
    }

    /// The strides by which operand `index` is broadcast to a result of `rank` axes, in elements.
    pub(crate) fn broadcast_strides(&self, index: usize, rank: usize) -> Vec<usize> {
        let mut strides = vec![0; rank];
        let shape = self.shape(index);
        let own = if self.step.operands[index].dense { None } else { Some(self.strides(index)) };
        let mut dense = 1;
        for (axis, &size) in shape.iter().enumerate().rev() {
            if size != 1 {
                strides[rank - shape.len() + axis] = own.as_ref().map_or(dense, |own| own[axis]);
            }
            dense *= size;
        }
        strides
    }

    /// The bytes of operand `index`, from its first element to its last.
    pub(crate) fn bytes(&self, index: usize) -> Result<&'a [u8]> {
        match self.reads[index] {
            Read::Bytes(bytes) => Ok(bytes),
            Read::Weight(CpuWeight::Rows(bytes)) => Ok(bytes),
            Read::Weight(CpuWeight::Packed(_)) => {
                bail!(Bug, "operand {index} is packed, but the kernel wants rows")
            }
            Read::InPlace => bail!(Bug, "operand {index} is in place, but the kernel does not expect that"),
        }
    }

    /// The elements of operand `index`.
    pub(crate) fn read<T: Pod>(&self, index: usize) -> Result<&'a [T]> {
        let bytes = self.bytes(index)?;
        // No bytes may lie anywhere.
        if bytes.is_empty() {
            return Ok(&[]);
        }
        match bytemuck::try_cast_slice(bytes) {
            Ok(values) => Ok(values),
            Err(e) => bail!(Bug, "operand {index}: {e}"),
        }
    }

    /// The panels of operand `index`.
    pub(crate) fn packed(&self, index: usize) -> Result<Packed<'a>> {
        match self.reads[index] {
            Read::Weight(CpuWeight::Packed(weight)) => weight.view(),
            _ => bail!(Bug, "operand {index} is not packed"),
        }
    }

    /// The panels of operand `index`, which is a stack of matrices.
    pub(crate) fn packed_stack(&self, index: usize) -> Result<PackedStack<'a>> {
        match self.reads[index] {
            Read::Weight(CpuWeight::Packed(weight)) => weight.stack(),
            _ => bail!(Bug, "operand {index} is not packed"),
        }
    }

    /// The bytes of result `index`. They can be taken once.
    pub(crate) fn write_bytes(&mut self, index: usize) -> &'a mut [u8] {
        std::mem::take(&mut self.writes[index])
    }

    /// The elements of result `index`. They can be taken once.
    pub(crate) fn write<T: Pod>(&mut self, index: usize) -> Result<&'a mut [T]> {
        let bytes = self.write_bytes(index);
        if bytes.is_empty() {
            return Ok(&mut []);
        }
        match bytemuck::try_cast_slice_mut(bytes) {
            Ok(values) => Ok(values),
            Err(e) => bail!(Bug, "result {index}: {e}"),
        }
    }
}
