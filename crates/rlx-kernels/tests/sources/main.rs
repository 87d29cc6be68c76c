//! Checks of the kernel sources that need no GPU: the lint, the host's compiler with and without real address spaces, and
//! the texts for the other targets.
#![allow(clippy::unwrap_used, clippy::panic)]

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod compiled;
mod lint;
mod regions;

use rlx_kernels::Kernel;
use rlx_kernels::source::{SOURCES, Target, library};

#[test]
fn every_file_of_kernels_is_in_the_list() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    let mut files = Vec::new();
    for folder in std::fs::read_dir(&root).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            // The headers of the targets are no sources.
            if !name.starts_with("dialect/") || name == "dialect/ids.h" {
                files.push(name);
            }
        }
    }
    files.sort();
    let mut listed: Vec<&str> = SOURCES.iter().map(|s| s.path).collect();
    listed.sort_unstable();
    assert_eq!(files, listed);
}

#[test]
fn every_source_obeys_the_dialect() {
    for source in SOURCES {
        assert_eq!(lint::findings(source.text), Vec::<String>::new(), "{}", source.path);
    }
    for kernel in regions::regions() {
        let text = kernel.text.unwrap_or_default();
        assert_eq!(lint::findings(&text), Vec::<String>::new(), "{text}");
    }
    // Functions reach others across files.
    let all: String = SOURCES.iter().map(|s| s.text).collect();
    assert_eq!(lint::findings(&all), Vec::<String>::new());
}

/// Writes the text for Metal where `METAL_TEXT` says, for Apple's compiler.
#[test]
fn the_metal_text_has_an_entry_point_with_every_buffer() {
    let kernels = regions::all();
    let text = library(Target::Metal, &kernels);
    if let Some(path) = std::env::var_os("METAL_TEXT") {
        std::fs::write(path, &text).unwrap();
    }
    for kernel in &kernels {
        let Some(at) = text.find(&format!("kernel void {}(", kernel.name)) else {
            panic!("{} has no entry point", kernel.name)
        };
        let entry = &text[at..at + text[at..].find("\n}\n").unwrap()];
        assert!(entry.contains(&format!("device const {}* args [[buffer(0)]]", kernel.args.name)), "{entry}");
        for (i, buffer) in kernel.buffers.iter().enumerate() {
            assert!(entry.contains(&format!("* {} [[buffer({})]]", buffer.name, i + 1)), "{entry}");
        }
        for (i, scratch) in kernel.scratch.iter().enumerate() {
            assert!(entry.contains(&format!("* {} [[threadgroup({i})]]", scratch.name)), "{entry}");
        }
        assert_eq!(entry.matches("[[threadgroup(").count(), kernel.scratch.len(), "{entry}");
    }
    // One of each struct and function, whatever uses it.
    assert_eq!(text.matches("struct RmsNormArgs {").count(), 1);
    assert_eq!(text.matches("inline float group_sum(").count(), 1);
    // MSL says what these are; other targets define them away.
    assert!(!text.contains("#define device") && !text.contains("#include \""));
}

/// Writes the text for CUDA where `CUDA_TEXT` says, for `scripts/check-cuda-kernels`; where `CUDA_SAMPLE` says, one of regions
/// and of the kernel of each function that takes the most threadgroup memory: machine code of all takes minutes.
#[test]
fn the_cuda_text_has_every_entry_point() {
    let kernels = regions::all();
    let text = library(Target::Cuda, &kernels);
    for kernel in &kernels {
        assert!(text.contains(&format!("__global__ void {}(", kernel.name)), "{}", kernel.name);
    }
    if let Some(path) = std::env::var_os("CUDA_TEXT") {
        std::fs::write(path, text).unwrap();
    }
    let mut sample: Vec<&Kernel> = Vec::new();
    for kernel in &kernels {
        let function = |k: &Kernel| k.function.split('<').next().unwrap_or_default().to_owned();
        match sample.iter_mut().find(|k| function(k) == function(kernel)) {
            Some(most) if most.scratch_bytes() > kernel.scratch_bytes() => {}
            Some(most) => *most = kernel,
            None => sample.push(kernel),
        }
    }
    assert!(sample.len() > regions::regions().len() + 20, "{}", sample.len());
    if let Some(path) = std::env::var_os("CUDA_SAMPLE") {
        std::fs::write(path, library(Target::Cuda, sample)).unwrap();
    }
}
