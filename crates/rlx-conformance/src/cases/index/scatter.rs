//! `scatter`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, numbers};

/// Both modes over their dtypes, with skipped rows, duplicates, and indices out of range.
pub(crate) struct Scatter;

impl Case for Scatter {
    fn name(&self) -> &'static str {
        "scatter"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for mode in ["set", "add"] {
            let also = (mode == "set").then_some(DType::Bool);
            for dtype in numbers().chain(also) {
                for (axis, x, u) in [
                    (0, "[6]", "[N]"),
                    (0, "[6, 3]", "[N, 3]"),
                    (1, "[2, 6]", "[2, N]"),
                    (1, "[2, 6, 3]", "[2, N, 3]"),
                ] {
                    for index in [DType::I32, DType::I64, DType::U32] {
                        let body = format!(
                            "%x = input \"x\" : {dtype}{x}\n%i = input \"i\" : {index}[N]\n%u = input \"u\" : {dtype}{u}\n\
                             %y = scatter %x, %i, %u {{axis = {axis}, mode = {mode}}}\nreturn %y"
                        );
                        for n in [0, 1, 9] {
                            let label = format!("{mode} {x} axis {axis} by {index} n={n}");
                            let sample = samples.add(dtype, label, ("N <= 9", &[("N", n)]), &body)?;
                            sample.indices("i", 6)?;
                            if n == 9 && index != DType::U32 {
                                sample.ints("i", &[2, -1, 2, 5, 0, -7, 2, 1, 0])?;
                            }
                        }
                    }
                }
                let body = format!(
                    "%x = input \"x\" : {dtype}[2, N, 70]\n%i = input \"i\" : i32[M]\n%u = input \"u\" : {dtype}[2, M, 70]\n\
                     %y = scatter %x, %i, %u {{axis = 1, mode = {mode}}}\nreturn %y"
                );
                // Rows of which some are many times there, with NaN among them, and no rows.
                for (n, m) in [(60, 90), (60, 0), (0, 0)] {
                    if n > 0 && !matches!(dtype, DType::F32 | DType::BF16 | DType::I32) {
                        continue;
                    }
                    let sizes = [("N", n), ("M", m)];
                    let label = format!("{mode} of {m} rows into {n}");
                    let sample = samples.add(dtype, label, ("N <= 60, M <= 90", &sizes), &body)?;
                    sample.indices("i", 50)?;
                    if m > 0 && dtype.is_float() {
                        sample.specials("u")?;
                    }
                }
                let body = format!(
                    "%x = input \"x\" : {dtype}[3, N]\n%t = transpose %x {{perm = [1, 0]}}\n%i = input \"i\" : i32[2]\n\
                     %u = input \"u\" : {dtype}[2, 3]\n%y = scatter %t, %i, %u {{axis = -2, mode = {mode}}}\nreturn %y"
                );
                let label = format!("{mode} into a transposed one");
                samples.add(dtype, label, ("N <= 9", &[("N", 5)]), &body)?.ints("i", &[4, 4])?;
            }
        }
        let body = "%x = input \"x\" : f32[4, 2]\n%i = input \"i\" : i32[2]\n%u = input \"u\" : f32[2, 2]\n\
                    %y = scatter %x, %i, %u {axis = 0, mode = add}\nreturn %y";
        samples.add(DType::F32, "index 4", ("", &[]), body)?.ints("i", &[0, 4])?.refuse();
        Ok(())
    }
}
