//! Weight sources: named tensors from files or memory.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rlx_gguf::{Gguf, Mapping, TensorInfo, unique_identity};
use rlx_ir::{DType, Tensor, TensorType};
use safetensors::{Dtype, SafeTensors};

use super::bytes::WeightBytes;
use super::names_once;
use crate::error::{Error, Result};

/// Named tensors.
pub trait WeightSource: Send + Sync {
    /// A text that no source has which holds other tensors, or has other names for them: part of the key of prepared weights.
    /// Sources over the same files have the same one, so that they share what is prepared.
    fn identity(&self) -> &str;

    /// The tensor `name`.
    ///
    /// # Errors
    /// `NotFound` naming the tensor and, where there are any, the nearest names; `UnsupportedModel` for a dtype that RLX
    /// does not know.
    fn weight(&self, name: &str) -> Result<WeightData>;
}

/// A tensor of a source.
#[derive(Clone, Debug)]
pub struct WeightData {
    /// Dtype and sizes in the source.
    pub ty: TensorType,
    /// Dense row-major bytes.
    pub bytes: WeightBytes,
}

/// The identity of a source over these bytes, in this order.
fn identity<'a>(what: &str, files: impl Iterator<Item = &'a Mapping>) -> String {
    let mut files: Vec<&str> = files.map(Mapping::identity).collect();
    files.dedup();
    format!("{what} of {}", files.join(" and "))
}

/// No tensors: for graphs whose weights are all given inline or by seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoWeights;

impl WeightSource for NoWeights {
    fn identity(&self) -> &str {
        "none"
    }

    fn weight(&self, name: &str) -> Result<WeightData> {
        rlx_ir::bail!(NotFound, "no weights were given, but {name:?} is needed")
    }
}

/// Tensors in memory.
#[derive(Debug)]
pub struct MemoryWeights {
    identity: String,
    tensors: BTreeMap<String, WeightData>,
}

impl MemoryWeights {
    /// A source of these tensors.
    pub fn new(tensors: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        let data = |t: Tensor| WeightData { ty: t.ty().clone(), bytes: WeightBytes::owned(t.bytes()) };
        Self {
            identity: unique_identity("memory"),
            tensors: tensors.into_iter().map(|(name, t)| (name, data(t))).collect(),
        }
    }
}

impl WeightSource for MemoryWeights {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn weight(&self, name: &str) -> Result<WeightData> {
        match self.tensors.get(name) {
            Some(data) => Ok(data.clone()),
            None => rlx_ir::bail!(NotFound, "tensor {name:?} is missing"),
        }
    }
}

/// The tensors of a GGUF file, by its own names.
#[derive(Debug)]
pub struct GgufWeights {
    identity: String,
    gguf: Arc<Gguf>,
}

impl GgufWeights {
    /// A source over an open file.
    pub fn new(gguf: Arc<Gguf>) -> Self {
        Self { identity: identity("gguf", gguf.tensors().iter().map(TensorInfo::mapping)), gguf }
    }

    /// The file.
    pub fn gguf(&self) -> &Arc<Gguf> {
        &self.gguf
    }
}

impl WeightSource for GgufWeights {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn weight(&self, name: &str) -> Result<WeightData> {
        let info = self.gguf.tensor(name)?;
        let ty = TensorType::new(info.dtype()?, info.shape());
        Ok(WeightData { ty, bytes: WeightBytes::Mapped(info.mapping().clone(), info.range()) })
    }
}

/// One mapped `.safetensors` file with its checked header.
#[derive(Debug)]
pub struct SafetensorsFile {
    path: PathBuf,
    mapping: Mapping,
    metadata: BTreeMap<String, String>,
    tensors: HashMap<String, (Dtype, Vec<usize>, std::ops::Range<usize>)>,
}

impl SafetensorsFile {
    /// Maps and checks a file.
    ///
    /// # Errors
    /// `NotFound`, `Io`; `InvalidFile` where the header is damaged or does not fit the file.
    pub fn open(path: &Path) -> Result<Self> {
        Self::parse(Mapping::open(path)?, path)
    }

