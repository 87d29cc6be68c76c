//! Which backends are here.

mod metal;

#[cfg(feature = "cpu")]
use std::num::NonZeroUsize;
use std::sync::Arc;

use rlx_ir::env::Settings;
use rlx_runtime::Backend;

use crate::Result;

/// Finding the backends that are here.
pub trait Detect: Sized {
    /// A runtime over every backend that this build has and this machine can run, with settings from the environment.
    ///
    /// # Errors
    /// `InvalidArgument` where a variable's value does not fit; `Device` where the CPU's threads cannot be started. Another
    /// device that cannot start is left out, and [`backend_statuses`] says why.
    fn detect() -> Result<Self>;

    /// The same with these settings.
    ///
    /// # Errors
    /// `Device` where the CPU's threads cannot be started.
    fn detect_with(settings: Settings) -> Result<Self>;
}

impl Detect for rlx_runtime::Runtime {
    fn detect() -> Result<Self> {
        Self::detect_with(rlx_runtime::settings_from_env()?)
    }

    fn detect_with(settings: Settings) -> Result<Self> {
        let mut backends: Vec<Arc<dyn Backend>> = vec![
            #[cfg(feature = "cpu")]
            Arc::new(rlx_cpu::CpuBackend::new(NonZeroUsize::new(settings.count("RLX_THREADS")))?),
        ];
        // Behind the CPU, so that it is taken only where it is asked for: it has never been measured.
        backends.extend(metal::backend());
        Ok(Self::new(backends, settings))
    }
}

/// Why a backend is or is not here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The backend's name.
    pub name: &'static str,
    /// Why it is not here; `None` where it is.
    pub missing: Option<String>,
}

/// Every backend that RLX knows of, here or not.
pub fn backend_statuses() -> Vec<BackendStatus> {
    let cpu = (!cfg!(feature = "cpu")).then(|| "built without the feature `cpu`".to_owned());
    let other = || Some("this version of RLX does not have it".to_owned());
    let all = [("cpu", cpu), ("metal", metal::missing()), ("mlx", other()), ("cuda", other())];
    all.map(|(name, missing)| BackendStatus { name, missing }).into()
}
