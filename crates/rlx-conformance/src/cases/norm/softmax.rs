//! `softmax`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Each axis, scales, widths around the vectors, rows of minus infinity, large scores.
pub(crate) struct Softmax;

impl Case for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            for (axis, scale) in
                [("-1", ""), ("1", ""), ("0", ""), ("-1", ", scale = 0.125"), ("-1", ", scale = -2.5")]
            {
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 7]\n%y = softmax %x {{axis = {axis}{scale}}}\nreturn %y"
                );
                for n in [0, 1, 9] {
                    let label = format!("axis {axis}{scale} n={n}");
                    samples.add(dtype, label, ("N <= 9", &[("N", n)]), &body)?.range("x", -9.0, 9.0)?;
                }
            }
            let body = format!("%x = input \"x\" : {dtype}[3, N]\n%y = softmax %x {{axis = -1}}\nreturn %y");
            for n in SIZES {
                samples.add(dtype, format!("width {n}"), ("N <= 65", &[("N", n)]), &body)?;
            }
            samples.add(dtype, "large", ("N <= 65", &[("N", 33)]), &body)?.range("x", -300.0, 300.0)?;
            samples.add(dtype, "specials", ("N <= 65", &[("N", 33)]), &body)?.specials("x")?;
            let hidden = [f64::NEG_INFINITY; 6];
            let partly = [f64::NEG_INFINITY, 1.0, f64::NEG_INFINITY];
            let values = [&hidden[..3], &partly, &hidden[3..]].concat();
            samples.add(dtype, "hidden rows", ("N <= 65", &[("N", 3)]), &body)?.floats("x", &values)?;
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 5]\n%t = transpose %x {{perm = [1, 0]}}\n%y = softmax %t {{axis = 1}}\nreturn %y"
            );
            samples.add(dtype, "transposed", ("N <= 9", &[("N", 7)]), &body)?;
        }
        Ok(())
    }
}
