//! Weights on the device: where their file is mapped, and copied.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::Path;
use std::sync::Arc;

use rlx_gguf::Mapping;
use rlx_ir::env::Settings;
use rlx_ir::interp::seeded;
use rlx_ir::{DType, OpSet, TensorType, text};
use rlx_runtime::weights::{WeightBytes, WeightData, WeightSource};
use rlx_runtime::{Runtime, Session, SessionOptions};
use rlx_simulator::Mode;

/// Tensors of a file, each as far from a multiple of 4096 bytes as its third number says.
const TENSORS: [(&str, DType, usize, [usize; 2]); 4] = [
    // No word begins where this does.
    ("table", DType::F16, 4094, [301, 128]),
    ("up", DType::F16, 2, [300, 128]),
    ("down", DType::F32, 12, [130, 300]),
    // The last bytes of the file.
    ("last", DType::F32, 0, [129, 130]),
];

const GRAPH: &str = "graph @weights(N <= 80) {
  %ids = input \"ids\" : i32[N]
  %table = weight \"table\" : f16[301, 128]
  %up = weight \"up\" : f16[300, 128]
  %down = weight \"down\" : f32[130, 300]
  %last = weight \"last\" : f32[129, 130]
  %e = embedding %table, %ids {dtype = f32}
  %u = linear %e, %up {activation = gelu}
  %d = linear %u, %down
  %y = linear %d, %last
  return %y
}";

struct File {
    mapping: Mapping,
    tensors: Vec<(&'static str, usize, TensorType)>,
}

impl File {
    fn new() -> Self {
        let (mut content, mut tensors) = (Vec::new(), Vec::new());
        for (name, dtype, beyond, shape) in TENSORS {
            let ty = TensorType::new(dtype, shape);
            content.resize((content.len() + 1).next_multiple_of(4096) + beyond, 0xff);
            tensors.push((name, content.len(), ty.clone()));
            content.extend_from_slice(seeded(&ty, 7).unwrap().bytes());
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("weights");
        std::fs::write(&path, &content).unwrap();
        Self { mapping: Mapping::open(&path).unwrap(), tensors }
    }
}

impl WeightSource for File {
    fn identity(&self) -> &str {
        "file"
    }

    fn weight(&self, name: &str) -> rlx_runtime::Result<WeightData> {
        let (_, start, ty) = self.tensors.iter().find(|t| t.0 == name).unwrap();
        let range = *start..*start + ty.bytes()?;
        Ok(WeightData { ty: ty.clone(), bytes: WeightBytes::Mapped(self.mapping.clone(), range) })
    }
}

/// With one row, few and many, so that every kernel of a product reads them.
#[test]
fn weights_give_the_same_where_they_are_mapped_as_copied() {
    let file = File::new();
    let graph = text::parse(GRAPH, &OpSet::builtin()).unwrap();
    let bytes: u64 = file.tensors.iter().map(|t| t.2.bytes().unwrap() as u64).sum();
    let mut outputs = Vec::new();
    for copies in [false, true] {
        let Some(backend) = common::backend(Mode::Hooked) else { return };
        backend.driver().copy_weights(copies);
        let runtime = Runtime::new(vec![backend.clone()], Settings::defaults());
        let session = Session::compile(&runtime, &graph, &file, &SessionOptions::default()).unwrap();
        let recording = backend.driver().take_recording();
        assert_eq!(recording.file_bytes, if copies { 0 } else { bytes });
        assert_eq!(recording.allocated_bytes, if copies { bytes } else { 0 });
        let mut context = session.context(&[]).unwrap();
        for n in [1, 3, 70] {
            context.bind(&[("N", n)]).unwrap();
            let ids = context.input::<i32>("ids").unwrap();
            ids.iter_mut().enumerate().for_each(|(i, id)| *id = (i * 37 % 301) as i32);
            context.run().unwrap();
            outputs.push(context.output::<f32>(0).unwrap().to_vec());
        }
    }
    let copied = outputs.split_off(3);
    assert!(outputs[0].iter().all(|v| v.is_finite()));
    assert_eq!(outputs, copied);
}

/// Other bytes than a file's pages are nothing that a device takes.
#[test]
fn weights_in_memory_are_copied() {
    let Some(backend) = common::backend(Mode::Fast) else { return };
    let graph = "graph @g(N <= 8) {
  %x = input \"x\" : f32[N, 128]
  %w = weight \"w\" : f32[300, 128] = seed 1
  %y = linear %x, %w
  return %y
}";
    common::session(&Arc::clone(&backend), graph);
    let recording = backend.driver().take_recording();
    assert_eq!((recording.file_bytes, recording.allocated_bytes), (0, 300 * 128 * 4));
}
