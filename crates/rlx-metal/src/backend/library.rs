//! Kernels, compiled when they are first needed: one library for each source, so that a program compiles what it uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rlx_ir::bail;
use rlx_kernels::manifest::kernels;
use rlx_kernels::source::library;
use rustc_hash::FxHashMap;

use crate::driver::{Driver, KernelRef};
use crate::error::{Error, Result};

/// Compiled libraries and pipelines of a device.
pub(super) struct Pipelines<D: Driver> {
    libraries: Mutex<FxHashMap<String, Arc<D::Library>>>,
    pipelines: Mutex<FxHashMap<String, Arc<D::Pipeline>>>,
}

impl<D: Driver> Default for Pipelines<D> {
    fn default() -> Self {
        Self { libraries: Mutex::default(), pipelines: Mutex::default() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Driver> Pipelines<D> {
    /// The pipeline of a kernel.
    pub(super) fn get(&self, driver: &D, kernel: &KernelRef) -> Result<Arc<D::Pipeline>> {
        if let Some(found) = lock(&self.pipelines).get(&kernel.name) {
            return Ok(found.clone());
        }
        let library = self.library(driver, kernel)?;
        let pipeline =
            driver.pipeline(&library, kernel).map_err(|e| e.context(format!("kernel {}", kernel.name)))?;
        Ok(lock(&self.pipelines).entry(kernel.name.clone()).or_insert_with(|| Arc::new(pipeline)).clone())
    }

    /// The library that holds a kernel. The lock is held while it is compiled, so that two threads do not both compile it.
    fn library(&self, driver: &D, kernel: &KernelRef) -> Result<Arc<D::Library>> {
        let key = match kernel {
            KernelRef::Own(kernel) => kernel.name.clone(),
            KernelRef::Listed(kernel) => match kernel.sources.first() {
                Some(source) => source.path.to_owned(),
                None => bail!(Bug, "kernel {} has no source", kernel.name),
            },
        };
        let mut libraries = lock(&self.libraries);
        if let Some(found) = libraries.get(&key) {
            return Ok(found.clone());
        }
        let text = match kernel {
            KernelRef::Own(kernel) => library(D::TARGET, [&**kernel]),
            KernelRef::Listed(listed) => {
                let first = listed.sources.first().map(|s| s.path);
                library(D::TARGET, kernels().iter().filter(|k| k.sources.first().map(|s| s.path) == first))
            }
        };
        let compiled = Arc::new(driver.library(&text).map_err(|e| e.context(format!("kernels of {key}")))?);
        libraries.insert(key, compiled.clone());
        Ok(compiled)
    }
}
