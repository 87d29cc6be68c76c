//! Rates of matrix products, of row by row and elementwise kernels, of choices by index, and of attention: `cargo bench -p rlx-cpu --bench kernels [-- THREADS [NAME]]`.
//!
//! Prints for each case the best and the median time, GFLOP/s and GB/s of weights.

use std::num::NonZeroUsize;
use std::time::Instant;

use half::f16;
use rlx_cpu::kernels::attention::{Heads, Mask, Pages, Tokens, paged, ragged};
use rlx_cpu::kernels::elementwise::{self, Binary, Comparison, Truth, Unary};
use rlx_cpu::kernels::matmul::{Arrangement, Epilogue, PackedBuf, PackedShape, Rows, packed, quantized};
use rlx_cpu::kernels::{Cpu, Strided, index, memory, norm, reduce};
use rlx_cpu::pool::Pool;
use rlx_cpu::simd::SimdLevel;
use rlx_ir::DType;
use rlx_ir::quant::BlockType;

type Failure = Box<dyn std::error::Error>;

/// Best and median seconds of a run.
fn time(mut f: impl FnMut() -> rlx_cpu::Result<()>) -> Result<(f64, f64), Failure> {
    let mut times = Vec::new();
    let begin = Instant::now();
    while times.len() < 15 || begin.elapsed().as_millis() < 300 {
        let start = Instant::now();
        f()?;
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    Ok((times[0], times[times.len() / 2]))
}

fn report(name: &str, (best, median): (f64, f64), flops: f64, bytes: f64) {
    println!(
        "{name:<46} {:>9.1} us best {:>9.1} us median {:>7.1} GFLOP/s {:>6.1} GB/s",
        best * 1e6,
        median * 1e6,
        flops / best / 1e9,
        bytes / best / 1e9
    );
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| ((i * 7919 + 13) % 1009) as f32 / 504.5 - 1.0).collect()
}

fn weight(dtype: DType, rows: usize, depth: usize) -> Result<PackedBuf, Failure> {
    let values = numbers(rows * depth);
    let mut bytes = vec![0; rows * dtype.row_bytes(depth).unwrap_or(0)];
    match dtype {
        DType::Block(block) => {
            // One row, repeated: the search of the encoder is slow.
            let row_bytes = bytes.len() / rows;
            block.encode(&values[..depth], None, &mut bytes[..row_bytes])?;
            let (first, rest) = bytes.split_at_mut(row_bytes);
            rest.chunks_mut(row_bytes).for_each(|row| row.copy_from_slice(first));
        }
        DType::F16 => rlx_ir::quant::encode_f16(&values, &mut bytes)?,
        DType::BF16 => rlx_ir::quant::encode_bf16(&values, &mut bytes)?,
        _ => bytes.copy_from_slice(bytemuck::cast_slice(&values)),
    }
    let start = Instant::now();
    let packed = PackedBuf::pack(PackedShape::new(dtype, rows, depth, Arrangement::Plain)?, &bytes)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("  packed {dtype} [{rows}, {depth}] at {:.2} GB/s", bytes.len() as f64 / seconds / 1e9);
    Ok(packed)
}

/// Shapes of models, then every block type on one shape.
fn matmuls(cpu: Cpu<'_>, only: &str) -> Result<(), Failure> {
    let block = DType::Block;
    let mut cases = vec![
        (DType::F32, 1536, 384, &[1, 8, 128, 512][..]),
        (DType::F16, 1536, 384, &[1, 128]),
        (block(BlockType::Q8_0), 1536, 384, &[1, 2, 4, 8, 128, 512]),
        (block(BlockType::Q4_1), 1536, 576, &[1, 2, 4, 8, 128, 512]),
        (block(BlockType::Q4_1), 49152, 576, &[1]),
        (block(BlockType::Q8_0), 49152, 576, &[1]),
        (block(BlockType::Q4_K), 16384, 1024, &[1, 128]),
        (block(BlockType::Q6_K), 16384, 1024, &[1, 128]),
        (block(BlockType::Q5_0), 16384, 1024, &[1]),
    ];
    let activations = [BlockType::Q8_1, BlockType::Q8_K, BlockType::Q8_F32];
    let schemes = BlockType::ALL.into_iter().filter(|b| !activations.contains(b)).map(block);
    cases
        .extend([DType::F16, DType::BF16].into_iter().chain(schemes).map(|d| (d, 4096, 1536, &[1, 128][..])));
    for (dtype, n, k, sizes) in cases {
        if !format!("matmul {dtype}").contains(only) {
            continue;
        }
        let w = weight(dtype, n, k)?;
        for &m in sizes {
            let (x, mut out) = (numbers(m * k), vec![0f32; m * n]);
            let rows = Rows { data: &x[..], rows: m, stride: k };
            let flops = 2.0 * (m * n * k) as f64;
            let bytes = w.view().shape().bytes() as f64;
            let t = time(|| packed(cpu, rows, &w.view(), &Epilogue::default(), &mut out, n))?;
            report(&format!("matmul {dtype} [{m}x{k}] x [{n}x{k}]"), t, flops, bytes);
            if dtype.is_block() {
                let mut blocks = vec![0; m * k / 32 * 36];
                BlockType::Q8_F32.encode(&x, None, &mut blocks)?;
                let rows = Rows { data: &blocks[..], rows: m, stride: k / 32 * 36 };
                let t = time(|| quantized(cpu, rows, &w.view(), &Epilogue::default(), &mut out, n))?;
                report(&format!("matmul {dtype} x q8_f32 [{m}x{k}] x [{n}x{k}]"), t, flops, bytes);
            }
        }
    }
    Ok(())
}

