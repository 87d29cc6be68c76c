//! `iota`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Every dtype, each axis, symbolic sizes, and an index that does not fit.
pub(crate) struct Iota;

impl Case for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in numbers() {
            for (shape, axis) in
                [("[N]", 0), ("[N, 3]", 0), ("[3, N]", 1), ("[2, N, 3]", -1), ("[2, N, 3]", 1)]
            {
                let body =
                    format!("%y = iota {{shape = {shape}, axis = {axis}, dtype = {dtype}}}\nreturn %y");
                for n in [0, 1, 17] {
                    samples.add(
                        dtype,
                        format!("{shape} axis {axis} n={n}"),
                        ("N <= 40", &[("N", n)]),
                        &body,
                    )?;
                }
            }
        }
        let body = "%y = iota {shape = [N], axis = 0, dtype = i8}\nreturn %y";
        samples.add(DType::I8, "beyond 127", ("N <= 200", &[("N", 129)]), body)?.refuse();
        Ok(())
    }
}
