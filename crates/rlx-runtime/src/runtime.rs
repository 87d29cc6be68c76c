//! The runtime: the backends that are here, the settings, and the store of weights.

use std::sync::Arc;

use rlx_ir::env::{SETTINGS, Settings};

use crate::backend::Backend;
use crate::error::{Error, Result};
use crate::weights::WeightStore;

/// The backends of a process, with settings and prepared weights. Cheap to clone; clones share the weights.
#[derive(Clone)]
pub struct Runtime {
    backends: Vec<Arc<dyn Backend>>,
    settings: Arc<Settings>,
    store: Arc<WeightStore>,
}

impl Runtime {
    /// A runtime over `backends`, the preferred one first.
    pub fn new(backends: Vec<Arc<dyn Backend>>, settings: Settings) -> Self {
        Self { backends, settings: Arc::new(settings), store: Arc::default() }
    }

    /// The backends, the preferred one first.
    pub fn backends(&self) -> &[Arc<dyn Backend>] {
        &self.backends
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The store of prepared weights.
    pub fn store(&self) -> &WeightStore {
        &self.store
    }

    /// The backend called `name`; `auto` is the preferred one.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where it is not there, listing those that are.
    pub fn backend(&self, name: &str) -> Result<&Arc<dyn Backend>> {
        let found = self.backends.iter().find(|b| name == "auto" || b.name() == name);
        match found {
            Some(backend) => Ok(backend),
            None => {
                let there: Vec<&str> = self.backends.iter().map(|b| b.name()).collect();
                let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
                rlx_ir::bail!(UnsupportedOnDevice, "device {name} is not here; devices that are: {there}")
            }
        }
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.backends.iter().map(|b| b.name()).collect();
        f.debug_struct("Runtime").field("backends", &names).finish_non_exhaustive()
    }
}

/// Settings from the environment. The one place where it is read.
///
/// # Errors
/// `InvalidArgument` naming the variable whose value does not fit, or is not UTF-8.
pub fn settings_from_env() -> Result<Settings> {
    let value = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    for setting in SETTINGS {
        if value(setting.name).is_some_and(|v| v.to_str().is_none()) {
            rlx_ir::bail!(InvalidArgument, "{}: its value is not UTF-8", setting.name);
        }
    }
    Ok(Settings::from_lookup(|name| value(name)?.into_string().ok())?)
}

/// Variables of the environment that have the prefix of settings, but are none: most likely misspelt.
pub fn unknown_settings() -> Vec<String> {
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    let known = |name: &str| SETTINGS.iter().any(|s| s.name == name);
    names.filter(|name| name.starts_with("RLX_") && !known(name)).collect()
}
