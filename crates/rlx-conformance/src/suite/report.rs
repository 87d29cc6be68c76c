//! What a run of the suite found.

use std::fmt;

use rlx_ir::DType;

use crate::cases::Sample;

/// A sample that a backend need not pass.
#[derive(Clone, Copy, Debug)]
pub struct Exclusion {
    /// The case's name.
    pub case: &'static str,
    /// The dtype; `None` for all.
    pub dtype: Option<DType>,
    /// A part of the labels that are meant.
    pub label: &'static str,
    /// Why it cannot pass.
    pub reason: &'static str,
}

impl Exclusion {
    /// Whether it is about `sample`.
    pub fn covers(&self, sample: &Sample) -> bool {
        self.case == sample.case
            && self.dtype.is_none_or(|d| d == sample.dtype)
            && sample.label.contains(self.label)
    }
}

/// A sample that failed, with what it takes to run it again.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The case's name.
    pub case: &'static str,
    /// The dtype.
    pub dtype: DType,
    /// The sample's label.
    pub label: String,
    /// The seed.
    pub seed: u64,
    /// Where it failed: a backend, or the interpreter after a stage.
    pub place: String,
    /// What is wrong.
    pub what: String,
    /// The sizes of the symbols.
    pub sizes: Vec<(String, usize)>,
    /// The graph's text form.
    pub graph: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> = self.sizes.iter().map(|(n, s)| format!("{n} = {s}")).collect();
        let (case, dtype, label, seed) = (self.case, self.dtype, &self.label, self.seed);
        writeln!(f, "{case} {dtype} {label:?} seed {seed} ({}) {}:", sizes.join(", "), self.place)?;
        writeln!(f, "  {}", self.what)?;
        for line in self.graph.lines() {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// The result of a run of the suite.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Samples that were run, on any number of backends.
    pub samples: usize,
    /// Samples that an exclusion covers.
    pub excluded: usize,
    /// Floating point operations that backends did, as ops count them.
    pub flops: u64,
    /// What failed.
    pub failures: Vec<Failure>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for failure in &self.failures {
            let key = format!("{} {} {}", failure.case, failure.dtype, failure.place);
            if let Some((_, count)) = counts.iter_mut().find(|(k, _)| *k == key) {
                *count += 1;
                continue;
            }
            // Each kind of failure once: the others differ in sizes or in the variant of the backend.
            let kind = |place: &str| place.split(' ').next().unwrap_or_default().to_owned();
            let shown = |f: &&Failure| {
                f.case == failure.case && f.dtype == failure.dtype && kind(&f.place) == kind(&failure.place)
            };
            if self.failures.iter().find(shown).is_some_and(|f| std::ptr::eq(f, failure)) {
                writeln!(f, "{failure}")?;
            }
            counts.push((key, 1));
        }
        for (key, count) in counts {
            writeln!(f, "{count} x {key}")?;
        }
        let (samples, excluded, failed) = (self.samples, self.excluded, self.failures.len());
        let flops = self.flops as f64 / 1e9;
        write!(f, "{samples} samples, {excluded} excluded, {failed} failures, {flops:.2} GFLOP")
    }
}
