//! Whether a row's result has the same bits in every batch and on every number of threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use rlx_compile::CompileOptions;
use rlx_ir::{DType, Tensor, TensorType};
use rlx_runtime::Backend;

use super::execute::{compile, context, execute};
use super::{Failure, missing, place_of};
use crate::Result;
use crate::cases::{Sample, Samples, blocks};

/// Rows of the whole batch.
const ROWS: usize = 37;

/// Parts of the batch: first row and number of rows.
const PARTS: [(usize, usize); 9] =
    [(0, 37), (0, 1), (5, 1), (36, 1), (0, 2), (3, 5), (2, 8), (0, 16), (16, 17)];

/// Runs ops on parts of a batch on all `backends` (one device with several thread counts) and compares every row's bits
/// with those of the whole batch on the first. For backends that promise this.
///
/// # Errors
/// `InvalidArgument` where a case's text is wrong; errors of the backend.
pub fn check_row_independence(backends: &[Arc<dyn Backend>]) -> Result<Vec<Failure>> {
    let mut failures = Vec::new();
    let Some(first) = backends.first() else { return Ok(failures) };
    for (sample, axis_inputs) in batches()? {
        let mut whole = None;
        for backend in [first].into_iter().chain(backends) {
            let session = compile(backend, &sample.graph, CompileOptions::default())?;
            let mut shared = context(&session, &sample)?;
            for (start, count) in PARTS {
                let part = part(&sample, &axis_inputs, start, count)?;
                let got = execute(&session, &mut shared, &part)?.outputs;
                let Some(whole) = &whole else {
                    whole = Some(got);
                    break;
                };
                let cut = whole.iter().map(|t| rows(t, start, count)).collect::<Result<Vec<_>>>()?;
                if cut != got {
                    failures.push(failure(&sample, backend, &format!("rows {start}..{}", start + count)));
                }
            }
        }
    }
    sequences(backends, &mut failures)?;
    steps(backends, &mut failures)?;
    Ok(failures)
}

fn failure(sample: &Sample, backend: &Arc<dyn Backend>, what: &str) -> Failure {
    Failure {
        case: sample.case,
        dtype: sample.dtype,
        label: sample.label.clone(),
        seed: SEED,
        place: place_of(backend),
        what: format!("{what} have other bits alone than in the whole batch"),
        sizes: sample.sizes.clone(),
        graph: sample.graph.to_string(),
    }
}

const SEED: u64 = 11;

/// Ops over rows, with the inputs whose first axis is the batch.
fn batches() -> Result<Vec<(Sample, Vec<&'static str>)>> {
    let mut samples = Samples::new("rows", SEED);
    let mut add = |dtype: DType, label: String, body: &str| -> Result<()> {
        let sample = samples.add(dtype, label, ("N <= 37", &[("N", ROWS)]), body)?;
        if sample.inputs.contains_key("p") {
            sample.indices("p", 300)?;
        }
        Ok(())
    };
    let small = ["f32", "f16", "bf16"];
    for w in small.iter().filter_map(|n| DType::from_name(n)).chain(blocks()) {
        for x in small.into_iter().chain(["q8_f32"]) {
            if x == "q8_f32" && !w.is_block() {
                continue;
            }
            let body = format!(
                "%x = input \"x\" : {x}[N, 512]\n%w = weight \"w\" : {w}[70, 512] = seed 7\n\
                 %b = weight \"b\" : f32[70] = seed 8\n%y = linear %x, %w, %b {{bias, activation = gelu}}\nreturn %y"
            );
            add(w, format!("linear of {x}"), &body)?;
        }
    }
    for dtype in small.iter().filter_map(|n| DType::from_name(n)) {
        for (op, width) in [
            ("softmax %x {axis = -1}", 77),
            ("layer_norm %x, %w {eps = 1e-5}", 77),
            ("rms_norm %x, %w {eps = 1e-5}", 77),
            ("l2_normalize %x", 77),
            ("gelu %x {approximate = none}", 77),
            ("glu %x {activation = silu}", 78),
            ("reduce_sum %x {axes = [1]}", 77),
            ("matmul %x, %o", 77),
        ] {
            let body = format!(
                "%x = input \"x\" : {dtype}[N, {width}]\n%w = weight \"w\" : f32[{width}] = seed 3\n\
                 %o = input \"o\" : {dtype}[{width}, 35]\n%y = {op}\nreturn %y"
            );
            add(dtype, op.to_owned(), &body)?;
        }
        let body = format!(
            "%x = input \"x\" : {dtype}[N, 2, 34]\n%p = input \"p\" : i32[N]\n%f = input \"f\" : f32[17]\n\
             %y = rope %x, %p, %f {{style = half}}\nreturn %y"
        );
        add(dtype, "rope".to_owned(), &body)?;
        let body = format!("%x = input \"x\" : {dtype}[N, 77]\n%v, %i = top_k %x {{k = 5}}\nreturn %v, %i");
        add(dtype, "top_k".to_owned(), &body)?;
        let body = format!(
            "%x = input \"x\" : {dtype}[N, 77]\n%s = reduce_max %x {{axes = [1], keep_dims}}\n%y = div %x, %s\nreturn %y"
        );
        add(dtype, "div by a column".to_owned(), &body)?;
        let body = "%q = quantize %x {to = q8_f32}\n%w = weight \"w\" : q4_0[9, 64] = seed 7\n%y = linear %q, %w\nreturn %y";
        add(dtype, "quantize".to_owned(), &format!("%x = input \"x\" : {dtype}[N, 64]\n{body}"))?;
    }
    Ok(samples.into_list().into_iter().map(|s| (s, vec!["x", "p"])).collect())
}

