//! `kv_write`.

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, SMALL_FLOATS, Samples};

/// Every dtype into every state dtype; skipped tokens, one slot twice, slots beyond the pages, parts of a joint row, a read
/// after the write.
pub(crate) struct KvWrite;

impl Case for KvWrite {
    fn name(&self) -> &'static str {
        "kv_write"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for x in FLOATS {
            for state in SMALL_FLOATS {
                let body = format!(
                    "%k = state \"k\" : {state}[20, 4, 2, 3]\n%x = input \"x\" : {x}[N, 2, 3]\n%s = input \"s\" : i32[N]\n\
                     %y = kv_write %k, %x, %s\nreturn %y"
                );
                for n in SIZES {
                    let slots: Vec<i64> = (0..n).map(|i| ((i * 7 + 5) % 80) as i64).collect();
                    let label = format!("{state} n={n}");
                    samples.add(x, label, ("N <= 65", &[("N", n)]), &body)?.ints("s", &slots)?;
                }
                let sample = samples.add(x, format!("{state} skips"), ("N <= 65", &[("N", 6)]), &body)?;
                sample.ints("s", &[79, -1, 3, 0, -9, 40])?;
                let sample = samples.add(x, format!("{state} twice"), ("N <= 65", &[("N", 4)]), &body)?;
                sample.ints("s", &[9, 3, 9, 3])?;
                let sample = samples.add(x, format!("{state} beyond"), ("N <= 65", &[("N", 2)]), &body)?;
                sample.ints("s", &[9, 80])?.refuse();
                let body = format!(
                    "%k = state \"k\" : {state}[P, 4, 2, 3]\n%j = input \"j\" : {x}[N, 16]\n%s = input \"s\" : i32[N]\n\
                     %c = slice %j {{axis = 1, start = 6, len = 6}}\n%x = reshape %c {{shape = [N, 2, 3]}}\n\
                     %w = kv_write %k, %x, %s\n%y = cast %w {{to = f32}}\nreturn %y"
                );
                let sizes = [("N", 3), ("P", 2)];
                let sample =
                    samples.add(x, format!("{state} joint row"), ("N <= 9, P <= 4", &sizes), &body)?;
                sample.ints("s", &[7, 0, 2])?;
                let body = format!(
                    "%k = state \"k\" : {state}[20, 4, 2, 3]\n%t = input \"t\" : {x}[2, 3]\n%s = input \"s\" : i32[N]\n\
                     %x = broadcast %t {{shape = [N, 2, 3]}}\n%y = kv_write %k, %x, %s\nreturn %y"
                );
                let label = format!("{state} one token for all");
                let sample = samples.add(x, label, ("N <= 9", &[("N", 4)]), &body)?;
                sample.ints("s", &[7, -1, 0, 2])?;
            }
        }
        Ok(())
    }
}
