//! `slice`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples, blocks};

/// Every dtype; each axis, steps, symbolic ranges, slices of slices, whole blocks, and a range beyond the axis.
pub(crate) struct Slice;

impl Case for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in DType::SCALARS {
            for (label, text) in [
                ("first axis", "%y = slice %x {axis = 0, start = 1, len = N - 1}\nreturn %y"),
                ("last axis", "%y = slice %x {axis = -1, start = 2, len = 3}\nreturn %y"),
                ("nothing", "%y = slice %x {axis = 1, start = 6, len = 0}\nreturn %y"),
                ("step", "%y = slice %x {axis = 1, start = 1, len = 3, step = 2}\nreturn %y"),
                ("step of rows", "%y = slice %x {axis = 0, start = 0, len = 1, step = 3}\nreturn %y"),
                (
                    "twice",
                    "%t = slice %x {axis = 1, start = 1, len = 4}\n%y = slice %t {axis = 0, start = N - 1, len = 1}\nreturn %y",
                ),
            ] {
                let body = format!("%x = input \"x\" : {dtype}[N, 6]\n{text}");
                for n in [1, 5] {
                    samples.add(dtype, format!("{label} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
            let body = format!(
                "%x = weight \"x\" : {dtype}[6, 3] = seed 5\n\
                 %y = slice %x {{axis = 0, start = N, len = 2, step = 2}}\nreturn %y"
            );
            for n in [0, 3] {
                samples.add(dtype, format!("of a weight n={n}"), ("N <= 3", &[("N", n)]), &body)?;
            }
        }
        for dtype in blocks() {
            let block = dtype.block_elems();
            let body = format!(
                "%x = input \"x\" : {dtype}[4, {}]\n%r = slice %x {{axis = 0, start = 1, len = 2}}\n\
                 %y = slice %r {{axis = 1, start = {block}, len = {block}}}\nreturn %y",
                3 * block
            );
            samples.add(dtype, "whole blocks", ("", &[]), &body)?;
        }
        let body = "%x = input \"x\" : f32[N, 6]\n%y = slice %x {axis = 0, start = M, len = 2}\nreturn %y";
        let symbols = "N <= 9, M <= 9";
        samples.add(DType::F32, "symbolic start", (symbols, &[("N", 5), ("M", 3)]), body)?;
        samples.add(DType::F32, "beyond the axis", (symbols, &[("N", 5), ("M", 4)]), body)?.refuse();
        Ok(())
    }
}
