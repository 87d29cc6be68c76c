//! Runs an op by its kernel and by the interpreter, and compares.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rlx_ir::interp::{RunData, SplitMix64, run};
use rlx_ir::op::Evaluated;
use rlx_ir::{Builder, DType, Op, OpRef, Tensor, TensorType};
use rlx_kernels::call::{Bound, Call, Work, call};
use rlx_kernels::geometry::DeviceLimits;
use rlx_kernels::layout::Layout;
use rlx_kernels::source::{Target, library};
use rlx_kernels::{Kernel, manifest};
use rlx_simulator::{Compiler, Counts, Launch, Library, Mode, Simulator, Slice};

/// Clang; `None` where it is not there, which is a failure where REQUIRE_CLANG is set.
pub fn compiler() -> Option<Compiler> {
    match Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(compiler) => Some(compiler),
        Err(e) if std::env::var_os("REQUIRE_CLANG").is_some() => panic!("{e}"),
        Err(e) => {
            eprintln!("SKIPPED: {e}");
            None
        }
    }
}

/// All kernels of the manifest, with hooks and without.
fn all() -> Option<&'static [Library; 2]> {
    static ALL: OnceLock<Option<[Library; 2]>> = OnceLock::new();
    let build = || {
        let (compiler, text) = (compiler()?, library(Target::Host, manifest::kernels()));
        Some([Mode::Hooked, Mode::Fast].map(|mode| compiler.library(&text, mode).unwrap()))
    };
    ALL.get_or_init(build).as_ref()
}

/// Where operands lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// Dense, at the start of a buffer.
    Dense,
    /// Elements between the rows that nobody wrote, and an offset.
    Gaps,
}

/// Copies a dense tensor into a buffer with gaps.
fn place(sim: &mut Simulator, tensor: &Tensor, placement: Placement) -> (Layout, Slice) {
    let mut layout = Layout::dense(tensor.ty());
    let elem = tensor.dtype().block_bytes();
    let Some(&width) =
        tensor.shape().last().filter(|_| placement == Placement::Gaps && tensor.shape().len() > 1)
    else {
        let buffer = sim.buffer_of(tensor.bytes(), elem).unwrap();
        return (layout, sim.whole(buffer));
    };
    let (gap, lead) = (3, 5);
    let rows = tensor.elems() / width.max(1);
    let outer = layout.strides.len() - 1;
    layout.strides[..outer].iter_mut().for_each(|s| *s = *s / width.max(1) * (width + gap));
    let bytes = (rows * (width + gap)) * elem;
    let buffer = sim.buffer(lead * elem + bytes, elem).unwrap();
    for row in 0..rows {
        let from = &tensor.bytes()[row * width * elem..][..width * elem];
        sim.write(buffer, (lead + row * (width + gap)) * elem, from).unwrap();
    }
    (layout, Slice { buffer, offset: lead * elem, bytes })
}

/// Runs `kernel` once; results come back as tensors of `results`.
pub fn dispatch(
    library: &Library,
    kernel: &Kernel,
    (args, bindings, work): (&[u8], &[Bound], Work),
    operands: &[Slice],
    sim: &mut Simulator,
    results: &[TensorType],
    seed: u64,
) -> (Vec<Tensor>, Counts) {
    let outs: Vec<Slice> = results
        .iter()
        .map(|ty| {
            let buffer = sim.buffer(ty.bytes().unwrap(), ty.dtype.block_bytes()).unwrap();
            sim.whole(buffer)
        })
        .collect();
    let mut counts = Counts::default();
    // A pipeline limit that is no power of two: threadgroups of odd sizes must do as well.
    let pipeline = if seed.is_multiple_of(2) { 1024 } else { 160 };
    if let Some(geometry) = work.geometry(DeviceLimits::APPLE, pipeline).unwrap() {
        let bindings: Vec<Option<Slice>> = bindings
            .iter()
            .map(|b| match b {
                Bound::Operand(at) => Some(operands[*at]),
                Bound::Result(at) => Some(outs[*at]),
                Bound::Nothing => None,
            })
            .collect();
        let launch = Launch { kernel, geometry, args, bindings: &bindings, seed };
        counts = sim.dispatch(library, &launch).unwrap_or_else(|fault| panic!("{fault}"));
        // Nobody counts without hooks.
        for (out, ty) in outs.iter().zip(results).filter(|_| library.mode() == Mode::Hooked) {
            assert_eq!(sim.written(*out).unwrap(), out.bytes, "{}: bytes of {ty} left out", kernel.name);
        }
    }
    let read =
        |(out, ty): (&Slice, &TensorType)| Tensor::from_bytes(ty.clone(), sim.read(*out).unwrap()).unwrap();
    (outs.iter().zip(results).map(read).collect(), counts)
}

/// What the interpreter gives for `op`.
pub fn reference(op: OpRef, operands: &[Tensor]) -> Vec<Evaluated> {
    let mut b = Builder::new("t");
    let mut data = RunData::default();
    let mut inputs = Vec::new();
    for (i, tensor) in operands.iter().enumerate() {
        inputs.push(b.input(&format!("x{i}"), tensor.dtype(), tensor.shape()).unwrap());
        data = data.input(&format!("x{i}"), tensor.clone());
    }
    let results = b.emit_ref(op, &inputs).unwrap();
    run(&b.finish(&results).unwrap(), &mut data).unwrap()
}

