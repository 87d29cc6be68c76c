//! The store of prepared weights: each is prepared once, and shared by all executables and sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rlx_compile::Plan;

use super::rows::open_rows;
use super::source::WeightSource;
use crate::backend::{Backend, DeviceWeight};
use crate::error::Result;

/// Called while weights load, with the bytes done and the bytes in all.
pub type LoadProgress<'a> = dyn Fn(u64, u64) + 'a;

/// Prepared weights by backend, source, expression and layout. A weight lives as long as somebody uses it.
#[derive(Debug, Default)]
pub struct WeightStore {
    prepared: Mutex<HashMap<String, Weak<DeviceWeight>>>,
}

impl WeightStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares what `plan` needs, in its order; what is there already is shared.
    ///
    /// # Errors
    /// Errors of the source, which name the tensor, and of the backend.
    pub fn prepare(
        &self,
        plan: &Plan,
        backend: &dyn Backend,
        source: &dyn WeightSource,
        progress: &LoadProgress<'_>,
    ) -> Result<Vec<Arc<DeviceWeight>>> {
        let bytes: Vec<u64> = plan.prepare.iter().map(|w| w.ty().bytes().map_or(0, |b| b as u64)).collect();
        let total = bytes.iter().sum();
        let mut done = 0;
        progress(0, total);
        let mut out = Vec::with_capacity(plan.prepare.len());
        for (weight, bytes) in plan.prepare.iter().zip(bytes) {
            let key = format!("{} {} {}", backend.name(), source.identity(), weight.key());
            let found = self.lock().get(&key).and_then(Weak::upgrade);
            let prepared = match found {
                Some(shared) => shared,
                None => {
                    // Two threads may both prepare the same weight; the first one to finish is kept.
                    let mut rows = open_rows(&weight.expr, source)?;
                    let own = Arc::new(backend.prepare(&weight.layout, &mut *rows)?);
                    let mut map = self.lock();
                    match map.get(&key).and_then(Weak::upgrade) {
                        Some(shared) => shared,
                        None => {
                            map.insert(key, Arc::downgrade(&own));
                            own
                        }
                    }
                }
            };
            out.push(prepared);
            done += bytes;
            progress(done, total);
        }
        self.lock().retain(|_, w| w.strong_count() > 0);
        Ok(out)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Weak<DeviceWeight>>> {
        // The map is whole after every statement, so a panic elsewhere does not spoil it.
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
