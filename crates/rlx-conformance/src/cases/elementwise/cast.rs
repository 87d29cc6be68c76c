//! `cast`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples};

/// Every pair of scalar dtypes.
pub(crate) struct Cast;

impl Case for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for from in DType::SCALARS {
            for to in DType::SCALARS {
                let body = format!("%x = input \"x\" : {from}[N]\n%y = cast %x {{to = {to}}}\nreturn %y");
                for n in [0, 1, 17, 65] {
                    let label = format!("to {to} n={n}");
                    let sample = samples.add(from, label, ("N <= 65", &[("N", n)]), &body)?;
                    match (from, n) {
                        (DType::Bool, _) => {}
                        (d, 65) if d.is_float() => {
                            sample.range("x", -3e5, 3e5)?.specials("x")?;
                        }
                        (d, 65) if d.is_int() => {
                            sample.range("x", -3e9, 3e9)?;
                        }
                        _ => {
                            sample.range("x", -100.0, 100.0)?;
                        }
                    }
                }
            }
        }
        let body = "%x = input \"x\" : f32[N, 5]\n%t = transpose %x {perm = [1, 0]}\n%y = cast %t {to = f16}\nreturn %y";
        samples.add(DType::F32, "transposed", ("N <= 9", &[("N", 7)]), body)?;
        Ok(())
    }
}
