//! `top_k`.

use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Every dtype, from no element to all of them, with ties and NaN.
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
            }
        }
        Ok(())
    }
}
