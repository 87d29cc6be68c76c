//! Running the binary, and tiny models for it.
#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

#[path = "../../../rlx/tests/common/mod.rs"]
pub mod models;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use rlx::ir::{DType, Tensor};

#[allow(unused_imports)] // each test binary uses its part
pub use models::{Tensors, fixture};

/// What a run of the binary gave.
#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Run {
    /// Stdout as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// Stdout as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// Each line of stdout as JSON.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
    }

    /// Checks that the run succeeded.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// Checks that the run failed with this code, and with one or two lines on stderr that hold all `words`.
    pub fn failed(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(
            self.code,
            code,
            "stdout: {}\nstderr: {}",
            String::from_utf8_lossy(&self.stdout),
            self.stderr
        );
        assert!(self.stderr.starts_with("error: "), "{}", self.stderr);
        assert!((1..=2).contains(&self.stderr.lines().count()), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} in {}", self.stderr);
        }
        self
    }
}

/// The binary, whatever the shell's variables are.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rlx"));
    for (name, _) in std::env::vars_os() {
        if ["RLX_", "HF_"].iter().any(|p| name.to_string_lossy().starts_with(p)) {
            command.env_remove(name);
        }
    }
    command.stdin(Stdio::null());
    command
}

/// Runs the binary.
pub fn rlx<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Run {
    finish(command().args(args))
}

/// Runs the binary with `input` on stdin.
pub fn rlx_with_stdin<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, input: &[u8]) -> Run {
    let folder = Folder::new();
    let path = folder.path().join("stdin");
    std::fs::write(&path, input).unwrap();
    finish(command().args(args).stdin(std::fs::File::open(path).unwrap()))
}

/// Runs a command to its end.
pub fn finish(command: &mut Command) -> Run {
    let output = command.output().unwrap();
    // A process that was killed by a signal has no code.
    let code = output.status.code().unwrap_or(-1);
    Run { code, stdout: output.stdout, stderr: String::from_utf8(output.stderr).unwrap() }
}

/// A file or folder among the fixtures of another crate's tests.
pub fn tests_of(krate: &str, name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("tests").join(name)
}

/// A folder that is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("rlx-cli-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path as an argument.
    pub fn arg(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// With a file of these bytes.
    pub fn file(self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
        self
    }

    /// A copy of the tiny model `name`.
    pub fn model(name: &str) -> Self {
        let folder = Self::new();
        for file in ["config.json", "model.safetensors"] {
            std::fs::copy(fixture(name).join(file), folder.0.join(file)).unwrap();
        }
        folder
    }

    /// The tiny BERT with a tokenizer: mean pooling, normalised, a prompt.
    pub fn bert() -> Self {
        let tokenizer = std::fs::read(tests_of("rlx-models", "data/wordpiece_tokenizer.json")).unwrap();
        Self::model("bert")
            .file("tokenizer.json", tokenizer)
            .file(
                "modules.json",
                r#"[{"idx":0,"name":"0","path":"","type":"sentence_transformers.models.Transformer"},
                    {"idx":1,"name":"1","path":"1_Pooling","type":"sentence_transformers.models.Pooling"},
                    {"idx":2,"name":"2","path":"2_Normalize","type":"sentence_transformers.models.Normalize"}]"#,
            )
            .file("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens": true}"#)
            .file("config_sentence_transformers.json", r#"{"prompts": {"query": "the "}}"#)
    }

    /// With the keys of `config.json` changed.
    pub fn config(self, change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>)) -> Self {
        let path = self.0.join("config.json");
        let mut config: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(config.as_object_mut().unwrap());
        std::fs::write(path, config.to_string()).unwrap();
        self
    }

    /// With the tensors of `model.safetensors` changed; all are f32.
    pub fn tensors(self, change: impl FnOnce(&mut Vec<(String, Tensor)>)) -> Self {
        let path = self.0.join("model.safetensors");
        let mut tensors = read_tensors(&path);
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

/// The tensors of a `.safetensors` file.
pub fn read_tensors(path: &Path) -> Vec<(String, Tensor)> {
    use rlx::runtime::WeightSource;
    use rlx::runtime::weights::{SafetensorsFile, SafetensorsWeights};
    let source = SafetensorsWeights::new(vec![SafetensorsFile::open(path).unwrap()]);
    let names: Vec<String> = source.files()[0].tensors().iter().map(|t| t.0.to_owned()).collect();
    let read = |name: String| {
        let data = source.weight(&name).unwrap();
        (name, Tensor::from_bytes(data.ty, data.bytes.to_vec()).unwrap())
    };
    names.into_iter().map(read).collect()
}

/// Writes a `.safetensors` file: the length of a JSON header, the header, the data.
pub fn write_tensors(path: &Path, tensors: &[(String, Tensor)]) {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, tensor) in tensors {
        let dtype = match tensor.dtype() {
            DType::F32 => "F32",
            DType::I64 => "I64",
            DType::I32 => "I32",
            DType::I16 => "I16",
            DType::U32 => "U32",
            DType::U8 => "U8",
            DType::Bool => "BOOL",
            other => panic!("{other}"),
        };
        let start = data.len();
        data.extend_from_slice(tensor.bytes());
        let info = serde_json::json!({
            "dtype": dtype, "shape": tensor.shape(), "data_offsets": [start, data.len()]
        });
        header.insert(name.clone(), info);
    }
    let header = serde_json::Value::Object(header).to_string();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    std::fs::write(path, bytes).unwrap();
}

/// The vector in an object of `embed`.
pub fn vector(row: &serde_json::Value) -> Vec<f32> {
    row["embedding"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect()
}

pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

pub fn distance(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max)
}
