//! Files made byte by byte, and a folder that removes itself.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes the fields of a GGUF file of any version, sound or not.
pub struct Raw {
    pub bytes: Vec<u8>,
    pub version: u32,
}

impl Raw {
    pub fn new(version: u32, tensors: u64, entries: u64) -> Self {
        let mut raw = Self { bytes: b"GGUF".to_vec(), version };
        raw.u32(version).length(tensors).length(entries);
        raw
    }

    pub fn u32(&mut self, v: u32) -> &mut Self {
        self.put(&v.to_le_bytes())
    }

    pub fn u64(&mut self, v: u64) -> &mut Self {
        self.put(&v.to_le_bytes())
    }

    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend(bytes);
        self
    }

    /// 4 bytes in version 1, else 8.
    pub fn length(&mut self, v: u64) -> &mut Self {
        match self.version {
            1 => self.u32(v as u32),
            _ => self.u64(v),
        }
    }

    pub fn str(&mut self, text: impl AsRef<[u8]>) -> &mut Self {
        self.length(text.as_ref().len() as u64).put(text.as_ref())
    }

    /// Key, type and the value's bytes.
    pub fn entry(&mut self, key: &str, value_type: u32, value: &[u8]) -> &mut Self {
        self.str(key).u32(value_type).put(value)
    }

    /// `dims` in the file's order: innermost first.
    pub fn tensor(&mut self, name: &str, dims: &[u64], ggml_type: u32, offset: u64) -> &mut Self {
        self.str(name).u32(dims.len() as u32);
        dims.iter().for_each(|&d| {
            self.length(d);
        });
        self.u32(ggml_type).u64(offset)
    }

    /// Pads to `alignment` and appends the data.
    pub fn data(&mut self, alignment: usize, data: &[u8]) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(alignment), 0);
        self.bytes.extend(data);
        self.bytes.clone()
    }
}

/// A small sound file of each version: a string, strings, a nested array, bools, two tensors.
pub fn small(version: u32) -> Vec<u8> {
    let mut raw = Raw::new(version, 2, 5);
    raw.str("general.architecture").u32(8).str("bert");
    raw.str("tokens").u32(9).u32(8).length(3).str("a").str("").str("ü");
    raw.str("nested").u32(9).u32(9).length(2);
    raw.u32(5).length(2).put(&[1, 0, 0, 0, 255, 255, 255, 255]);
    raw.u32(8).length(1).str("x");
    raw.str("flags").u32(9).u32(7).length(2).put(&[0, 1]);
    raw.entry("block_count", 4, &7u32.to_le_bytes());
    raw.tensor("w", &[2, 3], 0, 0).tensor("q", &[32], 8, 32);
    let mut data: Vec<u8> = (0..24).collect();
    data.resize(32 + 34, 9);
    raw.data(32, &data)
}

/// A folder of its own that is removed at the end.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let name = format!("rlx-gguf-{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
