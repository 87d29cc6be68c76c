//! `attention`.

use rlx_ir::DType;

use crate::Result;
use crate::cases::pooling::pool::STARTS;
use crate::cases::{Case, FLOATS, SMALL_FLOATS, Sample, Samples};

/// Every mask kind, head dims, grouped heads, softcap, rows without a key, empty sequences, views.
pub(crate) struct Attention;

/// What a sample's graph says.
#[derive(Clone, Copy)]
struct Shape {
    dtype: DType,
    heads: usize,
    kv_heads: usize,
    dim: usize,
    v_dim: usize,
    /// Type and name of the mask operand.
    operand: Option<&'static str>,
}

impl Shape {
    fn plain(dtype: DType) -> Self {
        Self { dtype, heads: 2, kv_heads: 2, dim: 8, v_dim: 8, operand: None }
    }

    fn body(self, attrs: &str) -> String {
        let Self { dtype, heads, kv_heads, dim, v_dim, operand } = self;
        let (declared, used) = match operand {
            Some(ty) => (format!("%m = input \"m\" : {ty}\n"), ", %m"),
            None => (String::new(), ""),
        };
        format!(
            "%q = input \"q\" : {dtype}[N, {heads}, {dim}]\n%k = input \"k\" : {dtype}[N, {kv_heads}, {dim}]\n\
             %v = input \"v\" : {dtype}[N, {kv_heads}, {v_dim}]\n%s = input \"s\" : i32[R + 1]\n{declared}\
             %y = attention %q, %k, %v, %s{used} {{{attrs}}}\nreturn %y"
        )
    }
}

/// The mask kinds with their operands.
const MASKS: [(&str, Option<&str>); 10] = [
    ("mask = none", None),
    ("mask = causal", None),
    ("mask = sliding_window, window = 1", None),
    ("mask = sliding_window, window = 4", None),
    ("mask = local, window = 0", None),
    ("mask = local, window = 3", None),
    ("mask = custom", Some("bool[1, N, 40]")),
    ("mask = custom", Some("bool[2, N, 40]")),
    ("mask = bias", Some("f32[1, N, 40]")),
    ("mask = bias", Some("f32[2, N, 40]")),
];

const SYMBOLS: &str = "N <= 40, R <= 6";

fn add<'a>(
    samples: &'a mut Samples,
    shape: Shape,
    label: &str,
    attrs: &str,
    (n, starts): (usize, &[i64]),
) -> Result<&'a mut Sample> {
    let sizes = [("N", n), ("R", starts.len() - 1)];
    let sample = samples.add(shape.dtype, label, (SYMBOLS, &sizes), &shape.body(attrs))?;
    sample.ints("s", starts)
}

impl Case for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for dtype in FLOATS {
            let plain = Shape::plain(dtype);
            for (mask, operand) in MASKS {
                let shape = Shape { operand, ..plain };
                for (name, n, starts) in STARTS {
                    let label = format!("{mask} {} {name}", operand.unwrap_or_default());
                    add(samples, shape, &label, &format!("{mask}, scale = 0.35"), (n, starts))?;
                }
                let label = format!("{mask} {} softcap", operand.unwrap_or_default());
                let attrs = format!("{mask}, scale = 0.35, softcap = 1.5");
                add(samples, shape, &label, &attrs, (19, &[0, 2, 19]))?;
            }
            for n in [1, 2, 15, 16, 17, 31, 33, 40] {
                let attrs = "mask = causal, scale = 0.35";
                add(samples, plain, &format!("tokens {n}"), attrs, (n, &[0, n as i64]))?;
            }
        }
        dims(samples)?;
        batches(samples)?;
        hidden(samples)?;
        wrong(samples)?;
        views(samples)
    }
}

