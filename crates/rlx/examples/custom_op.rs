//! An op of one's own: what it means, how it is made of built-in ops, and a CPU kernel for it.
//!
//! `cargo run --example custom_op`

use std::error::Error;
use std::sync::Arc;

use rlx::compile::{OpFacts, Support};
use rlx::cpu::{CpuBackend, CpuKernel, KernelCall};
use rlx::ir::attrs::{AttrReader, Attrs};
use rlx::ir::op::{EvalContext, Evaluated, OpDef, Tier, check_arity, operand_error};
use rlx::ir::{Op, OpRef, Type, interp, text};
use rlx::prelude::*;

/// `x * min(max(x + shift, 0), 2 * shift) / (2 * shift)`: hard swish where `shift` is 3.
#[derive(Clone, Debug, PartialEq)]
struct HardSwish {
    shift: f64,
}

const HARD_SWISH: OpDef = OpDef { name: "hard_swish", tier: Tier::Composite, parse };

fn parse(reader: &mut AttrReader<'_>) -> rlx::ir::Result<OpRef> {
    Ok(Arc::new(HardSwish { shift: reader.opt_float("shift")?.unwrap_or(3.0) }))
}

impl Op for HardSwish {
    fn name(&self) -> &str {
        HARD_SWISH.name
    }

    fn tier(&self) -> Tier {
        HARD_SWISH.tier
    }

    fn attrs(&self) -> Attrs {
        Attrs::new().float("shift", self.shift)
    }

    fn infer(&self, operands: &[Type]) -> rlx::ir::Result<Vec<Type>> {
        check_arity(operands, 1..=1)?;
        match operands[0].dtype {
            DType::F32 => Ok(vec![operands[0].clone()]),
            _ => Err(operand_error(0, "f32", &operands[0])),
        }
    }

    /// The meaning: every kernel is measured against it.
    fn eval(&self, cx: &EvalContext<'_>) -> rlx::ir::Result<Vec<Evaluated>> {
        let top = 2.0 * self.shift;
        let values = cx.operands[0].to_f64()?;
        let values = values.into_iter().map(|x| x * (x + self.shift).clamp(0.0, top) / top).collect();
        Ok(vec![Evaluated::elementwise(&cx.results[0], values)?])
    }

    /// The same in built-in ops, for backends without a kernel.
    fn decompose(&self, b: &mut Builder, operands: &[Value]) -> rlx::ir::Result<Option<Vec<Value>>> {
        let x = operands[0];
        let (shift, zero) = (b.scalar(DType::F32, self.shift)?, b.scalar(DType::F32, 0.0)?);
        let top = b.scalar(DType::F32, 2.0 * self.shift)?;
        let shifted = b.add(x, shift)?;
        let low = b.max(shifted, zero)?;
        let gate = b.min(low, top)?;
        let product = b.mul(x, gate)?;
        Ok(Some(vec![b.div(product, top)?]))
    }
}

#[derive(Debug)]
struct HardSwishKernel;

impl CpuKernel for HardSwishKernel {
    fn op(&self) -> &str {
        HARD_SWISH.name
    }

    fn supports(&self, _: &OpFacts<'_>) -> Support {
        Support::Yes
    }

    fn run(&self, call: &mut KernelCall<'_>) -> rlx::cpu::Result<()> {
        let shift = call.op().downcast::<HardSwish>().map_or(3.0, |op| op.shift as f32);
        let x = call.operand::<f32>(0)?;
        for (y, &x) in call.result::<f32>(0)?.iter_mut().zip(x) {
            *y = x * (x + shift).clamp(0.0, 2.0 * shift) / (2.0 * shift);
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for (how, values) in run()? {
        println!("{how}: {values:?}");
    }
    Ok(())
}

/// A way to compute the op, and what it gives.
pub type Computed = (&'static str, Vec<f32>);

/// The op on four values: by the interpreter, by the kernel, and decomposed.
pub fn run() -> Result<Vec<Computed>, Box<dyn Error>> {
    const X: [f32; 4] = [-4.0, -1.0, 1.0, 4.0];
    let ops = OpSet::builtin().with([HARD_SWISH])?;
    let graph = text::parse(
        "graph @g(N <= 16) {
           %x = input \"x\" : f32[N]
           %y = hard_swish %x {shift = 3.0}
           return %y
         }",
        &ops,
    )?;
    let mut data = interp::RunData::default().input("x", Tensor::f32([4], &X)?);
    let mut results = vec![("interpreted", interp::run(&graph, &mut data)?[0].tensor.to_f32()?)];

    let with_kernel = CpuBackend::new(None)?.register_kernel(Arc::new(HardSwishKernel))?;
    for (how, backend) in [("kernel", with_kernel), ("decomposed", CpuBackend::new(None)?)] {
        let runtime = Runtime::new(vec![Arc::new(backend)], Settings::defaults());
        let compile = CompileOptions { ops: ops.clone(), ..CompileOptions::default() };
        let options = SessionOptions { compile, ..SessionOptions::default() };
        let session = Session::compile(&runtime, &graph, &NoWeights, &options)?;
        let mut context = session.context(&[])?;
        context.bind(&[("N", X.len())])?;
        context.set("x", &X)?;
        context.run()?;
        results.push((how, context.output::<f32>(0)?.to_vec()));
    }
    Ok(results)
}
