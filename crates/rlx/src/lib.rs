//! RLX: compile a model once, run it on any device, on the path that was measured to be fastest.
//!
//! This crate is the facade: it finds the backends that its features name, and re-exports what programs need.
//!
//! - The graph level, [`Builder`](ir::Builder) and [`Session`](runtime::Session): build or parse a graph, compile it, bind
//!   sizes, run it.
//! - The model level: [`EmbeddingModel`](models::EmbeddingModel) turns texts into vectors,
//!   [`LanguageModel`](models::LanguageModel) continues texts, token by token.
//!
//! ```
//! use rlx::prelude::*;
//!
//! let runtime = Runtime::detect()?;
//! let mut b = Builder::new("double");
//! let n = b.symbol("N", 1024);
//! let x = b.input("x", DType::F32, [n])?;
//! let y = b.add(x, x)?;
//! let graph = b.finish(&[y])?;
//!
//! let session = Session::compile(&runtime, &graph, &NoWeights, &SessionOptions::default())?;
//! let mut context = session.context(&[])?;
//! context.bind(&[("N", 3)])?;
//! context.input::<f32>("x")?.copy_from_slice(&[1.0, 2.0, 3.0]);
//! context.run()?;
//! assert_eq!(context.output::<f32>(0)?, [2.0, 4.0, 6.0]);
//! # Ok::<(), rlx::Error>(())
//! ```
//!
//! Features: `cpu` (default) is the CPU backend; `metal` is the one for Apple GPUs, with nothing behind it on other systems;
//! `bundled-model` puts a small embedding model into the binary; `hub` downloads models from the Hugging Face hub (its
//! cache is read without it).

mod detect;

pub use rlx_compile as compile;
#[cfg(feature = "cpu")]
pub use rlx_cpu as cpu;
pub use rlx_gguf as gguf;
pub use rlx_ir as ir;
#[cfg(all(feature = "metal", target_os = "macos"))]
pub use rlx_metal as metal;
pub use rlx_models as models;
pub use rlx_runtime as runtime;

pub use detect::{BackendStatus, Detect, backend_statuses};

#[cfg(feature = "cpu")]
rlx_ir::define_error!(
    Error,
    from: [
        rlx_ir::Error,
        rlx_compile::Error,
        rlx_gguf::Error,
        rlx_runtime::Error,
        rlx_models::Error,
        rlx_cpu::Error
    ]
);
#[cfg(not(feature = "cpu"))]
rlx_ir::define_error!(
    Error,
    from: [rlx_ir::Error, rlx_compile::Error, rlx_gguf::Error, rlx_runtime::Error, rlx_models::Error]
);

#[cfg(all(feature = "metal", target_os = "macos"))]
impl From<rlx_metal::Error> for Error {
    fn from(e: rlx_metal::Error) -> Self {
        Self::new(e.kind(), e.message())
    }
}

/// What most programs need.
pub mod prelude {
    pub use crate::Detect;
    pub use rlx_compile::CompileOptions;
    pub use rlx_ir::env::Settings;
    pub use rlx_ir::{Builder, DType, ErrorKind, Graph, OpSet, Shape, Tensor, Value};
    pub use rlx_models::language::{
        CancelToken, Conversation, FinishReason, GenerateEvent, GenerateOptions, LanguageModel,
        LanguageOptions,
    };
    pub use rlx_models::sampling::SamplingParams;
    pub use rlx_models::text::{ChatEnd, ChatMessage, ChatOptions, ChatTemplate};
    pub use rlx_models::{EmbeddingModel, EmbeddingOptions, Embeddings};
    pub use rlx_runtime::weights::{MemoryWeights, NoWeights};
    pub use rlx_runtime::{RunContext, Runtime, Session, SessionOptions};
}
