//! `iota`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Every dtype, each axis, symbolic sizes, indices that are rounded, and one that does not fit.
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
        // Where f16 and bf16 no longer hold each integer, and f16 none.
        for (dtype, n) in [
            (DType::F16, 2100),
            (DType::BF16, 600),
            (DType::F16, 65_600),
            (DType::I16, 32_768),
            (DType::U8, 256),
        ] {
            let body = format!("%y = iota {{shape = [N], axis = 0, dtype = {dtype}}}\nreturn %y");
            samples.add(dtype, format!("long n={n}"), ("N <= 70000", &[("N", n)]), &body)?;
        }
        let body = "%y = iota {shape = [N], axis = 0, dtype = i8}\nreturn %y";
        samples.add(DType::I8, "beyond 127", ("N <= 200", &[("N", 129)]), body)?.refuse();
        Ok(())
    }
}
