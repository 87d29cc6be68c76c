//! Reductions along axes.

use rlx_ir::DType;
use rlx_ir::ops::reduce::reduce::ReduceKind;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples, ends, numbers};

/// Every reduction over its dtypes and over choices of axes, with special values and the ends of integers.
pub(crate) struct Reduce;

impl Case for Reduce {
    fn name(&self) -> &'static str {
        "reduce"
    }

    fn ops(&self) -> Vec<&'static str> {
        ReduceKind::ALL.iter().map(|k| k.name()).collect()
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for &kind in ReduceKind::ALL {
            let op = kind.name();
            let dtypes: Vec<DType> =
                if kind == ReduceKind::Mean { FLOATS.to_vec() } else { numbers().collect() };
            for dtype in dtypes {
                for axes in
                    ["[0]", "[1]", "[2]", "[-1]", "[0, 1]", "[1, 2]", "[0, 2]", "[0, 1, 2]", "[1], keep_dims"]
                {
                    let body = format!(
                        "%x = input \"x\" : {dtype}[3, N, 5]\n%y = {op} %x {{axes = {axes}}}\nreturn %y"
                    );
                    let sizes = if dtype == DType::F32 && axes == "[1]" { &SIZES[..] } else { &[0, 4] };
                    for &n in sizes {
                        let label = format!("{op} {axes} n={n}");
                        let sample = samples.add(dtype, label, ("N <= 65", &[("N", n)]), &body)?;
                        if n == 33 {
                            sample.specials("x")?;
                        }
                    }
                }
                let body =
                    format!("%x = input \"x\" : {dtype}[2, N]\n%y = {op} %x {{axes = [1]}}\nreturn %y");
                for n in SIZES {
                    samples.add(dtype, format!("{op} rows n={n}"), ("N <= 65", &[("N", n)]), &body)?;
                }
                if dtype.is_int() {
                    let ends = ends(dtype);
                    let label = format!("{op} of the ends");
                    let values = ends.repeat(2);
                    samples
                        .add(dtype, label, ("N <= 65", &[("N", ends.len())]), &body)?
                        .ints("x", &values)?;
                }
                if dtype.is_float() {
                    let label = format!("{op} rows of specials");
                    samples.add(dtype, label, ("N <= 65", &[("N", 5)]), &body)?.specials("x")?;
                }
                let body = format!(
                    "%x = input \"x\" : {dtype}[2, 3, N, 1, 5]\n%y = {op} %x {{axes = [0, 2, 4]}}\nreturn %y"
                );
                for n in [0, 4] {
                    let label = format!("{op} every other axis n={n}");
                    samples.add(dtype, label, ("N <= 9", &[("N", n)]), &body)?;
                }
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 5]\n%t = transpose %x {{perm = [1, 0]}}\n\
                     %y = {op} %t {{axes = [1]}}\nreturn %y"
                );
                samples.add(dtype, format!("{op} transposed"), ("N <= 20", &[("N", 7)]), &body)?;
            }
        }
        Ok(())
    }
}
