//! `rope`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Both styles, whole and partial rotation, head dims around the vectors, far positions, parts of a joint row.
pub(crate) struct Rope;

/// `10000^(-i / count)`, the usual frequencies.
fn frequencies(count: usize) -> Vec<f64> {
    (0..count).map(|i| 10_000f64.powf(-(i as f64) / count as f64)).collect()
}

impl Case for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            for style in ["half", "interleaved"] {
                let body = |heads: usize, dim: usize, pairs: usize, attrs: &str| {
                    format!(
                        "%x = input \"x\" : {dtype}[N, {heads}, {dim}]\n%p = input \"p\" : i32[N]\n\
                         %f = input \"f\" : f32[{pairs}]\n%y = rope %x, %p, %f {{style = {style}{attrs}}}\nreturn %y"
                    )
                };
                for (heads, dim, pairs) in [
                    (1, 2, 1),
                    (2, 32, 16),
                    (1, 64, 32),
                    (3, 128, 64),
                    (1, 256, 128),
                    (2, 34, 17),
                    (2, 80, 16),
                    (1, 6, 0),
                    (1, 33, 8),
                ] {
                    let label = format!("{style} {heads}x{dim} pairs {pairs}");
                    let sample =
                        samples.add(dtype, label, ("N <= 65", &[("N", 4)]), &body(heads, dim, pairs, ""))?;
                    sample.floats("f", &frequencies(pairs))?.indices("p", 512)?;
                }
                for n in SIZES {
                    let label = format!("{style} n={n}");
                    let sample = samples.add(
                        dtype,
                        label,
                        ("N <= 65", &[("N", n)]),
                        &body(2, 8, 4, ", scale = 1.25"),
                    )?;
                    sample.floats("f", &frequencies(4))?.indices("p", 100)?;
                }
                let label = format!("{style} far");
                let sample = samples.add(dtype, label, ("N <= 65", &[("N", 9)]), &body(1, 8, 4, ""))?;
                sample.floats("f", &frequencies(4))?.indices("p", 131_072)?;
                let body = format!(
                    "%j = input \"j\" : {dtype}[N, 40]\n%p = input \"p\" : i32[N]\n%f = input \"f\" : f32[4]\n\
                     %s = slice %j {{axis = 1, start = 16, len = 16}}\n%x = reshape %s {{shape = [N, 2, 8]}}\n\
                     %y = rope %x, %p, %f {{style = {style}}}\nreturn %y"
                );
                let sample =
                    samples.add(dtype, format!("{style} joint row"), ("N <= 9", &[("N", 5)]), &body)?;
                sample.floats("f", &frequencies(4))?.indices("p", 100)?;
                let body = format!(
                    "%t = input \"t\" : {dtype}[2, 8]\n%p = input \"p\" : i32[N]\n%f = input \"f\" : f32[4]\n\
                     %x = broadcast %t {{shape = [N, 2, 8]}}\n%y = rope %x, %p, %f {{style = {style}}}\nreturn %y"
                );
                let label = format!("{style} one token for all");
                let sample = samples.add(dtype, label, ("N <= 9", &[("N", 5)]), &body)?;
                sample.floats("f", &frequencies(4))?.indices("p", 100)?;
            }
        }
        Ok(())
    }
}
