//! `moe`.

use rlx_ir::DType;
use rlx_ir::ops::activation::Activation;

use crate::Result;
use crate::cases::{Case, FLOATS, SIZES, Samples, blocks};

/// Every dtype of matrices, vectors and weights; every activation; sizes around the tiles; indices that stand twice or lead
/// nowhere; one expert, and all; values that are not finite where nobody looks.
pub(crate) struct Moe;

impl Case for Moe {
    fn name(&self) -> &'static str {
        "moe"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        dtypes(samples)?;
        activations(samples)?;
        sizes(samples)?;
        choices(samples)?;
        views(samples)
    }
}

/// The sizes of a sample.
#[derive(Clone, Copy)]
struct Sizes {
    experts: usize,
    chosen: usize,
    hidden: usize,
    inner: usize,
}

const PLAIN: Sizes = Sizes { experts: 5, chosen: 2, hidden: 33, inner: 17 };

impl Sizes {
    fn body(self, x: &str, weights: &str, matrices: [&str; 3], activation: &str) -> String {
        let Self { experts, chosen, hidden, inner } = self;
        let [gate, up, down] = matrices;
        format!(
            "%x = input \"x\" : {x}[N, {hidden}]\n%s = input \"s\" : {weights}[N, {chosen}]\n\
             %e = input \"e\" : i32[N, {chosen}]\n\
             %g = weight \"g\" : {gate}[{experts}, {inner}, {hidden}] = seed 7\n\
             %u = weight \"u\" : {up}[{experts}, {inner}, {hidden}] = seed 8\n\
             %d = weight \"d\" : {down}[{experts}, {hidden}, {inner}] = seed 9\n\
             %y = moe %x, %s, %e, %g, %u, %d {{activation = {activation}}}\nreturn %y"
        )
    }
}

fn add(
    samples: &mut Samples,
    dtype: DType,
    label: impl Into<String>,
    n: usize,
    experts: usize,
    body: &str,
) -> Result<()> {
    samples.add(dtype, label.into(), ("N <= 65", &[("N", n)]), body)?.indices("e", experts)?;
    Ok(())
}

fn dtypes(samples: &mut Samples) -> Result<()> {
    for w in FLOATS.into_iter().chain(blocks()) {
        let size = w.block_elems().max(17);
        let sizes = Sizes { hidden: size, inner: size, ..PLAIN };
        let name = w.name();
        for x in FLOATS {
            let body = sizes.body(x.name(), "f32", [name; 3], "silu");
            for n in [0, 1, 9] {
                add(samples, w, format!("{x} n={n}"), n, sizes.experts, &body)?;
            }
        }
    }
    let sizes = Sizes { hidden: 256, inner: 256, ..PLAIN };
    let mixed = [("weights of f16", "f16", ["q4_0"; 3]), ("three types", "f32", ["q4_k", "q8_0", "q6_k"])];
    for (label, weights, matrices) in mixed {
        let body = sizes.body("f32", weights, matrices, "silu");
        add(samples, DType::F32, label, 3, sizes.experts, &body)?;
    }
    Ok(())
}

fn activations(samples: &mut Samples) -> Result<()> {
    for (word, _) in Activation::WORDS {
        let body = PLAIN.body("f32", "f32", ["f32"; 3], word);
        add(samples, DType::F32, *word, 7, PLAIN.experts, &body)?;
    }
    Ok(())
}

fn sizes(samples: &mut Samples) -> Result<()> {
    for size in SIZES {
        let all = [
            ("hidden", Sizes { hidden: size, ..PLAIN }, 4),
            ("inner", Sizes { inner: size, ..PLAIN }, 4),
            ("tokens", PLAIN, size),
            ("experts", Sizes { experts: size.max(1), ..PLAIN }, 4),
            ("chosen", Sizes { chosen: size.min(8), ..PLAIN }, 4),
        ];
        for (what, sizes, n) in all {
            if what == "chosen" && size > 8 {
                continue;
            }
            for w in ["f32", "f16"] {
                let body = sizes.body("f32", "f32", [w; 3], "silu");
                add(samples, DType::F32, format!("{w} {what} {size}"), n, sizes.experts, &body)?;
            }
        }
    }
    for (label, chosen, experts) in [("one expert", 1, 1), ("all experts", 5, 5)] {
        let sizes = Sizes { chosen, experts, hidden: 32, inner: 64 };
        for w in ["f32", "q8_0", "q4_0"] {
            let body = sizes.body("f32", "f32", [w; 3], "silu");
            for n in [1, 40] {
                add(samples, DType::F32, format!("{w} {label} n={n}"), n, experts, &body)?;
            }
        }
    }
    Ok(())
}

fn choices(samples: &mut Samples) -> Result<()> {
    let sizes = Sizes { hidden: 32, inner: 32, ..PLAIN };
    for w in ["f32", "q8_0"] {
        let body = sizes.body("f32", "f32", [w; 3], "silu");
        for (label, experts) in [
            ("twice the same", [3, 3, 0, 0, 4, 4]),
            ("one for all", [2, 1, 2, 3, 2, 4]),
            ("not there", [-1, 0, 5, 1, i64::from(i32::MAX), i64::from(i32::MIN)]),
        ] {
            let label = format!("{w} {label}");
            samples.add(DType::F32, label, ("N <= 65", &[("N", 3)]), &body)?.ints("e", &experts)?;
        }
        let sample =
            samples.add(DType::F32, format!("{w} no number for nobody"), ("N <= 65", &[("N", 3)]), &body)?;
        let weights = [f64::NAN, 0.5, 0.25, f64::INFINITY, 1.0, 0.0];
        sample.ints("e", &[-1, 0, 1, 9, 2, 2])?.floats("s", &weights)?;
        let sample = samples.add(DType::F32, format!("{w} specials"), ("N <= 65", &[("N", 3)]), &body)?;
        sample.specials("x")?.indices("e", sizes.experts)?;
    }
    Ok(())
}

fn views(samples: &mut Samples) -> Result<()> {
    let body = "%j = input \"j\" : f32[N, 40]\n%x = slice %j {axis = 1, start = 3, len = 32}\n\
                %p = input \"p\" : f32[N, 5]\n%s = slice %p {axis = 1, start = 1, len = 2}\n\
                %q = input \"e\" : i32[N, 4]\n%e = slice %q {axis = 1, start = 0, len = 2, step = 2}\n\
                %g = weight \"g\" : q8_0[5, 64, 32] = seed 7\n%u = weight \"u\" : q8_0[5, 64, 32] = seed 8\n\
                %d = weight \"d\" : q8_0[5, 32, 64] = seed 9\n\
                %y = moe %x, %s, %e, %g, %u, %d {activation = silu}\nreturn %y";
    samples.add(DType::F32, "strided", ("N <= 65", &[("N", 5)]), body)?.indices("e", 5)?;
    let body = "%x = input \"x\" : f32[N, 32]\n%r = weight \"r\" : f32[6, 32] = seed 5\n%l = linear %x, %r\n\
                %p = softmax %l {axis = -1}\n%s, %e = top_k %p {k = 2}\n\
                %g = weight \"g\" : f32[6, 48, 32] = seed 7\n%u = weight \"u\" : f32[6, 48, 32] = seed 8\n\
                %d = weight \"d\" : f32[6, 32, 48] = seed 9\n\
                %y = moe %x, %s, %e, %g, %u, %d {activation = silu}\nreturn %y";
    samples.add(DType::F32, "behind a router", ("N <= 65", &[("N", 5)]), body)?;
    Ok(())
}
