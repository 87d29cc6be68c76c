//! The driver of Apple GPUs on the one of this machine.
#![cfg(target_os = "macos")]

#[path = "common/gpu.rs"]
mod gpu;

use rlx_gguf::Mapping;
use rlx_ir::ErrorKind;
use rlx_kernels::geometry::SIMD_WIDTH;
use rlx_kernels::manifest::kernels;
use rlx_kernels::source::{Target, library};
use rlx_metal::driver::{CommandList, Driver, Memory, Pipeline, Run};
use rlx_runtime::weights::WeightBytes;

#[test]
fn every_kernel_is_compiled_and_made_ready() {
    let Some(driver) = gpu::driver() else { return };
    let all = driver.library(&library(Target::Metal, kernels())).unwrap();
    for kernel in kernels() {
        let pipeline = driver.pipeline(&all, kernel).unwrap_or_else(|e| panic!("{}: {e}", kernel.name));
        assert!(pipeline.max_threads() >= SIMD_WIDTH, "{}: {}", kernel.name, pipeline.max_threads());
    }
}

#[test]
fn what_the_compiler_says_is_passed_on() {
    let Some(driver) = gpu::driver() else { return };
    let e = driver.library("kernel void broken() { int x = undeclared_name; }").err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Device);
    assert!(e.message().contains("undeclared_name"), "{e}");
}

#[test]
fn a_kernel_that_a_library_lacks_is_an_error() {
    let Some(driver) = gpu::driver() else { return };
    let (first, last) = (&kernels()[0], kernels().last().unwrap());
    let one = driver.library(&library(Target::Metal, [first])).unwrap();
    assert_eq!(driver.pipeline(&one, last).err().unwrap().kind(), ErrorKind::Device);
}

#[test]
fn pages_of_a_file_are_used_where_they_are() {
    let Some(driver) = gpu::driver() else { return };
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let content: Vec<u8> = (0..100_003u32).map(|i| (i % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let mapping = Mapping::open(&path).unwrap();
    for range in [0..100_003, 77..90_000, 99_999..100_003] {
        let bytes = WeightBytes::Mapped(mapping.clone(), range.clone());
        let (buffer, offset) = driver.buffer_over(&bytes).unwrap().expect("the device takes a file's pages");
        assert_eq!(buffer.address().wrapping_add(offset).cast_const(), bytes.as_ptr());
        assert!(offset + bytes.len() <= buffer.bytes());
    }
    let owned = WeightBytes::owned(&content);
    assert!(driver.buffer_over(&owned).unwrap().is_none());
}

#[test]
fn a_buffer_has_at_least_a_byte_and_at_most_what_the_device_makes() {
    let Some(driver) = gpu::driver() else { return };
    assert!(driver.buffer(0, 1).unwrap().bytes() >= 1);
    let e = driver.buffer(usize::MAX / 2, 1).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Device);
}

#[test]
fn command_buffers_end_one_by_one() {
    let Some(driver) = gpu::driver() else { return };
    let runs = [(); 3].map(|()| driver.commit(&CommandList::default()).unwrap());
    for run in runs {
        run.wait().unwrap();
    }
}
