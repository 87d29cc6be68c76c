//! A GPU as what runs the cases.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DriverError};
use cudarc::nvrtc::Ptx;
use rlx_ir::{Tensor, TensorType};
use rlx_kernels::call::Bound;
use rlx_kernels::geometry::{DeviceLimits, Geometry};
use rlx_kernels::source::{Target, library};
use rlx_kernels::{Kernel, manifest};

use crate::ffi;
use crate::harness::{Agreement, Dispatch, Placed, Runner};
use crate::tally::Tally;

/// What every GPU launches that CUDA 12 and later support.
pub const LIMITS: DeviceLimits =
    DeviceLimits { threads: 1024, threadgroup_bytes: 48 * 1024, groups: i32::MAX as u32 };

/// A GPU with the kernels that were compiled for it.
pub struct Gpu {
    context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
    /// As `--gpu-architecture` takes it.
    pub architecture: String,
    /// Those of the manifest, by the source that holds them.
    modules: Mutex<HashMap<&'static str, Result<Arc<CudaModule>, String>>>,
    /// The kernels of the manifest that were launched.
    ran: Mutex<BTreeSet<&'static str>>,
    pub tally: Mutex<Tally>,
}

static GPU: OnceLock<Gpu> = OnceLock::new();

/// The GPU that [`open`] found.
pub fn runner() -> Option<&'static Gpu> {
    GPU.get()
}

/// Finds the first GPU, or says what is missing.
pub fn open() -> Result<&'static Gpu, String> {
    if !ffi::driver_is_here() {
        return Err("no NVIDIA driver: libcuda.so.1 is not found".into());
    }
    if !ffi::nvrtc_is_here() {
        return Err("NVRTC is missing: libnvrtc.so.13 or libnvrtc.so.12 is not in LD_LIBRARY_PATH".into());
    }
    let find = || -> Result<Gpu, DriverError> {
        let context = CudaContext::new(0)?;
        let (major, minor) = context.compute_capability()?;
        Ok(Gpu {
            stream: context.default_stream(),
            architecture: format!("sm_{major}{minor}"),
            modules: Mutex::default(),
            ran: Mutex::default(),
            tally: Mutex::default(),
            context,
        })
    };
    let gpu = find().map_err(|e| format!("no NVIDIA GPU: {e}"))?;
    Ok(GPU.get_or_init(|| gpu))
}

/// Whether a product and a sum may be one operation that rounds once.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Contract {
    Yes,
    No,
}

/// A kernel with all that a launch takes.
pub struct Prepared {
    function: CudaFunction,
    geometry: Option<Geometry>,
    args: CudaSlice<u8>,
    bindings: Vec<Bound>,
    operands: Vec<(CudaSlice<u8>, usize)>,
    results: Vec<CudaSlice<u8>>,
}

impl Gpu {
    /// Name, architecture, driver and compiler, for a report.
    pub fn describe(&self) -> Result<String, DriverError> {
        let (major, minor) = ffi::nvrtc_version();
        let units = self.context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let name = self.context.name()?;
        Ok(format!("{name}, {}, {units} multiprocessors, NVRTC {major}.{minor}", self.architecture))
    }

    /// Compiles kernels together. `contract` lets a product and a sum round once, which Metal may do as well.
    fn module(&self, kernels: &[&Kernel], contract: Contract) -> Result<Arc<CudaModule>, String> {
        let text = library(Target::Cuda, kernels.iter().copied());
        let options = [
            format!("--gpu-architecture={}", self.architecture),
            "--device-as-default-execution-space".into(),
            "--std=c++17".into(),
            // As on Apple GPUs and in the simulator.
            "--ftz=true".into(),
            format!("--fmad={}", contract == Contract::Yes),
        ];
        let code = ffi::compile(&text, &options)?;
        self.context.load_module(Ptx::from_binary(code)).map_err(|e| format!("loading machine code: {e}"))
    }

