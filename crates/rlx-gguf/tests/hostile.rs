//! Damaged files: an error that says what is wrong, never a panic, within bounded memory.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Folder, Raw, small};
use proptest::prelude::*;
use rlx_gguf::{Error, GgmlType, Gguf};
use rlx_ir::ErrorKind;

fn refused(bytes: Vec<u8>) -> Error {
    Gguf::parse(bytes).map(|_| "a damaged file was accepted").unwrap_err()
}

#[track_caller]
fn expect(bytes: Vec<u8>, kind: ErrorKind, parts: &[&str]) {
    let e = refused(bytes);
    assert_eq!(e.kind(), kind, "{e}");
    for part in parts {
        assert!(e.message().contains(part), "`{part}` is not in: {e}");
    }
}

#[track_caller]
fn invalid(bytes: Vec<u8>, parts: &[&str]) {
    expect(bytes, ErrorKind::InvalidFile, parts);
}

/// Touches all that a reader gives.
fn use_all(file: &Gguf) {
    for (key, value) in file.metadata().iter() {
        assert!(file.metadata().contains(key));
        let _ = value.to_string();
        let _ = file.metadata().strs(key).map(|strs| strs.map(Iterator::count));
        let _ = file.metadata().u32s(key);
        let _ = file.metadata().f32(key);
    }
    for tensor in file.tensors() {
        assert_eq!(file.find(tensor.name()).unwrap().range(), tensor.range());
        assert_eq!(tensor.bytes().len(), tensor.range().len());
    }
}

#[test]
fn a_file_cut_at_any_byte_is_refused() {
    for version in 1..=3 {
        let whole = small(version);
        for end in 0..whole.len() {
            let e = refused(whole[..end].to_vec());
            assert_eq!(e.kind(), ErrorKind::InvalidFile, "{end}: {e}");
        }
    }
}

#[test]
fn foreign_files_are_named() {
    invalid(Vec::new(), &["<buffer>", "the magic number"]);
    invalid(b"PK\x03\x04 a zip".to_vec(), &["not GGUF", "PK\\x03\\x04"]);
    invalid(b"version https://git-lfs.github.com/spec/v1".to_vec(), &["Git LFS"]);
    expect(b"tjgg\x03\0\0\0".to_vec(), ErrorKind::UnsupportedModel, &["before GGUF"]);
    expect(b"GGUF\0\0\0\x03".to_vec(), ErrorKind::UnsupportedModel, &["big-endian"]);
    expect(b"GGUF\x04\0\0\0".to_vec(), ErrorKind::UnsupportedModel, &["version 4"]);
    invalid(b"GGUF\0\0\0\0".to_vec(), &["version 0"]);
}

