//! What must hold for any bytes as a safetensors file. Shared by the corpus test and by the fuzz target.

use std::path::Path;

use rlx_gguf::Mapping;
use rlx_ir::ErrorKind;
use rlx_runtime::WeightSource;
use rlx_runtime::weights::{SafetensorsFile, SafetensorsWeights};

/// Reads `bytes` and touches every tensor; `true` where the file was accepted.
pub fn exercise(bytes: &[u8]) -> bool {
    let file = match SafetensorsFile::parse(Mapping::from(bytes.to_vec()), Path::new("fuzzed.safetensors")) {
        Ok(file) => file,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::InvalidFile, "{e}");
            return false;
        }
    };
    let listed: Vec<_> = file
        .tensors()
        .into_iter()
        .map(|(name, dtype, shape)| (name.to_owned(), dtype, shape.to_vec()))
        .collect();
    let source = SafetensorsWeights::new(vec![file]);
    for (name, dtype, shape) in listed {
        assert!(source.contains(&name));
        match source.weight(&name) {
            Ok(weight) => {
                assert_eq!((Some(weight.ty.dtype), &weight.ty.shape), (dtype, &shape));
                assert_eq!(weight.ty.bytes(), Ok(weight.bytes.len()));
                assert!(weight.bytes.len() <= bytes.len());
            }
            Err(e) if dtype.is_none() => assert_eq!(e.kind(), ErrorKind::UnsupportedModel, "{e}"),
            Err(e) => assert_eq!(e.kind(), ErrorKind::InvalidFile, "{e}"),
        }
    }
    if !source.contains("no.such.tensor") {
        assert_eq!(source.weight("no.such.tensor").map_err(|e| e.kind()).err(), Some(ErrorKind::NotFound));
    }
    true
}
