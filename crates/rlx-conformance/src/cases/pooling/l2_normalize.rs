//! `l2_normalize`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Widths around the vectors, rows of zeros, rows shorter than eps, strided rows.
pub(crate) struct L2Normalize;

impl Case for L2Normalize {
    fn name(&self) -> &'static str {
        "l2_normalize"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            for width in SIZES {
                let body = format!("%x = input \"x\" : {dtype}[N, {width}]\n%y = l2_normalize %x\nreturn %y");
                for n in [0, 3] {
                    samples.add(dtype, format!("width {width} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
            let body =
                format!("%x = input \"x\" : {dtype}[N, 4]\n%y = l2_normalize %x {{eps = 0.5}}\nreturn %y");
            let values = [0.0, 0.0, 0.0, 0.0, 0.125, -0.25, 0.0, 0.125, 3.0, -4.0, 0.0, 12.0];
            samples.add(dtype, "short rows", ("N <= 9", &[("N", 3)]), &body)?.floats("x", &values)?;
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 5]\n%t = transpose %x {{perm = [1, 0]}}\n%y = l2_normalize %t\nreturn %y"
            );
            samples.add(dtype, "transposed", ("N <= 9", &[("N", 7)]), &body)?;
        }
        Ok(())
    }
}
