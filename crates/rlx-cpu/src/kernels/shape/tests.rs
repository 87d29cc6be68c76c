use super::*;
use crate::kernels::Strided;
use crate::testing::everywhere;

#[test]
fn rows_of_operands_follow_each_other() {
    everywhere(|cpu| {
        let mut out = [0; 9];
        concat(cpu, 3, &[&[1, 2, 3], &[], &[10, 11, 20, 21, 30, 31]], &mut out).unwrap();
        assert_eq!(out, [1, 10, 11, 2, 20, 21, 3, 30, 31]);
        let mut out = [0; 3];
        concat(cpu, 1, &[&[1], &[2, 3]], &mut out).unwrap();
        assert_eq!(out, [1, 2, 3]);
        // Cut among threads.
        let (a, b): (Vec<u32>, Vec<u32>) = ((0..200_000).collect(), (0..100_000).map(|i| !i).collect());
        let mut out = vec![0; 300_000];
        concat(cpu, 1000, &[&a, &b], &mut out).unwrap();
        for (row, out) in out.chunks(300).enumerate() {
            assert!(out[..200] == a[row * 200..][..200] && out[200..] == b[row * 100..][..100], "{row}");
        }
    });
}

#[test]
fn operands_that_are_no_rows_are_refused() {
    everywhere(|cpu| {
        assert!(concat(cpu, 2, &[&[1, 2, 3], &[4]], &mut [0; 4]).is_err());
        assert!(concat(cpu, 2, &[&[1, 2]], &mut [0; 4]).is_err());
        assert!(concat(cpu, 0, &[&[1, 2]], &mut [0; 2]).is_err());
        concat::<u8>(cpu, 0, &[&[], &[]], &mut []).unwrap();
        concat::<u8>(cpu, 3, &[&[]], &mut []).unwrap();
    });
}

/// The meaning, element by element.
fn padded(shape: [usize; 3], strides: [usize; 3], low: [usize; 3], high: [usize; 3], x: &[u16]) -> Vec<u16> {
    let size = |axis: usize| low[axis] + shape[axis] + high[axis];
    let mut out = Vec::new();
    for i in 0..size(0) * size(1) * size(2) {
        let index = [i / (size(1) * size(2)), i / size(2) % size(1), i % size(2)];
        let inside = (0..3).all(|a| index[a] >= low[a] && index[a] < low[a] + shape[a]);
        let at = |a: usize| (index[a].wrapping_sub(low[a])).wrapping_mul(strides[a]);
        out.push(if inside { x[at(0) + at(1) + at(2)] } else { 9999 });
    }
    out
}

#[test]
fn elements_surround_an_array_of_any_strides() {
    let x: Vec<u16> = (0..9000).collect();
    for (shape, strides) in [
        ([2, 3, 4], [12, 4, 1]),
        ([2, 3, 4], [1, 8, 2]),
        ([2, 3, 4], [0, 1, 0]),
        ([30, 30, 10], [300, 10, 1]),
        ([2, 0, 4], [0, 4, 1]),
        ([1, 1, 1], [1, 1, 1]),
    ] {
        for (low, high) in [
            ([0, 0, 0], [0, 0, 0]),
            ([1, 2, 3], [3, 0, 1]),
            ([2, 0, 0], [0, 1, 0]),
            ([0, 0, 5], [0, 0, 0]),
            ([20, 20, 20], [20, 20, 20]),
        ] {
            let expected = padded(shape, strides, low, high, &x);
            everywhere(|cpu| {
                let mut out = vec![1; expected.len()];
                let x = Strided { data: &x, strides: &strides };
                pad(cpu, &shape, x, [&low, &high], 9999, &mut out).unwrap();
                assert_eq!(out, expected, "{shape:?} {strides:?} {low:?} {high:?}");
            });
        }
    }
    everywhere(|cpu| {
        let x = Strided { data: &[5u8, 6], strides: &[1] };
        pad(cpu, &[], Strided { data: &[5u8], strides: &[] }, [&[], &[]], 0, &mut [0]).unwrap();
        assert!(pad(cpu, &[2], x, [&[1], &[]], 0, &mut [0; 3]).is_err());
        assert!(pad(cpu, &[2], x, [&[1], &[0]], 0, &mut [0; 4]).is_err());
        assert!(pad(cpu, &[3], x, [&[1], &[0]], 0, &mut [0; 4]).is_err());
        assert!(pad(cpu, &[2], x, [&[usize::MAX], &[0]], 0, &mut [0; 4]).is_err());
    });
}
