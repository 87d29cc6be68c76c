//! What a backend is: it prepares weights, and turns plans into executables.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rlx_compile::{Layout, Plan, Target};
use rlx_ir::TensorType;

use crate::error::{Error, Result};
use crate::executable::Executable;
use crate::weights::RowSource;

/// A device with kernels for it. Object-safe, and about whole plans: it never has a method per op.
pub trait Backend: Target {
    /// The backend's name: `cpu`, `metal`, `mlx`, `cuda`.
    fn name(&self) -> &'static str;

    /// The device that it runs on.
    fn device(&self) -> DeviceInfo;

    /// The strategies that it has, the most general first.
    fn strategies(&self) -> &'static [Strategy];

    /// Brings a weight into `layout` on the device, reading its rows piece by piece.
    ///
    /// # Errors
    /// Errors of the source; `Device` where memory cannot be had; `Bug` for a layout that the backend never asked for.
    fn prepare(&self, layout: &Layout, rows: &mut dyn RowSource) -> Result<DeviceWeight>;

    /// Builds an executable of `plan` under one strategy; `weights` are in the order of `plan.prepare`.
    ///
    /// The executable and its contexts hold all of them as long as they live: what nobody holds is prepared again for the
    /// next one that wants it.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where a step or the strategy cannot be built; `Device`.
    fn build(
        &self,
        plan: Arc<Plan>,
        weights: Vec<Arc<DeviceWeight>>,
        strategy: Strategy,
    ) -> Result<Arc<dyn Executable>>;
}

/// How a plan is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One prepared call per step.
    Thunks,
    /// The thunks recorded once and replayed as one object.
    Captured,
    /// The plan, or regions of it, handed to a vendor's graph compiler.
    VendorGraph,
}

impl Strategy {
    /// The word for it in settings: `thunks`, `captured`, `vendor`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thunks => "thunks",
            Self::Captured => "captured",
            Self::VendorGraph => "vendor",
        }
    }

    /// The strategy of `backend` that `name` is the word for; `auto` is its first.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where the backend has none of this name.
    pub fn choose(backend: &dyn Backend, name: &str) -> Result<Self> {
        let have = backend.strategies();
        match have.iter().copied().find(|s| name == "auto" || s.name() == name) {
            Some(strategy) => Ok(strategy),
            None => {
                let names: Vec<&str> = have.iter().map(|s| s.name()).collect();
                rlx_ir::bail!(
                    UnsupportedOnDevice,
                    "device {} has no strategy {name}; it has {}",
                    backend.name(),
                    names.join(", ")
                )
            }
        }
    }
}

/// What is known about a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The device's name, as its maker gives it.
    pub name: String,
    /// Memory that models may use, in bytes; 0 where it is not known.
    pub memory_bytes: u64,
    /// Instruction sets and other features that kernels choose by.
    pub features: Vec<String>,
    /// Threads or execution units in use; 0 where it is not known.
    pub parallelism: usize,
}

/// A weight on a device, in the layout that the device's kernels want.
pub struct DeviceWeight {
    ty: TensorType,
    layout: Layout,
    resident_bytes: u64,
    data: Box<dyn Any + Send + Sync>,
}

impl DeviceWeight {
    /// Wraps a backend's own representation. `resident_bytes` counts what was allocated for it: 0 for a mapped file.
    pub fn new(ty: TensorType, layout: Layout, resident_bytes: u64, data: impl Any + Send + Sync) -> Self {
        Self { ty, layout, resident_bytes, data: Box::new(data) }
    }

    /// Dtype and sizes.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The bytes that were allocated for it.
    pub fn resident_bytes(&self) -> u64 {
        self.resident_bytes
    }

    /// The backend's representation, if it is a `T`.
    pub fn data<T: Any>(&self) -> Option<&T> {
        self.data.downcast_ref()
    }
}

impl fmt::Debug for DeviceWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceWeight({} as {}, {} bytes)", self.ty, self.layout, self.resident_bytes)
    }
}