/// What is done row by row or element by element: the rate is of bytes read and written.
fn rows(cpu: Cpu<'_>, only: &str) -> Result<(), Failure> {
    let case = |name: &str, elems: usize, bytes: usize, f: &mut dyn FnMut() -> rlx_cpu::Result<()>| {
        if name.contains(only) {
            report(name, time(f)?, elems as f64, bytes as f64);
        }
        Ok::<(), Failure>(())
    };
    for (rows, cols) in [(1, 576), (128, 384), (1024, 384)] {
        let n = rows * cols;
        let (x, w, mut y, mut sum) = (numbers(n), numbers(cols), vec![0f32; n], vec![0f32; n]);
        let mut places = vec![0; rows];
        let label = |op: &str| format!("{op} [{rows}x{cols}]");
        case(&label("rms_norm"), n, 8 * n, &mut || {
            norm::rms_norm(cpu, cols, 1e-5, (Some(&w), 0.0), &x, None, &mut y)
        })?;
        case(&label("add_layer_norm"), n, 16 * n, &mut || {
            let add = norm::AddFirst { residual: &x, sum: &mut sum };
            norm::layer_norm(cpu, cols, 1e-5, (Some(&w), Some(&w)), &x, Some(add), &mut y)
        })?;
        case(&label("softmax"), n, 8 * n, &mut || norm::softmax(cpu, cols, 1.0, &x, &mut y))?;
        for op in [Unary::Gelu, Unary::Silu, Unary::Exp] {
            case(&label(&format!("{op:?}")), n, 8 * n, &mut || elementwise::unary(cpu, op, &x, &mut y))?;
        }
        case(&label("Add"), n, 12 * n, &mut || elementwise::binary(cpu, Binary::Add, &x, &x, &mut y))?;
        let half: Vec<f16> = x.iter().map(|&x| f16::from_f32(x)).collect();
        let mut half_out = half.clone();
        case(&label("Gelu f16"), n, 4 * n, &mut || {
            elementwise::unary(cpu, Unary::Gelu, &half, &mut half_out)
        })?;
        case(&label("cast f32 to f16"), n, 6 * n, &mut || elementwise::cast(cpu, &x, &mut half_out))?;
        case(&label("reduce_sum"), n, 4 * n, &mut || {
            reduce::reduce(cpu, reduce::Reduction::Sum, [rows, cols, 1], &x, &mut y[..rows])
        })?;
        case(&label("reduce_sum f16"), n, 2 * n, &mut || {
            reduce::reduce(cpu, reduce::Reduction::Sum, [rows, cols, 1], &half, &mut y[..rows])
        })?;
        case(&label("Pow"), n, 12 * n, &mut || elementwise::binary(cpu, Binary::Pow, &x, &x, &mut y))?;
        let (by_rows, repeated) = ([cols, 1], [0, 1]);
        let strided = || Strided { data: &x[..], strides: &by_rows };
        let row = || Strided { data: &w[..], strides: &repeated };
        let mut truths = vec![Truth::from(false); n];
        case(&label("Gt a row"), n, 5 * n, &mut || {
            elementwise::compare(cpu, Comparison::Gt, &[rows, cols], [strided(), row()], &mut truths)
        })?;
        case(&label("select a row"), n, 9 * n, &mut || {
            let condition = Strided { data: &truths[..], strides: &by_rows };
            elementwise::select(cpu, &[rows, cols], condition, [strided(), row()], &mut y)
        })?;
        case(&label("argmax"), n, 4 * n, &mut || {
            index::argmax(cpu, [rows, cols, 1], &x, &mut places[..rows])
        })?;
        let mut blocks = vec![0; n / 32 * 36];
        case(&label("quantize"), n, 5 * n, &mut || {
            memory::quantize(cpu, BlockType::Q8_F32, cols, &x, &mut blocks)
        })?;
        let mut blocks = vec![0; n / 32 * 34];
        BlockType::Q8_0.encode(&x, None, &mut blocks)?;
        case(&label("dequantize q8_0"), n, 5 * n, &mut || {
            memory::dequantize(cpu, BlockType::Q8_0, cols, &blocks, &mut y)
        })?;
    }
    Ok(())
}

