//! `quantize`.

use rlx_ir::DType;
use rlx_ir::quant::BlockType;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples, blocks};

/// Every float to every block type, zeros and values that are not finite.
pub(crate) struct Quantize;

impl Case for Quantize {
    fn name(&self) -> &'static str {
        "quantize"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for from in FLOATS {
            for to in blocks() {
                let width = 2 * to.block_elems();
                let body = format!(
                    "%x = input \"x\" : {from}[N, {width}]\n%y = quantize %x {{to = {to}}}\nreturn %y"
                );
                let activation = to == DType::Block(BlockType::Q8_F32);
                let sizes = if activation { &SIZES[..] } else { &[0, 2] };
                for &n in sizes {
                    samples.add(from, format!("to {to} n={n}"), ("N <= 65", &[("N", n)]), &body)?;
                }
                let zeros = vec![0.0; width];
                samples
                    .add(from, format!("zeros to {to}"), ("N <= 65", &[("N", 1)]), &body)?
                    .floats("x", &zeros)?;
                let sample =
                    samples.add(from, format!("specials to {to}"), ("N <= 65", &[("N", 2)]), &body)?;
                sample.specials("x")?;
                if !activation {
                    sample.refuse();
                }
            }
        }
        Ok(())
    }
}
