//! Ops and kernels of the program's own: kernels are used where they fit, and mistakes are told in the author's terms.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::num::NonZeroUsize;
use std::sync::Arc;

use rlx_compile::{CompileOptions, OpFacts, Support};
use rlx_cpu::{CpuBackend, CpuKernel, KernelCall};
use rlx_ir::env::Settings;
use rlx_ir::interp::{RunData, run};
use rlx_ir::op::{EvalContext, Evaluated, OpDef, Tier};
use rlx_ir::{
    Builder, DType, Dim, ErrorKind, Graph, Op, OpRef, OpSet, Tensor, TensorType, Type, Value, text,
};
use rlx_runtime::weights::NoWeights;
use rlx_runtime::{RunContext, Runtime, Session, SessionOptions};

fn context(
    kernels: impl IntoIterator<Item = Arc<dyn CpuKernel>>,
    graph: &Graph,
    ops: OpSet,
) -> rlx_runtime::Result<(Session, RunContext)> {
    let mut backend = CpuBackend::new(NonZeroUsize::new(1)).unwrap();
    for kernel in kernels {
        backend = backend.register_kernel(kernel).unwrap();
    }
    let runtime = Runtime::new(vec![Arc::new(backend)], Settings::defaults());
    let compile = CompileOptions { ops, ..CompileOptions::default() };
    let session = Session::compile(
        &runtime,
        graph,
        &NoWeights,
        &SessionOptions { compile, ..SessionOptions::default() },
    )?;
    let context = session.context(&[])?;
    Ok((session, context))
}

/// A kernel for the op of this name.
struct Kernel {
    op: &'static str,
    run: fn(&mut KernelCall<'_>) -> rlx_cpu::Result<()>,
}

impl std::fmt::Debug for Kernel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Kernel({})", self.op)
    }
}

impl CpuKernel for Kernel {
    fn op(&self) -> &str {
        self.op
    }

    fn supports(&self, _: &OpFacts<'_>) -> Support {
        Support::Yes
    }

    fn run(&self, call: &mut KernelCall<'_>) -> rlx_cpu::Result<()> {
        (self.run)(call)
    }
}

fn kernel(op: &'static str, run: fn(&mut KernelCall<'_>) -> rlx_cpu::Result<()>) -> [Arc<dyn CpuKernel>; 1] {
    [Arc::new(Kernel { op, run })]
}

fn sevens(call: &mut KernelCall<'_>) -> rlx_cpu::Result<()> {
    call.result::<f32>(0)?.fill(7.0);
    Ok(())
}

