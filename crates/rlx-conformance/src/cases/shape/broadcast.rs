//! `broadcast`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, blocks};

/// Every dtype; new axes, axes of size 1, a view of a view, a weight, and whole blocks.
pub(crate) struct Broadcast;

impl Case for Broadcast {
    fn name(&self) -> &'static str {
        "broadcast"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for (from, to) in [
                ("[]", "[N, 4]"),
                ("[4]", "[N, 4]"),
                ("[N, 1]", "[N, 4]"),
                ("[N, 1, 3]", "[2, N, 4, 3]"),
                ("[N, 4]", "[N, 4]"),
            ] {
                let body = format!(
                    "%x = input \"x\" : {dtype}{from}\n%y = broadcast %x {{shape = {to}}}\nreturn %y"
                );
                for n in [0, 1, 5] {
                    samples.add(dtype, format!("{from} to {to} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 4]\n%s = slice %x {{axis = 1, start = 2, len = 1}}\n\
                 %y = broadcast %s {{shape = [N, 3]}}\nreturn %y"
            );
            samples.add(dtype, "of a slice", ("N <= 9", &[("N", 5)]), &body)?;
            let body = format!(
                "%x = weight \"x\" : {dtype}[3, 1] = seed 4\n%y = broadcast %x {{shape = [N, 3, 2]}}\nreturn %y"
            );
            samples.add(dtype, "of a weight", ("N <= 9", &[("N", 5)]), &body)?;
        }
        for dtype in blocks() {
            let width = 2 * dtype.block_elems();
            let body = format!(
                "%x = input \"x\" : {dtype}[3, 1, {width}]\n%y = broadcast %x {{shape = [3, N, {width}]}}\nreturn %y"
            );
            samples.add(dtype, "rows of blocks", ("N <= 4", &[("N", 2)]), &body)?;
        }
        Ok(())
    }
}
