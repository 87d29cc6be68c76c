//! Models in temporary folders, and the fixtures.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rlx_ir::{Tensor, env::Settings};
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};
use rlx_runtime::{Runtime, WeightSource};

/// A file or folder below `tests`.
pub fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A fixture's folder.
pub fn fixture(architecture: &str) -> PathBuf {
    tests("fixtures/hf_models").join(architecture)
}

/// A runtime on the CPU.
pub fn runtime() -> Runtime {
    Runtime::new(vec![Arc::new(rlx_cpu::CpuBackend::new(None).unwrap())], Settings::defaults())
}

/// The tensor `name` of a `.safetensors` file.
pub fn tensor(path: &Path, name: &str) -> Tensor {
    let source = SafetensorsWeights::new(vec![SafetensorsFile::open(path).unwrap()]);
    let data = source.weight(name).unwrap();
    Tensor::from_bytes(data.ty, data.bytes.to_vec()).unwrap()
}

/// A folder that is removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rlx-models-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// With a copy of `from`.
    pub fn copy(self, from: &Path) -> Self {
        std::fs::copy(from, self.0.join(from.file_name().unwrap())).unwrap();
        self
    }

    /// With a file of this text.
    pub fn file(self, name: &str, text: &str) -> Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// The BERT fixture with a WordPiece tokenizer.
    pub fn bert() -> Self {
        let folder = Self::new()
            .copy(&fixture("bert").join("config.json"))
            .copy(&fixture("bert").join("model.safetensors"));
        std::fs::copy(tests("data/wordpiece_tokenizer.json"), folder.0.join("tokenizer.json")).unwrap();
        folder
    }

    /// With the keys of `config.json` changed.
    pub fn config(self, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) -> Self {
        let path = self.0.join("config.json");
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(config.as_object_mut().unwrap());
        std::fs::write(path, config.to_string()).unwrap();
        self
    }

    /// With `model.safetensors` written again, its tensors changed.
    pub fn tensors(self, change: impl FnOnce(&mut Vec<(String, Tensor)>)) -> Self {
        let path = self.0.join("model.safetensors");
        let file = SafetensorsFile::open(&path).unwrap();
        let names: Vec<String> = file.tensors().iter().map(|t| t.0.to_owned()).collect();
        drop(file);
        let mut tensors: Vec<(String, Tensor)> =
            names.into_iter().map(|n| (n.clone(), tensor(&path, &n))).collect();
        change(&mut tensors);
        write_tensors(&path, &tensors);
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes f32 tensors.
pub fn write_tensors(path: &Path, tensors: &[(String, Tensor)]) {
    let views = tensors.iter().map(|(name, t)| {
        let dtype = match t.dtype() {
            rlx_ir::DType::F32 => safetensors::Dtype::F32,
            rlx_ir::DType::I64 => safetensors::Dtype::I64,
            other => panic!("{other}"),
        };
        (name.clone(), safetensors::tensor::TensorView::new(dtype, t.shape().to_vec(), t.bytes()).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
}

pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}