#[test]
fn absurd_counts_are_refused_before_memory_is_taken() {
    for count in [u64::MAX, 1 << 40, 1000] {
        invalid(Raw::new(3, count, 0).data(64, &[]), &["number of tensors", &count.to_string()]);
        invalid(Raw::new(3, 0, count).data(64, &[]), &["number of metadata entries", &count.to_string()]);
        let mut raw = Raw::new(3, 0, 1);
        raw.str("k").u32(9).u32(4).u64(count);
        invalid(raw.data(64, &[]), &["`k`", "length of an array", &count.to_string()]);
        let mut raw = Raw::new(3, 0, 1);
        raw.str("k").u32(9).u32(8).u64(count);
        invalid(raw.data(64, &[]), &["`k`", "length of an array"]);
        let mut raw = Raw::new(3, 0, 1);
        raw.str("k").u32(8).u64(count);
        invalid(raw.data(64, &[]), &["`k`", "a string"]);
        let mut raw = Raw::new(3, 0, 1);
        raw.u64(count);
        invalid(raw.data(64, &[]), &["metadata entry 0", "a metadata key"]);
    }
    // The count of tensors passes the first check only thanks to the metadata's bytes.
    let mut raw = Raw::new(3, 3, 1);
    raw.str("k").u32(8).str("x".repeat(100));
    invalid(raw.data(8, &[]), &["number of tensors is 3"]);
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_refused() {
    for alignment in [0u32, 3, 24, u32::MAX] {
        let mut raw = Raw::new(3, 1, 1);
        raw.entry("general.alignment", 4, &alignment.to_le_bytes());
        raw.tensor("w", &[1], 0, 0);
        invalid(raw.data(32, &[0; 64]), &["general.alignment", &alignment.to_string()]);
    }
    let mut raw = Raw::new(3, 1, 1);
    raw.entry("general.alignment", 10, &(1u64 << 63).to_le_bytes());
    raw.tensor("w", &[1], 0, 0);
    invalid(raw.data(32, &[0; 64]), &["beyond the end"]);
    let mut raw = Raw::new(3, 0, 1);
    raw.str("general.alignment").u32(8).str("32");
    invalid(raw.bytes.clone(), &["general.alignment", "found a string"]);
}

#[test]
fn offsets_are_aligned_and_inside_the_file() {
    let with = |dims: &[u64], ggml_type, offset| {
        let mut raw = Raw::new(3, 1, 0);
        raw.tensor("blk.3.w", dims, ggml_type, offset).data(32, &[0; 64])
    };
    Gguf::parse(with(&[16], 0, 0)).unwrap();
    Gguf::parse(with(&[8], 0, 32)).unwrap();
    invalid(with(&[17], 0, 0), &["`blk.3.w`", "beyond the end"]);
    invalid(with(&[1], 0, 64), &["`blk.3.w`", "beyond the end"]);
    invalid(with(&[1], 0, 16), &["`blk.3.w`", "16", "alignment"]);
    invalid(with(&[1], 0, u64::MAX), &["`blk.3.w`", "overflow"]);
    invalid(with(&[1], 0, u64::MAX - 31), &["`blk.3.w`", "beyond the end"]);
    invalid(with(&[u64::MAX], 0, 0), &["`blk.3.w`", "axis of size"]);
    invalid(with(&[1 << 40, 1 << 40], 0, 0), &["`blk.3.w`", "overflows"]);
    invalid(with(&[1 << 40, 1 << 40, 0], 0, 0), &["`blk.3.w`", "overflows"]);
    invalid(with(&[33], 8, 0), &["`blk.3.w`", "Q8_0"]);
    invalid(with(&[1, 1, 1, 1, 1], 0, 0), &["`blk.3.w`", "5 axes"]);
}

#[test]
fn rows_that_are_no_multiple_of_the_block_are_refused_by_name() {
    for t in GgmlType::all().iter().filter(|t| t.block_elems() > 1) {
        for row in [1, t.block_elems() - 1, t.block_elems() + 1] {
            let mut raw = Raw::new(3, 1, 0);
            let file = raw.tensor("blk.3.w", &[row as u64, 2], t.id(), 0).data(32, &[0; 1024]);
            invalid(file, &["<buffer>", "`blk.3.w`", t.name(), &row.to_string(), "no multiple"]);
        }
        let mut raw = Raw::new(3, 1, 0);
        let file = raw.tensor("blk.3.w", &[t.block_elems() as u64, 2], t.id(), 0).data(32, &[0; 1024]);
        assert_eq!(Gguf::parse(file).unwrap().tensors()[0].bytes().len(), 2 * t.block_bytes());
    }
}

#[test]
fn types_that_are_not_known_are_refused_by_name_tensor_and_file() {
    let with = |ggml_type| {
        let mut raw = Raw::new(3, 1, 0);
        raw.tensor("blk.3.w", &[32], ggml_type, 0).data(32, &[0; 64])
    };
    expect(with(4), ErrorKind::UnsupportedModel, &["<buffer>", "`blk.3.w`", "Q4_2", "removed"]);
    expect(with(31), ErrorKind::UnsupportedModel, &["`blk.3.w`", "Q4_0_4_4", "removed"]);
    expect(with(38), ErrorKind::UnsupportedModel, &["`blk.3.w`", "IQ4_NL_8_8", "removed"]);
    expect(with(9999), ErrorKind::UnsupportedModel, &["`blk.3.w`", "9999"]);
    let mut raw = Raw::new(3, 0, 1);
    invalid(raw.entry("k", 13, &[0; 8]).bytes.clone(), &["`k`", "value type 13"]);
    let mut raw = Raw::new(3, 0, 1);
    raw.str("k").u32(9).u32(77).u64(0);
    invalid(raw.bytes, &["`k`", "value type 77"]);
}

#[test]
fn what_is_there_twice_is_refused() {
    let mut raw = Raw::new(3, 0, 2);
    raw.entry("k", 0, &[1]).entry("k", 0, &[1]);
    invalid(raw.data(32, &[0; 32]), &["`k`", "twice"]);
    let mut raw = Raw::new(3, 2, 0);
    raw.tensor("w", &[1], 0, 0).tensor("w", &[1], 0, 32);
    invalid(raw.data(32, &[0; 64]), &["`w`", "twice"]);
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let mut raw = Raw::new(3, 0, 1);
    raw.str(b"k\xff").u32(0).put(&[1]);
    invalid(raw.bytes, &["a metadata key", "UTF-8"]);
    let mut raw = Raw::new(3, 0, 1);
    raw.str("general.name").u32(8).str(b"\xc3\x28");
    invalid(raw.bytes, &["`general.name`", "UTF-8"]);
    let mut raw = Raw::new(3, 0, 1);
    raw.str("tokens").u32(9).u32(8).u64(2).str("a").str(b"\x80");
    invalid(raw.bytes, &["`tokens`", "item 1", "UTF-8"]);
    let mut raw = Raw::new(3, 1, 0);
    raw.str(b"\xfe").u32(1).u64(1).u32(0).u64(0);
    invalid(raw.data(32, &[0; 32]), &["a tensor name", "UTF-8"]);
}

#[test]
fn a_bool_is_0_or_1() {
    let mut raw = Raw::new(3, 0, 1);
    invalid(raw.entry("k", 7, &[2]).bytes.clone(), &["`k`", "a bool is 2"]);
}

#[test]
fn arrays_nest_to_a_bounded_depth() {
    let nested = |depth: usize| {
        let mut raw = Raw::new(3, 0, 1);
        raw.str("k").u32(9);
        for _ in 1..depth {
            raw.u32(9).u64(1);
        }
        raw.u32(0).u64(1).put(&[3]);
        raw.bytes
    };
    use_all(&Gguf::parse(nested(8)).unwrap());
    for depth in [9, 100_000] {
        invalid(nested(depth), &["`k`", "nest deeper"]);
    }
}

#[test]
fn endless_names_are_cut_in_errors() {
    let mut raw = Raw::new(3, 1, 0);
    raw.tensor(&"x".repeat(1 << 20), &[1], 4, 0);
    assert!(refused(raw.data(32, &[0; 32])).message().len() < 1000);
}

#[test]
fn what_is_no_file_is_named() {
    let folder = Folder::new();
    let e = Gguf::open(folder.path("absent.gguf")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert!(e.message().contains("absent.gguf"), "{e}");
    let e = Gguf::open(folder.as_path()).unwrap_err();
    assert!(matches!(e.kind(), ErrorKind::InvalidFile | ErrorKind::Io), "{e}");
    std::fs::write(folder.path("empty.gguf"), []).unwrap();
    let e = Gguf::open(folder.path("empty.gguf")).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidFile);
    assert!(e.message().contains("empty.gguf"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn changed_bytes_never_panic(
        version in 1u32..=3,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = small(version);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(file) = Gguf::parse(bytes) {
            use_all(&file);
        }
    }

    #[test]
    fn any_bytes_after_the_magic_never_panic(
        version in 1u32..=3,
        counts in (0u64..3, 0u64..3),
        rest in prop::collection::vec(prop_oneof![Just(0u8), 0u8..14, any::<u8>()], 0..200),
    ) {
        if let Ok(file) = Gguf::parse(Raw::new(version, counts.0, counts.1).data(1, &rest)) {
            use_all(&file);
        }
    }
}
