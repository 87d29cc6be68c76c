//! The simulator as what runs the cases.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::OnceLock;

use rlx_ir::Tensor;
use rlx_kernels::call::Bound;
use rlx_kernels::geometry::DeviceLimits;
use rlx_kernels::source::{Target, library};
use rlx_kernels::{Kernel, manifest};
use rlx_simulator::{Compiler, Launch, Library, Mode, Simulator, Slice, or_skip};

use crate::harness::{Agreement, Dispatch, Placed, Runner};

/// Runs with all checks on, and kernels of the manifest without hooks as well.
pub struct Simulated {
    compiler: Compiler,
    all: OnceLock<[Library; 2]>,
}

/// The simulator, if clang is there.
pub fn runner() -> Option<&'static Simulated> {
    static RUNNER: OnceLock<Option<Simulated>> = OnceLock::new();
    let find = || {
        let compiler = or_skip(Compiler::find(Path::new(env!("CARGO_TARGET_TMPDIR"))))?;
        Some(Simulated { compiler, all: OnceLock::new() })
    };
    RUNNER.get_or_init(find).as_ref()
}

thread_local! {
    /// While only names are asked for: the kernels that this thread would have run.
    static NAMED: RefCell<Option<BTreeSet<String>>> = const { RefCell::new(None) };
}

/// The kernels of the manifest that cases run, found without running any.
pub fn kernels_of(cases: impl Iterator<Item = fn()>) -> BTreeSet<String> {
    NAMED.set(Some(BTreeSet::new()));
    cases.for_each(|case| case());
    NAMED.take().unwrap_or_default()
}

fn only_names() -> bool {
    NAMED.with_borrow(Option::is_some)
}

impl Runner for Simulated {
    type Library = Library;

    fn compile(&self, kernels: &[Kernel]) -> Result<Library, String> {
        if only_names() {
            return Err("not compiled".into());
        }
        self.compiler.library(&library(Target::Host, kernels), Mode::Hooked).map_err(|e| e.to_string())
    }

    fn run(&self, own: Option<&Library>, dispatch: &Dispatch<'_>) -> Result<Vec<Tensor>, String> {
        if let Some(own) = own {
            return run(own, dispatch);
        }
        if only_names() {
            // A dispatch of nothing runs no kernel.
            if dispatch.geometry(DeviceLimits::APPLE, u32::MAX)?.is_some() {
                NAMED.with_borrow_mut(|named| named.as_mut().map(|n| n.insert(dispatch.kernel.name.clone())));
            }
            return Err("not run".into());
        }
        let [hooked, fast] = self.all.get_or_init(|| {
            let text = library(Target::Host, manifest::kernels());
            let build = |mode| self.compiler.library(&text, mode).unwrap();
            // Clang takes most of the time of all cases.
            std::thread::scope(|scope| {
                let fast = scope.spawn(|| build(Mode::Fast));
                [build(Mode::Hooked), fast.join().unwrap()]
            })
        });
        let (results, others) = (run(hooked, dispatch)?, run(fast, dispatch)?);
        for (result, other) in results.iter().zip(&others) {
            let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            let (values, others) = (result.to_f64().unwrap(), other.to_f64().unwrap());
            if !values.iter().zip(&others).all(same) {
                return Err("differs without hooks".into());
            }
        }
        Ok(results)
    }

    fn judge(&self, what: &dyn Fn() -> String, outcome: Result<Agreement, String>) {
        if let Err(e) = outcome
            && !only_names()
        {
            panic!("{}: {e}", what());
        }
    }
}

/// An operand in a buffer where nobody wrote what lies between its rows.
fn place(sim: &mut Simulator, operand: &Placed<'_>) -> Slice {
    let elem = operand.tensor.dtype().block_bytes();
    let buffer = sim.buffer(operand.lead + operand.bytes, elem).unwrap();
    for (offset, row) in operand.rows() {
        sim.write(buffer, offset, row).unwrap();
    }
    Slice { buffer, offset: operand.lead, bytes: operand.bytes }
}

fn run(library: &Library, dispatch: &Dispatch<'_>) -> Result<Vec<Tensor>, String> {
    let mut sim = Simulator::new();
    let operands: Vec<Slice> = dispatch.operands.iter().map(|o| place(&mut sim, o)).collect();
    let mut outs = Vec::new();
    for (at, ty) in dispatch.results.iter().enumerate() {
        let granule = ty.dtype.block_bytes();
        let buffer = match dispatch.before.get(at) {
            Some(before) => sim.buffer_of(before.bytes(), granule).unwrap(),
            None => sim.buffer(ty.bytes().unwrap(), granule).unwrap(),
        };
        outs.push(sim.whole(buffer));
    }
    if let Some(geometry) = dispatch.geometry(DeviceLimits::APPLE, u32::MAX)? {
        let bindings: Vec<Option<Slice>> = dispatch
            .bindings
            .iter()
            .map(|b| match b {
                Bound::Operand(at) => Some(operands[*at]),
                Bound::Result(at) => Some(outs[*at]),
                Bound::Nothing => None,
            })
            .collect();
        let (kernel, args) = (dispatch.kernel, dispatch.args);
        let launch = Launch { kernel, geometry, args, bindings: &bindings, seed: dispatch.seed };
        sim.dispatch(library, &launch).map_err(|fault| fault.to_string())?;
        // Nobody counts without hooks.
        for (out, ty) in outs.iter().zip(dispatch.results).filter(|_| library.mode() == Mode::Hooked) {
            if sim.written(*out).unwrap() != out.bytes {
                return Err(format!("bytes of {ty} left out"));
            }
        }
    }
    let read = |(out, ty): (&Slice, &rlx_ir::TensorType)| {
        Tensor::from_bytes(ty.clone(), sim.read(*out).unwrap()).unwrap()
    };
    Ok(outs.iter().zip(dispatch.results).map(read).collect())
}
