//! How long kernels take at sizes that models have, beside what a plain copy of the device moves.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaModule, DriverError};
use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::Activation;
use rlx_ir::ops::activation::gelu::{Approximate, Gelu};
use rlx_ir::ops::attention::attention::Attention;
use rlx_ir::ops::attention::mask::Mask;
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::ops::matmul::linear::Linear;
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;
use rlx_ir::ops::norm::softmax::Softmax;
use rlx_ir::ops::pooling::pool::{Pool, PoolMode};
use rlx_ir::{Bindings, Builder, DType, Dim, Op, Tensor, TensorType, Type};
use rlx_kernels::args::Args;
use rlx_kernels::call::{Bound, Call, Work, call, copy};
use rlx_kernels::layout::Layout;
use rlx_kernels::{Kernel, region};

use crate::device::{Gpu, Prepared};
use crate::harness::{Dispatch, FLOATS, Placed, Placement, Runner, random};

/// Launches between two events: one alone takes less time than the events tell apart.
const ROW: usize = 20;
/// Rows of launches, of which the median counts.
const ROWS: usize = 41;
/// Operands and results in turn, where they are too large to stay in the cache.
const TURNS: usize = 4;
const LARGE_BYTES: usize = 16 << 20;

/// What is timed.
struct Item {
    what: String,
    own: Option<Arc<CudaModule>>,
    kernel: Kernel,
    args: Vec<u8>,
    bindings: Vec<Bound>,
    work: Work,
    operands: Vec<Tensor>,
    results: Vec<TensorType>,
    flops: f64,
    bytes: f64,
}

impl Item {
    /// An op on operands, by the manifest's kernel; `flops` where the op's own count is a bound.
    fn op(op: &dyn Op, operands: Vec<Tensor>, flops: Option<f64>) -> Result<Self, String> {
        let layouts: Vec<Layout> = operands.iter().map(|t| Layout::dense(t.ty())).collect();
        let types: Vec<Type> = operands.iter().map(|t| Type::new(t.dtype(), t.shape())).collect();
        let failed = |e: rlx_ir::Error| e.to_string();
        let inferred = op.infer(&types).map_err(failed)?;
        let cost = op.cost(&types, &inferred);
        let known = |dim: Dim| dim.as_const().map_or(0.0, |n| n as f64);
        let results: Result<Vec<TensorType>, _> =
            inferred.iter().map(|t| t.eval(&Bindings::default())).collect();
        let call = call(op, &layouts).map_err(|e| format!("{}: {e}", op.name()))?;
        let bytes = known(cost.bytes_read) + known(cost.bytes_written);
        let flops = flops.unwrap_or(known(cost.flops));
        Ok(Self::call(op.name(), call, operands, results.map_err(failed)?, (flops, bytes)))
    }

    fn call(
        what: &str,
        call: Call,
        operands: Vec<Tensor>,
        results: Vec<TensorType>,
        (flops, bytes): (f64, f64),
    ) -> Self {
        let shapes: Vec<String> = operands.iter().map(|t| t.ty().to_string()).collect();
        Self {
            what: format!("{what} {}", shapes.join(" ")),
            own: None,
            kernel: call.kernel.clone(),
            args: call.args,
            bindings: call.bindings,
            work: call.work,
            operands,
            results,
            flops,
            bytes,
        }
    }

    /// What operands and results take.
    fn memory(&self) -> usize {
        let results: usize = self.results.iter().map(|t| t.bytes().unwrap_or(0)).sum();
        self.operands.iter().map(|t| t.bytes().len()).sum::<usize>() + results
    }

    fn prepare(&self, gpu: &Gpu) -> Result<Prepared, String> {
        let placed: Vec<Placed<'_>> =
            self.operands.iter().map(|t| Placed::new(t, Placement::Dense)).collect();
        let dispatch = Dispatch {
            kernel: &self.kernel,
            args: &self.args,
            bindings: &self.bindings,
            work: self.work,
            operands: &placed,
            results: &self.results,
            before: &[],
            seed: 0,
        };
        gpu.prepare(self.own.as_ref(), &dispatch)
    }
}

