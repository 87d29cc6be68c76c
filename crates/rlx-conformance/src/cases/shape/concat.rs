//! `concat`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, blocks};

/// Every dtype; each axis, one to three operands, empty ones, the same one twice, strided ones, and weights.
pub(crate) struct Concat;

impl Case for Concat {
    fn name(&self) -> &'static str {
        "concat"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for (label, text) in [
                ("rows", "%y = concat %a, %b {axis = 0}\nreturn %y"),
                ("columns", "%y = concat %a, %a {axis = 1}\nreturn %y"),
                ("one", "%y = concat %a {axis = 0}\nreturn %y"),
                ("three", "%y = concat %a, %b, %a {axis = -2}\nreturn %y"),
                (
                    "slices",
                    "%s = slice %a {axis = 1, start = 1, len = 2}\n%y = concat %s, %a {axis = 1}\nreturn %y",
                ),
            ] {
                let body =
                    format!("%a = input \"a\" : {dtype}[N, 3]\n%b = input \"b\" : {dtype}[M, 3]\n{text}");
                for (n, m) in [(0, 0), (0, 4), (5, 1)] {
                    let sizes = [("N", n), ("M", m)];
                    samples.add(dtype, format!("{label} n={n} m={m}"), ("N <= 9, M <= 9", &sizes), &body)?;
                }
            }
        }
        for dtype in blocks() {
            let width = 2 * dtype.block_elems();
            for origin in ["input \"a\"", "weight \"a\""] {
                let seed = if origin.starts_with('w') { " = seed 5" } else { "" };
                let body = format!(
                    "%a = {origin} : {dtype}[3, {width}]{seed}\n%b = input \"b\" : {dtype}[N, {width}]\n\
                     %y = concat %a, %b, %a {{axis = 0}}\nreturn %y"
                );
                samples.add(dtype, format!("{origin} of blocks"), ("N <= 4", &[("N", 2)]), &body)?;
            }
        }
        Ok(())
    }
}
