//! Kernels, ready to be launched.

use objc2::rc::Retained;
use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLComputePipelineDescriptor, MTLComputePipelineState, MTLDevice, MTLLibrary, MTLPipelineOption,
};
use rlx_ir::{ErrorKind, bail};
use rlx_kernels::Kernel;
use rlx_kernels::geometry::{DeviceLimits, SIMD_WIDTH};

use crate::driver::Pipeline;
use crate::error::{Error, Result};

/// A kernel, ready to be launched.
#[derive(Debug)]
pub struct ObjcPipeline {
    state: Retained<ProtocolObject<dyn MTLComputePipelineState>>,
    max_threads: u32,
}

impl ObjcPipeline {
    pub(in super::super) fn new(
        device: &ProtocolObject<dyn MTLDevice>,
        library: &ProtocolObject<dyn MTLLibrary>,
        kernel: &Kernel,
        limits: DeviceLimits,
    ) -> Result<Self> {
        let name = NSString::from_str(&kernel.name);
        let Some(function) = library.newFunctionWithName(&name) else {
            bail!(Device, "the compiled library does not hold it");
        };
        let descriptor = MTLComputePipelineDescriptor::new();
        descriptor.setLabel(Some(&name));
        descriptor.setComputeFunction(Some(&function));
        // SAFETY: `encoder::check` refuses every other number of threads.
        unsafe { descriptor.setThreadGroupSizeIsMultipleOfThreadExecutionWidth(true) };
        let state = device
            .newComputePipelineStateWithDescriptor_options_reflection_error(
                &descriptor,
                MTLPipelineOption::None,
                None,
            )
            .map_err(|e| Error::new(ErrorKind::Device, e.localizedDescription().to_string()))?;
        let width = state.threadExecutionWidth();
        if width != SIMD_WIDTH as usize {
            bail!(UnsupportedOnDevice, "simdgroups have {width} threads here, and kernels need {SIMD_WIDTH}");
        }
        let scratch = kernel.scratch_bytes() as usize;
        let needed = state.staticThreadgroupMemoryLength().saturating_add(scratch);
        if needed > limits.threadgroup_bytes as usize {
            bail!(
                UnsupportedOnDevice,
                "it takes {needed} bytes of threadgroup memory, and the device has {}",
                limits.threadgroup_bytes
            );
        }
        let max_threads = u32::try_from(state.maxTotalThreadsPerThreadgroup()).unwrap_or(u32::MAX);
        Ok(Self { state, max_threads })
    }

    pub(super) fn metal(&self) -> &ProtocolObject<dyn MTLComputePipelineState> {
        &self.state
    }
}

impl Pipeline for ObjcPipeline {
    fn max_threads(&self) -> u32 {
        self.max_threads
    }
}
