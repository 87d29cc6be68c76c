use std::sync::Arc;

use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::activation::gelu::Approximate;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::elementwise::cast::Cast;
use rlx_ir::ops::elementwise::compare::{Compare, CompareKind};
use rlx_ir::ops::elementwise::unary::{Unary, UnaryKind};
use rlx_ir::ops::fused::fused_region::FusedRegion;
use rlx_ir::{Builder, DType, Tensor, TensorType, Value};
use rlx_kernels::args::Args;
use rlx_kernels::{Kernel, region};

use crate::harness::{FLOATS, Placement, cases, check, check_kernel, compile, random, reference};

cases! {
    casts_between_all_types_at_their_ends,
    functions_of_one_element,
    functions_of_values_that_are_not_finite,
    functions_and_comparisons_of_two_elements,
    integers_wrap_at_their_ends,
    chains_with_broadcast_operands_and_several_results,
    what_no_kernel_takes_is_refused,
}

/// What `cast` goes between.
pub const TYPES: [DType; 9] = [
    DType::F32,
    DType::F16,
    DType::I8,
    DType::I16,
    DType::I32,
    DType::I64,
    DType::U8,
    DType::U32,
    DType::Bool,
];

/// Values at and beyond the ends of every integer type, halves, and what is not finite.
fn edges(dtype: DType) -> Tensor {
    let ends =
        [127.0, 128.0, 255.0, 256.0, 32767.0, 32768.0, 65519.0, 65520.0, 2147483647.0, 4294967295.0, 9.3e18];
    let small = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, f64::INFINITY];
    let mut values: Vec<f64> = ends.iter().chain(&small).flat_map(|v| [*v, -*v]).collect();
    values.push(f64::NAN);
    Tensor::from_f64(TensorType::new(dtype, [values.len()]), &values).unwrap()
}

fn casts_between_all_types_at_their_ends() {
    for from in TYPES {
        for to in TYPES {
            check(Cast { to }, &[edges(from)], Placement::Dense, 1);
        }
    }
    let mut rng = SplitMix64::new(1);
    for [from, to] in [[DType::F32, DType::F16], [DType::I64, DType::F32], [DType::F32, DType::I64]] {
        let x = random(&mut rng, from, &[3, 333], (-1e6, 1e6));
        check(Cast { to }, &[x], Placement::Dense, 2);
    }
}

/// A region over inputs of these types and what `build` makes of them.
pub(super) fn fused(
    inputs: &[Tensor],
    build: impl FnOnce(&mut Builder, &[Value]) -> Vec<Value>,
) -> FusedRegion {
    let mut b = Builder::new("body");
    let values: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(i, t)| b.input(&format!("x{i}"), t.dtype(), t.shape()).unwrap())
        .collect();
    let results = build(&mut b, &values);
    FusedRegion { body: b.finish(&results).unwrap() }
}

/// Builds all regions as one library and compares each with the interpreter.
pub(super) fn check_regions(cases: &[(FusedRegion, Vec<Tensor>)], placement: Placement) {
    let kernels: Vec<Kernel> = cases
        .iter()
        .enumerate()
        .map(|(i, (r, _))| region::kernel(r, &format!("region{i}")).unwrap())
        .collect();
    let Some(library) = compile(&kernels) else { return };
    for (kernel, (region, operands)) in kernels.iter().zip(cases) {
        let expected = reference(Arc::new(region.clone()), operands);
        let shape = expected[0].tensor.shape().to_vec();
        let args = |layouts: &[rlx_kernels::layout::Layout]| {
            let (args, work) = region::args(layouts, &shape).unwrap();
            (args.bytes().to_vec(), work)
        };
        check_kernel(&library, kernel, args, (&expected, operands), placement);
    }
}

fn functions_of_one_element() {
    let mut rng = SplitMix64::new(1);
    let mut cases = Vec::new();
    for dtype in TYPES {
        for &kind in UnaryKind::ALL {
            let positive = matches!(kind, UnaryKind::Log | UnaryKind::Sqrt | UnaryKind::Rsqrt);
            let span = if positive { (0.01, 9.0) } else { (-5.0, 5.0) };
            let x = random(&mut rng, dtype, &[300], span);
            if fits(&Unary { kind }, &x, 1) {
                let region =
                    fused(std::slice::from_ref(&x), |b, v| b.emit_ref(Arc::new(Unary { kind }), v).unwrap());
                cases.push((region, vec![x]));
            }
        }
    }
    assert!(cases.len() > 40);
    check_regions(&cases, Placement::Dense);
}

