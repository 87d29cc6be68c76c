//! `linear`.

use rlx_ir::DType;
use rlx_ir::ops::activation::Activation;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples, blocks};

/// Every weight dtype and activation dtype; sizes around the tiles; every activation with bias and residual; strided rows.
pub(crate) struct Linear;

impl Case for Linear {
    fn name(&self) -> &'static str {
        "linear"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        dtypes(samples)?;
        sizes(samples)?;
        tiles(samples)?;
        epilogues(samples)?;
        views(samples)
    }
}

fn dtypes(samples: &mut Samples) -> Result<()> {
    for w in FLOATS.into_iter().chain(blocks()) {
        for x in FLOATS.iter().map(|d| d.name()).chain(["q8_f32"]) {
            let depth = if x == "q8_f32" { w.block_elems().max(32) * 2 } else { w.block_elems().max(17) * 2 };
            let body = format!(
                "%x = input \"x\" : {x}[N, {depth}]\n%w = weight \"w\" : {w}[33, {depth}] = seed 7\n\
                 %b = weight \"b\" : f32[33] = seed 8\n%y = linear %x, %w, %b {{bias}}\nreturn %y"
            );
            for n in [0, 1, 2, 9] {
                samples.add(w, format!("{x} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
            }
        }
        let (x, depth) = ("f32", w.block_elems().max(17));
        let body = format!(
            "%x = input \"x\" : {x}[N, {depth}]\n%w = input \"w\" : {w}[5, {depth}]\n%y = linear %x, %w\nreturn %y"
        );
        samples.add(w, "weight that is an input", ("N <= 9", &[("N", 3)]), &body)?;
    }
    Ok(())
}

fn sizes(samples: &mut Samples) -> Result<()> {
    for w in [DType::F32, DType::F16, DType::BF16] {
        for depth in SIZES {
            let body = format!(
                "%x = input \"x\" : {w}[N, {depth}]\n%w = weight \"w\" : {w}[5, {depth}] = seed 7\n%y = linear %x, %w\nreturn %y"
            );
            samples.add(w, format!("depth {depth}"), ("N <= 9", &[("N", 3)]), &body)?;
        }
    }
    for w in ["f32", "f16", "q8_0", "q4_0"] {
        let Some(dtype) = DType::from_name(w) else { continue };
        for columns in SIZES.into_iter().chain([32, 64]) {
            let body = format!(
                "%x = input \"x\" : f32[N, 64]\n%w = weight \"w\" : {w}[{columns}, 64] = seed 7\n%y = linear %x, %w\nreturn %y"
            );
            samples.add(dtype, format!("columns {columns}"), ("N <= 9", &[("N", 3)]), &body)?;
        }
        let body = format!(
            "%x = input \"x\" : f32[N, 64]\n%w = weight \"w\" : {w}[18, 64] = seed 7\n%y = linear %x, %w\nreturn %y"
        );
        for n in SIZES.into_iter().chain([3, 4, 5, 6, 7, 8, 13, 64]) {
            samples.add(dtype, format!("rows n={n}"), ("N <= 65", &[("N", n)]), &body)?;
        }
    }
    Ok(())
}

/// A product of two by twelve tiles of 64, and fewer rows of the same, with biases of either float dtype.
fn tiles(samples: &mut Samples) -> Result<()> {
    for x in ["f32", "f16"] {
        for w in [DType::F32, DType::F16] {
            for bias in ["f32", "f16"] {
                let body = format!(
                    "%x = input \"x\" : {x}[N, 33]\n%w = weight \"w\" : {w}[705, 33] = seed 7\n\
                     %b = weight \"b\" : {bias}[705] = seed 8\n%r = input \"r\" : {x}[N, 705]\n\
                     %y = linear %x, %w, %b, %r {{bias, residual, activation = gelu}}\nreturn %y"
                );
                for n in [1, 3, 33, 65] {
                    let label = format!("{x} to 705 columns, {bias} bias n={n}");
                    samples.add(w, label, ("N <= 65", &[("N", n)]), &body)?;
                }
            }
        }
    }
    Ok(())
}

fn epilogues(samples: &mut Samples) -> Result<()> {
    for x in ["f32", "f16", "bf16", "f64", "q8_f32"] {
        let Some(dtype) = DType::from_name(x) else { continue };
        let result = if x == "q8_f32" { "f32" } else { x };
        for (word, _) in Activation::WORDS {
            for (bias, residual) in [(false, false), (true, false), (false, true), (true, true)] {
                let mut operands = "%x, %w".to_owned();
                let mut attrs = format!("activation = {word}");
                if bias {
                    operands += ", %b";
                    attrs += ", bias";
                }
                if residual {
                    operands += ", %r";
                    attrs += ", residual";
                }
                let attrs = attrs.replace("activation = none, ", "");
                let body = format!(
                    "%x = input \"x\" : {x}[N, 32]\n%w = weight \"w\" : q8_0[19, 32] = seed 7\n\
                     %b = weight \"b\" : f32[19] = seed 8\n%r = input \"r\" : {result}[N, 19]\n\
                     %y = linear {operands} {{{attrs}}}\nreturn %y"
                );
                samples.add(dtype, attrs.clone(), ("N <= 9", &[("N", 5)]), &body)?;
            }
        }
        for bias in ["f16", "f64"] {
            let body = format!(
                "%x = input \"x\" : {x}[N, 32]\n%w = weight \"w\" : q8_0[19, 32] = seed 7\n\
                 %b = weight \"b\" : {bias}[19] = seed 8\n%y = linear %x, %w, %b {{bias}}\nreturn %y"
            );
            samples.add(dtype, format!("{bias} bias"), ("N <= 9", &[("N", 5)]), &body)?;
        }
    }
    Ok(())
}

fn views(samples: &mut Samples) -> Result<()> {
    for dtype in FLOATS {
        for (label, text) in [
            ("columns of a wider matrix", "%x = slice %j {axis = 1, start = 3, len = 32}"),
            (
                "one row for all",
                "%r = slice %j {axis = 0, start = 1, len = 1}\n%s = slice %r {axis = 1, start = 3, len = 32}\n%v = reshape %s {shape = [32]}\n%x = broadcast %v {shape = [N, 32]}",
            ),
            (
                "every other row",
                "%s = slice %j {axis = 1, start = 0, len = 32}\n%x = slice %s {axis = 0, start = 1, len = 3, step = 2}",
            ),
            (
                "three axes",
                "%s = slice %j {axis = 1, start = 8, len = 32}\n%x = reshape %s {shape = [N, 1, 32]}",
            ),
            (
                "transposed",
                "%s = slice %j {axis = 0, start = 0, len = 7}\n%t = slice %s {axis = 1, start = 0, len = 4}\n%u = transpose %t {perm = [1, 0]}\n%x = pad %u {low = [0, 0], high = [0, 25]}",
            ),
        ] {
            let body = format!(
                "%j = input \"j\" : {dtype}[N, 40]\n{text}\n%w = weight \"w\" : {dtype}[6, 32] = seed 7\n\
                 %y = linear %x, %w\nreturn %y"
            );
            samples.add(dtype, label, ("N <= 9", &[("N", 7)]), &body)?;
        }
        let body = format!(
            "%j = input \"j\" : {dtype}[N, 40]\n%x = slice %j {{axis = 1, start = 3, len = 32}}\n\
             %r = slice %j {{axis = 1, start = 30, len = 6}}\n%w = weight \"w\" : {dtype}[6, 32] = seed 7\n\
             %y = linear %x, %w, %r {{residual}}\nreturn %y"
        );
        samples.add(dtype, "strided residual", ("N <= 9", &[("N", 7)]), &body)?;
        let body = format!(
            "%x = input \"x\" : {dtype}[3, N, 32]\n%w = weight \"w\" : {dtype}[6, 32] = seed 7\n%y = linear %x, %w\nreturn %y"
        );
        samples.add(dtype, "stack", ("N <= 9", &[("N", 3)]), &body)?;
    }
    Ok(())
}