/// What a kernel asks of its call.
type Ask = fn(&mut KernelCall<'_>) -> rlx_cpu::Result<()>;

#[test]
fn a_kernel_for_a_built_in_op_is_not_fused_away() {
    // What each graph returns where the op of the name gives sevens.
    for (op, body, expected) in [
        ("exp", "%a = tanh %x\n%b = exp %a\n%c = neg %b\n%y = neg %c\nreturn %c", -7.0),
        ("silu", "%a = matmul %x, %w {transpose_b}\n%y = silu %a\n%z = neg %y\nreturn %z", -7.0),
        ("matmul", "%a = matmul %x, %w {transpose_b}\n%b = add %a, %x\n%y = sub %b, %x\nreturn %a", 7.0),
        ("linear", "%y = linear %x, %w\nreturn %y", 7.0),
        ("add", "%a = add %x, %x\n%y = rms_norm %a, %v {eps = 0.1}\nreturn %a, %y", 7.0),
    ] {
        let text = format!(
            "graph @g {{\n%x = input \"x\" : f32[3, 4]\n%w = weight \"w\" : f32[4, 4] = seed 1\n\
             %v = weight \"v\" : f32[4] = seed 2\n{body}\n}}"
        );
        let graph = text::parse(&text, &OpSet::builtin()).unwrap();
        let (session, mut context) = context(kernel(op, sevens), &graph, OpSet::builtin()).unwrap();
        assert!(session.kernels().iter().any(|k| k == "custom"), "{op}: {:?}", session.kernels());
        context.set("x", &[0.5f32; 12]).unwrap();
        context.run().unwrap();
        assert_eq!(context.output::<f32>(0).unwrap(), [expected; 12], "{op}");
    }
}

#[test]
fn a_kernel_for_an_op_that_writes_a_state_sees_what_was_there() {
    fn add(call: &mut KernelCall<'_>) -> rlx_cpu::Result<()> {
        let (state, x) = (call.operand::<f32>(0)?, call.operand::<f32>(1)?);
        for ((y, s), x) in call.result::<f32>(0)?.iter_mut().zip(state).zip(x) {
            *y = s + x;
        }
        Ok(())
    }
    let text = "graph @g {
      %s = state \"s\" : f32[1, 2, 1, 2]
      %x = input \"x\" : f32[2, 1, 2]
      %i = input \"i\" : i32[2]
      %t = kv_write %s, %x, %i
      return %t
    }";
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    let (_, mut context) = context(kernel("kv_write", add), &graph, OpSet::builtin()).unwrap();
    context.set("x", &[1f32, 2.0, 3.0, 4.0]).unwrap();
    context.set("i", &[0, 1]).unwrap();
    context.run().unwrap();
    context.run().unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn what_a_kernel_asks_for_and_is_not_there_is_an_error() {
    let asks: [(Ask, &str); 7] = [
        (|c| c.operand::<f32>(3).map(|_| ()), "no operand 3; there are 1"),
        (|c| c.shape(3).map(|_| ()), "no operand 3; there are 1"),
        (|c| c.dtype(3).map(|_| ()), "no operand 3; there are 1"),
        (|c| c.result::<f32>(1).map(|_| ()), "no result 1; there are 1"),
        (|c| c.result_shape(1).map(|_| ()), "no result 1; there are 1"),
        (|c| c.result::<u8>(0).map(|_| ()), "f32 has 4 bytes, not 1"),
        (|_| panic!("seven of nine"), "kernel for exp panicked: seven of nine"),
    ];
    let text = "graph @g { %x = input \"x\" : f32[2]\n %y = exp %x\n return %y }";
    let graph = text::parse(text, &OpSet::builtin()).unwrap();
    for (ask, what) in asks {
        let (_, mut context) = context(kernel("exp", ask), &graph, OpSet::builtin()).unwrap();
        context.set("x", &[0f32; 2]).unwrap();
        let e = context.run().unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(what), "{e:?}");
        assert!(e.message().contains("exp"), "{e}");
    }
}

/// What is wrong with an op.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// `decompose` gives another shape, dtype, number of results; itself; what takes it for granted; an input.
    Shape,
    Dtype,
    Count,
    Itself,
    Longer,
    Declares,
    /// `infer` gives a negative size.
    Negative,
    /// `eval` gives another shape, or number of results.
    EvalShape,
    EvalCount,
}

/// An op whose two results are its operand and twice that.
#[derive(Debug)]
struct Twice {
    fault: Fault,
    round: i64,
}

const TWICE: OpDef = OpDef {
    name: "twice",
    tier: Tier::Composite,
    parse: |_| Ok(Arc::new(Twice { fault: Fault::None, round: 0 }) as OpRef),
};

impl Op for Twice {
    fn name(&self) -> &str {
        TWICE.name
    }

    fn tier(&self) -> Tier {
        if matches!(self.fault, Fault::EvalShape | Fault::EvalCount) { Tier::Core } else { Tier::Composite }
    }

    fn attrs(&self) -> rlx_ir::attrs::Attrs {
        rlx_ir::attrs::Attrs::new().int("round", self.round)
    }

    fn infer(&self, operands: &[Type]) -> rlx_ir::Result<Vec<Type>> {
        if self.fault == Fault::Negative {
            return Ok(vec![Type::new(DType::F32, [Dim::constant(-3)]); 2]);
        }
        Ok(vec![operands[0].clone(); 2])
    }

    fn eval(&self, cx: &EvalContext<'_>) -> rlx_ir::Result<Vec<Evaluated>> {
        let x = cx.operands[0].to_f64()?;
        let ty = if self.fault == Fault::EvalShape {
            TensorType::new(DType::F32, [1, x.len()])
        } else {
            cx.results[0].clone()
        };
        let doubled = Evaluated::elementwise(&ty, x.iter().map(|x| 2.0 * x).collect())?;
        let same = Evaluated::moved(cx.operands[0].clone());
        Ok(if self.fault == Fault::EvalCount { vec![same] } else { vec![same, doubled] })
    }

