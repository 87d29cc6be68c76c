//! The store of prepared weights: each is prepared once, and shared by all executables and sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rlx_compile::Plan;
use rlx_compile::plan::PreparedWeight;

use super::rows::open_rows;
use super::source::WeightSource;
use crate::backend::{Backend, DeviceWeight};
use crate::error::Result;

/// Called while weights load, with the bytes done and the bytes in all.
pub type LoadProgress<'a> = dyn Fn(u64, u64) + 'a;

/// Prepared weights by backend, source, expression and layout. A weight lives as long as somebody uses it.
#[derive(Debug, Default)]
pub struct WeightStore {
    slots: Mutex<HashMap<String, Arc<Slot>>>,
}

/// The place of one weight. It is locked while the weight is prepared: who wants it too waits.
type Slot = Mutex<Weak<DeviceWeight>>;

impl WeightStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares what `plan` needs, in its order; what is there already is shared, and what another thread prepares now is
    /// waited for.
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
            out.push(self.prepare_one(weight, backend, source)?);
            done += bytes;
            progress(done, total);
        }
        // A slot that only the map has is locked by nobody.
        lock(&self.slots).retain(|_, slot| Arc::strong_count(slot) > 1 || lock(slot).strong_count() > 0);
        Ok(out)
    }

    /// The bytes that were allocated for the weights that are in use; those that are used in place from a mapped file
    /// count 0.
    pub fn resident_bytes(&self) -> u64 {
        let slots: Vec<Arc<Slot>> = lock(&self.slots).values().cloned().collect();
        slots.iter().filter_map(|slot| lock(slot).upgrade()).map(|weight| weight.resident_bytes()).sum()
    }

    fn prepare_one(
        &self,
        weight: &PreparedWeight,
        backend: &dyn Backend,
        source: &dyn WeightSource,
    ) -> Result<Arc<DeviceWeight>> {
        let key = format!("{} {} {}", backend.name(), source.identity(), weight.key());
        let slot = lock(&self.slots).entry(key).or_default().clone();
        let mut slot = lock(&slot);
        if let Some(shared) = slot.upgrade() {
            return Ok(shared);
        }
        let mut rows = open_rows(&weight.expr, source)?;
        let own = Arc::new(backend.prepare(&weight.layout, &mut *rows)?);
        *slot = Arc::downgrade(&own);
        Ok(own)
    }
}

/// Map and slots are whole after every statement, so a panic elsewhere does not spoil them.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
