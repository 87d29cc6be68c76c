//! `select`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, SIZES, Samples};

/// Every scalar dtype, and the ways to broadcast.
pub(crate) struct Select;

impl Case for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for (pattern, c, a, b) in [
                ("equal", "[N, 5]", "[N, 5]", "[N, 5]"),
                ("scalar condition", "[]", "[N, 5]", "[N, 5]"),
                ("scalars", "[N, 5]", "[]", "[]"),
                ("row and column", "[N, 1]", "[5]", "[N, 5]"),
                ("middle", "[2, 1, 3]", "[2, N, 3]", "[N, 1]"),
            ] {
                let body = format!(
                    "%c = input \"c\" : bool{c}\n%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n\
                     %y = select %c, %a, %b\nreturn %y"
                );
                let sizes = if pattern == "equal" { &SIZES[..] } else { &[0, 4] };
                for &n in sizes {
                    let label = format!("{pattern} n={n}");
                    let sample = samples.add(dtype, label, ("N <= 65", &[("N", n)]), &body)?;
                    if dtype.is_float() {
                        sample.specials("a")?;
                    }
                }
            }
        }
        Ok(())
    }
}
