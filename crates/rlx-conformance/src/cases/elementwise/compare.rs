//! Comparisons.

use rlx_ir::DType;
use rlx_ir::ops::elementwise::compare::CompareKind;

use super::binary::PATTERNS;
use crate::Result;
use crate::cases::{Case, Samples, ends, numbers};

/// Every comparison over its dtypes and over the ways to broadcast, with special values and the ends of integers.
pub(crate) struct Compare;

/// Values that compare in a way of their own, and neighbours.
const SPECIAL: [f64; 9] =
    [f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, 1.0 + 1.0 / 1024.0, 60000.0, f64::INFINITY];

impl Case for Compare {
    fn name(&self) -> &'static str {
        "compare"
    }

    fn ops(&self) -> Vec<&'static str> {
        CompareKind::ALL.iter().map(|k| k.name()).collect()
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for &kind in CompareKind::ALL {
            let op = kind.name();
            let also = matches!(kind, CompareKind::Eq | CompareKind::Ne).then_some(DType::Bool);
            for dtype in numbers().chain(also) {
                for (pattern, a, b) in PATTERNS {
                    let body = format!(
                        "%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n%y = {op} %a, %b\nreturn %y"
                    );
                    for n in [0, 3] {
                        let label = format!("{op} {pattern} n={n}");
                        let sample = samples.add(dtype, label, ("N <= 9", &[("N", n)]), &body)?;
                        if dtype != DType::Bool {
                            // Few values, so that some are equal.
                            sample.range("a", -3.0, 3.0)?.range("b", -3.0, 3.0)?;
                        }
                        if pattern == "equal" && dtype.is_float() {
                            sample.specials("a")?.specials("b")?;
                        }
                    }
                }
                // Each with each, in f32 by more than one tile.
                let edges = if dtype.is_float() { SPECIAL.len() } else { 7 };
                let (a, b) = (format!("[N, {edges}, 1]"), format!("[{edges}]"));
                let body = format!(
                    "%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n%y = {op} %a, %b\nreturn %y"
                );
                let n = if dtype == DType::F32 { 17 } else { 1 };
                let label = format!("{op} of edges");
                let sample = samples.add(dtype, label, ("N <= 17", &[("N", n)]), &body)?;
                if dtype.is_float() {
                    sample.floats("a", &SPECIAL.repeat(n))?.floats("b", &SPECIAL)?;
                } else if dtype.is_int() {
                    sample.ints("a", &ends(dtype))?.ints("b", &ends(dtype))?;
                } else {
                    let truths = [0, 1, 1, 0, 1, 0, 1];
                    sample.ints("a", &truths)?.ints("b", &truths)?;
                }
                let body = format!(
                    "%x = input \"a\" : {dtype}[N, 5]\n%b = input \"b\" : {dtype}[5, N]\n\
                     %t = transpose %x {{perm = [1, 0]}}\n%y = {op} %t, %b\nreturn %y"
                );
                let sample =
                    samples.add(dtype, format!("{op} transposed"), ("N <= 20", &[("N", 7)]), &body)?;
                if dtype != DType::Bool {
                    sample.range("a", -3.0, 3.0)?.range("b", -3.0, 3.0)?;
                }
            }
        }
        Ok(())
    }
}
