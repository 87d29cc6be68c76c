//! Writing a file, tensor by tensor: nothing has to be resident but the piece at hand.

use std::collections::HashSet;
use std::path::PathBuf;

use rlx_ir::{DType, ErrorKind, bail};

use crate::metadata_builder::write_str;
use crate::{
    ALIGNMENT_KEY, DEFAULT_ALIGNMENT, Error, GgmlType, MAGIC, MAX_DIMS, MetadataBuilder, OutputFile, Result,
};

/// The longest tensor name that other readers take, in bytes.
const MAX_NAME: usize = 63;
/// More would only waste space, in bytes.
const MAX_ALIGNMENT: u32 = 1 << 20;
const VERSION: u32 = 3;

struct Declared {
    name: Box<str>,
    bytes: u64,
}

/// The plan of a file: metadata and the tensors' names, types and shapes. [`start`](Self::start) writes them.
pub struct Writer {
    path: PathBuf,
    metadata: MetadataBuilder,
    alignment: u64,
    tensors: Vec<Declared>,
    names: HashSet<Box<str>>,
    /// The tensor directory as the file holds it.
    directory: Vec<u8>,
    offset: u64,
}

impl Writer {
    /// Plans a file at `path`. The alignment is the metadata's `general.alignment`, or 32 bytes. Nothing is written yet.
    ///
    /// A link is followed: the file that it points to is replaced.
    ///
    /// Errors: `InvalidArgument` where the path is something else than a file (a folder, a device), the alignment is no
    /// power of two up to 1 MiB or a key is empty.
    pub fn new(path: impl Into<PathBuf>, metadata: MetadataBuilder) -> Result<Self> {
        let path = path.into();
        OutputFile::target(&path)?;
        if metadata.keys().any(str::is_empty) {
            bail!(InvalidArgument, "{}: a metadata key is empty", path.display());
        }
        let alignment = metadata.clone().build().u32(ALIGNMENT_KEY)?.unwrap_or(DEFAULT_ALIGNMENT as u32);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            bail!(
                InvalidArgument,
                "{}: `{ALIGNMENT_KEY}` is {alignment}, expected a power of two up to {MAX_ALIGNMENT}",
                path.display()
            );
        }
        Ok(Self {
            path,
            metadata,
            alignment: alignment.into(),
            tensors: Vec::new(),
            names: HashSet::new(),
            directory: Vec::new(),
            offset: 0,
        })
    }

    /// Adds a tensor of `shape` (outermost axis first). Its data is written after [`start`](Self::start), in this order.
    ///
    /// Errors: `InvalidArgument` where the name is taken, empty or longer than 63 bytes, the dtype has no place in a
    /// file, there are more than 4 axes, or the last axis is no multiple of the block.
    pub fn declare(&mut self, name: &str, dtype: DType, shape: &[usize]) -> Result<()> {
        match GgmlType::from_dtype(dtype) {
            Some(ggml_type) => self.declare_as(name, ggml_type, shape),
            None => bail!(
                InvalidArgument,
                "{}: tensor `{name}`: GGUF has no type for {dtype}",
                self.path.display()
            ),
        }
    }

    /// [`declare`](Self::declare) with any type that ggml knows, for data that is copied as it is.
    pub fn declare_as(&mut self, name: &str, ggml_type: &GgmlType, shape: &[usize]) -> Result<()> {
        let invalid = |what: &str| {
            let message = format!("{}: tensor `{name}`: {what}", self.path.display());
            Err(Error::new(ErrorKind::InvalidArgument, message))
        };
        if name.is_empty() || name.len() > MAX_NAME {
            return invalid(&format!("its name has {} bytes, expected 1 to {MAX_NAME}", name.len()));
        }
        if shape.len() > MAX_DIMS {
            return invalid(&format!("it has {} axes, expected at most {MAX_DIMS}", shape.len()));
        }
        let bytes = match ggml_type.tensor_bytes(shape) {
            Ok(bytes) => bytes as u64,
            Err(e) => return invalid(e.message()),
        };
        let Some(offset) =
            self.offset.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(self.alignment))
        else {
            return invalid("the file's size overflows");
        };
        if !self.names.insert(name.into()) {
            return invalid("it is declared twice");
        }
        write_str(&mut self.directory, name);
        self.directory.extend((shape.len() as u32).to_le_bytes());
        for &dim in shape.iter().rev() {
            self.directory.extend((dim as u64).to_le_bytes());
        }
        self.directory.extend(ggml_type.id().to_le_bytes());
        self.directory.extend(self.offset.to_le_bytes());
        self.tensors.push(Declared { name: name.into(), bytes });
        self.offset = offset;
        Ok(())
    }

    /// The bytes of all tensors' data with their padding.
    pub fn data_bytes(&self) -> u64 {
        self.offset
    }

    /// Writes header, metadata and directory to a temporary file beside the path. Errors: `Io`.
    pub fn start(self) -> Result<DataWriter> {
        let mut header = Vec::new();
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((self.tensors.len() as u64).to_le_bytes());
        header.extend((self.metadata.len() as u64).to_le_bytes());
        self.metadata.write(&mut header);
        header.extend(&self.directory);
        let padding = padding(header.len() as u64, self.alignment);
        header.resize(header.len() + padding, 0);

        let mut writer = DataWriter {
            file: OutputFile::create(&self.path)?,
            alignment: self.alignment,
            tensors: self.tensors,
            written: 0,
            failed: false,
        };
        writer.file.write(&header)?;
        Ok(writer)
    }
}

