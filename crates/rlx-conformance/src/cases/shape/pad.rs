//! `pad`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples};

/// Every dtype; both sides, symbolic and negative amounts, whole rows, nothing at all, and a strided operand.
pub(crate) struct Pad;

impl Case for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            let value = if dtype.is_float() { "-0.1" } else { "1.0" };
            for (label, text) in [
                ("sides", format!("%y = pad %x {{low = [1, 2], high = [0, 3], value = {value}}}")),
                ("symbolic", "%y = pad %x {low = [N, 0], high = [2, N]}".to_owned()),
                ("nothing", "%y = pad %x {low = [0, 0], high = [0, 0]}".to_owned()),
                (
                    "transposed",
                    "%t = transpose %x {perm = [1, 0]}\n%y = pad %t {low = [1, 0], high = [0, 1]}".to_owned(),
                ),
            ] {
                let body = format!("%x = input \"x\" : {dtype}[N, 3]\n{text}\nreturn %y");
                for n in [0, 1, 5] {
                    samples.add(dtype, format!("{label} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
            let body = format!(
                "%x = input \"x\" : {dtype}[2, N, 3]\n\
                 %y = pad %x {{low = [1, 0, 0], high = [0, N, 0], value = {value}}}\nreturn %y"
            );
            samples.add(dtype, "whole rows", ("N <= 90", &[("N", 70)]), &body)?;
        }
        let body = "%x = input \"x\" : f32[N]\n%y = pad %x {low = [N - 3], high = [0]}\nreturn %y";
        samples.add(DType::F32, "a negative amount", ("N <= 9", &[("N", 2)]), body)?.refuse();
        Ok(())
    }
}
