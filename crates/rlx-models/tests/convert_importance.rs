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
