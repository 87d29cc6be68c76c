//! Opening a model: one file or all of its shards.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use rlx_ir::{ErrorKind, bail};

use crate::parse::{self, Parsed, shorten};
use crate::{Error, Mapping, Metadata, Result, TensorInfo, split, suggest};

/// A GGUF model that was opened and checked: metadata, and the tensors of all shards.
#[derive(Clone, Debug)]
pub struct Gguf {
    files: Vec<Arc<Path>>,
    version: u32,
    alignment: usize,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<Box<str>, usize>,
}

impl Gguf {
    /// Opens and maps the file at `path`, and, where it is a shard, all other shards beside it.
    ///
    /// Nothing of the tensors' data is read. While the model is in use the files must not change or shrink: the system
    /// ends a process that touches what is gone (SIGBUS). Replace them by renaming, as [`Writer`](crate::Writer) does.
    ///
    /// Errors: `NotFound` (also of a shard, by name), `InvalidFile` for damage, `UnsupportedModel` for tensor types
    /// that ggml does not know and for big-endian files, `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, parsed) = open_one(path)?;
        let in_file = |e: Error| e.context(path.display());
        let Some(split) = split::of(&parsed.metadata).map_err(in_file)? else {
            return Self::collect(vec![(file, parsed)]);
        };
        let prefix = split::prefix(path, split)?;
        let mut opened = Some((file, parsed));
        let mut shards = Vec::new();
        for no in 0..split.count {
            let shard_path = split::shard_path(&prefix, no, split.count);
            let (file, parsed) = match opened.take_if(|_| no == split.no) {
                Some(opened) => opened,
                None => open_one(&shard_path)
                    .map_err(|e| e.context(format_args!("shard {} of {}", no + 1, split.count)))?,
            };
            let in_shard = |e: Error| e.context(shard_path.display());
            match split::of(&parsed.metadata).map_err(in_shard)? {
                Some(found) if found.no == no && found.count == split.count => {}
                Some(found) => bail!(
                    InvalidFile,
                    "{}: says that it is shard {} of {}, expected {} of {}",
                    shard_path.display(),
                    found.no + 1,
                    found.count,
                    no + 1,
                    split.count
                ),
                None => bail!(InvalidFile, "{}: says that it is no shard", shard_path.display()),
            }
            shards.push((file, parsed));
        }
        let model = Self::collect(shards)?;
        let found = model.tensors.len();
        if let Some(expected) = split.num_tensors
            && expected != found as u64
        {
            bail!(
                InvalidFile,
                "{}: the {} shards hold {found} tensors, but `split.tensors.count` is {expected}",
                path.display(),
                split.count
            );
        }
        Ok(model)
    }

    /// Reads a model from a buffer. Shards cannot be read like this. Errors: as [`open`](Self::open).
    pub fn parse(bytes: Vec<u8>) -> Result<Self> {
        Self::from_mapping(bytes, "<buffer>")
    }

    /// Reads a model from bytes that are already in memory or mapped; `name` stands for the path in errors.
    pub fn from_mapping(mapping: impl Into<Mapping>, name: impl AsRef<Path>) -> Result<Self> {
        let file: Arc<Path> = name.as_ref().into();
        let parsed = parse::parse(&mapping.into(), &file)?;
        if let Some(split) = split::of(&parsed.metadata).map_err(|e| e.context(file.display()))? {
            bail!(
                InvalidFile,
                "{}: this is shard {} of {}: open it by its path",
                file.display(),
                split.no + 1,
                split.count
            );
        }
        Self::collect(vec![(file, parsed)])
    }

    fn collect(shards: Vec<(Arc<Path>, Parsed)>) -> Result<Self> {
        let mut model: Option<Self> = None;
        for (file, parsed) in shards {
            let model = model.get_or_insert_with(|| Self {
                files: Vec::new(),
                version: parsed.version,
                alignment: parsed.alignment,
                metadata: parsed.metadata,
                tensors: Vec::new(),
                index: HashMap::new(),
            });
            for tensor in parsed.tensors {
                if let Some(other) = model.index.insert(tensor.name.clone(), model.tensors.len()) {
                    bail!(
                        InvalidFile,
                        "{}: tensor `{}` is also in {}",
                        file.display(),
                        shorten(&tensor.name),
                        model.tensors[other].file.display()
                    );
                }
                model.tensors.push(tensor);
            }
            model.files.push(file);
        }
        model.ok_or_else(|| Error::new(ErrorKind::Bug, "a model of no files"))
    }

    /// The paths of the model's files: one, or all shards in order.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| &**file)
    }

    /// The version of the format: 1 to 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The alignment of tensor data, in bytes.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// The metadata: that of the first shard.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors, in the files' order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor of that name; `None` where there is none.
    pub fn find(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(*self.index.get(name)?)
    }

    /// The tensor of that name. Errors: `NotFound` that lists the nearest names.
    pub fn tensor(&self, name: &str) -> Result<&TensorInfo> {
        if let Some(tensor) = self.find(name) {
            return Ok(tensor);
        }
        let near = suggest::nearest(name, self.tensors.iter().map(TensorInfo::name));
        let hint = match near.as_slice() {
            [] => String::new(),
            near => format!(": the nearest names are `{}`", near.join("`, `")),
        };
        let file = self.files.first().map(|file| file.display().to_string()).unwrap_or_default();
        bail!(NotFound, "{file}: there is no tensor `{}`{hint}", shorten(name))
    }

    /// The bytes of a tensor.
    pub fn tensor_bytes<'a>(&self, tensor: &'a TensorInfo) -> &'a [u8] {
        tensor.bytes()
    }
}

fn open_one(path: &Path) -> Result<(Arc<Path>, Parsed)> {
    let file: Arc<Path> = path.into();
    let parsed = parse::parse(&Mapping::open(path)?, &file)?;
    Ok((file, parsed))
}
