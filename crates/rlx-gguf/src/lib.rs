//! Reader and writer for GGUF files, versions 1 to 3.
//!
//! - [`Gguf`] maps a file (or all shards of a split one), checks it whole, and gives [`Metadata`] and tensors. Files are
//!   hostile: every count and offset is checked against what the file holds before it is used, and memory stays within
//!   a small multiple of the header.
//! - [`Mapping`] shares the bytes: it outlives the reader, and gives pages back to the system.
//! - [`Writer`] streams a file: no tensor has to be resident. [`OutputFile`] is what it and all that writes a file for a
//!   user write through.
//! - [`GgmlType`] is the one table of tensor types, known to RLX or not.
//!
//! ```
//! # fn main() -> Result<(), rlx_gguf::Error> {
//! use rlx_gguf::{Gguf, MetadataBuilder, Writer};
//! use rlx_ir::DType;
//!
//! # let dir = std::env::temp_dir().join(format!("rlx-gguf-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir).unwrap();
//! let path = dir.join("two.gguf");
//! let mut metadata = MetadataBuilder::new();
//! metadata.set("general.architecture", "bert");
//! let mut plan = Writer::new(&path, metadata)?;
//! plan.declare("w", DType::F32, &[1, 2])?;
//! let mut data = plan.start()?;
//! data.tensor("w", |sink| sink.write(bytemuck::cast_slice(&[1.0f32, 2.0])))?;
//! data.finish()?;
//!
//! let file = Gguf::open(&path)?;
//! assert_eq!(file.metadata().require_str("general.architecture")?, "bert");
//! assert_eq!(file.tensor("w")?.shape(), [1, 2]);
//! assert_eq!(file.tensor("w")?.bytes().len(), 8);
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok(())
//! # }
//! ```

mod cursor;
mod ffi;
mod ggml_type;
mod identity;
mod mapping;
mod metadata;
mod metadata_builder;
mod output;
mod parse;
mod reader;
mod split;
mod suggest;
mod tensor;
mod value;
mod writer;

pub use ggml_type::GgmlType;
pub use identity::unique as unique_identity;
pub use mapping::Mapping;
pub use metadata::Metadata;
pub use metadata_builder::{MetadataBuilder, Number};
pub use output::{OutputFile, same_file};
pub use reader::Gguf;
pub use rlx_ir::quant;
pub use rlx_ir::quant::grids as iq_grids;
pub use split::shard_path;
pub use suggest::nearest as nearest_names;
pub use tensor::TensorInfo;
pub use value::{Array, Strings, Value, ValueType};
pub use writer::{DataWriter, TensorSink, Writer};

rlx_ir::define_error!(Error, from: [rlx_ir::Error]);

/// The alignment of tensor data where `general.alignment` is absent, in bytes.
pub const DEFAULT_ALIGNMENT: usize = 32;

/// The most dimensions that a tensor has.
pub const MAX_DIMS: usize = 4;

const MAGIC: [u8; 4] = *b"GGUF";
const ALIGNMENT_KEY: &str = "general.alignment";
