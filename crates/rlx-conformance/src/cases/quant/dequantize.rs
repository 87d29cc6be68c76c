//! `dequantize`.

use crate::Result;
use crate::cases::{Case, FLOATS, Samples, blocks};

/// Every block type to every float, of inputs and of weights.
pub(crate) struct Dequantize;

impl Case for Dequantize {
    fn name(&self) -> &'static str {
        "dequantize"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for from in blocks() {
            let width = 2 * from.block_elems();
            for to in FLOATS {
                let body = format!(
                    "%x = input \"x\" : {from}[N, {width}]\n%y = dequantize %x {{to = {to}}}\nreturn %y"
                );
                for n in [0, 1, 5] {
                    samples.add(from, format!("to {to} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
                let body = format!(
                    "%x = weight \"x\" : {from}[3, {width}] = seed 2\n%y = dequantize %x {{to = {to}}}\nreturn %y"
                );
                samples.add(from, format!("weight to {to}"), ("", &[]), &body)?;
            }
        }
        Ok(())
    }
}
