//! Runs an op by its kernel and by the interpreter, and compares. What runs the kernel is [`Device`](crate::Device), which
//! each binary that holds the cases has one of.

use std::sync::Arc;

use rlx_ir::interp::{RunData, SplitMix64, run};
use rlx_ir::op::Evaluated;
use rlx_ir::{Builder, DType, Op, OpRef, Tensor, TensorType};
use rlx_kernels::Kernel;
use rlx_kernels::call::{Bound, Call, Work, call};
use rlx_kernels::geometry::{DeviceLimits, Geometry};
use rlx_kernels::layout::Layout;

use crate::runner;

/// What runs kernels: the simulator, or a GPU.
pub trait Runner {
    /// Kernels compiled together.
    type Library;

    /// Compiles kernels that are not in the manifest.
    fn compile(&self, kernels: &[Kernel]) -> Result<Self::Library, String>;

    /// Runs a kernel of `own`, or else of the manifest, and makes sure that every byte of the results was written.
    fn run(&self, own: Option<&Self::Library>, dispatch: &Dispatch<'_>) -> Result<Vec<Tensor>, String>;

    /// Takes the outcome of a check, of which `what` says what it was.
    fn judge(&self, what: &dyn Fn() -> String, outcome: Result<Agreement, String>);
}

/// Kernels that are not in the manifest, compiled.
pub type Library = <crate::Device as Runner>::Library;

/// How near results are to the interpreter's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Agreement {
    /// The number of elements.
    pub elems: usize,
    /// The largest error of an f32 as a share of its tolerance, where that is not 0.
    pub worst_f32: f64,
    /// That of an f16, whose own rounding is most of the tolerance.
    pub worst_f16: f64,
}

/// A dispatch of a kernel on operands.
pub struct Dispatch<'a> {
    pub kernel: &'a Kernel,
    pub args: &'a [u8],
    pub bindings: &'a [Bound],
    pub work: Work,
    pub operands: &'a [Placed<'a>],
    pub results: &'a [TensorType],
    /// What the results hold before, for a kernel that changes them in place; empty for others.
    pub before: &'a [Tensor],
    pub seed: u64,
}

impl Dispatch<'_> {
    /// What to launch where the compiled kernel takes so many threads; `None` where there is nothing to do.
    pub fn geometry(&self, limits: DeviceLimits, most_threads: u32) -> Result<Option<Geometry>, String> {
        // A pipeline limit that is no power of two: threadgroups of odd sizes must do as well.
        let pipeline = if self.seed.is_multiple_of(2) { 1024 } else { 160 };
        self.kernel.geometry(self.work, limits, most_threads.min(pipeline)).map_err(|e| e.to_string())
    }
}

/// Where operands lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Placement {
    /// Dense, at the start of a buffer.
    Dense,
    /// Elements between the rows that nobody wrote, and an offset.
    Gaps,
    /// Elements between the entries of the first axis that nobody wrote, as parts of joint rows have them, and an offset.
    Joint,
}

/// An operand and where it lies. Sizes are in bytes.
pub struct Placed<'a> {
    pub tensor: &'a Tensor,
    pub layout: Layout,
    /// Where the buffer is bound.
    pub lead: usize,
    /// What is bound, gaps included.
    pub bytes: usize,
    row: usize,
    pitch: usize,
}

impl<'a> Placed<'a> {
    /// The tensor at that placement.
    pub fn new(tensor: &'a Tensor, placement: Placement) -> Self {
        let (gap, lead) = (3, 5);
        let mut layout = Layout::dense(tensor.ty());
        let elem = tensor.dtype().block_bytes();
        let rank = layout.strides.len();
        let outer = match placement {
            Placement::Gaps if rank > 1 => rank - 1,
            Placement::Joint if rank > 1 => 1,
            _ => {
                let bytes = tensor.bytes().len();
                return Self { tensor, layout, lead: 0, bytes, row: bytes, pitch: bytes };
            }
        };
        let width: usize = tensor.shape()[outer..].iter().product();
        let rows = tensor.elems() / width.max(1);
        layout.strides[..outer].iter_mut().for_each(|s| *s = *s / width.max(1) * (width + gap));
        let (row, pitch) = (width * elem, (width + gap) * elem);
        Self { tensor, layout, lead: lead * elem, bytes: rows * pitch, row, pitch }
    }

