//! `fused_region`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples};

/// Chains and trees of elementwise ops over the float dtypes, with broadcast operands and several results.
pub(crate) struct FusedRegion;

const BODIES: [(&str, &str); 4] = [
    ("chain", "%0 = add %a, %c\n%1 = tanh %0\n%2 = mul %1, %a\nreturn %2"),
    ("two results", "%0 = mul %a, %c\n%1 = sub %0, %a\n%2 = abs %1\nreturn %0, %2"),
    ("select", "%0 = gt %a, %c\n%1 = select %0, %a, %c\n%2 = silu %1\nreturn %2"),
    (
        "gelu and cast",
        "%0 = gelu %a {approximate = tanh}\n%1 = max %0, %c\n%2 = cast %1 {to = f32}\n%3 = exp %2\nreturn %3",
    ),
];

impl Case for FusedRegion {
    fn name(&self) -> &'static str {
        "fused_region"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            for (name, inner) in BODIES {
                for c in ["[17]", "[N, 17]", "[N, 1]", "[]"] {
                    let results = if name == "two results" { "%y, %z" } else { "%y" };
                    let body = format!(
                        "%x = input \"x\" : {dtype}[N, 17]\n%b = input \"b\" : {dtype}{c}\n\
                         {results} = fused_region %x, %b {{body = graph @r(N) {{\n%a = input \"a\" : {dtype}[N, 17]\n\
                         %c = input \"c\" : {dtype}{c}\n{inner} }}}}\nreturn {results}"
                    );
                    let sizes = if c == "[17]" { &SIZES[..] } else { &[0, 3] };
                    for &n in sizes {
                        samples.add(dtype, format!("{name} {c} n={n}"), ("N <= 65", &[("N", n)]), &body)?;
                    }
                }
            }
        }
        Ok(())
    }
}
