//! What is written is read again, and what cannot be written leaves nothing behind.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{Folder, small};
use rlx_gguf::{DataWriter, Error, GgmlType, Gguf, MetadataBuilder, OutputFile, Value, Writer, same_file};
use rlx_ir::quant::BlockType;
use rlx_ir::{DType, ErrorKind};

#[test]
fn every_value_type_round_trips() {
    let folder = Folder::new();
    let path = folder.path("values.gguf");
    let scalars: [(&str, Value); 12] = [
        ("u8", Value::U8(u8::MAX)),
        ("i8", Value::I8(i8::MIN)),
        ("u16", Value::U16(u16::MAX)),
        ("i16", Value::I16(i16::MIN)),
        ("u32", Value::U32(u32::MAX)),
        ("i32", Value::I32(i32::MIN)),
        ("u64", Value::U64(u64::MAX)),
        ("i64", Value::I64(i64::MIN)),
        ("f32", Value::F32(-0.1)),
        ("f64", Value::F64(1e300)),
        ("bool", Value::Bool(true)),
        ("str", Value::Str("Grüße\0")),
    ];
    let mut metadata = MetadataBuilder::new();
    metadata.set("str", 1u8); // replaced below, in its place
    scalars.iter().for_each(|(key, value)| metadata.set(key, *value));
    metadata.set("removed", 1u8);
    metadata.remove("removed");
    metadata.set_numbers("f32s", &[1.5f32, -2.0]);
    metadata.set_numbers("bools", &[true, false]);
    metadata.set_numbers::<u64>("none", &[]);
    metadata.set_strs("strs", ["a", "", "c"]);
    // From a version 1 file, whose lengths are narrower.
    metadata.extend(Gguf::parse(small(1)).unwrap().metadata());
    Writer::new(&path, metadata.clone()).unwrap().start().unwrap().finish().unwrap();

    let file = Gguf::open(&path).unwrap();
    let read = file.metadata();
    assert_eq!((file.version(), read.len()), (3, 12 + 4 + 5));
    assert_eq!(read.iter().next().unwrap().0, "str");
    for (key, value) in scalars {
        assert_eq!(read.get(key), Some(value));
    }
    assert_eq!(read.f32s("f32s").unwrap().unwrap(), [1.5, -2.0]);
    assert_eq!(read.bools("bools").unwrap().unwrap(), [true, false]);
    assert_eq!(read.u64s("none").unwrap().unwrap(), [0u64; 0]);
    assert_eq!(read.require_strs("strs").unwrap().collect::<Vec<_>>(), ["a", "", "c"]);
    assert_eq!(read.require_strs("tokens").unwrap().collect::<Vec<_>>(), ["a", "", "ü"]);
    let nested = read.get("nested").unwrap();
    assert_eq!(nested, Gguf::parse(small(3)).unwrap().metadata().get("nested").unwrap());
    // Built metadata reads like a file's.
    let built = metadata.build();
    assert!(read.iter().eq(built.iter()));
}

