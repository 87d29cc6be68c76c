//! The rows of the manifest, one file for each family of ops, and how a row becomes kernels.

mod activation;
mod attention;
mod elementwise;
mod embedding;
mod matmul;
mod norm;
mod pooling;
mod position;
mod reduce;
mod shape;
mod state;

use rlx_ir::DType;
use rlx_ir::DType::{F16, F32};

use super::{Access, Buffer, Kernel, Scratch, cpp_type};
use crate::args::ArgsLayout;
use crate::source::Source;

/// The type of elements.
#[derive(Clone, Copy)]
enum Elem {
    /// That of the template's type parameter at this place.
    Param(usize),
    /// Always the same.
    Fixed(DType),
}
use Elem::{Fixed, Param};

/// What a buffer is for.
#[derive(Clone, Copy)]
enum Use {
    Read,
    Optional,
    Write,
}
use Use::{Optional, Read, Write};

/// A template and all that it is instantiated for.
struct Row {
    function: &'static str,
    source: &'static Source,
    args: &'static ArgsLayout,
    buffers: &'static [(&'static str, Elem, Use)],
    /// Arrays of threadgroup memory: names, types and numbers of elements.
    scratch: &'static [(&'static str, Elem, u32)],
    /// The dtypes of the template's type parameters, one list for each instantiation.
    types: &'static [&'static [DType]],
    /// The word in the name and the template arguments after the types, for each constant.
    constants: &'static [(&'static str, &'static str)],
}

/// Rows of all families.
const FAMILIES: &[&[Row]] = &[
    norm::ROWS,
    shape::ROWS,
    elementwise::ROWS,
    reduce::ROWS,
    matmul::ROWS,
    embedding::ROWS,
    position::ROWS,
    activation::ROWS,
    attention::ROWS,
    state::ROWS,
    pooling::ROWS,
];

const FLOATS: &[&[DType]] = &[&[F32], &[F16]];
const FLOATS_AND_WEIGHTS: &[&[DType]] = &[&[F32, F32], &[F32, F16], &[F16, F32], &[F16, F16]];
const PLAIN: &[(&str, &str)] = &[("", "")];

/// Rows without threadgroup memory.
const NO_SCRATCH: &[(&str, Elem, u32)] = &[];

/// An f32 for each simdgroup of the largest threadgroup, as reductions over a threadgroup want it.
const SUMS: &[(&str, Elem, u32)] = &[("scratch", Fixed(F32), SIMDS)];
const SIMDS: u32 = 32;

const X_TO_OUT: &[(&str, Elem, Use)] = &[("x", Param(0), Read), ("out", Param(0), Write)];

/// All kernels of all rows.
pub(super) fn instantiate() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for row in FAMILIES.iter().copied().flatten() {
        for types in row.types {
            for constant in row.constants {
                kernels.push(row.kernel(types, *constant));
            }
        }
    }
    kernels
}

impl Row {
    fn kernel(&self, types: &[DType], (word, constants): (&str, &str)) -> Kernel {
        let names: Vec<&str> =
            std::iter::once(word).filter(|w| !w.is_empty()).chain(types.iter().map(|t| t.name())).collect();
        let cpp: Vec<&str> = types.iter().filter_map(|t| cpp_type(*t)).collect();
        let dtype = |elem| match elem {
            Param(at) => types[at],
            Fixed(dtype) => dtype,
        };
        let buffers = self.buffers.iter().map(|&(name, elem, purpose)| Buffer {
            name: name.to_owned(),
            dtype: dtype(elem),
            access: if matches!(purpose, Write) { Access::Write } else { Access::Read },
            optional: matches!(purpose, Optional),
        });
        let scratch =
            self.scratch.iter().map(|&(name, elem, elems)| Scratch { name, dtype: dtype(elem), elems });
        Kernel {
            name: format!("{}_{}", self.function, names.join("_")),
            function: format!("{}<{}{constants}>", self.function, cpp.join(", ")),
            sources: vec![self.source],
            text: None,
            args: self.args,
            buffers: buffers.collect(),
            scratch: scratch.collect(),
        }
    }
}