/// Prints a table.
pub fn run(gpu: &Gpu) -> Result<(), String> {
    let peak = copy_rate(gpu).map_err(|e| e.to_string())?;
    println!("device to device copy of 256 MiB: {:.0} GB/s, read and written\n", peak / 1e9);
    println!("{:>9} {:>8} {:>8} {:>9}  kernel", "us", "GB/s", "of copy", "GFLOP/s");
    for item in items(gpu) {
        let timed = item.and_then(|item| {
            let turns = if item.memory() > LARGE_BYTES { TURNS } else { 1 };
            let prepared: Result<Vec<Prepared>, String> = (0..turns).map(|_| item.prepare(gpu)).collect();
            let prepared = prepared?;
            let seconds = median(gpu, |i| gpu.launch(&prepared[i % turns])).map_err(|e| e.to_string())?;
            Ok((item, seconds))
        });
        match timed {
            Ok((item, seconds)) => {
                let rate = item.bytes / seconds;
                println!(
                    "{:>9.1} {:>8.1} {:>7.1}% {:>9.1}  {}",
                    seconds * 1e6,
                    rate / 1e9,
                    100.0 * rate / peak,
                    item.flops / seconds / 1e9,
                    item.what
                );
            }
            Err(e) => println!("{:>38}{e}", ""),
        }
    }
    Ok(())
}

