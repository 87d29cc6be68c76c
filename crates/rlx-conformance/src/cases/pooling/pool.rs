//! `pool`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Every mode; empty sequences, tokens outside of all, widths around the vectors; starts that descend.
pub(crate) struct Pool;

/// Starts over tokens, by name.
pub(crate) const STARTS: [(&str, usize, &[i64]); 7] = [
    ("one sequence", 5, &[0, 5]),
    ("several", 19, &[0, 1, 3, 19]),
    ("empty among them", 7, &[0, 0, 4, 4, 7, 7]),
    ("tokens outside", 9, &[2, 4, 4, 8]),
    ("no sequence", 3, &[0]),
    ("no token", 0, &[0, 0, 0]),
    ("nothing", 0, &[0]),
];

impl Case for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        let symbols = "N <= 40, R <= 6";
        for dtype in FLOATS {
            for mode in ["mean", "cls", "last", "max"] {
                let body = |width: usize| {
                    format!(
                        "%x = input \"x\" : {dtype}[N, {width}]\n%s = input \"s\" : i32[R + 1]\n\
                         %y = pool %x, %s {{mode = {mode}}}\nreturn %y"
                    )
                };
                for (label, n, starts) in STARTS {
                    let sizes = [("N", n), ("R", starts.len() - 1)];
                    samples
                        .add(dtype, format!("{mode} {label}"), (symbols, &sizes), &body(17))?
                        .ints("s", starts)?;
                }
                for width in SIZES {
                    let sizes = [("N", 8), ("R", 2)];
                    let label = format!("{mode} width {width}");
                    samples.add(dtype, label, (symbols, &sizes), &body(width))?.ints("s", &[0, 3, 8])?;
                }
                let sizes = [("N", 8), ("R", 2)];
                let sample = samples.add(dtype, format!("{mode} specials"), (symbols, &sizes), &body(5))?;
                sample.specials("x")?.ints("s", &[0, 3, 8])?;
                for wrong in [[0, 4, 3], [0, 3, 9], [-1, 3, 8]] {
                    let label = format!("{mode} starts {wrong:?}");
                    samples.add(dtype, label, (symbols, &sizes), &body(5))?.ints("s", &wrong)?.refuse();
                }
            }
        }
        let body = "%j = input \"j\" : f32[N, 9]\n%s = input \"s\" : i32[R + 1]\n%x = slice %j {axis = 1, start = 1, len = 5}\n\
                    %y = pool %x, %s {mode = mean}\nreturn %y";
        let sizes = [("N", 8), ("R", 2)];
        samples.add(DType::F32, "strided", (symbols, &sizes), body)?.ints("s", &[0, 3, 8])?;
        Ok(())
    }
}
