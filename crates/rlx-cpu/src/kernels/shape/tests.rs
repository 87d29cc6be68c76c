use super::*;
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