/// Whether an op takes `arity` operands of the type of `x`.
fn fits(op: &dyn rlx_ir::Op, x: &Tensor, arity: usize) -> bool {
    op.infer(&vec![rlx_ir::Type::new(x.dtype(), x.shape()); arity]).is_ok()
}

fn functions_of_values_that_are_not_finite() {
    let mut cases = Vec::new();
    for dtype in FLOATS {
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0];
        let x = Tensor::from_f64(TensorType::new(dtype, [5]), &values).unwrap();
        for &kind in UnaryKind::ALL {
            if fits(&Unary { kind }, &x, 1) {
                let region =
                    fused(std::slice::from_ref(&x), |b, v| b.emit_ref(Arc::new(Unary { kind }), v).unwrap());
                cases.push((region, vec![x.clone()]));
            }
        }
        for kind in [BinaryKind::Max, BinaryKind::Min, BinaryKind::Add, BinaryKind::Div] {
            let y =
                Tensor::from_f64(TensorType::new(dtype, [5]), &[1.0, f64::NAN, 0.0, f64::NAN, 2.0]).unwrap();
            let pair = [x.clone(), y];
            let region = fused(&pair, |b, v| b.emit_ref(Arc::new(Binary { kind }), v).unwrap());
            cases.push((region, pair.to_vec()));
        }
    }
    check_regions(&cases, Placement::Dense);
}

fn functions_and_comparisons_of_two_elements() {
    let mut rng = SplitMix64::new(2);
    let mut cases = Vec::new();
    for dtype in TYPES {
        let float = dtype.is_float();
        let wide = if float { 5.0 } else { 3e9 };
        let a = random(&mut rng, dtype, &[4, 70], (-wide, wide));
        // No zero divides, and every wrapping happens: the lowest value by -1 as well.
        let mut b: Vec<f64> = random(&mut rng, dtype, &[4, 70], (1.0, 6.0)).to_f64().unwrap();
        b[..70].iter_mut().for_each(|v| *v = if *v == 1.0 || float { -1.0 } else { *v });
        let b = Tensor::from_f64(TensorType::new(dtype, [4, 70]), &b).unwrap();
        let b = if dtype == DType::U8 || dtype == DType::U32 {
            random(&mut rng, dtype, &[4, 70], (1.0, 6.0))
        } else {
            b
        };
        let pair = [a, b];
        for &kind in BinaryKind::ALL {
            let signed = if kind == BinaryKind::Pow {
                [random(&mut rng, dtype, &[4, 70], (0.1, 3.0)), pair[1].clone()]
            } else {
                pair.clone()
            };
            if fits(&Binary { kind }, &pair[0], 2) {
                let region = fused(&signed, |b, v| b.emit_ref(Arc::new(Binary { kind }), v).unwrap());
                cases.push((region, signed.to_vec()));
            }
        }
        let near = [
            random(&mut rng, dtype, &[4, 70], (0.0, 4.0)).to_i64().unwrap(),
            random(&mut rng, dtype, &[4, 70], (0.0, 4.0)).to_i64().unwrap(),
        ]
        .map(|v| Tensor::from_i64(TensorType::new(dtype, [4, 70]), &v).unwrap());
        for &kind in CompareKind::ALL {
            if fits(&Compare { kind }, &near[0], 2) {
                let region = fused(&near, |b, v| b.emit_ref(Arc::new(Compare { kind }), v).unwrap());
                cases.push((region, near.to_vec()));
            }
        }
    }
    assert!(cases.len() > 100);
    check_regions(&cases, Placement::Gaps);
}

