//! From a list of commands to one compute pass.

use std::ptr::NonNull;
use std::sync::Arc;

use objc2::runtime::ProtocolObject;
use objc2_foundation::NSString;
use objc2_metal::{
    MTLCommandBuffer, MTLCommandEncoder, MTLComputeCommandEncoder, MTLDispatchType, MTLFence, MTLResource,
    MTLSize,
};
use rlx_ir::bail;
use rlx_kernels::geometry::SIMD_WIDTH;

use crate::driver::objc::ffi::buffer::ObjcBuffer;
use crate::driver::objc::{ObjcDriver, refused};
use crate::driver::{Command, CommandList, Dispatch, Memory, Pipeline, Range};
use crate::error::{Error, Result};

type Encoder = ProtocolObject<dyn MTLComputeCommandEncoder>;

/// Refuses what Metal would not survive, before an encoder is open: one that is dropped without its end ends the process.
pub(in super::super) fn check(list: &CommandList<ObjcDriver>) -> Result<()> {
    let mut depth = 0usize;
    for command in &list.commands {
        match command {
            Command::PushGroup(_) => depth += 1,
            Command::PopGroup => {
                let Some(outer) = depth.checked_sub(1) else { bail!(Bug, "a group ends that was not begun") };
                depth = outer;
            }
            Command::Barrier(_) => {}
            Command::Dispatch(dispatch) => {
                check_dispatch(dispatch).map_err(|e| e.context(&dispatch.kernel.name))?;
            }
        }
    }
    if depth > 0 {
        bail!(Bug, "{depth} groups do not end");
    }
    Ok(())
}

fn check_dispatch(dispatch: &Dispatch<ObjcDriver>) -> Result<()> {
    let (geometry, kernel) = (dispatch.geometry, &dispatch.kernel);
    let most = dispatch.pipeline.max_threads();
    if geometry.threads == 0 || !geometry.threads.is_multiple_of(SIMD_WIDTH) || geometry.threads > most {
        bail!(Bug, "threadgroups of {} threads, where the kernel takes up to {most}", geometry.threads);
    }
    if geometry.groups.contains(&0) {
        bail!(Bug, "a launch of no threadgroup");
    }
    if dispatch.bindings.len() != kernel.buffers.len() {
        bail!(Bug, "{} bindings for {} buffers", dispatch.bindings.len(), kernel.buffers.len());
    }
    for (binding, buffer) in dispatch.bindings.iter().zip(&kernel.buffers) {
        match binding {
            Some(range) => check_range(range).map_err(|e| e.context(&buffer.name))?,
            None if buffer.optional => {}
            None => bail!(Bug, "{} is missing", buffer.name),
        }
    }
    check_range(&dispatch.args).map_err(|e| e.context("arguments"))
}

fn check_range(range: &Range<ObjcDriver>) -> Result<()> {
    let whole = range.buffer.bytes();
    if whole.checked_sub(range.offset).is_none_or(|left| left < range.bytes) {
        bail!(Bug, "{} bytes at {} of a buffer of {whole}", range.bytes, range.offset);
    }
    Ok(())
}

/// Encodes a list that `check` passed, as one pass whose dispatches may overlap but for barriers. It begins after the passes
/// that update `earlier`, and updates `order` at its end: the device would not wait by itself, since nothing is tracked.
pub(in super::super) fn encode(
    buffer: &ProtocolObject<dyn MTLCommandBuffer>,
    earlier: Option<&ProtocolObject<dyn MTLFence>>,
    order: &ProtocolObject<dyn MTLFence>,
    list: &CommandList<ObjcDriver>,
) -> Result<()> {
    let Some(encoder) = buffer.computeCommandEncoderWithDispatchType(MTLDispatchType::Concurrent) else {
        return Err(refused("an encoder"));
    };
    if let Some(fence) = earlier {
        encoder.waitForFence(fence);
    }
    for command in &list.commands {
        match command {
            Command::PushGroup(label) => encoder.pushDebugGroup(&NSString::from_str(label)),
            Command::PopGroup => encoder.popDebugGroup(),
            Command::Barrier(buffers) => barrier(&encoder, buffers),
            Command::Dispatch(dispatch) => launch(&encoder, dispatch),
        }
    }
    encoder.updateFence(order);
    encoder.endEncoding();
    Ok(())
}

fn barrier(encoder: &Encoder, buffers: &[Arc<ObjcBuffer>]) {
    let mut resources: Vec<NonNull<ProtocolObject<dyn MTLResource>>> =
        buffers.iter().map(|b| NonNull::from(ProtocolObject::from_ref(b.metal()))).collect();
    let Some(first) = NonNull::new(resources.as_mut_ptr()).filter(|_| !resources.is_empty()) else { return };
    // SAFETY: `first` points to as many resources as are said to be there, all alive in `buffers`; Metal reads them during
    // the call.
    unsafe { encoder.memoryBarrierWithResources_count(first, resources.len()) };
}

fn launch(encoder: &Encoder, dispatch: &Dispatch<ObjcDriver>) {
    encoder.setComputePipelineState(dispatch.pipeline.metal());
    bind(encoder, &dispatch.args, 0);
    for (index, binding) in dispatch.bindings.iter().enumerate() {
        // The arguments stand for what is missing: a kernel is told not to read it, and an index that is left empty is an
        // error to Metal's validation.
        bind(encoder, binding.as_ref().unwrap_or(&dispatch.args), index + 1);
    }
    for (index, scratch) in dispatch.kernel.scratch.iter().enumerate() {
        // SAFETY: entry points have their threadgroup memory at these indices; the pipeline was checked for its size.
        unsafe { encoder.setThreadgroupMemoryLength_atIndex(scratch.bytes() as usize, index) };
    }
    let [width, height, depth] = dispatch.geometry.groups.map(|n| n as usize);
    encoder.dispatchThreadgroups_threadsPerThreadgroup(
        MTLSize { width, height, depth },
        MTLSize { width: dispatch.geometry.threads as usize, height: 1, depth: 1 },
    );
}

fn bind(encoder: &Encoder, range: &Range<ObjcDriver>, index: usize) {
    // An empty range may begin at the end of its buffer, where Metal takes no offset.
    let offset = if range.bytes == 0 { 0 } else { range.offset };
    // SAFETY: `check` saw that the range lies in the buffer and that there are as many bindings as the kernel has
    // parameters. The command buffer retains the buffer, barriers in the list order accesses, and the manifest, from which
    // the kernel's text was made as well, says what the bytes hold.
    unsafe { encoder.setBuffer_offset_atIndex(Some(range.buffer.metal()), offset, index) };
}
