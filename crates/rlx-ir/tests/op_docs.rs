//! Every built-in op says what it takes and how exact it is.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use rlx_ir::OpSet;

/// What the module doc of an op's file must say.
const HEADINGS: [&str; 3] = ["Shapes:", "Dtypes:", "Numerics:"];

fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push((path.clone(), fs::read_to_string(&path).unwrap()));
        }
    }
}

/// The headings that the module doc of `source` lacks.
fn missing(source: &str) -> Vec<&'static str> {
    let doc: String = source.lines().take_while(|l| l.starts_with("//!")).collect();
    HEADINGS.into_iter().filter(|h| !doc.contains(h)).collect()
}

#[test]
fn every_op_documents_shapes_dtypes_and_numerics() {
    let mut found = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops"), &mut found);
    found.retain(|(_, source)| source.contains("impl Op for"));
    for (path, source) in &found {
        let lacks = missing(source);
        assert!(lacks.is_empty(), "the module doc of {} lacks {lacks:?}", path.display());
    }
    // An op is named in the file that implements it, as its row of the table or in a list of functions.
    for def in OpSet::builtin().iter() {
        let quoted = format!("\"{}\"", def.name);
        let listed = format!(" {} \"", def.name);
        let named = found.iter().any(|(_, s)| s.contains(&quoted) || s.contains(&listed));
        assert!(named, "no file of an op names {}", def.name);
    }
}

#[test]
fn a_missing_heading_is_found() {
    assert_eq!(missing("//! `x`\n//! Shapes: a. Dtypes: b.\n\n// Numerics: not in the doc\n"), ["Numerics:"]);
}
