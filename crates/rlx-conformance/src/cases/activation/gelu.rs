//! `gelu`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Both forms over the float dtypes, far from zero too.
pub(crate) struct Gelu;

impl Case for Gelu {
    fn name(&self) -> &'static str {
        "gelu"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for form in ["none", "tanh"] {
            elementwise(samples, &format!("gelu %x {{approximate = {form}}}"), form)?;
        }
        Ok(())
    }
}

/// Samples of a function of one element.
pub(super) fn elementwise(samples: &mut Samples, node: &str, label: &str) -> Result<()> {
    for dtype in FLOATS {
        let body = format!("%x = input \"x\" : {dtype}[N, 3]\n%y = {node}\nreturn %y");
        for n in SIZES {
            samples
                .add(dtype, format!("{label} n={n}"), ("N <= 65", &[("N", n)]), &body)?
                .range("x", -6.0, 6.0)?;
        }
        let sample = samples.add(dtype, format!("{label} far"), ("N <= 65", &[("N", 65)]), &body)?;
        sample.range("x", -100.0, 100.0)?.specials("x")?;
        let body = format!(
            "%j = input \"j\" : {dtype}[N, 7]\n%x = slice %j {{axis = 1, start = 2, len = 3}}\n%y = {node}\nreturn %y"
        );
        samples.add(dtype, format!("{label} strided"), ("N <= 9", &[("N", 5)]), &body)?;
    }
    Ok(())
}