/// The median time of a launch, in seconds.
fn median(gpu: &Gpu, mut launch: impl FnMut(usize) -> Result<(), DriverError>) -> Result<f64, DriverError> {
    let mut times = Vec::new();
    for row in 0..ROWS + 2 {
        let flags = Some(CUevent_flags::CU_EVENT_DEFAULT);
        let start = gpu.stream.record_event(flags)?;
        for i in 0..ROW {
            launch(i)?;
        }
        let end = gpu.stream.record_event(flags)?;
        let seconds = f64::from(start.elapsed_ms(&end)?) / 1e3 / ROW as f64;
        // The first rows warm up.
        if row >= 2 {
            times.push(seconds);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

/// What the device's own copy moves, in bytes per second, read and written.
fn copy_rate(gpu: &Gpu) -> Result<f64, DriverError> {
    const BYTES: usize = 256 << 20;
    let from = gpu.stream.clone_htod(&vec![0x3cu8; BYTES])?;
    let mut to = gpu.stream.clone_htod(&vec![0u8; BYTES])?;
    let seconds = median(gpu, |_| gpu.stream.memcpy_dtod(&from, &mut to))?;
    Ok(2.0 * BYTES as f64 / seconds)
}

/// Sizes of MiniLM on 8 texts of 128 tokens, and 64 MiB.
fn items(gpu: &Gpu) -> Vec<Result<Item, String>> {
    const TOKENS: usize = 1024;
    const HIDDEN: usize = 384;
    const WIDE: usize = 1536;
    let mut rng = SplitMix64::new(1);
    // What a launch takes that has next to nothing to do.
    let mut items = vec![dense_copy(Tensor::f32([1], &[1.0]).unwrap())];
    let starts = Tensor::i32([9], &[0, 128, 256, 384, 512, 640, 768, 896, 1024]).unwrap();
    for dtype in FLOATS {
        let mut values = |shape: &[usize]| random(&mut rng, dtype, shape, (-1.0, 1.0));
        let x = values(&[TOKENS, HIDDEN]);
        let (weight, bias) = (values(&[HIDDEN]), values(&[HIDDEN]));
        let norm = vec![x.clone(), weight.clone(), bias.clone()];
        items.push(Item::op(&LayerNorm { eps: 1e-12 }, norm, None));
        let norm = vec![x.clone(), x.clone(), weight, bias];
        items.push(Item::op(&AddLayerNorm { eps: 1e-12 }, norm, None));
        let scores = values(&[8 * 12 * 128, 128]);
        items.push(Item::op(&Softmax { axis: -1, scale: 0.18 }, vec![scores], None));
        items.push(gelu(gpu, values(&[TOKENS, WIDE])));
        items.push(Item::op(&Pool { mode: PoolMode::Mean }, vec![x.clone(), starts.clone()], None));
        let up = Linear { bias: true, residual: false, activation: Activation::Gelu };
        let operands = vec![x.clone(), values(&[WIDE, HIDDEN]), values(&[WIDE])];
        items.push(Item::op(&up, operands, None));
        let down = Linear { bias: true, residual: true, activation: Activation::None };
        let operands = vec![values(&[TOKENS, WIDE]), values(&[HIDDEN, WIDE]), values(&[HIDDEN]), x];
        items.push(Item::op(&down, operands, None));
        let heads = [0; 3].map(|_| values(&[TOKENS, 12, 32]));
        let attention = Attention { mask: Mask::None, scale: 0.18, softcap: None };
        // Two products, each of all queries of a text with all its keys.
        let flops = 2.0 * 2.0 * (TOKENS * 128 * 12 * 32) as f64;
        items.push(Item::op(
            &attention,
            [heads.as_slice(), std::slice::from_ref(&starts)].concat(),
            Some(flops),
        ));
        let large = values(&[4096, (64 << 20) / 4096 / dtype.block_bytes()]);
        let other = if dtype == DType::F32 { DType::F16 } else { DType::F32 };
        items.push(Item::op(&Cast { to: other }, vec![large.clone()], None));
        items.push(transpose(large.clone()));
        items.push(dense_copy(large));
    }
    let ids: Vec<i32> = (0..TOKENS).map(|_| rng.below(30522) as i32).collect();
    let table = random(&mut rng, DType::F32, &[30522, HIDDEN], (-1.0, 1.0));
    let ids = Tensor::i32([TOKENS], &ids).unwrap();
    items.push(Item::op(&Embedding::default(), vec![table, ids], None));
    items
}

fn dense_copy(x: Tensor) -> Result<Item, String> {
    let layout = Layout::dense(x.ty());
    let call = copy(&layout, &layout).map_err(|e| e.to_string())?;
    let ty = x.ty().clone();
    let bytes = 2.0 * x.bytes().len() as f64;
    Ok(Item::call("copy", call, vec![x], vec![ty], (0.0, bytes)))
}

fn transpose(x: Tensor) -> Result<Item, String> {
    let from = Layout::dense(x.ty());
    let swap = |list: &[usize]| vec![list[1], list[0]];
    let ty = TensorType::new(x.dtype(), swap(x.shape()));
    let swapped = Layout { dtype: x.dtype(), shape: swap(&from.shape), strides: swap(&from.strides) };
    let call = copy(&swapped, &Layout::dense(&ty)).map_err(|e| e.to_string())?;
    let bytes = 2.0 * x.bytes().len() as f64;
    Ok(Item::call("copy, transposed,", call, vec![x], vec![ty], (0.0, bytes)))
}

/// A fused region of one op.
fn gelu(gpu: &Gpu, x: Tensor) -> Result<Item, String> {
    let mut b = Builder::new("body");
    let value = b.input("x", x.dtype(), x.shape()).map_err(|e| e.to_string())?;
    let result = b.emit_ref(Arc::new(Gelu { approximate: Approximate::None }), &[value]);
    let body = b.finish(&result.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    let kernel = region::kernel(&FusedRegion { body }, "region").map_err(|e| e.to_string())?;
    let (args, work) = region::args(&[Layout::dense(x.ty())], x.shape()).map_err(|e| e.to_string())?;
    let what = format!("region of gelu {}", x.ty());
    let results = vec![x.ty().clone()];
    Ok(Item {
        what,
        own: Some(gpu.compile(std::slice::from_ref(&kernel))?),
        kernel,
        args: args.bytes().to_vec(),
        bindings: vec![Bound::Operand(0), Bound::Result(0)],
        work,
        bytes: 2.0 * x.bytes().len() as f64,
        operands: vec![x],
        results,
        flops: 0.0,
    })
}
