//! The graph language of RLX: dtypes, block formats, symbolic shapes, ops, text form, verifier and reference
//! interpreter. Everything here is pure: no files, no environment, no threads, no clock in what is computed.

pub mod attrs;
mod builder;
pub mod convert;
mod dim;
mod dtype;
pub mod env;
mod error;
mod graph;
pub mod interp;
pub mod op;
pub mod ops;
pub mod quant;
mod symbols;
mod tensor;
pub mod text;
mod tick;
mod types;
mod verify;
mod view;

pub use builder::{Builder, Value};
pub use dim::{Bound, Dim};
pub use dtype::DType;
pub use error::{Error, ErrorKind, Result};
pub use graph::{Def, Graph, Node, NodeId, Types, Users, ValueInfo, Values, WeightInit};
pub use half::{bf16, f16};
pub use op::{Op, OpRef, OpSet};
pub use symbols::{Bindings, Symbols};
pub use tensor::{Scalar, Tensor};
pub use tick::Tick;
pub use types::{Shape, TensorType, Type};
pub use verify::verify;
pub use view::{AxisDims, View};
