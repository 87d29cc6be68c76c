//! Kernels of regions, for the checks that kernels of the manifest go through: together they hold all that is written of ops.

use std::sync::Arc;

use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::elementwise::compare::{Compare, CompareKind};
use rlx_ir::ops::elementwise::select::Select;
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::{Builder, DType, OpRef, Tensor, TensorType, Value};
use rlx_kernels::manifest::{cpp_type, kernels};
use rlx_kernels::{Kernel, region};

/// The types that regions take.
fn types() -> Vec<DType> {
    DType::SCALARS.into_iter().filter(|d| cpp_type(*d).is_some()).collect()
}

/// Every kernel of the manifest, and regions.
pub fn all() -> Vec<Kernel> {
    kernels().iter().cloned().chain(regions()).collect()
}

/// For each type a region of all functions of one element, of two, of comparisons, of casts, and of choices and constants; then
/// chains over operands of several shapes.
pub fn regions() -> Vec<Kernel> {
    let mut regions = Vec::new();
    for dtype in types() {
        let ops = |list: &mut dyn Iterator<Item = OpRef>| list.collect::<Vec<OpRef>>();
        let unary = ops(&mut UnaryKind::ALL.iter().map(|&kind| -> OpRef { Arc::new(Unary { kind }) }));
        let binary = ops(&mut BinaryKind::ALL.iter().map(|&kind| -> OpRef { Arc::new(Binary { kind }) }));
        let compare = ops(&mut CompareKind::ALL.iter().map(|&kind| -> OpRef { Arc::new(Compare { kind }) }));
        let casts = ops(&mut types().into_iter().map(|to| -> OpRef { Arc::new(Cast { to }) }));
        let one = [dtype];
        let two = [dtype; 2];
        regions.extend([each(&unary, &one), each(&binary, &two), each(&compare, &two), each(&casts, &one)]);
        regions.push(each(&[Arc::new(Select)], &[DType::Bool, dtype, dtype]));
        regions.push(constants(dtype));
    }
    regions.extend([DType::F32, DType::F16].map(chain));
    let kernel = |(i, region): (usize, FusedRegion)| region::kernel(&region, &format!("region{i}")).unwrap();
    let is_empty = |r: &FusedRegion| r.body.outputs().is_empty();
    regions.into_iter().filter(|r| !is_empty(r)).enumerate().map(kernel).collect()
}

/// A region with a result for each of `ops` that takes operands of these types.
fn each(ops: &[OpRef], operands: &[DType]) -> FusedRegion {
    let mut b = Builder::new("body");
    let operands: Vec<Value> =
        operands.iter().enumerate().map(|(i, d)| b.input(&format!("x{i}"), *d, [4]).unwrap()).collect();
    let results: Vec<Value> =
        ops.iter().filter_map(|op| b.emit_ref(op.clone(), &operands).ok()).flatten().collect();
    FusedRegion { body: b.finish(&results).unwrap() }
}

/// Values that are written into the text: the ends of the type among them.
fn constants(dtype: DType) -> FusedRegion {
    let mut b = Builder::new("body");
    let condition = b.input("x", DType::Bool, [4]).unwrap();
    let values = [0.0, 1.0, -1.0, 1e-3, -1e30, 1e30, f64::INFINITY, f64::NAN];
    let mut results = Vec::new();
    for pair in values.as_chunks::<2>().0 {
        let [a, c] = pair.map(|v| b.constant(Tensor::from_f64(TensorType::new(dtype, []), &[v]).unwrap()));
        results.push(b.select(condition, a, c).unwrap());
    }
    FusedRegion { body: b.finish(&results).unwrap() }
}

/// Ops over each other's results, and operands that are broadcast.
fn chain(dtype: DType) -> FusedRegion {
    let mut b = Builder::new("body");
    let x = b.input("x", dtype, [3, 5, 33]).unwrap();
    let row = b.input("row", dtype, [33]).unwrap();
    let column = b.input("column", dtype, [3, 1, 1]).unwrap();
    let mask = b.input("mask", DType::Bool, [5, 1]).unwrap();
    let scalar = b.input("scalar", DType::F32, [0usize; 0]).unwrap();
    let sum = b.add(x, row).unwrap();
    let gelu = b.gelu(sum, Approximate::None).unwrap();
    let tanh = b.gelu(sum, Approximate::Tanh).unwrap();
    let silu = b.silu(sum).unwrap();
    let scaled = b.mul(gelu, column).unwrap();
    let chosen = b.select(mask, scaled, tanh).unwrap();
    let wide = b.cast(chosen, DType::F32).unwrap();
    let wide = b.mul(wide, scalar).unwrap();
    let narrow = b.cast(wide, DType::F16).unwrap();
    FusedRegion { body: b.finish(&[chosen, narrow, silu]).unwrap() }
}

/// A new op of one of these kinds is in the list by itself; a new kind of op must be added.
#[test]
fn regions_hold_every_op_of_every_type() {
    let text: String = regions().into_iter().filter_map(|k| k.text).collect();
    for part in
        ["sigmoid(", "fmod(", "pow(", "wrap_neg(", "safe_div(", ">= x", " ? ", "gelu_tanh(", "silu(", "!x"]
    {
        assert!(text.contains(part), "{part}");
    }
    for dtype in types() {
        let cpp = cpp_type(dtype).unwrap();
        assert!(text.contains(&format!("device const {cpp}* in0")), "{cpp} is not read");
        assert!(text.contains(&format!("device {cpp}* out0")), "{cpp} is not written");
    }
}
