//! Conversion to types of few bits, with and without an importance matrix.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use rlx_gguf::{Gguf, MetadataBuilder, Writer};
use rlx_ir::DType;
use rlx_models::convert::{Imatrix, QuantizeOptions, Report, quantize};

const NAME: &str = "blk.0.ffn_up.weight";
const COLUMNS: usize = 256;

struct Folder(PathBuf);

impl Folder {
    /// With a model of one matrix and its importance matrix.
    fn new(test: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("rlx-importance-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut metadata = MetadataBuilder::new();
        metadata.set("general.architecture", "llama");
        let mut writer = Writer::new(folder.join("f32.gguf"), metadata).unwrap();
        writer.declare(NAME, DType::F32, &[3, COLUMNS]).unwrap();
        let mut data = writer.start().unwrap();
        let values: Vec<u8> = (0..3 * COLUMNS)
            .map(|i| (i as f32 * 0.71).sin() + (i as f32 * 0.13).cos())
            .flat_map(f32::to_le_bytes)
            .collect();
        data.tensor(NAME, |sink| sink.write(&values)).unwrap();
        data.finish().unwrap();
        let mut imatrix = Vec::new();
        for n in [1, NAME.len() as i32] {
            imatrix.extend(n.to_le_bytes());
        }
        imatrix.extend(NAME.as_bytes());
        for n in [1, COLUMNS as i32] {
            imatrix.extend(n.to_le_bytes());
        }
        for i in 0..COLUMNS {
            imatrix.extend(importance(i).to_le_bytes());
        }
        std::fs::write(folder.join("imatrix"), imatrix).unwrap();
        Self(folder)
    }

    fn convert(&self, from: &str, to: &str, ty: &str, imatrix: Option<&Path>) -> Report {
        let mut options = QuantizeOptions::new(DType::from_name(ty).unwrap());
        options.imatrix = imatrix.map(|path| Imatrix::open(path).unwrap());
        quantize(&self.0.join(from), &self.0.join(to), &options, &|_, _, _| {}).unwrap()
    }

    fn values(&self, file: &str) -> Vec<f32> {
        let gguf = Gguf::open(self.0.join(file)).unwrap();
        let tensor = gguf.tensor(NAME).unwrap();
        let mut values = vec![0.0; 3 * COLUMNS];
        rlx_ir::convert::decode_row(tensor.dtype().unwrap(), tensor.bytes(), &mut values).unwrap();
        values
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn importance(column: usize) -> f32 {
    if column.is_multiple_of(4) { 20.0 } else { 0.5 }
}

#[test]
fn the_types_that_need_importances_say_when_they_are_missing() {
    let folder = Folder::new("notes");
    let imatrix = folder.0.join("imatrix");
    for (ty, needs) in [
        ("iq1_s", true),
        ("iq1_m", true),
        ("iq2_xxs", true),
        ("iq2_xs", true),
        ("iq2_s", false),
        ("iq3_xxs", false),
        ("iq3_s", false),
        ("q2_k", false),
    ] {
        let report = folder.convert("f32.gguf", "without.gguf", ty, None);
        assert_eq!(report.notes.len(), usize::from(needs), "{ty}: {:?}", report.notes);
        for note in &report.notes {
            assert!(note.contains("1 of 1") && note.contains(ty) && note.contains("importance"), "{note}");
        }
        assert!(folder.convert("f32.gguf", "with.gguf", ty, Some(&imatrix)).notes.is_empty(), "{ty}");
        // Blocks that are copied stay as good as they were.
        assert!(folder.convert("with.gguf", "again.gguf", ty, None).notes.is_empty(), "{ty}");
        assert_eq!(folder.values("again.gguf"), folder.values("with.gguf"), "{ty}");
    }
}

#[test]
fn columns_of_importance_come_out_nearer() {
    let folder = Folder::new("errors");
    let imatrix = folder.0.join("imatrix");
    for ty in ["iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s"] {
        let exact = folder.values("f32.gguf");
        let error = |imatrix: Option<&Path>| -> f32 {
            folder.convert("f32.gguf", "m.gguf", ty, imatrix);
            let pairs = exact.iter().zip(folder.values("m.gguf")).enumerate();
            pairs.map(|(i, (a, b))| importance(i % COLUMNS) * (a - b).powi(2)).sum()
        };
        let (with, without) = (error(Some(&imatrix)), error(None));
        assert!(with < 0.95 * without, "{ty}: {with}, without importances {without}");
    }
}

/// The importance matrix of a stack of two experts, the second of which never ran.
fn stacked_imatrix(path: &Path, name: &str, first: &[f32], counts: &[f32]) {
    let mut writer = Writer::new(path, MetadataBuilder::new()).unwrap();
    let sums: Vec<f32> = first.iter().map(|v| v * counts[0]).chain(vec![0.0; first.len()]).collect();
    let tensors = [("in_sum2", vec![2, first.len()], sums), ("counts", vec![2, 1], counts.to_vec())];
    for (what, shape, _) in &tensors {
        writer.declare(&format!("{name}.{what}"), DType::F32, shape).unwrap();
    }
    let mut data = writer.start().unwrap();
    for (what, _, values) in &tensors {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        data.tensor(&format!("{name}.{what}"), |sink| sink.write(&bytes)).unwrap();
    }
    data.finish().unwrap();
}

#[test]
fn each_expert_of_a_stack_has_importances_of_its_own() {
    const STACK: &str = "blk.0.ffn_up_exps.weight";
    let folder = Folder::new("experts");
    let mut metadata = MetadataBuilder::new();
    metadata.set("general.architecture", "qwen3moe");
    let mut writer = Writer::new(folder.0.join("stack.gguf"), metadata).unwrap();
    writer.declare(STACK, DType::F32, &[2, 3, COLUMNS]).unwrap();
    let matrix = folder.values("f32.gguf");
    let values: Vec<f32> = matrix.iter().chain(&matrix).copied().collect();
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let mut data = writer.start().unwrap();
    data.tensor(STACK, |sink| sink.write(&bytes)).unwrap();
    data.finish().unwrap();
    let columns: Vec<f32> = (0..COLUMNS).map(importance).collect();
    let imatrix = folder.0.join("stack_imatrix.gguf");
    stacked_imatrix(&imatrix, STACK, &columns, &[8.0, 0.0]);
    folder.convert("stack.gguf", "stack_iq2.gguf", "iq2_xxs", Some(&imatrix));

    let blocks = |file: &str, name: &str| {
        Gguf::open(folder.0.join(file)).unwrap().tensor(name).unwrap().bytes().to_vec()
    };
    folder.convert("f32.gguf", "weighted.gguf", "iq2_xxs", Some(&folder.0.join("imatrix")));
    folder.convert("f32.gguf", "plain.gguf", "iq2_xxs", None);
    let (weighted, plain) = (blocks("weighted.gguf", NAME), blocks("plain.gguf", NAME));
    assert_ne!(weighted, plain);
    assert_eq!(blocks("stack_iq2.gguf", STACK), [weighted, plain].concat());

    // Columns for one matrix do not fit a stack of two.
    let mut options = QuantizeOptions::new(DType::from_name("iq2_xxs").unwrap());
    stacked_imatrix(&imatrix, STACK, &columns[..COLUMNS / 2], &[8.0, 1.0]);
    options.imatrix = Some(Imatrix::open(&imatrix).unwrap());
    let out = folder.0.join("wrong.gguf");
    let e = quantize(&folder.0.join("stack.gguf"), &out, &options, &|_, _, _| {}).unwrap_err();
    assert!(e.message().contains(STACK) && e.message().contains("2 x 256"), "{e}");
}