/// What the router of a mixture of experts does after its product, and rows that go to their places: the rate is of bytes read
/// and written.
fn choices(cpu: Cpu<'_>, only: &str) -> Result<(), Failure> {
    let case = |name: &str, elems: usize, bytes: usize, f: &mut dyn FnMut() -> rlx_cpu::Result<()>| {
        if name.contains(only) {
            report(name, time(f)?, elems as f64, bytes as f64);
        }
        Ok::<(), Failure>(())
    };
    let (experts, chosen, hidden) = (128, 8, 1024);
    for tokens in [1, 128, 1024] {
        let (x, n) = (numbers(tokens * experts), tokens * chosen);
        let (mut values, mut places) = (vec![0f32; n], vec![0i32; n]);
        case(&format!("top_k {chosen} of [{tokens}x{experts}]"), x.len(), 4 * x.len() + 8 * n, &mut || {
            index::top_k(cpu, [experts, chosen], &x, &mut values, &mut places)
        })?;
        let (sums, mut y) = (numbers(tokens), vec![0f32; n]);
        case(&format!("Div [{tokens}x{chosen}] by a column"), n, 8 * n + 4 * tokens, &mut || {
            let operands = [
                Strided { data: &values[..], strides: &[chosen, 1] },
                Strided { data: &sums[..], strides: &[1, 0] },
            ];
            elementwise::binary_strided(cpu, Binary::Div, &[tokens, chosen], operands, &mut y)
        })?;
        let n = tokens * hidden;
        let (rows, mut out) = (numbers(n), vec![0f32; n]);
        let indices: Vec<i64> = (0..tokens as i64).rev().collect();
        case(&format!("scatter add [{tokens}x{hidden}]"), n, 12 * n, &mut || {
            let places = index::Rows { outer: 1, size: tokens, inner: hidden, indices: &indices };
            index::scatter_add(cpu, places, &rows, &rows, &mut out)
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let threads = args.first().and_then(|a| a.parse().ok()).and_then(NonZeroUsize::new);
    let only = args.get(1).cloned().unwrap_or_default();
    let pool = Pool::new(threads)?;
    let cpu = Cpu { pool: &pool, level: SimdLevel::best() };
    println!("{} threads, {}", pool.threads(), cpu.level.name());
    matmuls(cpu, &only)?;
    rows(cpu, &only)?;
    choices(cpu, &only)?;
    for (num_heads, num_kv_heads, head_dim, len, sequences, mask) in [
        (12, 12, 32, 128, 1, Mask::None),
        (12, 12, 32, 32, 16, Mask::None),
        (12, 12, 64, 512, 1, Mask::None),
        (9, 3, 64, 512, 1, Mask::Causal),
    ] {
        let heads = Heads { num_heads, num_kv_heads, head_dim, scale: 0.1, softcap: None };
        let name = format!(
            "attention {sequences} x {len} tokens, {num_heads}/{num_kv_heads} x {head_dim}, {mask:?}"
        );
        if !name.contains(&only) {
            continue;
        }
        let tokens = len * sequences;
        let (q, kv) = (numbers(tokens * num_heads * head_dim), numbers(tokens * num_kv_heads * head_dim));
        let starts: Vec<i32> = (0..=sequences).map(|s| (s * len) as i32).collect();
        let q_tokens = Tokens::dense(&q, num_heads * head_dim);
        let kv_tokens = Tokens::dense(&kv, num_kv_heads * head_dim);
        let mut out = vec![0f32; q.len()];
        let t = time(|| ragged(cpu, heads, q_tokens, (kv_tokens, kv_tokens), &starts, mask, &mut out))?;
        let seen = if matches!(mask, Mask::Causal) { 0.5 } else { 1.0 };
        let flops = seen * 4.0 * (num_heads * head_dim * len * tokens) as f64;
        report(&name, t, flops, (2 * kv.len() * 4) as f64);
    }
    for length in [64, 1024] {
        let heads = Heads { num_heads: 9, num_kv_heads: 3, head_dim: 64, scale: 0.125, softcap: None };
        let name = format!("attention decode, {length} keys, 9/3 x 64, f16");
        if !name.contains(&only) {
            continue;
        }
        let kv: Vec<f16> = numbers(length * 192).into_iter().map(f16::from_f32).collect();
        let table: Vec<i32> = (0..length as i32 / 16).collect();
        let pages =
            Pages { k: &kv[..], v: &kv[..], page_len: 16, block_table: &table, table_width: table.len() };
        let (q, mut out) = (numbers(576), vec![0f32; 576]);
        let t = time(|| {
            paged(
                cpu,
                heads,
                Tokens::dense(&q, heads.num_heads * heads.head_dim),
                &[0, 1],
                &[length as i32],
                pages,
                Mask::Causal,
                &mut out,
            )
        })?;
        report(&name, t, 4.0 * (576 * length) as f64, (4 * kv.len()) as f64);
    }
    Ok(())
}
