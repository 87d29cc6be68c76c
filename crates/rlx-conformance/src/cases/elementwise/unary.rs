//! Functions of one element.

use rlx_ir::DType;
use rlx_ir::ops::elementwise::unary::UnaryKind;

use crate::Result;
use crate::cases::{Case, FLOATS, INTS, SIZES, Samples, ends};

/// Every function over its dtypes, with special values and the ends of integers.
pub(crate) struct Unary;

/// The dtypes that a function takes.
fn dtypes(kind: UnaryKind) -> Vec<DType> {
    match kind {
        UnaryKind::Not => vec![DType::Bool],
        UnaryKind::Neg | UnaryKind::Abs | UnaryKind::Sign | UnaryKind::Relu => {
            FLOATS.into_iter().chain(INTS).collect()
        }
        _ => FLOATS.to_vec(),
    }
}

impl Case for Unary {
    fn name(&self) -> &'static str {
        "unary"
    }

    fn ops(&self) -> Vec<&'static str> {
        UnaryKind::ALL.iter().map(|k| k.name()).collect()
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for &kind in UnaryKind::ALL {
            let op = kind.name();
            for dtype in dtypes(kind) {
                let body = format!("%x = input \"x\" : {dtype}[N]\n%y = {op} %x\nreturn %y");
                for n in SIZES {
                    let sample =
                        samples.add(dtype, format!("{op} n={n}"), ("N <= 100", &[("N", n)]), &body)?;
                    if dtype.is_float() {
                        sample.range("x", -8.0, 8.0)?;
                    }
                }
                let sample = samples.add(dtype, format!("{op} wide"), ("N <= 100", &[("N", 100)]), &body)?;
                if dtype.is_float() {
                    sample.range("x", -60.0, 60.0)?.specials("x")?;
                }
                if dtype.is_int() {
                    let ends = ends(dtype);
                    let label = format!("{op} of the ends");
                    samples.add(dtype, label, ("N <= 100", &[("N", ends.len())]), &body)?.ints("x", &ends)?;
                }
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 5]\n%t = transpose %x {{perm = [1, 0]}}\n%y = {op} %t\nreturn %y"
                );
                samples.add(dtype, format!("{op} transposed"), ("N <= 20", &[("N", 7)]), &body)?;
            }
        }
        Ok(())
    }
}