/// From one sequence to many, from one token to more than any tile holds, and the head dims that models have over such
/// batches.
fn batches(samples: &mut Samples) -> Result<()> {
    let lengths: Vec<Vec<usize>> = [1, 31, 64, 65, 129, 257, 513]
        .into_iter()
        .map(|tokens| vec![tokens])
        .chain([2, 7, 32, 33].into_iter().map(|count| (0..count).map(|i| (i * 13 + 3) % 37).collect()))
        .collect();
    for dtype in [DType::F32, DType::F16] {
        let one = |dim| Shape { heads: 1, kv_heads: 1, dim, v_dim: dim, ..Shape::plain(dtype) };
        let mut add = |dim: usize, lengths: &[usize], mask: &str| -> Result<()> {
            let mut starts = vec![0];
            lengths.iter().for_each(|l| starts.push(starts[starts.len() - 1] + *l as i64));
            let tokens = lengths.iter().sum::<usize>();
            let sizes = [("N", tokens), ("R", lengths.len())];
            let longest = lengths.iter().max().copied().unwrap_or(0);
            let label = format!("{mask} head_dim {dim}, {} sequences to {longest}", lengths.len());
            let body = one(dim).body(&format!("mask = {mask}, scale = 0.18"));
            samples.add(dtype, label, ("N <= 640, R <= 40", &sizes), &body)?.ints("s", &starts)?;
            Ok(())
        };
        for (i, lengths) in lengths.iter().enumerate() {
            add(32, lengths, if i % 2 == 0 { "none" } else { "causal" })?;
        }
        for dim in [32, 64, 96, 128, 256] {
            add(dim, &[33, 0, 37], "none")?;
            add(dim, &[33, 0, 37], "causal")?;
        }
    }
    Ok(())
}

/// Head dims and groups.
fn dims(samples: &mut Samples) -> Result<()> {
    for dtype in SMALL_FLOATS {
        for dim in [1, 7, 17, 24, 32, 64, 80, 96, 128, 256] {
            let shape = Shape { dim, v_dim: dim, ..Shape::plain(dtype) };
            add(samples, shape, &format!("head_dim {dim}"), "mask = causal, scale = 0.125", (9, &[0, 6, 9]))?;
        }
        for (heads, kv_heads) in [(1, 1), (4, 1), (6, 2), (3, 3), (8, 2)] {
            let shape = Shape { heads, kv_heads, ..Shape::plain(dtype) };
            let label = format!("{heads} heads over {kv_heads}");
            add(samples, shape, &label, "mask = causal, scale = 0.35", (19, &[0, 17, 19]))?;
            let operand = Some("bool[1, N, 40]");
            add(
                samples,
                Shape { operand, ..shape },
                &format!("{label} custom"),
                "mask = custom, scale = 0.35",
                (9, &[0, 9]),
            )?;
        }
        let shape = Shape { v_dim: 5, ..Shape::plain(dtype) };
        add(samples, shape, "narrow values", "mask = none, scale = 0.35", (9, &[0, 6, 9]))?;
        let shape = Shape { operand: Some("f16[1, N, 40]"), ..Shape::plain(dtype) };
        add(samples, shape, "f16 bias", "mask = bias, scale = 0.35", (9, &[0, 6, 9]))?;
        let big =
            add(samples, Shape::plain(dtype), "large scores", "mask = none, scale = 20.0", (9, &[0, 9]))?;
        big.range("q", -8.0, 8.0)?.range("k", -8.0, 8.0)?;
    }
    Ok(())
}

