//! `embedding`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples, blocks};

/// Tables of every float and block dtype into every float, scales, other id dtypes and shapes, ids out of range.
pub(crate) struct Embedding;

impl Case for Embedding {
    fn name(&self) -> &'static str {
        "embedding"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for table in FLOATS.into_iter().chain(blocks()) {
            let width = if table.is_block() { 2 * table.block_elems() } else { 17 };
            for to in FLOATS {
                for scale in ["", ", scale = 5.65"] {
                    let body = format!(
                        "%t = weight \"t\" : {table}[7, {width}] = seed 3\n%i = input \"i\" : i32[N]\n\
                         %y = embedding %t, %i {{dtype = {to}{scale}}}\nreturn %y"
                    );
                    for n in [0, 1, 5] {
                        let label = format!("to {to}{scale} n={n}");
                        samples.add(table, label, ("N <= 9", &[("N", n)]), &body)?.indices("i", 7)?;
                    }
                }
            }
        }
        for (ids, shape) in [("i64", "[N]"), ("u32", "[N]"), ("i32", "[N, 2]"), ("i32", "[]")] {
            let body = format!(
                "%t = weight \"t\" : f32[7, 5] = seed 3\n%i = input \"i\" : {ids}{shape}\n%y = embedding %t, %i\nreturn %y"
            );
            let label = format!("{ids}{shape}");
            samples.add(DType::F32, label, ("N <= 9", &[("N", 4)]), &body)?.indices("i", 7)?;
        }
        for (table, to) in [("f32", "f16"), ("f16", "f32"), ("f16", "f16")] {
            let Some(dtype) = DType::from_name(table) else { continue };
            for ids in ["i64", "u32"] {
                let body = format!(
                    "%t = weight \"t\" : {table}[7, 5] = seed 3\n%i = input \"i\" : {ids}[N]\n\
                     %y = embedding %t, %i {{dtype = {to}}}\nreturn %y"
                );
                samples
                    .add(dtype, format!("{ids} to {to}"), ("N <= 9", &[("N", 4)]), &body)?
                    .indices("i", 7)?;
            }
        }
        let body = "%t = weight \"t\" : f32[7, 5] = seed 3\n%i = input \"i\" : i32[N]\n%y = embedding %t, %i\nreturn %y";
        for n in SIZES {
            samples.add(DType::F32, format!("n={n}"), ("N <= 65", &[("N", n)]), body)?.indices("i", 7)?;
        }
        for table in ["f32", "q8_0", "f64"] {
            for wrong in [-1, 7] {
                let body = format!(
                    "%t = weight \"t\" : {table}[7, 32] = seed 3\n%i = input \"i\" : i32[2]\n%y = embedding %t, %i\nreturn %y"
                );
                let Some(dtype) = DType::from_name(table) else { continue };
                samples.add(dtype, format!("id {wrong}"), ("", &[]), &body)?.ints("i", &[1, wrong])?.refuse();
            }
        }
        Ok(())
    }
}