    fn decompose(&self, b: &mut Builder, x: &[Value]) -> rlx_ir::Result<Option<Vec<Value>>> {
        let y = b.add(x[0], x[0])?;
        Ok(Some(match self.fault {
            Fault::Shape => vec![x[0], b.reshape(y, [1, 2])?],
            Fault::Dtype => vec![x[0], b.cast(y, DType::F16)?],
            Fault::Count => vec![y],
            Fault::Itself => b.emit(Twice { ..*self }, x)?,
            Fault::Longer => b.emit(Twice { round: self.round + 1, ..*self }, x)?,
            Fault::Declares => {
                let extra = b.input("extra", DType::F32, [2])?;
                vec![x[0], b.add(y, extra)?]
            }
            _ => vec![x[0], y],
        }))
    }
}

fn twice(fault: Fault) -> rlx_ir::Result<Graph> {
    let mut b = Builder::new("g");
    let x = b.input("x", DType::F32, [2])?;
    let y = b.emit(Twice { fault, round: 0 }, &[x])?;
    b.finish(&y)
}

fn ops() -> OpSet {
    OpSet::builtin().with([TWICE]).unwrap()
}

#[test]
fn mistakes_in_a_decomposition_name_the_op_and_what_was_expected() {
    for (fault, what) in [
        (Fault::Shape, "result 1: expected f32[2], got f32[1, 2]"),
        (Fault::Dtype, "result 1: expected f32[2], got f16[2]"),
        (Fault::Count, "expected 2 results, got 1"),
        (Fault::Itself, "emits the op itself"),
        (Fault::Longer, "still fire"),
        (Fault::Declares, "got an input, %extra"),
    ] {
        let e = context([], &twice(fault).unwrap(), ops()).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(what), "{fault:?}: {e:?}");
        assert!(e.message().contains("twice"), "{fault:?}: {e}");
    }
}

#[test]
fn an_inferred_size_that_is_negative_is_refused_where_the_op_is_emitted() {
    let e = twice(Fault::Negative).unwrap_err();
    assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains("twice(%x: f32[2])"), "{e:?}");
    assert!(e.message().contains("f32[-3]: a size is negative"), "{e}");
}

#[test]
fn mistakes_in_an_evaluation_name_the_op_and_what_was_expected() {
    for (fault, what) in [
        (Fault::EvalShape, "eval of twice: expected (f32[2], f32[2]), as inferred, got (f32[2], f32[1, 2])"),
        (Fault::EvalCount, "eval of twice: expected (f32[2], f32[2]), as inferred, got (f32[2])"),
    ] {
        let graph = twice(fault).unwrap();
        let mut data = RunData::default().input("x", Tensor::f32([2], &[1.0, 2.0]).unwrap());
        let e = run(&graph, &mut data).unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(what), "{fault:?}: {e:?}");
        let (_, mut context) = context([], &graph, ops()).unwrap();
        context.set("x", &[1f32, 2.0]).unwrap();
        let e = context.run().unwrap_err();
        assert!(e.kind() == ErrorKind::InvalidArgument && e.message().contains(what), "{fault:?}: {e:?}");
    }
}

#[test]
fn a_kernel_fills_all_results_in_one_loop() {
    fn fill(call: &mut KernelCall<'_>) -> rlx_cpu::Result<()> {
        let x = call.operand::<f32>(0)?;
        let [same, doubled] = &mut call.results::<f32>()?[..] else { panic!("two results") };
        for ((same, doubled), &x) in same.iter_mut().zip(doubled.iter_mut()).zip(x) {
            (*same, *doubled) = (x, 2.0 * x);
        }
        Ok(())
    }
    let (_, mut context) = context(kernel("twice", fill), &twice(Fault::None).unwrap(), ops()).unwrap();
    context.set("x", &[1f32, 2.0]).unwrap();
    context.run().unwrap();
    assert_eq!(context.output::<f32>(0).unwrap(), [1.0, 2.0]);
    assert_eq!(context.output::<f32>(1).unwrap(), [2.0, 4.0]);
}
