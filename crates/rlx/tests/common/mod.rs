//! Tiny models for tests.
#![allow(clippy::unwrap_used, dead_code)]

use std::path::{Path, PathBuf};

use rlx::gguf::{MetadataBuilder, Writer};
use rlx::ir::env::Settings;
use rlx::ir::{Tensor, TensorType};
use rlx::models::arch::llama::NAMES;
use rlx::prelude::*;
use rlx::runtime::WeightSource;
use rlx::runtime::weights::{SafetensorsFile, SafetensorsWeights};

/// The runtime with default settings, whatever the environment says.
pub fn runtime() -> Runtime {
    Runtime::detect_with(Settings::defaults()).unwrap()
}

/// The folder of a tiny model with expected values.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../rlx-models/tests/fixtures/hf_models").join(name)
}

/// The tensors of a file of a tiny model.
pub struct Tensors(SafetensorsWeights);

impl Tensors {
    /// Opens a file of the fixture `name`.
    pub fn open(name: &str, file: &str) -> Self {
        let file = SafetensorsFile::open(&fixture(name).join(file)).unwrap();
        Self(SafetensorsWeights::new(vec![file]))
    }

    /// The names of all tensors.
    pub fn names(&self) -> Vec<String> {
        self.0.files()[0].tensors().iter().map(|t| t.0.to_owned()).collect()
    }

    /// A tensor.
    pub fn get(&self, tensor: &str) -> Tensor {
        let data = self.0.weight(tensor).unwrap();
        Tensor::from_bytes(data.ty, data.bytes.to_vec()).unwrap()
    }

    /// A tensor of ids.
    pub fn ids(&self, tensor: &str) -> Vec<u32> {
        self.get(tensor).to_i64().unwrap().iter().map(|&i| u32::try_from(i).unwrap()).collect()
    }

    /// A tensor of floats.
    pub fn floats(&self, tensor: &str) -> Vec<f32> {
        self.get(tensor).to_f32().unwrap()
    }
}

/// A file in the folder for temporary files that goes away with this value.
pub struct TempPath(pub PathBuf);

impl TempPath {
    /// A path that no other test has.
    pub fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("rlx-test-{}-{name}", std::process::id())))
    }
}

impl Drop for TempPath {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The tiny Llama as a GGUF file, with a vocabulary of single bytes and a few words.
pub fn llama_gguf(name: &str) -> TempPath {
    llama_gguf_with(name, |_| {})
}

/// The same with more metadata.
pub fn llama_gguf_with(name: &str, more: impl Fn(&mut MetadataBuilder)) -> TempPath {
    let path = TempPath::new(&format!("{name}.gguf"));
    let (heads, kv_heads, vocab) = (4, 2, 314);
    let mut m = MetadataBuilder::new();
    m.set("general.architecture", "llama");
    for (key, value) in [
        ("llama.block_count", 3u32),
        ("llama.embedding_length", 64),
        ("llama.feed_forward_length", 144),
        ("llama.attention.head_count", heads),
        ("llama.attention.head_count_kv", kv_heads),
        ("llama.context_length", 256),
        ("tokenizer.ggml.bos_token_id", 1),
        ("tokenizer.ggml.eos_token_id", 2),
        ("tokenizer.ggml.unknown_token_id", 0),
    ] {
        m.set(key, value);
    }
    m.set("llama.attention.layer_norm_rms_epsilon", 1e-6f32);
    m.set("tokenizer.ggml.model", "llama");
    let mut tokens: Vec<String> = ["<unk>", "<s>", "</s>"].map(str::to_owned).to_vec();
    tokens.extend((0..=255).map(|b| format!("<0x{b:02X}>")));
    tokens.push("▁".to_owned());
    let words = vocab - tokens.len();
    tokens.extend((0..words).map(|i| format!("▁w{i}")));
    let types: Vec<i32> =
        (0..vocab).map(|i| [2, 3, 3].get(i).copied().unwrap_or(if i < 259 { 6 } else { 1 })).collect();
    m.set_strs("tokenizer.ggml.tokens", &tokens);
    m.set_numbers("tokenizer.ggml.scores", &vec![0f32; vocab]);
    m.set_numbers("tokenizer.ggml.token_type", &types);
    more(&mut m);

    let source = Tensors::open("llama", "model.safetensors");
    let mut writer = Writer::new(&path.0, m).unwrap();
    let tensors: Vec<(String, Tensor)> = source
        .names()
        .iter()
        .map(|raw| {
            let name = NAMES.canonical(raw).unwrap();
            let tensor = source.get(raw);
            let tensor = match () {
                () if name.ends_with("attn_q.weight") => neighbouring_pairs(&tensor, heads as usize),
                () if name.ends_with("attn_k.weight") => neighbouring_pairs(&tensor, kv_heads as usize),
                () => tensor,
            };
            (name, tensor)
        })
        .collect();
    for (name, tensor) in &tensors {
        writer.declare(name, tensor.dtype(), tensor.shape()).unwrap();
    }
    let mut data = writer.start().unwrap();
    for (name, tensor) in &tensors {
        data.tensor(name, |sink| sink.write(tensor.bytes())).unwrap();
    }
    data.finish().unwrap();
    path
}

/// The rows of Q or K in the order of GGUF files: row `i` of the first half of a head beside row `i` of the second.
fn neighbouring_pairs(tensor: &Tensor, heads: usize) -> Tensor {
    let rows = tensor.shape()[0];
    let head_dim = rows / heads;
    let row_bytes = tensor.bytes().len() / rows;
    let mut bytes = Vec::new();
    for row in 0..rows {
        let (head, within) = (row / head_dim, row % head_dim);
        let from = head * head_dim + within % 2 * (head_dim / 2) + within / 2;
        bytes.extend_from_slice(&tensor.bytes()[from * row_bytes..][..row_bytes]);
    }
    Tensor::from_bytes(TensorType::new(tensor.dtype(), tensor.shape()), bytes).unwrap()
}

/// The tiny model `name` in a folder of its own, with the values of one tensor changed.
pub fn changed_copy(name: &str, tensor: &str, change: impl Fn(&mut [f32])) -> TempPath {
    let folder = TempPath::new(&format!("{name}-{tensor}"));
    std::fs::create_dir_all(&folder.0).unwrap();
    for file in ["config.json", "generation_config.json"] {
        std::fs::copy(fixture(name).join(file), folder.0.join(file)).unwrap();
    }
    let mut bytes = std::fs::read(fixture(name).join("model.safetensors")).unwrap();
    let header_len = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header_len]).unwrap();
    let offsets = &header[tensor]["data_offsets"];
    let at = |i: usize| 8 + header_len + offsets[i].as_u64().unwrap() as usize;
    let part = &mut bytes[at(0)..at(1)];
    let mut values: Vec<f32> =
        part.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    change(&mut values);
    part.copy_from_slice(&values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>());
    std::fs::write(folder.0.join("model.safetensors"), bytes).unwrap();
    folder
}