/// The rows `start..start + count` of `tensor`.
fn rows(tensor: &Tensor, start: usize, count: usize) -> Result<Tensor> {
    let all = tensor.shape().first().copied().unwrap_or(1).max(1);
    let row = tensor.bytes().len() / all;
    let mut shape = tensor.shape().to_vec();
    if let Some(first) = shape.first_mut() {
        *first = count;
    }
    let bytes = tensor.bytes()[start * row..(start + count) * row].to_vec();
    Ok(Tensor::from_bytes(TensorType::new(tensor.dtype(), shape), bytes)?)
}

/// `sample` with some rows of the inputs named in `of`.
fn part(sample: &Sample, of: &[&str], start: usize, count: usize) -> Result<Sample> {
    let mut part = sample.clone();
    part.sizes = vec![("N".to_owned(), count)];
    part.inputs = cut(&sample.inputs, of, start, count)?;
    Ok(part)
}

fn cut(
    inputs: &BTreeMap<String, Tensor>,
    of: &[&str],
    start: usize,
    count: usize,
) -> Result<BTreeMap<String, Tensor>> {
    let one = |(name, tensor): (&String, &Tensor)| -> Result<(String, Tensor)> {
        let cut = if of.contains(&name.as_str()) { rows(tensor, start, count)? } else { tensor.clone() };
        Ok((name.clone(), cut))
    };
    inputs.iter().map(one).collect()
}

