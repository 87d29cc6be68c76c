//! Normalisations.
pub(super) mod add_layer_norm;
pub(super) mod add_rms_norm;
pub(super) mod layer_norm;
pub(super) mod rms_norm;
pub(super) mod softmax;

use rlx_ir::DType;

use crate::Result;
use crate::cases::{FLOATS, SIZES, Samples};

/// A norm's node: `(first operands, results, operands and attributes after the name)`.
struct Norm<'a> {
    op: &'a str,
    /// Whether a residual is added first.
    adds: bool,
    /// Bias and attributes, with a label.
    variants: &'a [(&'a str, bool, &'a str)],
}

impl Norm<'_> {
    fn body(&self, x: DType, weight: DType, width: usize, bias: bool, attrs: &str) -> String {
        let mut text =
            format!("%x = input \"x\" : {x}[N, {width}]\n%w = weight \"w\" : {weight}[{width}] = seed 3\n");
        let mut operands = "%x".to_owned();
        if self.adds {
            text += &format!("%r = input \"r\" : {x}[N, {width}]\n");
            operands += ", %r";
        }
        operands += ", %w";
        if bias {
            text += &format!("%b = weight \"b\" : {weight}[{width}] = seed 4\n");
            operands += ", %b";
        }
        let results = if self.adds { "%s, %y" } else { "%y" };
        text + &format!("{results} = {} {operands} {{{attrs}}}\nreturn {results}", self.op)
    }

    /// Every variant and dtype; widths around the vectors; rows of zeros, rows with a large mean, strided rows.
    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for x in FLOATS {
            for &(label, bias, attrs) in self.variants {
                let other = if x == DType::F32 { DType::F16 } else { x };
                for weight in [DType::F32, other] {
                    let body = self.body(x, weight, 33, bias, attrs);
                    for n in [0, 1, 9] {
                        let label = format!("{label} {weight} weight n={n}");
                        samples.add(x, label, ("N <= 9", &[("N", n)]), &body)?;
                    }
                }
            }
            let &(_, bias, attrs) = &self.variants[0];
            for width in SIZES.into_iter().chain([768]) {
                let body = self.body(x, DType::F32, width, bias, attrs);
                samples.add(x, format!("width {width}"), ("N <= 9", &[("N", 3)]), &body)?;
            }
            let body = self.body(x, DType::F32, 17, bias, attrs);
            samples.add(x, "zeros", ("N <= 9", &[("N", 1)]), &body)?.floats("x", &[0.0; 17])?;
            samples.add(x, "large mean", ("N <= 9", &[("N", 2)]), &body)?.range("x", 99.0, 101.0)?;
            samples.add(x, "specials", ("N <= 9", &[("N", 2)]), &body)?.specials("x")?;
            let body = self.body(x, DType::F32, 17, bias, attrs).replace(
                &format!("%x = input \"x\" : {x}[N, 17]"),
                &format!("%j = input \"j\" : {x}[N, 20]\n%x = slice %j {{axis = 1, start = 2, len = 17}}"),
            );
            samples.add(x, "strided", ("N <= 9", &[("N", 5)]), &body)?;
        }
        Ok(())
    }
}
