use half::{bf16, f16};

use super::*;
use crate::testing::{Numbers, everywhere};

/// The meaning, by a stable sort of the keys.
fn sorted<T: Ordered>(x: &[T], cols: usize, k: usize) -> (Vec<usize>, Vec<i32>) {
    let (mut places, mut indices) = (Vec::new(), Vec::new());
    for (row, x) in x.chunks(cols).enumerate() {
        let mut order: Vec<usize> = (0..cols).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(x[i].key()));
        places.extend(order[..k].iter().map(|i| row * cols + i));
        indices.extend(order[..k].iter().map(|&i| i as i32));
    }
    (places, indices)
}

fn check<T: Ordered + bytemuck::Pod>(x: &[T], cols: usize, k: usize) {
    let (places, expected) = sorted(x, cols, k);
    let moved: Vec<T> = places.iter().map(|&i| x[i]).collect();
    everywhere(|cpu| {
        let (mut values, mut indices) = (vec![T::zeroed(); moved.len()], vec![-1; moved.len()]);
        top_k(cpu, [cols, k], x, &mut values, &mut indices).unwrap();
        assert_eq!(indices, expected, "{k} of {cols}");
        let bytes = |x: &[T]| bytemuck::cast_slice::<T, u8>(x).to_vec();
        assert_eq!(bytes(&values), bytes(&moved), "{k} of {cols}");
    });
}

#[test]
fn the_largest_come_in_descending_order_for_every_k() {
    let mut numbers = Numbers::new(1);
    // Few values, so that many are equal; the last size cuts the work among threads.
    for (rows, cols, ks) in
        [(3, 1, &[0, 1][..]), (5, 17, &[1, 4, 17]), (2, 300, &[1, 31, 32, 33, 299, 300]), (700, 128, &[8])]
    {
        let mut x: Vec<f32> = numbers.floats(rows * cols).into_iter().map(|x| (x * 20.0).round()).collect();
        for (i, special) in
            [f32::NAN, -f32::NAN, -0.0, f32::INFINITY, f32::NEG_INFINITY, 1e-40].iter().enumerate()
        {
            let at = i * 7 % x.len();
            x[at] = *special;
        }
        for &k in ks {
            check(&x, cols, k);
            check(&x.iter().map(|&x| f16::from_f32(x)).collect::<Vec<_>>(), cols, k);
            check(&x.iter().map(|&x| bf16::from_f32(x)).collect::<Vec<_>>(), cols, k);
            check(&x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>(), cols, k);
            check(&x.iter().map(|&x| x as i8).collect::<Vec<_>>(), cols, k);
            check(&x.iter().map(|&x| x as u32).collect::<Vec<_>>(), cols, k);
            check(&x.iter().map(|&x| (x as i64) << 40).collect::<Vec<_>>(), cols, k);
        }
    }
    // Each row in ascending and in descending order, with more than are kept in order.
    for k in [32, 33] {
        check(&(0..2000).collect::<Vec<i32>>(), 1000, k);
        check(&(0..2000).rev().collect::<Vec<i32>>(), 1000, k);
    }
}

#[test]
fn nan_is_the_largest_and_zeros_are_equal() {
    everywhere(|cpu| {
        let x = [-0.0, f32::NEG_INFINITY, f32::NAN, 0.0, f32::INFINITY, -f32::NAN, -1e-45];
        let (mut values, mut indices) = ([0.0; 7], [0; 7]);
        top_k(cpu, [7, 7], &x, &mut values, &mut indices).unwrap();
        assert_eq!(indices, [2, 5, 4, 0, 3, 6, 1]);
    });
}

#[test]
fn rows_that_do_not_fit_are_refused() {
    everywhere(|cpu| {
        let run = |cols, k, len, values: usize, indices: usize| {
            let x = vec![0f32; len];
            top_k(cpu, [cols, k], &x, &mut vec![0.0; values], &mut vec![0; indices])
        };
        assert!(run(4, 5, 4, 5, 5).unwrap_err().message().contains("k is 5, but the last axis has 4"));
        assert!(run(4, 2, 7, 2, 2).is_err());
        assert!(run(4, 2, 8, 4, 3).is_err());
        assert!(run(4, 2, 8, 2, 4).is_err());
        run(0, 0, 0, 0, 0).unwrap();
        run(4, 2, 0, 0, 0).unwrap();
        run(4, 0, 8, 0, 0).unwrap();
    });
}

