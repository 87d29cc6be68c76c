use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::shape::transpose::Transpose;
use rlx_ir::{DType, Tensor};
use rlx_kernels::call::copy;
use rlx_kernels::layout::Layout;

use crate::harness::{Placement, cases, check_call, random, reference};

cases! {
    a_copy_of_permuted_axes_is_the_transpose,
    a_broadcast_axis_is_read_again,
}

fn a_copy_of_permuted_axes_is_the_transpose() {
    let mut rng = SplitMix64::new(1);
    for dtype in [DType::U8, DType::F16, DType::F32, DType::I64] {
        for perm in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2], [0, 2, 1, 3]] {
            let x = random(&mut rng, dtype, &[2, 3, 5, 7], (0.0, 100.0));
            let op = Transpose { perm: perm.to_vec() };
            let expected = reference(std::sync::Arc::new(op), std::slice::from_ref(&x));
            for placement in [Placement::Dense, Placement::Gaps] {
                check_call("copy", &expected, std::slice::from_ref(&x), placement, 1, |l| {
                    let pick = |list: &[usize]| perm.map(|p| list[p]).to_vec();
                    let from = Layout { dtype, shape: pick(&l[0].shape), strides: pick(&l[0].strides) };
                    copy(&from, &Layout::dense(expected[0].tensor.ty())).unwrap()
                });
            }
        }
    }
}

fn a_broadcast_axis_is_read_again() {
    let x = Tensor::f32([3], &[1.0, 2.0, 3.0]).unwrap();
    let wide = Tensor::f32([2, 3], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]).unwrap();
    let expected = [rlx_ir::op::Evaluated::moved(wide)];
    check_call("broadcast", &expected, &[x], Placement::Dense, 1, |l| {
        let from = Layout { dtype: DType::F32, shape: vec![2, 3], strides: vec![0, l[0].strides[0]] };
        copy(&from, &Layout::dense(expected[0].tensor.ty())).unwrap()
    });
}