    /// The function of a kernel of the manifest; all kernels of its source are compiled with it.
    fn function(&self, kernel: &Kernel) -> Result<CudaFunction, String> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let source = kernel.sources.first().map_or("", |s| s.path);
        let module = modules.entry(source).or_insert_with(|| {
            let beside = |k: &&Kernel| k.sources.first().is_some_and(|s| s.path == source);
            let kernels: Vec<&Kernel> = manifest::kernels().iter().filter(beside).collect();
            self.module(&kernels, Contract::Yes)
        });
        let module = module.clone()?;
        let found = manifest::find(&kernel.name).map_err(|e| e.to_string())?;
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).insert(&found.name);
        module.load_function(&kernel.name).map_err(|e| e.to_string())
    }

    /// The kernels of the manifest that no case has launched.
    pub fn never_ran(&self) -> Vec<&'static str> {
        let ran = self.ran.lock().unwrap_or_else(PoisonError::into_inner);
        manifest::kernels().iter().map(|k| k.name.as_str()).filter(|n| !ran.contains(n)).collect()
    }

    /// Memory with these bytes; CUDA has none of 0 bytes.
    fn upload(&self, bytes: &[u8]) -> Result<CudaSlice<u8>, String> {
        let bytes = if bytes.is_empty() { &[0] } else { bytes };
        self.stream.clone_htod(bytes).map_err(|e| e.to_string())
    }

    /// An operand in a buffer of nothing but ones where nobody writes: NaN, for floats.
    fn place(&self, operand: &Placed<'_>) -> Result<(CudaSlice<u8>, usize), String> {
        let mut bytes = vec![0xff; operand.lead + operand.bytes];
        for (offset, row) in operand.rows() {
            bytes[offset..][..row.len()].copy_from_slice(row);
        }
        Ok((self.upload(&bytes)?, operand.lead))
    }

    /// Makes ready what a dispatch takes.
    pub fn prepare(
        &self,
        own: Option<&Arc<CudaModule>>,
        dispatch: &Dispatch<'_>,
    ) -> Result<Prepared, String> {
        let failed = |e: DriverError| e.to_string();
        let function = match own {
            Some(module) => module.load_function(&dispatch.kernel.name).map_err(failed)?,
            None => self.function(dispatch.kernel)?,
        };
        let most = function.max_threads_per_block().map_err(failed)?;
        let placed: Result<Vec<_>, String> = dispatch.operands.iter().map(|o| self.place(o)).collect();
        let results: Result<Vec<_>, String> =
            dispatch.results.iter().map(|ty| self.upload(&vec![0xff; bytes_of(ty)?])).collect();
        Ok(Prepared {
            geometry: dispatch.geometry(LIMITS, most.unsigned_abs())?,
            args: self.upload(dispatch.args)?,
            bindings: dispatch.bindings.to_vec(),
            operands: placed?,
            results: results?,
            function,
        })
    }

    /// Launches once.
    pub fn launch(&self, prepared: &Prepared) -> Result<(), DriverError> {
        let Some(geometry) = prepared.geometry else { return Ok(()) };
        let at = |slice: &CudaSlice<u8>| slice.device_ptr(&self.stream).0;
        let mut pointers = vec![at(&prepared.args)];
        pointers.extend(prepared.bindings.iter().map(|b| match b {
            Bound::Operand(i) => {
                let (slice, lead) = &prepared.operands[*i];
                at(slice) + *lead as u64
            }
            Bound::Result(i) => at(&prepared.results[*i]),
            Bound::Nothing => 0,
        }));
        ffi::launch(&self.stream, &prepared.function, geometry, &pointers)
    }

    /// Fills the results with `poison`, or with what they hold before, runs, and reads them.
    fn run_over(
        &self,
        prepared: &mut Prepared,
        before: &[Tensor],
        poison: u8,
    ) -> Result<Vec<Vec<u8>>, DriverError> {
        for (at, result) in prepared.results.iter_mut().enumerate() {
            match before.get(at) {
                Some(before) => self.stream.memcpy_htod(before.bytes(), result)?,
                None => self.stream.memcpy_htod(&vec![poison; result.num_bytes()], result)?,
            }
        }
        self.launch(prepared)?;
        self.stream.synchronize()?;
        prepared.results.iter().map(|r| self.stream.clone_dtoh(r)).collect()
    }
}

fn bytes_of(ty: &TensorType) -> Result<usize, String> {
    ty.bytes().map_err(|e| e.to_string())
}

impl Runner for Gpu {
    type Library = Arc<CudaModule>;

    /// Each op of a region rounds its result, so that no region changes one: nothing is contracted.
    fn compile(&self, kernels: &[Kernel]) -> Result<Arc<CudaModule>, String> {
        self.module(&kernels.iter().collect::<Vec<_>>(), Contract::No)
    }

    /// Runs twice over different bytes: what differs was not written, or depends on the order of threads.
    fn run(&self, own: Option<&Arc<CudaModule>>, dispatch: &Dispatch<'_>) -> Result<Vec<Tensor>, String> {
        let mut prepared = self.prepare(own, dispatch)?;
        let first = self.run_over(&mut prepared, dispatch.before, 0xff).map_err(|e| e.to_string())?;
        let second = self.run_over(&mut prepared, dispatch.before, 0x5a).map_err(|e| e.to_string())?;
        let mut tensors = Vec::new();
        for ((ty, first), second) in dispatch.results.iter().zip(first).zip(second) {
            let bytes = bytes_of(ty)?;
            let (first, second) = (&first[..bytes], &second[..bytes]);
            if let Some(at) = first.iter().zip(second).position(|(a, b)| a != b) {
                let (a, b) = (first[at], second[at]);
                return Err(if (a, b) == (0xff, 0x5a) {
                    format!("byte {at} of {ty} left out")
                } else {
                    format!("byte {at} of {ty} is {a} in one run and {b} in the next")
                });
            }
            tensors.push(Tensor::from_bytes(ty.clone(), first.to_vec()).map_err(|e| e.to_string())?);
        }
        Ok(tensors)
    }

    fn judge(&self, what: &dyn Fn() -> String, outcome: Result<Agreement, String>) {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner).take(what, outcome);
    }
}
