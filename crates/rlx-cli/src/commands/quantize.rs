//! `rlx quantize`: a model to GGUF in another type.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use rlx::gguf::GgmlType;
use rlx::ir::DType;
use rlx::models::convert::{Imatrix, QuantizeOptions, Report, quantize_files};
use rlx::models::hub;
use serde::Serialize;

use crate::error::Result;
use crate::model;
use crate::options::{Format, Global};
use crate::output::{Stdout, bytes};
use crate::progress::Bar;

/// Converts a model to GGUF in another type.
#[derive(Args, Debug)]
pub struct Quantize {
    /// A folder in the Hugging Face layout, a .safetensors beside its config.json, a .gguf, or a hub id (org/name)
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// The file that is written
    #[arg(value_name = "OUT.gguf")]
    output: PathBuf,
    /// The type of the matrices: f32, f16, bf16, q8_0, q6_k, q4_k, ...
    #[arg(long = "type", value_name = "TYPE", value_parser = matrix_type)]
    ty: DType,
    /// How much each column matters, for the types that use it
    #[arg(long, value_name = "FILE")]
    imatrix: Option<PathBuf>,
}

/// The type called `name`, if it is one for weights: neither f64 nor the formats of quantised activations.
fn matrix_type(name: &str) -> Result<DType, String> {
    let storable = |d: &DType| {
        let weights = match d {
            DType::Block(block) => !block.is_activation(),
            other => other.is_float() && *other != DType::F64,
        };
        weights && GgmlType::from_dtype(*d).is_some()
    };
    match DType::from_name(&name.to_ascii_lowercase()).filter(storable) {
        Some(dtype) => Ok(dtype),
        None => {
            let known = GgmlType::all().iter().filter_map(GgmlType::dtype).filter(storable);
            let known: Vec<&str> = known.map(DType::name).collect();
            Err(format!("types are {}", known.join(", ")))
        }
    }
}

#[derive(Serialize)]
struct Done<'a> {
    path: String,
    tensors: usize,
    bytes: u64,
    fallbacks: Vec<Fallback<'a>>,
    skipped: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct Fallback<'a> {
    name: &'a str,
    row_elems: usize,
    #[serde(rename = "type")]
    ty: &'static str,
}

impl Quantize {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        global.refuse_output(&self.output)?;
        let mut options = QuantizeOptions::new(self.ty);
        options.threads = NonZeroUsize::new(global.settings()?.count("RLX_THREADS"));
        if let Some(path) = &self.imatrix {
            options.imatrix = Some(Imatrix::open(path)?);
        }
        let files = model::open(global, &self.input, hub::VECTORS)?;
        let bar = Bar::count(global, "converting");
        let progress = |_: &str, done: usize, total: usize| bar.set(done as u64, total as u64);
        let report = quantize_files(&files, &self.output, &options, &progress)?;
        bar.clear();
        self.note(&report);
        let mut out = Stdout::lock();
        match format {
            Format::Json => out.json_line(&Done {
                path: self.output.display().to_string(),
                tensors: report.tensors,
                bytes: report.bytes,
                fallbacks: report
                    .fallbacks
                    .iter()
                    .map(|f| Fallback { name: &f.name, row_elems: f.row_elems, ty: f.dtype.name() })
                    .collect(),
                skipped: &report.skipped,
                notes: &report.notes,
            })?,
            _ => out.line(format_args!(
                "{}: {} tensors, {}",
                self.output.display(),
                report.tensors,
                bytes(report.bytes)
            ))?,
        }
        out.flush()
    }

    /// Says what did not become as it was asked for.
    fn note(&self, report: &Report) {
        if !report.fallbacks.is_empty() {
            // One line: a model may have hundreds.
            let mut groups: BTreeMap<(usize, &str), usize> = BTreeMap::new();
            for f in &report.fallbacks {
                *groups.entry((f.row_elems, f.dtype.name())).or_default() += 1;
                tracing::info!("{} is {}: its rows have {} elements", f.name, f.dtype, f.row_elems);
            }
            let groups: Vec<String> = groups
                .into_iter()
                .map(|((row, ty), n)| format!("{n} with rows of {row} elements are {ty}"))
                .collect();
            tracing::warn!(
                "{} tensors hold no whole {} blocks, and got another type: {}",
                report.fallbacks.len(),
                self.ty,
                groups.join(", ")
            );
        }
        for note in &report.notes {
            tracing::warn!("{note}");
        }
        if !report.skipped.is_empty() {
            tracing::info!("left out, because the network does not use them: {}", report.skipped.join(", "));
        }
    }
}
