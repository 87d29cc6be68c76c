//! Embeddings, their sum and its layer norm, as encoders begin.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, Samples};

/// Dtypes of the first table, the others, ids, the norm's weights and the result; one to three terms, scales, rows that all
/// tokens have.
pub(crate) struct EmbeddingBlock;

const HALVES: [DType; 2] = [DType::F32, DType::F16];

impl Case for EmbeddingBlock {
    fn name(&self) -> &'static str {
        "embedding_block"
    }

    fn ops(&self) -> Vec<&'static str> {
        vec!["embedding", "add", "layer_norm", "cast"]
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for (first, others) in [(DType::F32, DType::F32), (DType::F16, DType::F16), (DType::F16, DType::F32)]
        {
            for ids in ["i32", "i64", "u32"] {
                for weight in HALVES {
                    for result in HALVES {
                        let label = format!("others {others}, ids {ids}, weights {weight} to {result}");
                        let terms = format!(
                            "%t = weight \"t\" : {first}[7, 33] = seed 3\n%u = weight \"u\" : {others}[5, 33] = seed 4\n\
                             %i = input \"i\" : {ids}[N]\n%j = input \"j\" : {ids}[N]\n\
                             %e = embedding %t, %i {{dtype = f32}}\n%f = embedding %u, %j {{dtype = f32, scale = 1.5}}\n\
                             %s = add %e, %f"
                        );
                        add(samples, first, &label, &terms, (weight, result))?;
                    }
                }
            }
        }
        terms(samples)
    }
}

/// One term, and three of which one is a row.
fn terms(samples: &mut Samples) -> Result<()> {
    for table in HALVES {
        let gather = format!(
            "%t = weight \"t\" : {table}[7, 33] = seed 3\n%i = input \"i\" : i32[N]\n%e = embedding %t, %i {{dtype = f32}}"
        );
        let one = gather.replace("%e =", "%s =");
        add(samples, table, "one term", &one, (DType::F32, DType::F32))?;
        let three = format!(
            "{gather}\n%u = weight \"u\" : f32[5, 33] = seed 4\n%j = input \"j\" : i32[N]\n\
             %r = weight \"r\" : f32[1, 33] = seed 5\n%f = embedding %u, %j {{dtype = f32}}\n%a = add %e, %r\n%s = add %a, %f"
        );
        add(samples, table, "three terms", &three, (DType::F32, DType::F32))?;
    }
    Ok(())
}

/// The norm of `%s`, with a bias where weights are f32.
fn add(
    samples: &mut Samples,
    dtype: DType,
    label: &str,
    terms: &str,
    (weight, result): (DType, DType),
) -> Result<()> {
    let bias = if weight == DType::F32 { ", %b" } else { "" };
    let end = match result {
        DType::F32 => "return %n",
        _ => "%y = cast %n {to = f16}\nreturn %y",
    };
    let body = format!(
        "{terms}\n%w = weight \"w\" : {weight}[33] = seed 6\n%b = weight \"b\" : {weight}[33] = seed 7\n\
         %n = layer_norm %s, %w{bias} {{eps = 1e-5}}\n{end}"
    );
    for n in [0, 1, 5] {
        let sample = samples.add(dtype, format!("{label} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
        sample.several_ops(result).indices("i", 7)?;
        if sample.inputs.contains_key("j") {
            sample.indices("j", 5)?;
        }
    }
    Ok(())
}