    /// The rows, with the place of each in the buffer.
    pub fn rows(&self) -> impl Iterator<Item = (usize, &'a [u8])> {
        let rows = self.tensor.bytes().chunks(self.row.max(1)).enumerate();
        rows.map(|(at, row)| (self.lead + at * self.pitch, row))
    }
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
fn compare(expected: &[Evaluated], got: &[Tensor]) -> Result<Agreement, String> {
    let mut agreement = Agreement::default();
    if expected.len() != got.len() {
        return Err(format!("{} results, expected {}", got.len(), expected.len()));
    }
    for (result, (e, g)) in expected.iter().zip(got).enumerate() {
        if e.tensor.ty() != g.ty() {
            return Err(format!("result {result} is {}, expected {}", g.ty(), e.tensor.ty()));
        }
        let tolerance = e.tolerance(DType::F32.unit_roundoff()).unwrap();
        let (want, have) = (e.tensor.to_f64().unwrap(), g.to_f64().unwrap());
        // A kernel is judged by how far it is from the result before that was rounded. Where only the rounded one is
        // known, its own rounding counts as well.
        let exact = e.exact.as_ref().unwrap_or(&want);
        let rounding =
            if e.exact.is_none() && e.abs_terms.is_some() { g.dtype().unit_roundoff() } else { 0.0 };
        let moved = e.abs_terms.is_none();
        let worst = match g.dtype() {
            DType::F16 => &mut agreement.worst_f16,
            _ => &mut agreement.worst_f32,
        };
        for (i, ((w, h), t)) in want.iter().zip(&have).zip(&tolerance).enumerate() {
            // A result below the smallest normal number is flushed to zero.
            let flushed = if g.dtype() == DType::F32 { f64::from(f32::MIN_POSITIVE) } else { 0.0 };
            let same = if moved { w.to_bits() == h.to_bits() } else { w == h };
            let (off, most) = ((exact[i] - h).abs(), t + rounding * w.abs() + flushed);
            if !(same || w.is_nan() && h.is_nan() || !moved && off <= most) {
                return Err(format!("result {result}, element {i}: {h}, expected {w} within {t}"));
            }
            if !moved && off.is_finite() && most > 0.0 {
                *worst = worst.max(off / most);
            }
        }
        agreement.elems += want.len();
    }
    Ok(agreement)
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
    let results: Vec<TensorType> = expected.iter().map(|e| e.tensor.ty().clone()).collect();
    let agrees = |got: &[Tensor]| compare(expected, got);
    run_call(what, (&results, &[]), operands, (placement, seed), call, agrees);
}

/// Runs a call that changes `state` in place, and compares all of it.
pub fn check_in_place(
    what: &str,
    expected: Tensor,
    state: &Tensor,
    operands: &[Tensor],
    (placement, seed): (Placement, u64),
    call: impl Fn(&[Layout]) -> Call,
) {
    let results = (std::slice::from_ref(state.ty()), std::slice::from_ref(state));
    let expected = [Evaluated::moved(expected)];
    let agrees = |got: &[Tensor]| compare(&expected, got);
    run_call(what, results, operands, (placement, seed), call, agrees);
}

/// Runs a call on operands that the interpreter refuses: the kernel must read nothing else, and write all of its result.
pub fn check_survives(
    what: &str,
    result: &TensorType,
    operands: &[Tensor],
    call: impl Fn(&[Layout]) -> Call,
) {
    let anything = |_: &[Tensor]| Ok(Agreement::default());
    let results = (std::slice::from_ref(result), [].as_slice());
    run_call(what, results, operands, (Placement::Dense, 1), call, anything);
}

fn run_call(
    what: &str,
    (results, before): (&[TensorType], &[Tensor]),
    operands: &[Tensor],
    (placement, seed): (Placement, u64),
    call: impl Fn(&[Layout]) -> Call,
    agrees: impl Fn(&[Tensor]) -> Result<Agreement, String>,
) {
    let Some(runner) = runner() else { return };
    let placed: Vec<Placed<'_>> = operands.iter().map(|t| Placed::new(t, placement)).collect();
    let layouts: Vec<Layout> = placed.iter().map(|p| p.layout.clone()).collect();
    let call = call(&layouts);
    let dispatch = Dispatch {
        kernel: call.kernel,
        args: &call.args,
        bindings: &call.bindings,
        work: call.work,
        operands: &placed,
        results,
        before,
        seed,
    };
    let outcome = runner.run(None, &dispatch).and_then(|got| agrees(&got));
    let shapes: Vec<&TensorType> = operands.iter().map(Tensor::ty).collect();
    let what = || format!("{} for {what} on {shapes:?}, {placement:?}, seed {seed}", call.kernel.name);
    runner.judge(&what, outcome);
}

/// Compiles kernels that are not in the manifest; `None` where there is nothing that compiles or runs them.
pub fn compile(kernels: &[Kernel]) -> Option<Library> {
    let runner = runner()?;
    match runner.compile(kernels) {
        Ok(library) => Some(library),
        Err(e) => {
            runner.judge(&|| format!("{} kernels", kernels.len()), Err(e));
            None
        }
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
    let Some(runner) = runner() else { return };
    let placed: Vec<Placed<'_>> = operands.iter().map(|t| Placed::new(t, placement)).collect();
    let layouts: Vec<Layout> = placed.iter().map(|p| p.layout.clone()).collect();
    let (args, work) = args(&layouts);
    let bindings: Vec<Bound> = (0..kernel.buffers.len())
        .map(|i| if i < operands.len() { Bound::Operand(i) } else { Bound::Result(i - operands.len()) })
        .collect();
    let results: Vec<TensorType> = expected.iter().map(|e| e.tensor.ty().clone()).collect();
    let (bindings, operands, results) = (&bindings, &placed, &results);
    let dispatch = Dispatch { kernel, args: &args, bindings, work, operands, results, before: &[], seed: 1 };
    let outcome = runner.run(Some(library), &dispatch).and_then(|got| compare(expected, &got));
    let text = || kernel.text.as_deref().unwrap_or(&kernel.name);
    // The statements of a region, without what every region begins with.
    let what = || text().split_once(" x0 = ").map_or(text(), |parts| parts.1).to_owned();
    runner.judge(&what, outcome);
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

/// Lists functions as the cases of their family, `CASES`, and makes a test of each.
macro_rules! cases {
    ($($name:ident,)*) => {
        pub(super) const CASES: &[super::Case] = &[$((stringify!($name), $name)),*];

        #[cfg(test)]
        mod tests {
            $(
                #[test]
                fn $name() {
                    super::$name();
                }
            )*
        }
    };
}
pub(super) use cases;
