//! `top_k`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Every dtype, from no element to all of them, with ties and NaN; empty, long and strided rows; more than there are is refused.
pub(crate) struct TopK;

impl Case for TopK {
    fn name(&self) -> &'static str {
        "top_k"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in numbers() {
            for k in [0, 1, 4, 17] {
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 17]\n%v, %i = top_k %x {{k = {k}}}\nreturn %v, %i"
                );
                for n in [0, 1, 5] {
                    let sample =
                        samples.add(dtype, format!("k={k} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                    if n == 5 {
                        sample.range("x", -3.0, 3.0)?;
                    }
                    if n == 5 && dtype.is_float() {
                        sample.specials("x")?;
                    }
                }
                if k == 4 {
                    let label = format!("k={k} all equal");
                    samples.add(dtype, label, ("N <= 9", &[("N", 3)]), &body)?.range("x", 0.0, 1e-30)?;
                }
            }
            let body =
                format!("%x = input \"x\" : {dtype}[N, 0]\n%v, %i = top_k %x {{k = 0}}\nreturn %v, %i");
            samples.add(dtype, "empty rows", ("N <= 9", &[("N", 3)]), &body)?;
            // Few and many of a long row, whose elements are often equal.
            for k in [1, 8, 100, 300] {
                let body = format!(
                    "%x = input \"x\" : {dtype}[2, 300]\n%v, %i = top_k %x {{k = {k}}}\nreturn %v, %i"
                );
                let sample = samples.add(dtype, format!("k={k} of 300"), ("", &[]), &body)?;
                sample.range("x", 0.0, 60.0)?;
                if dtype.is_float() {
                    sample.specials("x")?;
                }
            }
            let body = format!(
                "%x = input \"x\" : {dtype}[5, N]\n%t = transpose %x {{perm = [1, 0]}}\n\
                 %v, %i = top_k %t {{k = 2}}\nreturn %v, %i"
            );
            samples.add(dtype, "transposed", ("N <= 20", &[("N", 7)]), &body)?;
            let body =
                format!("%x = input \"x\" : {dtype}[2, N]\n%v, %i = top_k %x {{k = 4}}\nreturn %v, %i");
            samples.add(dtype, "k beyond the axis", ("N <= 9", &[("N", 3)]), &body)?.refuse();
        }
        let body = "%x = input \"x\" : f32[N, 128]\n%v, %i = top_k %x {k = 8}\nreturn %v, %i";
        for n in [1, 128] {
            samples.add(DType::F32, format!("k=8 of 128 n={n}"), ("N <= 128", &[("N", n)]), body)?;
        }
        Ok(())
    }
}
