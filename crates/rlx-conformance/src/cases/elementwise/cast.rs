//! `cast`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, ends};

/// Every pair of scalar dtypes, with values around the ends of the ranges.
pub(crate) struct Cast;

/// Around the ends of integer dtypes and of f16, and between integers.
const EDGES: [f64; 22] = [
    -0.9,
    -1.0,
    127.5,
    128.0,
    -128.9,
    -129.0,
    255.9,
    256.0,
    32767.5,
    -32769.0,
    65504.0,
    65520.0,
    2_147_483_647.0,
    2_147_483_648.0,
    -2_147_483_649.0,
    4_294_967_295.0,
    4_294_967_296.0,
    9.3e18,
    -9.3e18,
    1e39,
    -1e39,
    0.4,
];

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
                let label = format!("edges to {to}");
                if from.is_int() {
                    let ends = ends(from);
                    samples.add(from, label, ("N <= 65", &[("N", ends.len())]), &body)?.ints("x", &ends)?;
                } else if from.is_float() {
                    let size = [("N", EDGES.len())];
                    samples.add(from, label, ("N <= 65", &size), &body)?.floats("x", &EDGES)?;
                }
            }
        }
        let body = "%x = input \"x\" : f32[N, 5]\n%t = transpose %x {perm = [1, 0]}\n%y = cast %t {to = f16}\nreturn %y";
        samples.add(DType::F32, "transposed", ("N <= 9", &[("N", 7)]), body)?;
        Ok(())
    }
}