#[test]
fn the_last_row_for_a_place_wins_and_negative_ones_are_skipped() {
    let (outer, size, inner) = (3, 50, 700);
    let (x, updates): (Vec<u32>, Vec<u32>) =
        ((0..(outer * size * inner) as u32).collect(), (0..(outer * 4 * inner) as u32).map(|i| !i).collect());
    let rows = Rows { outer, size, inner, indices: &[7, -1, 49, 7] };
    everywhere(|cpu| {
        let mut out = vec![0; x.len()];
        scatter_set(cpu, rows, &x, &updates, &mut out).unwrap();
        for (row, values) in out.chunks(inner).enumerate() {
            let update = |i: usize| &updates[(row / size * 4 + i) * inner..][..inner];
            match row % size {
                7 => assert_eq!(values, update(3)),
                49 => assert_eq!(values, update(2)),
                _ => assert_eq!(values, &x[row * inner..][..inner]),
            }
        }
    });
}

#[test]
fn sums_are_taken_in_f64_in_order_and_rounded_once() {
    everywhere(|cpu| {
        let rows = Rows { outer: 1, size: 2, inner: 1, indices: &[0, 0, 1, -9] };
        let mut out = [0.0; 2];
        scatter_add(cpu, rows, &[1e8f32, 1.0], &[1.0, -1e8, 0.5, f32::NAN], &mut out).unwrap();
        assert_eq!(out, [1.0, 1.5]);
        let halves = |x: [f32; 4]| x.map(f16::from_f32);
        let mut out = [f16::ZERO; 2];
        let x = [f16::from_f32(2048.0), f16::NAN];
        scatter_add(cpu, rows, &x, &halves([1.0, -3.0, 0.5, 9.0]), &mut out).unwrap();
        assert!(out[0] == f16::from_f32(2046.0) && out[1].is_nan());
        // 1 + 2^-8 lies between two bf16; what comes after it in f64 decides.
        let mut out = [bf16::ZERO; 2];
        let updates = [2f32.powi(-8), 2f32.powi(-50), 0.0, 0.0].map(bf16::from_f32);
        scatter_add(cpu, rows, &[bf16::ONE; 2], &updates, &mut out).unwrap();
        assert_eq!(out[0], bf16::from_f32(1.0 + 2f32.powi(-7)));
        let mut out = [0; 2];
        scatter_add(cpu, rows, &[250u8, 1], &[10, 20, 255, 1], &mut out).unwrap();
        assert_eq!(out, [24, 0]);
        let mut out = [0; 2];
        scatter_add(cpu, rows, &[i64::MAX, 1], &[1, 0, 2, 1], &mut out).unwrap();
        assert_eq!(out, [i64::MIN, 3]);
    });
    // Wide rows in tiles, cut among threads.
    let (size, inner) = (60, 1300);
    let mut numbers = Numbers::new(2);
    let (x, updates) = (numbers.floats(size * inner), numbers.floats(5 * inner));
    let indices = [3, 59, 3, 0, 3];
    everywhere(|cpu| {
        let mut out = vec![0.0; x.len()];
        let rows = Rows { outer: 1, size, inner, indices: &indices };
        scatter_add(cpu, rows, &x, &updates, &mut out).unwrap();
        for (i, y) in out.iter().enumerate() {
            let own = indices.iter().enumerate().filter(|(_, row)| **row == (i / inner) as i64);
            let sum =
                own.fold(f64::from(x[i]), |sum, (n, _)| sum + f64::from(updates[n * inner + i % inner]));
            assert_eq!(*y, sum as f32, "{i}");
        }
    });
}

#[test]
fn rows_without_a_place_are_refused() {
    everywhere(|cpu| {
        let run = |outer, size, inner, indices: &[i64], updates: usize| {
            let (x, updates) = (vec![1.0f32; outer * size * inner], vec![2.0f32; updates]);
            let rows = Rows { outer, size, inner, indices };
            let mut out = x.clone();
            let set = scatter_set(cpu, rows, &x, &updates, &mut out);
            let added = scatter_add(cpu, rows, &x, &updates, &mut out);
            assert_eq!(set.is_ok(), added.is_ok());
            set
        };
        for index in [3, i64::MAX] {
            let e = run(1, 3, 2, &[0, index], 4).unwrap_err();
            assert!(e.message().contains(&format!("index {index} is out of range for 3 rows")), "{e}");
        }
        assert!(run(1, 3, 2, &[0], 4).is_err());
        assert!(run(1, 0, 2, &[0], 2).is_err());
        run(1, 0, 2, &[-1], 2).unwrap();
        run(1, 3, 2, &[], 0).unwrap();
        // As the interpreter: an empty row has a place, rows of no tensor have none.
        assert!(run(1, 3, 0, &[3], 0).is_err());
        run(0, 3, 2, &[3], 0).unwrap();
    });
}

