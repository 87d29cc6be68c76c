//! `transpose`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, SIZES, Samples, blocks};

/// Every dtype and permutations of three axes; twice; of whole blocks; into an op that wants dense rows.
pub(crate) struct Transpose;

impl Case for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for perm in ["[0, 1, 2]", "[1, 0, 2]", "[2, 1, 0]", "[0, 2, 1]", "[2, 0, 1]"] {
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 3, 4]\n%y = transpose %x {{perm = {perm}}}\nreturn %y"
                );
                let sizes = if dtype == DType::F32 { &SIZES[..] } else { &[0, 5] };
                for &n in sizes {
                    samples.add(dtype, format!("{perm} n={n}"), ("N <= 65", &[("N", n)]), &body)?;
                }
            }
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 3, 4]\n%t = transpose %x {{perm = [2, 0, 1]}}\n\
                 %y = transpose %t {{perm = [2, 0, 1]}}\nreturn %t, %y"
            );
            samples.add(dtype, "twice", ("N <= 9", &[("N", 5)]), &body)?;
        }
        for dtype in blocks() {
            let width = 2 * dtype.block_elems();
            let body = format!(
                "%x = input \"x\" : {dtype}[N, 3, {width}]\n%y = transpose %x {{perm = [1, 0, 2]}}\nreturn %y"
            );
            samples.add(dtype, "rows of blocks", ("N <= 4", &[("N", 2)]), &body)?;
        }
        Ok(())
    }
}
