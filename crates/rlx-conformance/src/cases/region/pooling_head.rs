//! Pooling and normalisation, as embedding models end.

use crate::Result;
use crate::cases::pooling::pool::STARTS;
use crate::cases::{Case, SMALL_FLOATS, Samples};

/// Every mode, over the batches of `pool`.
pub(crate) struct PoolingHead;

impl Case for PoolingHead {
    fn name(&self) -> &'static str {
        "pooling_head"
    }

    fn ops(&self) -> Vec<&'static str> {
        vec!["pool", "l2_normalize"]
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in SMALL_FLOATS {
            for mode in ["mean", "cls", "last", "max"] {
                let body = format!(
                    "%x = input \"x\" : {dtype}[N, 33]\n%s = input \"s\" : i32[R + 1]\n\
                     %p = pool %x, %s {{mode = {mode}}}\n%y = l2_normalize %p {{eps = 1e-6}}\nreturn %y"
                );
                for (label, n, starts) in STARTS {
                    let sizes = [("N", n), ("R", starts.len() - 1)];
                    samples
                        .add(dtype, format!("{mode} {label}"), ("N <= 40, R <= 6", &sizes), &body)?
                        .several_ops(dtype)
                        .ints("s", starts)?;
                }
            }
        }
        Ok(())
    }
}
