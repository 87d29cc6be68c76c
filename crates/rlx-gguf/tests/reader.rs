//! Sound files: all versions, all value types, typed getters, lookups, the mapping.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Folder, Raw, small};
use rlx_gguf::{Gguf, MetadataBuilder, Value, ValueType};
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, ErrorKind};

#[test]
fn every_version_reads_alike() {
    for version in 1..=3 {
        let file = Gguf::parse(small(version)).unwrap();
        assert_eq!((file.version(), file.alignment()), (version, 32));
        let metadata = file.metadata();
        assert_eq!(metadata.len(), 5);
        assert_eq!(metadata.require_str("general.architecture").unwrap(), "bert");
        assert_eq!(metadata.require_strs("tokens").unwrap().collect::<Vec<_>>(), ["a", "", "ü"]);
        assert_eq!(metadata.require_strs("tokens").unwrap().len(), 3);
        assert_eq!(metadata.bools("flags").unwrap().unwrap(), [false, true]);
        let Some(Value::Array(nested)) = metadata.get("nested") else { panic!("no array") };
        let inner: Vec<Value> = nested.iter().collect();
        assert_eq!(nested.item_type(), ValueType::Array);
        let [Value::Array(numbers), Value::Array(strings)] = inner[..] else { panic!("no arrays") };
        assert_eq!(numbers.iter().collect::<Vec<_>>(), [Value::I32(1), Value::I32(-1)]);
        assert_eq!(strings.strings().unwrap().collect::<Vec<_>>(), ["x"]);
        assert_eq!(
            metadata.iter().map(|(key, _)| key).collect::<Vec<_>>(),
            ["general.architecture", "tokens", "nested", "flags", "block_count"]
        );

        let w = file.tensor("w").unwrap();
        assert_eq!((w.shape(), w.elems(), w.dtype().unwrap()), (&[3, 2][..], 6, DType::F32));
        assert_eq!(file.tensor_bytes(w), (0..24).collect::<Vec<u8>>());
        let q = file.tensor("q").unwrap();
        assert_eq!(q.dtype().unwrap(), DType::Block(BlockType::Q8_0));
        assert_eq!(q.bytes(), [9; 34]);
    }
}

#[test]
fn values_print_for_people() {
    let file = Gguf::parse(small(3)).unwrap();
    let text: Vec<String> = file.metadata().iter().map(|(_, value)| value.to_string()).collect();
    assert_eq!(
        text,
        [
            "bert",
            "[string; 3] [\"a\", \"\", \"ü\"]",
            "[array; 2] [[i32; 2], [string; 1]]",
            "[bool; 2] [false, true]",
            "7"
        ]
    );
}

#[test]
fn an_alignment_of_its_own_is_honoured() {
    for alignment in [1usize, 8, 64, 4096] {
        let mut raw = Raw::new(3, 1, 1);
        raw.entry("general.alignment", 4, &(alignment as u32).to_le_bytes());
        raw.tensor("w", &[2], 24, alignment as u64);
        let mut data = vec![0; alignment];
        data.extend([5, 6]);
        let file = Gguf::parse(raw.data(alignment, &data)).unwrap();
        assert_eq!(file.alignment(), alignment);
        assert_eq!(file.tensor("w").unwrap().bytes(), [5, 6]);
    }
}

#[test]
fn integers_convert_between_widths_and_errors_name_what_they_found() {
    let mut builder = MetadataBuilder::new();
    builder.set("u8", 200u8);
    builder.set("i64", -5i64);
    builder.set("u64", u64::MAX);
    builder.set("f64", 0.5f64);
    builder.set("text", "hello");
    builder.set_numbers("i32s", &[1i32, -2]);
    builder.set_numbers("u16s", &[1u16, 2]);
    let m = builder.build();
    assert_eq!(m.u32("u8").unwrap(), Some(200));
    assert_eq!(m.i32("i64").unwrap(), Some(-5));
    assert_eq!(m.u64("u64").unwrap(), Some(u64::MAX));
    assert_eq!(m.usize("u8").unwrap(), Some(200));
    assert_eq!(m.f32("f64").unwrap(), Some(0.5));
    assert_eq!(m.u32("absent").unwrap(), None);
    assert_eq!(m.u32s("u16s").unwrap().unwrap(), [1, 2]);
    assert_eq!(m.i32s("i32s").unwrap().unwrap(), [1, -2]);
    assert_eq!(m.f32s("absent").unwrap(), None);

    let message = |e: rlx_gguf::Error| {
        assert_eq!(e.kind(), ErrorKind::InvalidFile);
        e.message().to_owned()
    };
    assert_eq!(message(m.u32("i64").unwrap_err()), "metadata key `i64`: expected u32, found i64 -5");
    assert_eq!(message(m.f32("u8").unwrap_err()), "metadata key `u8`: expected f32, found u8 200");
    assert_eq!(message(m.str("u8").unwrap_err()), "metadata key `u8`: expected string, found u8 200");
    assert_eq!(message(m.bool("text").unwrap_err()), "metadata key `text`: expected bool, found a string");
    assert_eq!(
        message(m.i64("u64").unwrap_err()),
        format!("metadata key `u64`: expected i64, found u64 {}", u64::MAX)
    );
    assert_eq!(message(m.u32s("i32s").unwrap_err()), "metadata key `i32s[1]`: expected u32, found i32 -2");
    assert_eq!(
        message(m.strs("i32s").unwrap_err()),
        "metadata key `i32s`: expected an array of strings, found an array [i32; 2]"
    );
    assert_eq!(
        message(m.f32s("text").unwrap_err()),
        "metadata key `text`: expected an array of f32, found a string"
    );
    assert_eq!(
        message(m.require_usize("absent").unwrap_err()),
        "metadata key `absent` is missing: expected a value of type unsigned integer"
    );
}

