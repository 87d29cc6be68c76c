//! Models in several files.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::PathBuf;

use common::Folder;
use rlx_gguf::{Gguf, MetadataBuilder, Writer, shard_path};
use rlx_ir::{DType, ErrorKind};

const COUNT: u32 = 3;

/// Writes shard `no`, holding the named tensors, and returns its path.
fn shard(folder: &Folder, no: u32, says: u32, total: i32, names: &[&str]) -> PathBuf {
    let path = shard_path(folder.path("model"), no, COUNT);
    let mut metadata = MetadataBuilder::new();
    if no == 0 {
        metadata.set("general.architecture", "llama");
    }
    metadata.set("split.no", says as u16);
    metadata.set("split.count", COUNT as u16);
    metadata.set("split.tensors.count", total);
    let mut plan = Writer::new(&path, metadata).unwrap();
    for name in names {
        plan.declare(name, DType::U8, &[1]).unwrap_err();
        plan.declare(name, DType::I8, &[3]).unwrap();
    }
    let mut data = plan.start().unwrap();
    for name in names {
        data.tensor(name, |sink| sink.write(&[no as u8; 3])).unwrap();
    }
    data.finish().unwrap();
    path
}

fn model(folder: &Folder) -> Vec<PathBuf> {
    vec![shard(folder, 0, 0, 3, &["a"]), shard(folder, 1, 1, 3, &[]), shard(folder, 2, 2, 3, &["b", "c"])]
}

#[test]
fn any_shard_opens_the_whole_model() {
    let folder = Folder::new();
    let paths = model(&folder);
    for path in &paths {
        let file = Gguf::open(path).unwrap();
        assert_eq!(file.files().collect::<Vec<_>>(), paths);
        assert_eq!(file.metadata().require_str("general.architecture").unwrap(), "llama");
        assert_eq!(
            file.tensors().iter().map(rlx_gguf::TensorInfo::name).collect::<Vec<_>>(),
            ["a", "b", "c"]
        );
        assert_eq!(file.tensor("a").unwrap().bytes(), [0; 3]);
        assert_eq!(file.tensor("c").unwrap().bytes(), [2; 3]);
        assert_eq!(file.tensor("c").unwrap().file(), paths[2]);
    }
}

#[test]
fn a_missing_shard_is_named() {
    let folder = Folder::new();
    let paths = model(&folder);
    std::fs::remove_file(&paths[1]).unwrap();
    let e = Gguf::open(&paths[0]).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.message().contains("model-00002-of-00003.gguf") && e.message().contains("shard 2 of 3"), "{e}");
}

#[track_caller]
fn refused(path: &PathBuf, part: &str) {
    let e = Gguf::open(path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidFile);
    assert!(e.message().contains(part), "{e}");
}

#[test]
fn shards_that_do_not_belong_together_are_refused() {
    let folder = Folder::new();
    let paths = model(&folder);
    shard(&folder, 1, 2, 3, &[]);
    refused(&paths[0], "says that it is shard 3 of 3, expected 2 of 3");
    shard(&folder, 1, 1, 3, &["a"]);
    refused(&paths[0], "tensor `a` is also in");
    shard(&folder, 1, 1, 3, &["d"]);
    refused(&paths[0], "hold 4 tensors, but `split.tensors.count` is 3");
    Writer::new(&paths[1], MetadataBuilder::new()).unwrap().start().unwrap().finish().unwrap();
    refused(&paths[0], "says that it is no shard");
    shard(&folder, 0, 7, 3, &["a"]);
    refused(&paths[0], "`split.no` is 7");
}

#[test]
fn a_shard_under_another_name_or_in_a_buffer_is_refused() {
    let folder = Folder::new();
    let paths = model(&folder);
    let e = Gguf::parse(std::fs::read(&paths[0]).unwrap()).unwrap_err();
    assert!(e.message().contains("shard 1 of 3"), "{e}");
    let renamed = folder.path("renamed.gguf");
    std::fs::rename(&paths[0], &renamed).unwrap();
    refused(&renamed, "its name does not end in `-00001-of-00003.gguf`");
}
