//! `select`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, SIZES, Samples, ends};

/// Every scalar dtype, the ways to broadcast, and strided operands.
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
                    if dtype.is_int() && pattern == "middle" && n == 4 {
                        sample.ints("b", &ends(dtype)[3..])?;
                    }
                }
            }
            let body = format!(
                "%c = input \"c\" : bool[5, N]\n%a = input \"a\" : {dtype}[N, 5]\n%b = input \"b\" : {dtype}[N, 1]\n\
                 %t = transpose %c {{perm = [1, 0]}}\n%y = select %t, %a, %b\nreturn %y"
            );
            samples.add(dtype, "transposed condition", ("N <= 9", &[("N", 7)]), &body)?;
            let body = format!(
                "%c = input \"c\" : bool[5, N]\n%a = input \"a\" : {dtype}[N, 5]\n%b = input \"b\" : {dtype}[5, 1]\n\
                 %t = transpose %a {{perm = [1, 0]}}\n%y = select %c, %t, %b\nreturn %y"
            );
            samples.add(dtype, "transposed side", ("N <= 400", &[("N", 301)]), &body)?;
        }
        Ok(())
    }
}