#[test]
fn tensors_round_trip_in_pieces_at_any_alignment() {
    let folder = Folder::new();
    for alignment in [1u32, 32, 256] {
        let path = folder.path("tensors.gguf");
        let mut metadata = MetadataBuilder::new();
        metadata.set("general.alignment", alignment);
        let mut plan = Writer::new(&path, metadata).unwrap();
        plan.declare("scalar", DType::F32, &[]).unwrap();
        plan.declare("empty", DType::F16, &[0, 7]).unwrap();
        plan.declare("q", DType::Block(BlockType::Q4_K), &[2, 3, 256]).unwrap();
        plan.declare_as("q2_0", GgmlType::from_name("Q2_0").unwrap(), &[256]).unwrap();
        let mut data = plan.start().unwrap();
        data.tensor("scalar", |sink| sink.write(&[1, 2, 3, 4])).unwrap();
        data.tensor::<Error>("empty", |_| Ok(())).unwrap();
        let blocks: Vec<u8> = (0..6 * 144).map(|i: u32| i as u8).collect();
        data.tensor("q", |sink| {
            assert_eq!(sink.left(), 6 * 144);
            blocks.chunks(100).try_for_each(|piece| sink.write(piece))
        })
        .unwrap();
        data.tensor("q2_0", |sink| sink.write(&[7; 72])).unwrap();
        data.finish().unwrap();

        let file = Gguf::open(&path).unwrap();
        assert_eq!(file.alignment(), alignment as usize);
        assert_eq!(file.tensor("scalar").unwrap().shape(), [0usize; 0]);
        assert_eq!(file.tensor("scalar").unwrap().bytes(), [1, 2, 3, 4]);
        assert_eq!(file.tensor("empty").unwrap().shape(), [0, 7]);
        let q = file.tensor("q").unwrap();
        assert_eq!((q.shape(), q.dtype().unwrap()), (&[2, 3, 256][..], DType::Block(BlockType::Q4_K)));
        assert_eq!(q.bytes(), blocks);
        assert!(q.range().start.is_multiple_of(alignment as usize));
        assert_eq!(file.tensor("q2_0").unwrap().bytes(), [7; 72]);
    }
    assert_eq!(folder.names(), ["tensors.gguf"]);
}

fn two(folder: &Folder) -> DataWriter {
    let mut plan = Writer::new(folder.path("m.gguf"), MetadataBuilder::new()).unwrap();
    plan.declare("a", DType::F32, &[2]).unwrap();
    plan.declare("b", DType::F32, &[2]).unwrap();
    assert_eq!(plan.data_bytes(), 64);
    plan.start().unwrap()
}

#[track_caller]
fn message(result: Result<(), Error>, part: &str) {
    let e = result.unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidArgument);
    assert!(e.message().contains(part), "{e}");
}

#[test]
fn an_unfinished_file_leaves_nothing_and_keeps_the_old_one() {
    let folder = Folder::new();
    std::fs::write(folder.path("m.gguf"), "old").unwrap();
    let mut data = two(&folder);
    message(data.tensor("b", |sink| sink.write(&[0; 8])), "`a` comes next");
    message(data.tensor("a", |sink| sink.write(&[0; 9])), "9 bytes where 8 are left");
    message(data.tensor("a", |sink| sink.write(&[0; 8])), "an earlier tensor failed");
    message(data.finish(), "`a`: its data is not whole");

    let mut data = two(&folder);
    message(data.tensor("a", |sink| sink.write(&[0; 7])), "got 7 of its 8 bytes");
    drop(data);

    let mut data = two(&folder);
    data.tensor("a", |sink| sink.write(&[0; 8])).unwrap();
    assert_eq!(folder.names().len(), 2);
    message(data.finish(), "`b`: its data was not written");

    let mut data = two(&folder);
    data.tensor("a", |sink| sink.write(&[0; 8])).unwrap();
    let own: Result<(), Error> = data.tensor("b", |_| Err(Error::new(ErrorKind::Cancelled, "stop")));
    assert_eq!(own.unwrap_err().kind(), ErrorKind::Cancelled);
    drop(data);
    assert_eq!(folder.names(), ["m.gguf"]);
    assert_eq!(std::fs::read(folder.path("m.gguf")).unwrap(), b"old");

    let mut data = two(&folder);
    data.tensor("a", |sink| sink.write(&[0; 8])).unwrap();
    data.tensor("b", |sink| sink.write(&[0; 8])).unwrap();
    message(data.tensor("c", |sink| sink.write(&[0; 8])), "all tensors");
    data.finish().unwrap();
    assert_eq!(folder.names(), ["m.gguf"]);
    Gguf::open(folder.path("m.gguf")).unwrap();
}