fn padding(bytes: u64, alignment: u64) -> usize {
    // Below the alignment, which is bounded.
    (bytes.wrapping_neg() % alignment) as usize
}

/// A file whose header is written: takes the tensors' data in the declared order.
///
/// Dropped before [`finish`](Self::finish), it removes what it wrote; the file at the path appears whole or not at all.
pub struct DataWriter {
    file: OutputFile,
    alignment: u64,
    tensors: Vec<Declared>,
    written: usize,
    /// Set while a tensor is half written.
    failed: bool,
}

impl DataWriter {
    /// Writes the next tensor, whose data `fill` gives in as many pieces as it likes.
    ///
    /// Errors: what `fill` returns; `InvalidArgument` where `name` is not the next one declared, or `fill` gives more
    /// or fewer bytes than its shape has; `Io`. After an error the file cannot be finished.
    pub fn tensor<E: From<Error>>(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut TensorSink) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.failed {
            return Err(self.invalid(name, "an earlier tensor failed: the file cannot be completed"));
        }
        let bytes = match self.tensors.get(self.written) {
            Some(next) if *next.name == *name => next.bytes,
            Some(next) => {
                return Err(self.invalid(name, &format!("`{}` comes next in the order declared", next.name)));
            }
            None => return Err(self.invalid(name, "all tensors that were declared are written")),
        };
        self.failed = true;
        let mut sink = TensorSink { writer: self, name, left: bytes };
        fill(&mut sink)?;
        let left = sink.left;
        if left > 0 {
            return Err(self.invalid(name, &format!("got {} of its {bytes} bytes", bytes - left)));
        }
        let zeros = vec![0; padding(bytes, self.alignment)];
        self.file.write(&zeros)?;
        self.written += 1;
        self.failed = false;
        Ok(())
    }

    /// Completes the file and puts it in its place.
    ///
    /// Errors: `InvalidArgument` where a tensor is missing or failed; `Io`.
    pub fn finish(self) -> Result<()> {
        if let Some(next) = self.tensors.get(self.written) {
            let what = if self.failed { "its data is not whole" } else { "its data was not written" };
            return Err(self.invalid(&next.name, what));
        }
        self.file.finish()
    }

    fn invalid<E: From<Error>>(&self, name: &str, what: &str) -> E {
        let message = format!("{}: tensor `{name}`: {what}", self.file.path().display());
        Error::new(ErrorKind::InvalidArgument, message).into()
    }
}

/// Takes the data of one tensor.
pub struct TensorSink<'a> {
    writer: &'a mut DataWriter,
    name: &'a str,
    left: u64,
}

impl TensorSink<'_> {
    /// The bytes that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Writes the next piece. Errors: `InvalidArgument` where it is longer than what is left; `Io`.
    pub fn write(&mut self, piece: &[u8]) -> Result<()> {
        match self.left.checked_sub(piece.len() as u64) {
            Some(left) => {
                self.left = left;
                self.writer.file.write(piece)
            }
            None => Err(self.writer.invalid(
                self.name,
                &format!("a piece of {} bytes where {} are left", piece.len(), self.left),
            )),
        }
    }
}
