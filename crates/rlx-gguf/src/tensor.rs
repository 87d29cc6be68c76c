//! An entry of the tensor directory.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rlx_ir::{DType, bail};

use crate::{Error, GgmlType, MAX_DIMS, Mapping, Result};

/// One tensor of a file: name, type, shape, and where its bytes are. It keeps the mapping alive.
#[derive(Clone, Debug)]
pub struct TensorInfo {
    pub(crate) name: Box<str>,
    pub(crate) ggml_type: &'static GgmlType,
    pub(crate) dims: [usize; MAX_DIMS],
    pub(crate) num_dims: usize,
    pub(crate) range: Range<usize>,
    pub(crate) mapping: Mapping,
    pub(crate) file: Arc<Path>,
}

impl TensorInfo {
    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The type in the file, known to RLX or not.
    pub fn ggml_type(&self) -> &'static GgmlType {
        self.ggml_type
    }

    /// RLX's type. Errors: `UnsupportedModel` that names type, tensor and file where RLX cannot compute with it.
    pub fn dtype(&self) -> Result<DType> {
        match self.ggml_type.dtype() {
            Some(dtype) => Ok(dtype),
            None => bail!(
                UnsupportedModel,
                "{}: tensor `{}` has the block type {}, which is not supported",
                self.file.display(),
                self.name,
                self.ggml_type
            ),
        }
    }

    /// The shape, outermost axis first: the reverse of the order in the file. Blocks lie along the last axis.
    pub fn shape(&self) -> &[usize] {
        &self.dims[..self.num_dims]
    }

    /// The number of elements.
    pub fn elems(&self) -> usize {
        self.shape().iter().product()
    }

    /// The bytes of the data. They are aligned within the file; a buffer's own alignment comes on top.
    pub fn bytes(&self) -> &[u8] {
        &self.mapping[self.range.clone()]
    }

    /// Where the data lies in [`mapping`](Self::mapping), in bytes.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The bytes of the whole file that holds the data.
    pub fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    /// The file that holds the data.
    pub fn file(&self) -> &Path {
        &self.file
    }
}