#[test]
fn only_files_are_replaced_and_links_are_followed() {
    let folder = Folder::new();
    let writer = Writer::new(folder.path("."), MetadataBuilder::new());
    message(writer.map(|_| ()), "no file that could be replaced");
    #[cfg(unix)]
    {
        std::fs::write(folder.path("real.gguf"), "old").unwrap();
        std::os::unix::fs::symlink(folder.path("real.gguf"), folder.path("m.gguf")).unwrap();
        let mut data = two(&folder);
        data.tensor("a", |sink| sink.write(&[0; 8])).unwrap();
        data.tensor("b", |sink| sink.write(&[0; 8])).unwrap();
        data.finish().unwrap();
        assert!(std::fs::symlink_metadata(folder.path("m.gguf")).unwrap().is_symlink());
        Gguf::open(folder.path("real.gguf")).unwrap();
        // What is not there cannot be told from what is in the way.
        std::os::unix::fs::symlink(folder.path("nothing"), folder.path("broken.gguf")).unwrap();
        let writer = Writer::new(folder.path("broken.gguf"), MetadataBuilder::new());
        message(writer.map(|_| ()), "a link to what is not there");
        assert!(folder.path("broken.gguf").is_symlink());
    }
}

#[test]
fn a_file_that_is_written_is_like_any_new_one_and_errors_name_it() {
    let folder = Folder::new();
    let mut file = OutputFile::create(&folder.path("out")).unwrap();
    file.write(b"ab").unwrap();
    assert_eq!(folder.names().len(), 1);
    assert!(!folder.path("out").exists());
    file.finish().unwrap();
    assert_eq!(
        (folder.names(), std::fs::read(folder.path("out")).unwrap()),
        (vec!["out".into()], b"ab".into())
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(folder.path("any"), "").unwrap();
        let mode = |name: &str| folder.path(name).metadata().unwrap().permissions().mode();
        assert_eq!(mode("out"), mode("any"));
    }
    let path = folder.path("no/such/folder/out");
    let e = OutputFile::create(&path).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Io);
    assert!(e.message().starts_with(&format!("{}: cannot create", path.display())), "{e}");
    assert!(!e.message().contains("partial"), "{e}");
}

#[test]
#[cfg(unix)]
fn a_file_is_the_same_through_links() {
    let folder = Folder::new();
    for name in ["a", "b"] {
        std::fs::write(folder.path(name), "x").unwrap();
    }
    std::os::unix::fs::symlink(folder.path("a"), folder.path("link")).unwrap();
    std::fs::hard_link(folder.path("a"), folder.path("hard")).unwrap();
    for name in ["a", "link", "hard", "./a"] {
        assert!(same_file(&folder.path("a"), &folder.path(name)), "{name}");
    }
    assert!(!same_file(&folder.path("a"), &folder.path("b")));
    assert!(!same_file(&folder.path("none"), &folder.path("none")));
}

#[test]
fn a_plan_that_no_file_can_hold_is_refused() {
    let folder = Folder::new();
    let mut plan = Writer::new(folder.path("m.gguf"), MetadataBuilder::new()).unwrap();
    plan.declare("a", DType::F32, &[2]).unwrap();
    message(plan.declare("a", DType::F32, &[2]), "declared twice");
    message(plan.declare("", DType::F32, &[2]), "0 bytes");
    message(plan.declare(&"x".repeat(64), DType::F32, &[2]), "64 bytes");
    message(plan.declare("b", DType::Block(BlockType::Q8_F32), &[32]), "no type for q8_f32");
    message(plan.declare("b", DType::Block(BlockType::Q8_0), &[32, 31]), "no multiple");
    message(plan.declare("b", DType::F32, &[1; 5]), "5 axes");
    message(plan.declare("b", DType::F32, &[usize::MAX, 2]), "overflows");
    for alignment in [0u32, 3, 1 << 21] {
        let mut metadata = MetadataBuilder::new();
        metadata.set("general.alignment", alignment);
        message(Writer::new(folder.path("m.gguf"), metadata).map(|_| ()), "general.alignment");
    }
    let mut metadata = MetadataBuilder::new();
    metadata.set("", 1u8);
    message(Writer::new(folder.path("m.gguf"), metadata).map(|_| ()), "key is empty");
    let e = Writer::new(folder.path("absent/m.gguf"), MetadataBuilder::new()).unwrap().start().map(|_| ());
    assert_eq!(e.unwrap_err().kind(), ErrorKind::Io);
}