    /// Checks the bytes of a file that is called `path` in messages.
    ///
    /// # Errors
    /// `InvalidFile` where the header is damaged or does not fit the file.
    pub fn parse(mapping: Mapping, path: &Path) -> Result<Self> {
        let invalid = |e: String| {
            Error::new(
                rlx_ir::ErrorKind::InvalidFile,
                format!("{}: no sound safetensors file: {e}", path.display()),
            )
        };
        let (header_len, header) =
            SafeTensors::read_metadata(&mapping).map_err(|e| invalid(e.to_string()))?;
        let data_start = header_len + 8;
        // What reads the header keeps the last of two.
        names_once::check(mapping.get(8..data_start).unwrap_or_default()).map_err(invalid)?;
        let mut tensors = HashMap::new();
        for (name, info) in header.tensors() {
            let (start, end) = info.data_offsets;
            let range = data_start.checked_add(start).zip(data_start.checked_add(end));
            match range {
                Some((start, end)) if start <= end && end <= mapping.len() => {
                    tensors.insert(name, (info.dtype, info.shape.clone(), start..end));
                }
                _ => return Err(invalid(format!("tensor {name:?} lies outside the file"))),
            }
        }
        let metadata = header.metadata().iter().flatten().map(|(k, v)| (k.clone(), v.clone())).collect();
        Ok(Self { path: path.to_owned(), mapping, metadata, tensors })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The texts of the header's `__metadata__`, by key.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Names, dtypes and shapes, by name. The dtype is `None` where RLX does not know it.
    pub fn tensors(&self) -> Vec<(&str, Option<DType>, &[usize])> {
        let mut list: Vec<_> =
            self.tensors.iter().map(|(n, (d, s, _))| (n.as_str(), dtype_of(*d), s.as_slice())).collect();
        list.sort_unstable_by_key(|t| t.0);
        list
    }

    /// What the file calls the dtype of the tensor `name`, and how many bytes it has; also of dtypes that RLX does not know.
    pub fn stored(&self, name: &str) -> Option<(String, usize)> {
        self.tensors.get(name).map(|(dtype, _, range)| (dtype.to_string(), range.len()))
    }

    fn get(&self, name: &str) -> Result<Option<WeightData>> {
        let Some((dtype, shape, range)) = self.tensors.get(name) else { return Ok(None) };
        let Some(known) = dtype_of(*dtype) else {
            rlx_ir::bail!(
                UnsupportedModel,
                "{}: tensor {name:?} has dtype {dtype:?}, which RLX does not know",
                self.path.display()
            );
        };
        let ty = TensorType::new(known, shape.as_slice());
        if ty.bytes()? != range.len() {
            rlx_ir::bail!(
                InvalidFile,
                "{}: tensor {name:?} has {} bytes, not those of {ty}",
                self.path.display(),
                range.len()
            );
        }
        Ok(Some(WeightData { ty, bytes: WeightBytes::Mapped(self.mapping.clone(), range.clone()) }))
    }
}

fn dtype_of(dtype: Dtype) -> Option<DType> {
    Some(match dtype {
        Dtype::F32 => DType::F32,
        Dtype::F16 => DType::F16,
        Dtype::BF16 => DType::BF16,
        Dtype::F64 => DType::F64,
        Dtype::I8 => DType::I8,
        Dtype::I16 => DType::I16,
        Dtype::I32 => DType::I32,
        Dtype::I64 => DType::I64,
        Dtype::U8 => DType::U8,
        Dtype::U32 => DType::U32,
        Dtype::BOOL => DType::Bool,
        _ => return None,
    })
}

/// The tensors of one or more `.safetensors` files.
#[derive(Debug)]
pub struct SafetensorsWeights {
    identity: String,
    files: Vec<SafetensorsFile>,
}

impl SafetensorsWeights {
    /// A source over these files. A tensor that stands in two of them is taken from the first.
    pub fn new(files: Vec<SafetensorsFile>) -> Self {
        Self { identity: identity("safetensors", files.iter().map(|f| &f.mapping)), files }
    }

    /// The files.
    pub fn files(&self) -> &[SafetensorsFile] {
        &self.files
    }

    /// Whether there is a tensor `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.files.iter().any(|f| f.tensors.contains_key(name))
    }
}

impl WeightSource for SafetensorsWeights {
    fn identity(&self) -> &str {
        &self.identity
    }

    fn weight(&self, name: &str) -> Result<WeightData> {
        for file in &self.files {
            if let Some(data) = file.get(name)? {
                return Ok(data);
            }
        }
        let place: Vec<String> = self.files.iter().map(|f| f.path.display().to_string()).collect();
        let mut near: Vec<&str> = self
            .files
            .iter()
            .flat_map(|f| f.tensors.keys())
            .map(String::as_str)
            .filter(|n| name.rsplit('.').take(2).all(|part| n.contains(part)))
            .collect();
        near.sort_unstable();
        near.truncate(3);
        let near = if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) };
        rlx_ir::bail!(NotFound, "{}: tensor {name:?} is missing{near}", place.join(", "))
    }
}
