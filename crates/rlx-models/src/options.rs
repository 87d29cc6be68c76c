//! How a model is loaded.

use std::fmt;
use std::sync::Arc;

use rlx_compile::CompileOptions;
use rlx_ir::{DType, Graph};
use rlx_runtime::{Runtime, Session, SessionOptions, Strategy, WeightSource};

use crate::Result;
use crate::arch::weight_type::WeightType;

/// Called while weights load, with the bytes done and the bytes in all.
pub type Progress = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// Device, types and passes of a model.
#[derive(Clone, Default)]
pub struct LoadOptions {
    /// The device; `None` takes the runtime's setting.
    pub device: Option<String>,
    /// The strategy; `None` takes the runtime's setting.
    pub strategy: Option<Strategy>,
    /// The type of matrices.
    pub weights: WeightType,
    /// The type of keys and values where the model keeps them, which of all that takes these options only
    /// [`forward`](crate::forward::forward) of a decoder does; `None` is f32.
    pub kv_dtype: Option<DType>,
    /// Passes and precision.
    pub compile: CompileOptions,
    /// Called while weights load.
    pub progress: Option<Progress>,
}

impl LoadOptions {
    /// Compiles a graph whose weights come from `source`.
    pub(crate) fn session(
        &self,
        runtime: &Runtime,
        graph: &Graph,
        source: &dyn WeightSource,
    ) -> Result<Session> {
        let progress = |done, total| {
            if let Some(progress) = &self.progress {
                progress(done, total);
            }
        };
        let options = SessionOptions {
            device: self.device.as_deref(),
            strategy: self.strategy,
            compile: self.compile.clone(),
            progress: &progress,
        };
        Ok(Session::compile(runtime, graph, source, &options)?)
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("device", &self.device)
            .field("strategy", &self.strategy)
            .field("weights", &self.weights)
            .field("kv_dtype", &self.kv_dtype)
            .field("compile", &self.compile)
            .finish_non_exhaustive()
    }
}