/// Attention over several sequences gives each what it gives it alone.
fn sequences(backends: &[Arc<dyn Backend>], failures: &mut Vec<Failure>) -> Result<()> {
    let starts = [0usize, 1, 18, 18, 37];
    let mut samples = Samples::new("rows", SEED);
    for dtype in ["f32", "f16", "bf16"].iter().filter_map(|n| DType::from_name(n)) {
        for mask in ["none", "causal", "sliding_window, window = 5", "local, window = 4"] {
            let body = format!(
                "%q = input \"q\" : {dtype}[N, 4, 40]\n%k = input \"k\" : {dtype}[N, 2, 40]\n\
                 %v = input \"v\" : {dtype}[N, 2, 40]\n%s = input \"s\" : i32[R + 1]\n\
                 %y = attention %q, %k, %v, %s {{mask = {mask}, scale = 0.16}}\nreturn %y"
            );
            let sizes = [("N", ROWS), ("R", 4)];
            samples
                .add(dtype, format!("attention {mask}"), ("N <= 37, R <= 4", &sizes), &body)?
                .ints("s", &starts.map(|s| s as i64))?;
        }
    }
    for sample in samples.into_list() {
        let mut whole: Option<Tensor> = None;
        for backend in backends {
            let session = compile(backend, &sample.graph, CompileOptions::default())?;
            let mut shared = context(&session, &sample)?;
            let all = execute(&session, &mut shared, &sample)?.outputs.remove(0);
            let whole = whole.get_or_insert_with(|| all.clone());
            if all != *whole {
                failures.push(failure(&sample, backend, "all rows"));
            }
            for pair in starts.windows(2) {
                let (start, count) = (pair[0], pair[1] - pair[0]);
                let mut alone = sample.clone();
                alone.sizes = vec![("N".to_owned(), count), ("R".to_owned(), 1)];
                alone.inputs = cut(&sample.inputs, &["q", "k", "v"], start, count)?;
                let ty = TensorType::new(DType::I32, [2]);
                alone.inputs.insert("s".to_owned(), Tensor::from_i64(ty, &[0, count as i64])?);
                let got = execute(&session, &mut shared, &alone)?.outputs.remove(0);
                if got != rows(whole, start, count)? {
                    failures.push(failure(&sample, backend, &format!("rows {start}..{}", start + count)));
                }
            }
        }
    }
    Ok(())
}

/// Attention over state gives a token the same in a prefill, in a chunk, and in a step of its own.
fn steps(backends: &[Arc<dyn Backend>], failures: &mut Vec<Failure>) -> Result<()> {
    let mut samples = Samples::new("rows", SEED);
    for (q, state) in [("f32", "f16"), ("f32", "f32"), ("f16", "f16"), ("bf16", "bf16")] {
        for mask in ["causal", "sliding_window, window = 5"] {
            let body = format!(
                "%q = input \"q\" : {q}[N, 4, 40]\n%k = state \"k\" : {state}[6, 8, 2, 40]\n\
                 %v = state \"v\" : {state}[6, 8, 2, 40]\n%s = input \"s\" : i32[2]\n%l = input \"l\" : i32[1]\n\
                 %t = input \"t\" : i32[1, 5]\n\
                 %y = paged_attention %q, %k, %v, %s, %l, %t {{mask = {mask}, scale = 0.16}}\nreturn %y"
            );
            let Some(dtype) = DType::from_name(q) else { continue };
            let sizes = [("N", ROWS)];
            samples
                .add(dtype, format!("paged_attention over {state} {mask}"), ("N <= 37", &sizes), &body)?
                .ints("s", &[0, ROWS as i64])?
                .ints("l", &[ROWS as i64])?
                .ints("t", &[4, 0, 5, 2, 1])?;
        }
    }
    for sample in samples.into_list() {
        let mut whole: Option<Tensor> = None;
        for backend in backends {
            let session = compile(backend, &sample.graph, CompileOptions::default())?;
            let mut shared = context(&session, &sample)?;
            let all = execute(&session, &mut shared, &sample)?.outputs.remove(0);
            let whole = whole.get_or_insert_with(|| all.clone());
            if all != *whole {
                failures.push(failure(&sample, backend, "all rows"));
            }
            let ones = (0..ROWS).map(|i| (i, 1));
            for (start, count) in ones.chain([(0, 2), (8, 5), (3, 17), (20, 17)]) {
                let mut step = part(&sample, &["q"], start, count)?;
                let length = Tensor::from_i64(TensorType::new(DType::I32, [1]), &[(start + count) as i64])?;
                let starts = Tensor::from_i64(TensorType::new(DType::I32, [2]), &[0, count as i64])?;
                *step.inputs.get_mut("l").ok_or_else(|| missing("l"))? = length;
                *step.inputs.get_mut("s").ok_or_else(|| missing("s"))? = starts;
                let got = execute(&session, &mut shared, &step)?.outputs.remove(0);
                if got != rows(whole, start, count)? {
                    failures.push(failure(&sample, backend, &format!("rows {start}..{}", start + count)));
                }
            }
        }
    }
    Ok(())
}