#[test]
fn argmax_takes_the_first_along_any_axis() {
    everywhere(|cpu| {
        let mut x = vec![0.0f32; 3 * 50];
        (x[20], x[30]) = (5.0, 5.0);
        x[50..100].fill(f32::NEG_INFINITY);
        (x[110], x[120]) = (-f32::NAN, f32::INFINITY);
        let mut out = [7; 3];
        argmax(cpu, [3, 50, 1], &x, &mut out).unwrap();
        assert_eq!(out, [20, 0, 10]);
        argmax(cpu, [1, 4, 1], &[0.0, -0.0, 0.0, -1.0], &mut out[..1]).unwrap();
        assert_eq!(out[0], 0);
        assert!(argmax::<f32>(cpu, [3, 0, 1], &[], &mut out).is_err());
        assert!(argmax(cpu, [3, 50, 2], &x, &mut out).is_err());
        argmax::<i8>(cpu, [0, 5, 4], &[], &mut []).unwrap();
    });
    let mut numbers = Numbers::new(8);
    for [outer, size, inner] in [[2, 9, 3], [3, 5, 1300], [700, 33, 4], [1, 1, 2]] {
        let x: Vec<i64> = (0..outer * size * inner).map(|_| numbers.next() as i64 >> 60).collect();
        let expected: Vec<i32> = (0..outer * inner)
            .map(|i| {
                let at = |k: usize| x[(i / inner * size + k) * inner + i % inner];
                (1..size).fold(0, |best, k| if at(k) > at(best) { k } else { best }) as i32
            })
            .collect();
        let halves: Vec<f16> = x.iter().map(|&x| f16::from_f32(x as f32)).collect();
        everywhere(|cpu| {
            let mut out = vec![-1; outer * inner];
            argmax(cpu, [outer, size, inner], &x, &mut out).unwrap();
            assert_eq!(out, expected);
            argmax(cpu, [outer, size, inner], &halves, &mut out).unwrap();
            assert_eq!(out, expected);
        });
    }
}

#[test]
fn rows_are_gathered_along_any_axis() {
    for [outer, size, inner] in [[1, 6, 1], [4, 6, 1], [3, 6, 5], [900, 6, 70], [50_000, 6, 1], [2, 6, 0]] {
        let x: Vec<u32> = (0..(outer * size * inner) as u32).collect();
        let rows = [5, 0, 3, 3];
        let expected: Vec<u32> = (0..outer)
            .flat_map(|o| rows.map(|row| (o * size + row) * inner))
            .flat_map(|at| at as u32..(at + inner) as u32)
            .collect();
        everywhere(|cpu| {
            let mut out = vec![0; expected.len()];
            gather(cpu, [outer, size, inner], &x, &rows, &mut out).unwrap();
            assert_eq!(out, expected);
            assert!(gather(cpu, [outer, size, inner], &x, &[0, 1, 2, 6], &mut out).is_err());
            assert!(gather(cpu, [outer, size + 1, inner.max(1)], &x, &rows, &mut out).is_err());
        });
    }
    everywhere(|cpu| gather::<u8>(cpu, [0, 2, 3], &[], &[9], &mut []).unwrap());
}

#[test]
fn iota_counts_along_its_axis() {
    for [outer, size, inner] in
        [[1, 7, 1], [3, 7, 1], [2, 3, 5], [100, 127, 9], [30_000, 5, 1], [0, 3, 3], [2, 0, 2]]
    {
        let expected: Vec<usize> = (0..outer * size * inner).map(|i| i / inner % size).collect();
        everywhere(|cpu| {
            let mut out = vec![-1i8; expected.len()];
            iota(cpu, [outer, size, inner], &mut out).unwrap();
            assert!(out.iter().zip(&expected).all(|(y, e)| *y as usize == *e));
            let mut out = vec![f16::NAN; expected.len()];
            iota(cpu, [outer, size, inner], &mut out).unwrap();
            assert!(out.iter().zip(&expected).all(|(y, e)| y.to_f32() == *e as f32));
        });
    }
    everywhere(|cpu| {
        assert!(iota(cpu, [1, 129, 1], &mut [0i8; 129]).unwrap_err().message().contains("cannot hold"));
        iota(cpu, [1, 256, 1], &mut [0u8; 256]).unwrap();
        assert!(iota(cpu, [1, 3, 2], &mut [0f32; 5]).is_err());
        // Rounded once, to even.
        let mut out = vec![bf16::ZERO; 260];
        iota(cpu, [1, 260, 1], &mut out).unwrap();
        assert_eq!((out[257].to_f32(), out[259].to_f32()), (256.0, 260.0));
    });
}