/// Compares results element by element.
pub fn compare(what: &str, expected: &[Evaluated], got: &[Tensor]) {
    assert_eq!(expected.len(), got.len());
    for (result, (e, g)) in expected.iter().zip(got).enumerate() {
        assert_eq!(e.tensor.ty(), g.ty(), "{what}");
        let tolerance = e.tolerance(DType::F32.unit_roundoff()).unwrap();
        let (want, have) = (e.tensor.to_f64().unwrap(), g.to_f64().unwrap());
        // A kernel is judged by how far it is from the result before that was rounded. Where only the rounded one is
        // known, its own rounding counts as well.
        let exact = e.exact.as_ref().unwrap_or(&want);
        let rounding =
            if e.exact.is_none() && e.abs_terms.is_some() { g.dtype().unit_roundoff() } else { 0.0 };
        let moved = e.abs_terms.is_none();
        for (i, ((w, h), t)) in want.iter().zip(&have).zip(&tolerance).enumerate() {
            // A result below the smallest normal number is flushed to zero.
            let flushed = if g.dtype() == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
            let same = if moved { w.to_bits() == h.to_bits() } else { w == h };
            let fits = same
                || w.is_nan() && h.is_nan()
                || !moved && (exact[i] - h).abs() <= t + rounding * w.abs() + flushed;
            assert!(fits, "{what}: result {result}, element {i}: {h}, expected {w} within {t}");
        }
    }
}

/// Runs an op whose call is in the library of all kernels, and compares.
pub fn check(op: impl Op, operands: &[Tensor], placement: Placement, seed: u64) {
    let op: OpRef = Arc::new(op);
    let expected = reference(op.clone(), operands);
    let call = |layouts: &[Layout]| call(op.as_ref(), layouts).unwrap();
    check_call(&format!("{op:?}"), &expected, operands, placement, seed, call);
}

/// Runs a call, and compares with what is expected.
pub fn check_call(
    what: &str,
    expected: &[Evaluated],
    operands: &[Tensor],
    placement: Placement,
    seed: u64,
    call: impl Fn(&[Layout]) -> Call,
) {
    let Some([hooked, fast]) = all() else { return };
    let mut sim = Simulator::new();
    let (layouts, slices): (Vec<Layout>, Vec<Slice>) =
        operands.iter().map(|t| place(&mut sim, t, placement)).unzip();
    let call = call(&layouts);
    let results: Vec<TensorType> = expected.iter().map(|e| e.tensor.ty().clone()).collect();
    let parts = (call.args.as_slice(), call.bindings.as_slice(), call.work);
    let (got, _) = dispatch(hooked, call.kernel, parts, &slices, &mut sim, &results, seed);
    let (again, _) = dispatch(fast, call.kernel, parts, &slices, &mut sim, &results, seed);
    let shapes: Vec<&TensorType> = operands.iter().map(Tensor::ty).collect();
    compare(
        &format!("{} for {what} on {shapes:?}, {placement:?}, seed {seed}", call.kernel.name),
        expected,
        &got,
    );
    for (got, again) in got.iter().zip(&again) {
        let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
        let (values, others) = (got.to_f64().unwrap(), again.to_f64().unwrap());
        assert!(values.iter().zip(&others).all(same), "{} differs without hooks", call.kernel.name);
    }
}

/// Runs a single kernel of its own library, and compares.
pub fn check_kernel(
    library: &Library,
    kernel: &Kernel,
    args: impl Fn(&[Layout]) -> (Vec<u8>, Work),
    (expected, operands): (&[Evaluated], &[Tensor]),
    placement: Placement,
) {
    let mut sim = Simulator::new();
    let (layouts, slices): (Vec<Layout>, Vec<Slice>) =
        operands.iter().map(|t| place(&mut sim, t, placement)).unzip();
    let (args, work) = args(&layouts);
    let bindings: Vec<Bound> = (0..kernel.buffers.len())
        .map(|i| if i < operands.len() { Bound::Operand(i) } else { Bound::Result(i - operands.len()) })
        .collect();
    let results: Vec<TensorType> = expected.iter().map(|e| e.tensor.ty().clone()).collect();
    let (got, _) = dispatch(library, kernel, (&args, &bindings, work), &slices, &mut sim, &results, 1);
    compare(kernel.text.as_deref().unwrap_or(&kernel.name), expected, &got);
}

/// Random values for tests, uniform in `low..high`.
pub fn random(random: &mut SplitMix64, dtype: DType, shape: &[usize], (low, high): (f64, f64)) -> Tensor {
    let ty = TensorType::new(dtype, shape);
    let values: Vec<f64> = (0..ty.elems()).map(|_| low + (high - low) * random.uniform()).collect();
    Tensor::from_f64(ty, &values).unwrap()
}

/// f32 and f16.
pub const FLOATS: [DType; 2] = [DType::F32, DType::F16];

/// Widths around those that a simdgroup, a threadgroup and a loop over them hold.
pub const WIDTHS: [usize; 9] = [1, 2, 31, 32, 33, 127, 384, 1024, 1031];
