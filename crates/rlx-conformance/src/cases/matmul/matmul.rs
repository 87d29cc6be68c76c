//! `matmul`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, SMALL_FLOATS, Samples, blocks};

/// Products of activations, and with weights of every dtype; stacks, broadcast stacks, views.
pub(crate) struct MatMul;

impl Case for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        activations(samples)?;
        stacks(samples)?;
        mixed(samples)?;
        weights(samples)
    }
}

/// Two matrices, each size around the tiles by itself.
fn activations(samples: &mut Samples) -> Result<()> {
    let symbols = "M <= 65, K <= 65, N <= 65";
    for dtype in FLOATS {
        for transposed in [false, true] {
            let (b, attrs) = if transposed { ("[N, K]", " {transpose_b}") } else { ("[K, N]", "") };
            let body = format!(
                "%a = input \"a\" : {dtype}[M, K]\n%b = input \"b\" : {dtype}{b}\n%y = matmul %a, %b{attrs}\nreturn %y"
            );
            for size in SIZES {
                for (m, k, n) in [(size, 6, 5), (3, size, 5), (3, 6, size)] {
                    let label = format!("{b} m={m} k={k} n={n}");
                    samples.add(dtype, label, (symbols, &[("M", m), ("K", k), ("N", n)]), &body)?;
                }
            }
        }
    }
    Ok(())
}

/// Stacks of matrices and views of them.
fn stacks(samples: &mut Samples) -> Result<()> {
    for dtype in FLOATS {
        for (a, b) in [
            ("[3, N, 6]", "[3, 6, 5]"),
            ("[3, N, 6]", "[6, 5]"),
            ("[N, 6]", "[3, 6, 5]"),
            ("[3, N, 6]", "[1, 6, 5]"),
            ("[2, 1, N, 6]", "[3, 6, 5]"),
            ("[2, 3, N, 6]", "[2, 3, 6, 5]"),
        ] {
            let body = format!(
                "%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n%y = matmul %a, %b\nreturn %y"
            );
            for n in [0, 1, 7] {
                samples.add(dtype, format!("{a} x {b} n={n}"), ("N <= 9", &[("N", n)]), &body)?;
            }
        }
        // As many products as keep a GPU busy with one large tile each.
        for (b, attrs) in [("[24, 9, 34]", ""), ("[24, 34, 9]", " {transpose_b}")] {
            let body = format!(
                "%a = input \"a\" : {dtype}[24, N, 9]\n%b = input \"b\" : {dtype}{b}\n%y = matmul %a, %b{attrs}\nreturn %y"
            );
            samples.add(dtype, format!("tiles x {b}"), ("N <= 35", &[("N", 35)]), &body)?;
        }
        for (label, text) in [
            ("heads", "%p = transpose %x {perm = [1, 0, 2]}\n%y = matmul %p, %p {transpose_b}"),
            (
                "transposed left",
                "%p = transpose %x {perm = [1, 2, 0]}\n%q = transpose %x {perm = [1, 0, 2]}\n%y = matmul %p, %q",
            ),
            (
                "slices",
                "%p = slice %x {axis = 2, start = 1, len = 4}\n%q = slice %x {axis = 2, start = 0, len = 4}\n%y = matmul %p, %q {transpose_b}",
            ),
            (
                "broadcast",
                "%s = slice %x {axis = 0, start = 0, len = 1}\n%p = broadcast %s {shape = [N, 3, 6]}\n%y = matmul %x, %p {transpose_b}",
            ),
        ] {
            let body = format!("%x = input \"x\" : {dtype}[N, 3, 6]\n{text}\nreturn %y");
            for n in [1, 7, 17] {
                samples.add(dtype, format!("{label} n={n}"), ("N <= 17", &[("N", n)]), &body)?;
            }
        }
    }
    Ok(())
}

/// Operands of two dtypes.
fn mixed(samples: &mut Samples) -> Result<()> {
    for a in FLOATS {
        for b in FLOATS.into_iter().filter(|b| *b != a) {
            let body = format!(
                "%a = input \"a\" : {a}[N, 6]\n%b = input \"b\" : {b}[6, 5]\n%y = matmul %a, %b\nreturn %y"
            );
            samples.add(a, format!("x {b}"), ("N <= 9", &[("N", 4)]), &body)?;
        }
    }
    Ok(())
}

/// A weight as second operand.
fn weights(samples: &mut Samples) -> Result<()> {
    for w in FLOATS.into_iter().chain(blocks()) {
        let depth = 2 * w.block_elems().max(17);
        for x in SMALL_FLOATS {
            let body = format!(
                "%x = input \"x\" : {x}[N, {depth}]\n%w = weight \"w\" : {w}[19, {depth}] = seed 7\n\
                 %y = matmul %x, %w {{transpose_b}}\nreturn %y"
            );
            for n in [0, 1, 5] {
                samples.add(w, format!("{x} x weight n={n}"), ("N <= 9", &[("N", n)]), &body)?;
            }
        }
        if !w.is_block() {
            let body = format!(
                "%x = input \"x\" : {w}[N, {depth}]\n%w = weight \"w\" : {w}[{depth}, 19] = seed 7\n\
                 %y = matmul %x, %w\nreturn %y"
            );
            samples.add(w, "weight as it is", ("N <= 9", &[("N", 4)]), &body)?;
            let body = format!(
                "%x = input \"x\" : {w}[N, {depth}]\n%w = weight \"w\" : {w}[{depth}, 19] = seed 7\n\
                 %t = transpose %w {{perm = [1, 0]}}\n%y = matmul %x, %t {{transpose_b}}\nreturn %y"
            );
            samples.add(w, "transposed weight", ("N <= 9", &[("N", 4)]), &body)?;
        }
        if w == DType::F32 {
            let body = "%x = input \"x\" : f32[N, 34]\n%w = weight \"w\" : f32[3, 19, 34] = seed 7\n\
                        %y = matmul %x, %w {transpose_b}\nreturn %y";
            samples.add(w, "stack of weights", ("N <= 9", &[("N", 4)]), body)?;
        }
        let depth = 256;
        let body = format!(
            "%x = input \"x\" : q8_f32[N, {depth}]\n%w = weight \"w\" : {w}[19, {depth}] = seed 7\n\
             %y = matmul %x, %w {{transpose_b}}\nreturn %y"
        );
        for n in [0, 1, 5] {
            samples.add(w, format!("q8_f32 x weight n={n}"), ("N <= 9", &[("N", n)]), &body)?;
        }
    }
    Ok(())
}
