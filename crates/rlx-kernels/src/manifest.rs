//! The manifest: every kernel with its dtypes, argument struct, buffers and needs, in one table.
//!
//! Entry points, argument encoding, preloading and tests follow from it. A kernel's name is its op, the constant it is
//! instantiated for, and its dtypes in the order of the template: `layer_norm_f16_f32`.

mod rows;

use std::collections::HashMap;
use std::sync::LazyLock;

use rlx_ir::DType;

use crate::args::ArgsLayout;
use crate::error::{Error, Result};
use crate::source::Source;

/// What a kernel does with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only reads it.
    Read,
    /// Writes it, and reads at most what it wrote itself.
    Write,
}

/// A buffer that a kernel takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The name of the parameter.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// What the kernel does with it.
    pub access: Access,
    /// Whether it may be missing, which the arguments then say.
    pub optional: bool,
}

/// An array of threadgroup memory that a kernel takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    /// The name of the parameter.
    pub name: &'static str,
    /// The type of its elements.
    pub dtype: DType,
    /// The number of elements.
    pub elems: u32,
}

impl Scratch {
    /// The size in bytes, of which devices want a multiple of 16.
    pub fn bytes(&self) -> u32 {
        let elem = u32::try_from(self.dtype.block_bytes()).unwrap_or(u32::MAX);
        self.elems.saturating_mul(elem).next_multiple_of(16)
    }
}

/// A kernel: one instantiation of a template.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the entry point.
    pub name: String,
    /// The function that the entry point calls, with its template arguments.
    pub function: String,
    /// The sources that hold the function; what they use comes with them.
    pub sources: Vec<&'static Source>,
    /// Text of its own, for kernels that are written when they are needed.
    pub text: Option<String>,
    /// The argument struct, which lies in a device buffer at index 0.
    pub args: &'static ArgsLayout,
    /// The buffers from index 1 on.
    pub buffers: Vec<Buffer>,
    /// Threadgroup memory, in the order of its indices and of the parameters after the buffers.
    pub scratch: Vec<Scratch>,
}

impl Kernel {
    /// The bytes of threadgroup memory that a threadgroup takes.
    pub fn scratch_bytes(&self) -> u32 {
        self.scratch.iter().map(Scratch::bytes).fold(0, u32::saturating_add)
    }
}

/// Every kernel that is compiled ahead.
pub fn kernels() -> &'static [Kernel] {
    static KERNELS: LazyLock<Vec<Kernel>> = LazyLock::new(rows::instantiate);
    &KERNELS
}

/// The kernel of that name.
///
/// # Errors
/// `Bug` where there is none: names are made by launchers, never by users.
pub fn find(name: &str) -> Result<&'static Kernel> {
    static BY_NAME: LazyLock<HashMap<&'static str, &'static Kernel>> =
        LazyLock::new(|| kernels().iter().map(|k| (k.name.as_str(), k)).collect());
    match BY_NAME.get(name) {
        Some(kernel) => Ok(kernel),
        None => rlx_ir::bail!(Bug, "no kernel is named {name}"),
    }
}

/// The C++ type of `dtype`'s elements; `None` for types that no kernel takes.
pub fn cpp_type(dtype: DType) -> Option<&'static str> {
    Some(match dtype {
        DType::F32 => "float",
        DType::F16 => "half",
        DType::I8 => "char",
        DType::I16 => "short",
        DType::I32 => "int",
        DType::I64 => "long",
        DType::U8 => "uchar",
        DType::U32 => "uint",
        DType::Bool => "bool",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        let names: BTreeSet<_> = kernels().iter().map(|k| &k.name).collect();
        assert_eq!(names.len(), kernels().len());
        assert_eq!(find("softmax_f16").unwrap().function, "softmax<half>");
        assert_eq!(find("softmax_f64").unwrap_err().kind(), rlx_ir::ErrorKind::Bug);
    }

    #[test]
    fn every_buffer_has_a_type_and_every_kernel_writes_one() {
        for kernel in kernels() {
            assert!(kernel.buffers.iter().all(|b| cpp_type(b.dtype).is_some()), "{}", kernel.name);
            assert!(kernel.buffers.iter().any(|b| b.access == Access::Write), "{}", kernel.name);
            assert!(kernel.scratch_bytes() <= 32 * 1024, "{}", kernel.name);
        }
    }
}
