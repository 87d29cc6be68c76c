//! Comparisons.

use rlx_ir::DType;
use rlx_ir::ops::elementwise::compare::CompareKind;

use super::binary::PATTERNS;
use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Every comparison over its dtypes and over the ways to broadcast.
pub(crate) struct Compare;

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
            }
        }
        Ok(())
    }
}
