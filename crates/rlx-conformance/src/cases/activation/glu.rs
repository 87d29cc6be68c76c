//! `glu`.

use rlx_ir::ops::activation::Activation;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Every activation over the float dtypes, widths around the vectors, strided rows.
pub(crate) struct Glu;

impl Case for Glu {
    fn name(&self) -> &'static str {
        "glu"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            for (word, _) in Activation::WORDS {
                for width in SIZES {
                    let body = format!(
                        "%x = input \"x\" : {dtype}[N, {}]\n%y = glu %x {{activation = {word}}}\nreturn %y",
                        2 * width
                    );
                    samples.add(dtype, format!("{word} width {width}"), ("N <= 9", &[("N", 3)]), &body)?;
                }
                let body = format!(
                    "%j = input \"j\" : {dtype}[N, 9]\n%x = slice %j {{axis = 1, start = 1, len = 6}}\n\
                     %y = glu %x {{activation = {word}}}\nreturn %y"
                );
                for n in [0, 5] {
                    samples.add(dtype, format!("{word} strided n={n}"), ("N <= 9", &[("N", n)]), &body)?;
                }
            }
        }
        Ok(())
    }
}
