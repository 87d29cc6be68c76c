//! `reshape`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, blocks};

/// Every dtype, symbolic sizes; of an input, of a result, and of a view that has no strides for it.
pub(crate) struct Reshape;

impl Case for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for (label, text) in [
                ("split", "%y = reshape %x {shape = [N, 2, 3]}\nreturn %y"),
                ("join", "%y = reshape %x {shape = [N * 6]}\nreturn %y"),
                (
                    "of a transposed view",
                    "%t = transpose %x {perm = [1, 0]}\n%y = reshape %t {shape = [N * 6]}\nreturn %y",
                ),
                (
                    "of a slice",
                    "%t = slice %x {axis = 1, start = 1, len = 4}\n%y = reshape %t {shape = [N, 2, 2]}\nreturn %y",
                ),
                (
                    "of a joined slice",
                    "%t = slice %x {axis = 1, start = 1, len = 4}\n%y = reshape %t {shape = [N * 4]}\nreturn %y",
                ),
            ] {
                let body = format!("%x = input \"x\" : {dtype}[N, 6]\n{text}");
                for n in [0, 1, 5] {
                    samples.add(dtype, format!("{label} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
        }
        for dtype in blocks() {
            let width = dtype.block_elems();
            let body = format!(
                "%x = input \"x\" : {dtype}[6, {width}]\n%y = reshape %x {{shape = [2, 3, {width}]}}\nreturn %y"
            );
            samples.add(dtype, "outer axes", ("", &[]), &body)?;
        }
        Ok(())
    }
}
