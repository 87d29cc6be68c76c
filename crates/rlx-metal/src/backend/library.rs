//! Kernels, compiled when they are first needed: one library for each source, so that a program compiles what it uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rlx_ir::bail;
use rlx_kernels::Kernel;
use rlx_kernels::manifest::kernels;
use rlx_kernels::source::library;
use rustc_hash::FxHashMap;

use crate::driver::{Driver, KernelRef};
use crate::error::{Error, Result};

/// Compiled libraries and pipelines of a device.
pub(super) struct Pipelines<D: Driver> {
    libraries: Mutex<FxHashMap<&'static str, Arc<D::Library>>>,
    listed: Mutex<FxHashMap<&'static str, Arc<D::Pipeline>>>,
    /// Kernels that were written for plans live as long as some plan does.
    own: Mutex<FxHashMap<String, Weak<D::Pipeline>>>,
}

impl<D: Driver> Default for Pipelines<D> {
    fn default() -> Self {
        Self { libraries: Mutex::default(), listed: Mutex::default(), own: Mutex::default() }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The maps are whole after every statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Driver> Pipelines<D> {
    /// The pipeline of a kernel.
    ///
    /// # Errors
    /// `Device` where the driver refuses the text or the kernel.
    pub(super) fn get(&self, driver: &D, kernel: &KernelRef) -> Result<Arc<D::Pipeline>> {
        let ready = |library: &D::Library| {
            let pipeline = driver.pipeline(library, kernel);
            pipeline.map(Arc::new).map_err(|e| e.context(format!("kernel {}", kernel.name)))
        };
        match kernel {
            KernelRef::Listed(kernel) => {
                if let Some(found) = lock(&self.listed).get(kernel.name.as_str()) {
                    return Ok(found.clone());
                }
                let pipeline = ready(&*self.library(driver, kernel)?)?;
                Ok(lock(&self.listed).entry(&kernel.name).or_insert(pipeline).clone())
            }
            KernelRef::Own(kernel) => {
                let mut own = lock(&self.own);
                if let Some(found) = own.get(&kernel.name).and_then(Weak::upgrade) {
                    return Ok(found);
                }
                let text = library(D::TARGET, [&**kernel]);
                let compiled = driver.library(&text).map_err(|e| e.context("a fused region"))?;
                let pipeline = ready(&compiled)?;
                own.retain(|_, weak| weak.strong_count() > 0);
                own.insert(kernel.name.clone(), Arc::downgrade(&pipeline));
                Ok(pipeline)
            }
        }
    }

    /// The library of all kernels of a kernel's source. The lock is held while it is compiled, so that two threads do not
    /// both compile it.
    fn library(&self, driver: &D, kernel: &'static Kernel) -> Result<Arc<D::Library>> {
        let Some(path) = kernel.sources.first().map(|s| s.path) else {
            bail!(Bug, "kernel {} has no source", kernel.name)
        };
        let mut libraries = lock(&self.libraries);
        if let Some(found) = libraries.get(path) {
            return Ok(found.clone());
        }
        let of_source = kernels().iter().filter(|k| k.sources.first().is_some_and(|s| s.path == path));
        let text = library(D::TARGET, of_source);
        let compiled = Arc::new(driver.library(&text).map_err(|e| e.context(format!("kernels of {path}")))?);
        libraries.insert(path, compiled.clone());
        Ok(compiled)
    }
}