/// Queries without a visible key, and hidden keys whose values are not finite.
fn hidden(samples: &mut Samples) -> Result<()> {
    for dtype in SMALL_FLOATS {
        let shape = Shape { operand: Some("bool[1, N, 3]"), ..Shape::plain(dtype) };
        let bits = [0, 0, 0, 1, 1, 0, 0, 0, 0];
        add(samples, shape, "rows without a key", "mask = custom, scale = 0.35", (3, &[0, 3]))?
            .ints("m", &bits)?;
        let shape = Shape { operand: Some("f32[1, N, 3]"), ..Shape::plain(dtype) };
        let bias = bits.map(|b| if b == 0 { f64::NEG_INFINITY } else { 0.5 });
        add(samples, shape, "bias of minus infinity", "mask = bias, scale = 0.35", (3, &[0, 3]))?
            .floats("m", &bias)?;
        // The last key is hidden from all.
        let mut values = vec![0.25; 48];
        values[32..].fill(f64::NAN);
        let shape = Shape { operand: Some("f32[1, N, 3]"), ..Shape::plain(dtype) };
        add(samples, shape, "hidden key not finite", "mask = bias, scale = 0.35", (3, &[0, 3]))?
            .floats("m", &bias)?
            .floats("v", &values)?
            .floats("k", &values)?;
        let sample = add(
            samples,
            Shape::plain(dtype),
            "later values not finite",
            "mask = causal, scale = 0.35",
            (3, &[0, 3]),
        )?;
        let mut values = vec![0.25; 48];
        values[32..].fill(f64::NAN);
        sample.floats("v", &values)?.floats("k", &values)?;
        let sample =
            add(samples, Shape::plain(dtype), "infinite value", "mask = none, scale = 0.35", (3, &[0, 3]))?;
        let mut values = vec![0.25; 48];
        values[40] = f64::INFINITY;
        sample.floats("v", &values)?;
    }
    Ok(())
}

/// Starts and masks that do not fit.
fn wrong(samples: &mut Samples) -> Result<()> {
    for dtype in [DType::F32, DType::F16] {
        for starts in [[0, 4, 3], [0, 3, 9], [-1, 3, 8]] {
            let label = format!("starts {starts:?}");
            add(samples, Shape::plain(dtype), &label, "mask = none, scale = 0.35", (8, &starts))?.refuse();
        }
        let shape = Shape { operand: Some("bool[1, N, 3]"), ..Shape::plain(dtype) };
        add(samples, shape, "narrow mask", "mask = custom, scale = 0.35", (8, &[0, 3, 8]))?.refuse();
    }
    Ok(())
}

/// Queries, keys and values as parts of one joint row, as a product of all three gives them.
fn views(samples: &mut Samples) -> Result<()> {
    for dtype in SMALL_FLOATS {
        let body = format!(
            "%j = input \"j\" : {dtype}[N, 64]\n%s = input \"s\" : i32[R + 1]\n\
             %q0 = slice %j {{axis = 1, start = 0, len = 32}}\n%q = reshape %q0 {{shape = [N, 4, 8]}}\n\
             %k0 = slice %j {{axis = 1, start = 32, len = 16}}\n%k = reshape %k0 {{shape = [N, 2, 8]}}\n\
             %v0 = slice %j {{axis = 1, start = 48, len = 16}}\n%v = reshape %v0 {{shape = [N, 2, 8]}}\n\
             %y = attention %q, %k, %v, %s {{mask = causal, scale = 0.35}}\nreturn %y"
        );
        let sizes = [("N", 9), ("R", 2)];
        samples.add(dtype, "joint row", (SYMBOLS, &sizes), &body)?.ints("s", &[0, 4, 9])?;
        repeated(samples, dtype)?;
    }
    Ok(())
}

/// One token for all, as queries, keys, values, and keys and values.
fn repeated(samples: &mut Samples, dtype: DType) -> Result<()> {
    let declare = |name: &str, heads: usize, repeats: bool| match repeats {
        true => format!(
            "%{name}1 = input \"{name}\" : {dtype}[{heads}, 8]\n%{name} = broadcast %{name}1 {{shape = [N, {heads}, 8]}}\n"
        ),
        false => format!("%{name} = input \"{name}\" : {dtype}[N, {heads}, 8]\n"),
    };
    for which in ["q", "k", "v", "kv", "qkv"] {
        let operands: String =
            [("q", 4), ("k", 2), ("v", 2)].map(|(n, heads)| declare(n, heads, which.contains(n))).concat();
        let body = format!(
            "{operands}%s = input \"s\" : i32[R + 1]\n\
             %y = attention %q, %k, %v, %s {{mask = causal, scale = 0.35}}\nreturn %y"
        );
        let sizes = [("N", 9), ("R", 2)];
        let label = format!("one token for all of {which}");
        samples.add(dtype, label, (SYMBOLS, &sizes), &body)?.ints("s", &[0, 4, 9])?;
    }
    Ok(())
}