fn integers_wrap_at_their_ends() {
    let mut cases = Vec::new();
    for (dtype, low, high) in [
        (DType::I8, -128, 127),
        (DType::I16, -32768, 32767),
        (DType::I32, i64::from(i32::MIN), i64::from(i32::MAX)),
        (DType::I64, i64::MIN, i64::MAX),
        (DType::U8, 0, 255),
        (DType::U32, 0, i64::from(u32::MAX)),
    ] {
        let list = |v: &[i64]| Tensor::from_i64(TensorType::new(dtype, [v.len()]), v).unwrap();
        let signed = low < 0;
        let pair = [
            list(&[low, low, high, high, low, 7]),
            list(&[if signed { -1 } else { 1 }, high, high, 1, 1, if signed { -2 } else { 2 }]),
        ];
        for &kind in BinaryKind::ALL {
            if fits(&Binary { kind }, &pair[0], 2) {
                let region = fused(&pair, |b, v| b.emit_ref(Arc::new(Binary { kind }), v).unwrap());
                cases.push((region, pair.to_vec()));
            }
        }
        for kind in [UnaryKind::Neg, UnaryKind::Abs, UnaryKind::Sign, UnaryKind::Relu] {
            let region = fused(&pair[..1], |b, v| b.emit_ref(Arc::new(Unary { kind }), v).unwrap());
            cases.push((region, pair[..1].to_vec()));
        }
        // Constants at the ends.
        let region = fused(&pair[..1], |b, v| {
            let constant = |b: &mut Builder, n| {
                let tensor = Tensor::from_i64(TensorType::new(dtype, []), &[n]).unwrap();
                b.constant(tensor)
            };
            let (low, high) = (constant(b, low), constant(b, high));
            vec![b.add(v[0], low).unwrap(), b.mul(v[0], high).unwrap()]
        });
        cases.push((region, pair[..1].to_vec()));
    }
    check_regions(&cases, Placement::Dense);
}

fn chains_with_broadcast_operands_and_several_results() {
    let mut rng = SplitMix64::new(3);
    let mut cases = Vec::new();
    for dtype in FLOATS {
        let operands = vec![
            random(&mut rng, dtype, &[3, 5, 33], (-2.0, 2.0)),
            random(&mut rng, dtype, &[33], (-2.0, 2.0)),
            random(&mut rng, dtype, &[3, 1, 1], (0.5, 2.0)),
            random(&mut rng, DType::Bool, &[5, 1], (0.0, 1.0)),
            random(&mut rng, DType::F32, &[], (-2.0, 2.0)),
        ];
        let region = fused(&operands, |b, v| {
            let sum = b.add(v[0], v[1]).unwrap();
            let gelu = b.gelu(sum, Approximate::None).unwrap();
            let tanh = b.gelu(sum, Approximate::Tanh).unwrap();
            let silu = b.silu(sum).unwrap();
            let scaled = b.mul(gelu, v[2]).unwrap();
            let chosen = b.select(v[3], scaled, tanh).unwrap();
            let wide = b.cast(chosen, DType::F32).unwrap();
            let wide = b.mul(wide, v[4]).unwrap();
            let half = b.scalar(DType::F32, 0.5).unwrap();
            let over = b.gt(wide, half).unwrap();
            let narrow = b.cast(wide, DType::F16).unwrap();
            vec![chosen, over, narrow, silu]
        });
        cases.push((region, operands));
    }
    check_regions(&cases, Placement::Dense);
    check_regions(&cases, Placement::Gaps);
}

fn what_no_kernel_takes_is_refused() {
    let x = Tensor::zeros(TensorType::new(DType::F64, [3])).unwrap();
    let region = fused(&[x], |b, v| vec![b.exp(v[0]).unwrap()]);
    let refused = region::kernel(&region, "r").unwrap_err();
    assert_eq!(refused.kind(), rlx_ir::ErrorKind::UnsupportedOnDevice);
    assert!(refused.message().contains("f64"), "{refused}");
    let x = Tensor::zeros(TensorType::new(DType::F32, [2])).unwrap();
    let region = fused(std::slice::from_ref(&x), |b, v| {
        let pair = Tensor::f32([2], &[1.0, 2.0]).unwrap();
        let pair = b.constant(pair);
        vec![b.add(v[0], pair).unwrap()]
    });
    assert!(region::kernel(&region, "r").unwrap_err().message().contains("constant of 2 elements"));
}
