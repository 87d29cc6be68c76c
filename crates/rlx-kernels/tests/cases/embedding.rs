use rlx_ir::interp::SplitMix64;
use rlx_ir::ops::embedding::embedding::Embedding;
use rlx_ir::{DType, Tensor, TensorType};

use crate::harness::{FLOATS, Placement, cases, check, check_call, random, reference};

cases! {
    rows_of_every_type_by_ids_of_every_type,
    an_id_outside_of_the_table_gives_nan_and_reads_nothing,
}

fn rows_of_every_type_by_ids_of_every_type() {
    let mut rng = SplitMix64::new(1);
    for table in FLOATS {
        for dtype in FLOATS {
            for ids in [DType::I32, DType::I64, DType::U32] {
                for width in [1, 33, 300] {
                    let table = random(&mut rng, table, &[11, width], (-2.0, 2.0));
                    let at: Vec<i64> = (0..7).map(|_| rng.below(11) as i64).collect();
                    let ids = Tensor::from_i64(TensorType::new(ids, [7]), &at).unwrap();
                    check(Embedding { scale: 1.5, dtype }, &[table, ids], Placement::Dense, 1);
                }
            }
        }
    }
}

fn an_id_outside_of_the_table_gives_nan_and_reads_nothing() {
    let table = Tensor::f32([2, 2], &[1.0, 2.0, 3.0, 4.0]).unwrap();
    let op = Embedding::default();
    let inside = Tensor::i32([3], &[1, 1, 1]).unwrap();
    let mut expected = reference(std::sync::Arc::new(op), &[table.clone(), inside]);
    let nan = [f64::NAN, f64::NAN];
    let values = [nan, [3.0, 4.0], nan].concat();
    expected[0].tensor = Tensor::from_f64(expected[0].tensor.ty().clone(), &values).unwrap();
    let ids = Tensor::i32([3], &[-1, 1, 2]).unwrap();
    check_call("ids outside", &expected, &[table, ids], Placement::Dense, 0, |l| {
        rlx_kernels::call::call(&op, l).unwrap()
    });
}
