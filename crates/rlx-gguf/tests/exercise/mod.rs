//! What must hold for any bytes as a GGUF file. Shared by the corpus test and by the fuzz target.

use rlx_gguf::{Gguf, Metadata, MetadataBuilder};
use rlx_ir::ErrorKind;

/// Messages are for people: none grows with the file.
const MAX_MESSAGE_BYTES: usize = 4096;

/// Reads `bytes` and touches all that a reader gives; `true` where the file was accepted.
pub fn exercise(bytes: &[u8]) -> bool {
    let file = match Gguf::parse(bytes.to_vec()) {
        Ok(file) => file,
        Err(e) => {
            let kinds = [ErrorKind::InvalidFile, ErrorKind::UnsupportedModel];
            assert!(kinds.contains(&e.kind()), "{:?}: {e}", e.kind());
            assert!(e.to_string().len() <= MAX_MESSAGE_BYTES, "a message of {} bytes", e.to_string().len());
            return false;
        }
    };
    assert!((1..=3).contains(&file.version()));
    assert!(file.alignment().is_power_of_two());
    for tensor in file.tensors() {
        assert_eq!(tensor.bytes().len(), tensor.range().len());
        assert!(tensor.range().end <= bytes.len());
        assert!(file.find(tensor.name()).is_some_and(|found| found.range() == tensor.range()));
        if let Err(e) = tensor.dtype() {
            assert_eq!(e.kind(), ErrorKind::UnsupportedModel);
        }
    }
    let mut copy = MetadataBuilder::new();
    copy.extend(file.metadata());
    let copy = copy.build();
    assert_eq!(entries(file.metadata()), entries(&copy));
    true
}

/// Every key and value, also through the typed getters, in the keys' order.
fn entries(metadata: &Metadata) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = metadata
        .iter()
        .map(|(key, value)| {
            assert!(metadata.contains(key));
            let typed = [
                metadata.str(key).is_ok(),
                metadata.u32(key).is_ok(),
                metadata.f32(key).is_ok(),
                metadata.bool(key).is_ok(),
                metadata.u32s(key).is_ok(),
                metadata.f32s(key).is_ok(),
                metadata.strs(key).is_ok_and(|strs| strs.is_some_and(|strs| strs.count() > 0)),
            ];
            (key.to_owned(), format!("{value} {typed:?}"))
        })
        .collect();
    assert_eq!(all.len(), metadata.len());
    all.sort();
    all
}
