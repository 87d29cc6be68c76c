//! Copies of strided views into dense buffers.

use super::{StepCall, Thunk};
use crate::error::Result;

/// Copies elements of any size.
#[derive(Debug)]
pub(crate) struct Copy;

impl Thunk for Copy {
    fn kernel(&self) -> &str {
        "copy"
    }

    fn run(&self, call: &mut StepCall<'_>) -> Result<()> {
        let elem = call.step.operands[0].ty.dtype.block_bytes();
        let (shape, strides) = (call.shape(0), call.strides(0));
        let from = call.bytes(0)?;
        copy_strided(from, &shape, &strides, elem, call.write_bytes(0));
        Ok(())
    }
}

/// Copies a view of `elem`-byte elements, row-major, into `out`. Inner axes that are dense are copied as one run.
pub(crate) fn copy_strided(from: &[u8], shape: &[usize], strides: &[usize], elem: usize, out: &mut [u8]) {
    if out.is_empty() {
        return;
    }
    // The longest dense run at the end.
    let (mut run, mut outer) = (1, shape.len());
    while outer > 0 && (strides[outer - 1] == run || shape[outer - 1] == 1) {
        run *= shape[outer - 1];
        outer -= 1;
    }
    let mut index = vec![0usize; outer];
    for piece in out.chunks_exact_mut(run * elem) {
        let at: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        piece.copy_from_slice(&from[at * elem..(at + run) * elem]);
        for axis in (0..outer).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposed_and_broadcast_views_become_dense() {
        let from: Vec<u8> = (0..6).collect();
        let mut out = [0; 6];
        copy_strided(&from, &[3, 2], &[1, 3], 1, &mut out);
        assert_eq!(out, [0, 3, 1, 4, 2, 5]);
        let mut out = [0; 8];
        copy_strided(&from[..4], &[2, 2], &[0, 1], 2, &mut out);
        assert_eq!(out, [0, 1, 2, 3, 0, 1, 2, 3]);
    }
}