#[test]
fn a_type_that_only_ggml_knows_is_listed_but_has_no_dtype() {
    let mut raw = Raw::new(3, 1, 0);
    raw.tensor("blk.0.ffn_up.weight", &[256, 2], 42, 0);
    let file = Gguf::from_mapping(raw.data(32, &[1; 144]), "model.gguf").unwrap();
    let tensor = &file.tensors()[0];
    assert_eq!((tensor.ggml_type().name(), tensor.bytes().len()), ("Q2_0", 144));
    let e = tensor.dtype().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
    for part in ["Q2_0", "blk.0.ffn_up.weight", "model.gguf"] {
        assert!(e.message().contains(part), "{e}");
    }
}

#[test]
fn a_missing_tensor_comes_with_the_nearest_names() {
    let e = Gguf::parse(small(3)).unwrap().tensor("ww").unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NotFound);
    assert_eq!(e.message(), "<buffer>: there is no tensor `ww`: the nearest names are `w`, `q`");
}

/// Bytes of the file that are resident in mappings of this process.
#[cfg(target_os = "linux")]
fn resident(path: &std::path::Path) -> usize {
    let (maps, mut inside, mut kib) = (std::fs::read_to_string("/proc/self/smaps").unwrap(), false, 0);
    for line in maps.lines() {
        if line.split_whitespace().next().is_some_and(|word| word.contains('-')) {
            inside = line.ends_with(path.to_str().unwrap());
        } else if let (true, Some(rss)) = (inside, line.strip_prefix("Rss:")) {
            kib += rss.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap();
        }
    }
    kib << 10
}

#[cfg(target_os = "linux")]
#[test]
fn giving_back_a_small_tensor_gives_back_what_was_mapped_with_it() {
    let folder = Folder::new();
    let path = folder.path("big.gguf");
    std::fs::write(&path, vec![1u8; 8 << 20]).unwrap();
    let mapping = rlx_gguf::Mapping::open(&path).unwrap();
    assert_eq!(mapping.chunks(4096).map(|page| usize::from(page[0])).sum::<usize>(), (8 << 20) / 4096);
    assert_eq!(resident(&path), 8 << 20);
    mapping.release((5 << 20)..(5 << 20) + 100);
    assert_eq!(resident(&path), 6 << 20);
    // The end of a file need not be the end of a piece.
    mapping.release((8 << 20) - 1..(8 << 20) + 100);
    assert_eq!(resident(&path), 4 << 20);
    mapping.release(9 << 20..10 << 20);
    assert!(mapping.iter().all(|byte| *byte == 1));
}

#[test]
fn a_mapping_outlives_the_reader_and_survives_release() {
    let folder = Folder::new();
    let path = folder.path("big.gguf");
    let data: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
    let mut raw = Raw::new(3, 1, 0);
    raw.tensor("w", &[1 << 20], 24, 0);
    std::fs::write(&path, raw.data(32, &data)).unwrap();
    let (mapping, range) = {
        let file = Gguf::open(&path).unwrap();
        let w = file.tensor("w").unwrap();
        (w.mapping().clone(), w.range())
    };
    assert!(mapping.is_file() && !rlx_gguf::Mapping::from(data.clone()).is_file());
    assert_eq!(mapping[range.clone()], data);
    for part in [range.clone(), 0..0, 5..6, 0..usize::MAX, usize::MAX - 1..usize::MAX] {
        mapping.release(part);
        assert_eq!(mapping[range.clone()], data);
    }
}

#[test]
fn bytes_that_are_part_of_the_program_are_read_in_place() {
    let bytes: &'static [u8] = small(3).leak();
    let file = Gguf::from_mapping(bytes, "bundled").unwrap();
    assert!(bytes.as_ptr_range().contains(&file.tensor("w").unwrap().bytes().as_ptr()));
}

#[test]
fn a_file_without_tensors_needs_no_padding() {
    let file = Gguf::parse(Raw::new(3, 0, 0).bytes).unwrap();
    assert!(file.tensors().is_empty() && file.metadata().is_empty());
}

#[test]
#[cfg(unix)]
fn a_pipe_is_refused_without_waiting_for_a_writer() {
    let folder = Folder::new();
    let path = folder.path("fifo.gguf");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let e = Gguf::open(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidFile);
    assert!(e.message().contains("fifo.gguf: not a regular file"), "{e}");
}
