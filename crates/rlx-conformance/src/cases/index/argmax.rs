//! `argmax`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, SIZES, Samples, ends, numbers};

/// Every dtype and axis, with ties and NaN; an empty axis is refused.
pub(crate) struct ArgMax;

impl Case for ArgMax {
    fn name(&self) -> &'static str {
        "argmax"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in numbers().chain([DType::Bool]) {
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 5]\n%t = transpose %x {{perm = [1, 0]}}\n%y = argmax %t {{axis = 1}}\nreturn %y"
            );
            samples.add(dtype, "transposed", ("N <= 9", &[("N", 7)]), &body)?;
            for (shape, axis) in [("[3, N]", -1), ("[3, N]", 1), ("[N, 3]", 0), ("[2, N, 3]", 1), ("[N]", 0)]
            {
                let body =
                    format!("%x = input \"x\" : {dtype}{shape}\n%y = argmax %x {{axis = {axis}}}\nreturn %y");
                let symbols = "N <= 65";
                for n in SIZES.into_iter().skip(1) {
                    let label = format!("{shape} axis {axis} n={n}");
                    let sample = samples.add(dtype, label, (symbols, &[("N", n)]), &body)?;
                    if n == 17 && dtype != DType::Bool {
                        sample.range("x", -2.0, 2.0)?;
                    }
                    if n == 33 && dtype.is_float() {
                        sample.specials("x")?;
                    }
                    if n == 65 && dtype != DType::Bool {
                        sample.range("x", 0.0, 1e-30)?;
                    }
                }
                if dtype.is_int() && shape == "[N, 3]" {
                    let ends = ends(dtype);
                    let (label, size) = (format!("{shape} of the ends"), [("N", ends.len())]);
                    let sample = samples.add(dtype, label, (symbols, &size), &body)?;
                    sample.ints("x", &ends.repeat(3))?;
                }
                samples
                    .add(dtype, format!("{shape} axis {axis} empty"), (symbols, &[("N", 0)]), &body)?
                    .refuse();
            }
        }
        Ok(())
    }
}
