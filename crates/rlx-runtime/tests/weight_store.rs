//! Who shares prepared weights, and how often each is prepared.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use rlx_compile::{Layout, OpFacts, Plan, Support, Target, build_plan};
use rlx_ir::{Builder, DType, Tensor, bail};
use rlx_runtime::weights::{
    MemoryWeights, RowSource, SafetensorsFile, SafetensorsWeights, WeightSource, WeightStore,
};
use rlx_runtime::{Backend, DeviceInfo, DeviceWeight, Error, Executable, Result, Strategy};

/// A backend that copies weights, and counts how many.
#[derive(Default)]
struct Counting {
    prepared: AtomicUsize,
}

impl Counting {
    fn count(&self) -> usize {
        self.prepared.load(Ordering::SeqCst)
    }
}

impl Target for Counting {
    fn supports(&self, _facts: &OpFacts<'_>) -> Support {
        Support::Yes
    }
}

impl Backend for Counting {
    fn name(&self) -> &'static str {
        "counting"
    }

    fn device(&self) -> DeviceInfo {
        DeviceInfo { name: String::new(), memory_bytes: 0, features: Vec::new(), parallelism: 0 }
    }

    fn strategies(&self) -> &'static [Strategy] {
        &[Strategy::Thunks]
    }

    fn prepare(&self, layout: &Layout, rows: &mut dyn RowSource) -> Result<DeviceWeight> {
        self.prepared.fetch_add(1, Ordering::SeqCst);
        let mut bytes = vec![0u8; rows.ty().bytes()?];
        let count = rows.rows();
        rows.read(0..count, &mut bytes)?;
        // Another thread that wants the same weight comes here meanwhile, if it may.
        std::thread::sleep(Duration::from_millis(20));
        Ok(DeviceWeight::new(rows.ty().clone(), layout.clone(), bytes.len() as u64, bytes))
    }

    fn build(&self, _: Arc<Plan>, _: Vec<Arc<DeviceWeight>>, _: Strategy) -> Result<Arc<dyn Executable>> {
        bail!(UnsupportedOnDevice, "it only prepares")
    }
}

/// The plan of `x + w`.
fn plan() -> Plan {
    let mut b = Builder::new("g");
    let x = b.input("x", DType::F32, [4]).unwrap();
    let w = b.weight("w", DType::F32, [4]).unwrap();
    let y = b.add(x, w).unwrap();
    build_plan(&b.finish(&[y]).unwrap(), &Counting::default()).unwrap()
}

fn prepare(store: &WeightStore, backend: &Counting, source: &dyn WeightSource) -> Vec<Arc<DeviceWeight>> {
    store.prepare(&plan(), backend, source, &|_, _| {}).unwrap()
}

fn memory() -> MemoryWeights {
    MemoryWeights::new([("w".to_owned(), Tensor::f32([4], &[1.0, 2.0, 3.0, 4.0]).unwrap())])
}

/// A file with the tensor `w` that goes away with this value.
struct File(PathBuf);

impl File {
    fn new(name: &str, first: f32) -> Self {
        let file = Self(std::env::temp_dir().join(format!("rlx-store-{}-{name}", std::process::id())));
        file.write(first);
        file
    }

    fn write(&self, first: f32) {
        let header = r#"{"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
        let values = [first, 2.0, 3.0, 4.0].into_iter().flat_map(f32::to_le_bytes);
        let bytes: Vec<u8> =
            (header.len() as u64).to_le_bytes().into_iter().chain(header.bytes()).chain(values).collect();
        std::fs::write(&self.0, bytes).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn open(path: &Path) -> SafetensorsWeights {
    SafetensorsWeights::new(vec![SafetensorsFile::open(path).unwrap()])
}

#[test]
fn two_threads_prepare_a_weight_once() {
    let (store, backend, source) = (WeightStore::new(), Counting::default(), memory());
    let start = Barrier::new(2);
    let run = || {
        start.wait();
        prepare(&store, &backend, &source).remove(0)
    };
    let (a, b) = std::thread::scope(|scope| {
        let other = scope.spawn(run);
        (run(), other.join().unwrap())
    });
    assert!(Arc::ptr_eq(&a, &b));
    assert_eq!((backend.count(), store.resident_bytes()), (1, 16));
    drop((a, b));
    assert_eq!(store.resident_bytes(), 0);
}

#[test]
fn a_weight_that_cannot_be_prepared_is_tried_again() {
    let (store, backend) = (WeightStore::new(), Counting::default());
    let empty = MemoryWeights::new([]);
    for _ in 0..2 {
        let e = store.prepare(&plan(), &backend, &empty, &|_, _| {}).unwrap_err();
        assert!(e.message().contains("\"w\""), "{e}");
    }
    assert_eq!(prepare(&store, &backend, &memory()).len(), 1);
}

#[test]
fn sources_in_memory_share_nothing() {
    let (store, backend) = (WeightStore::new(), Counting::default());
    let both = [memory(), memory()].map(|source| prepare(&store, &backend, &source));
    assert_eq!((backend.count(), store.resident_bytes()), (2, 32));
    drop(both);
}

/// Opening it twice, whatever the path, is one source, as long as it did not change just now.
#[cfg(unix)]
#[test]
fn a_file_that_is_opened_twice_is_prepared_once() {
    let (store, backend) = (WeightStore::new(), Counting::default());
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../rlx-models/tests/fixtures/hf_models/llama/model.safetensors");
    let link = std::env::temp_dir().join(format!("rlx-store-link-{}", std::process::id()));
    std::os::unix::fs::symlink(&fixture, &link).unwrap();
    let [a, b] = [open(&fixture), open(&link)];
    std::fs::remove_file(&link).unwrap();
    let mut g = Builder::new("g");
    let x = g.input("x", DType::F32, [64]).unwrap();
    let w = g.weight("model.norm.weight", DType::F32, [64]).unwrap();
    let y = g.add(x, w).unwrap();
    let plan = build_plan(&g.finish(&[y]).unwrap(), &backend).unwrap();
    let both = [&a, &b].map(|source| store.prepare(&plan, &backend, source, &|_, _| {}).unwrap());
    assert_eq!(a.identity(), b.identity());
    assert_eq!((backend.count(), store.resident_bytes()), (1, 256));
    drop(both);
}

/// Same path, same size, same moment: what was prepared from the file before is not what it holds now.
#[test]
fn a_file_that_was_written_again_is_prepared_again() {
    let (store, backend) = (WeightStore::new(), Counting::default());
    let file = File::new("again", 1.0);
    let first = prepare(&store, &backend, &open(&file.0));
    file.write(9.0);
    let second = prepare(&store, &backend, &open(&file.0));
    let value = |w: &DeviceWeight| f32::from_le_bytes(w.data::<Vec<u8>>().unwrap()[..4].try_into().unwrap());
    assert_eq!((value(&first[0]), value(&second[0])), (1.0, 9.0));
}
