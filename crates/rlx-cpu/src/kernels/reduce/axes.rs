//! Reductions over any axes: one group of neighbours after the other.

use bytemuck::Pod;
use half::{bf16, f16};
use rlx_ir::bail;

use super::{Reduction, reduce, reduce_exact};
use crate::error::{Error, Result};
use crate::kernels::Cpu;
use crate::kernels::scratch::with_scratch;

/// A number of any dtype that is reduced.
pub trait Reducible: Pod + Send + Sync {
    /// What results between groups of axes have.
    type Wide: Reducible<Wide = Self::Wide>;
    /// Over one axis of `[outer, axis, inner]`, as [`reduce`] and [`reduce_exact`].
    #[allow(clippy::missing_errors_doc)]
    fn reduce(cpu: Cpu<'_>, by: Reduction, sizes: [usize; 3], x: &[Self], out: &mut [Self]) -> Result<()>;
    /// The same without rounding.
    #[allow(clippy::missing_errors_doc)]
    fn first(
        cpu: Cpu<'_>,
        by: Reduction,
        sizes: [usize; 3],
        x: &[Self],
        out: &mut [Self::Wide],
    ) -> Result<()>;
    /// The same of what `first` made.
    #[allow(clippy::missing_errors_doc)]
    fn last(cpu: Cpu<'_>, by: Reduction, sizes: [usize; 3], x: &[Self::Wide], out: &mut [Self])
    -> Result<()>;
}

macro_rules! reducible {
    ($($t:ty, $wide:ty, $reduce:ident;)*) => {$(
        impl Reducible for $t {
            type Wide = $wide;
            fn reduce(cpu: Cpu<'_>, by: Reduction, sizes: [usize; 3], x: &[Self], out: &mut [Self]) -> Result<()> {
                $reduce(cpu, by, sizes, x, out)
            }
            fn first(cpu: Cpu<'_>, by: Reduction, sizes: [usize; 3], x: &[Self], out: &mut [$wide]) -> Result<()> {
                $reduce(cpu, by, sizes, x, out)
            }
            fn last(cpu: Cpu<'_>, by: Reduction, sizes: [usize; 3], x: &[$wide], out: &mut [Self]) -> Result<()> {
                $reduce(cpu, by, sizes, x, out)
            }
        }
    )*};
}

reducible! {
    f32, f32, reduce;
    f16, f32, reduce;
    bf16, f32, reduce;
    f64, f64, reduce_exact;
    i8, i8, reduce_exact;
    i16, i16, reduce_exact;
    i32, i32, reduce_exact;
    i64, i64, reduce_exact;
    u8, u8, reduce_exact;
    u32, u32, reduce_exact;
}

/// Neighbouring axes that are all reduced, or all not.
#[derive(Clone, Copy, Debug)]
struct Group {
    reduced: bool,
    size: usize,
}

/// `out = reduce(x)` along the axes that are `reduced`. A mean is the mean of means, each of as many.
///
/// Shapes: x `shape`, out `shape` without these axes. Dtypes: floats and integers; those of f16 and bf16 are rounded once. Errors:
/// `InvalidArgument` where lengths do not agree, or for the mean of integers.
pub fn reduce_axes<T: Reducible>(
    cpu: Cpu<'_>,
    reduction: Reduction,
    shape: &[usize],
    reduced: &[bool],
    x: &[T],
    out: &mut [T],
) -> Result<()> {
    if shape.len() != reduced.len() {
        bail!(InvalidArgument, "reduce of {shape:?} along {reduced:?}");
    }
    let mut groups = groups(shape, reduced);
    let (sizes, at) = last(&groups);
    groups[at] = Group { reduced: false, size: 1 };
    if !groups.iter().any(|g| g.reduced) {
        return T::reduce(cpu, reduction, sizes, x, out);
    }
    let Some(len) = sizes[0].checked_mul(sizes[2]) else {
        bail!(InvalidArgument, "reduce of {shape:?} is too large");
    };
    with_scratch(len, |wide: &mut [T::Wide]| {
        T::first(cpu, reduction, sizes, x, wide)?;
        rest::<T>(cpu, reduction, groups, wide, out)
    })
}

fn rest<T: Reducible>(
    cpu: Cpu<'_>,
    reduction: Reduction,
    mut groups: Vec<Group>,
    x: &[T::Wide],
    out: &mut [T],
) -> Result<()> {
    let (sizes, at) = last(&groups);
    groups[at] = Group { reduced: false, size: 1 };
    if !groups.iter().any(|g| g.reduced) {
        return T::last(cpu, reduction, sizes, x, out);
    }
    with_scratch(sizes[0] * sizes[2], |wide: &mut [T::Wide]| {
        T::Wide::reduce(cpu, reduction, sizes, x, wide)?;
        rest::<T>(cpu, reduction, groups, wide, out)
    })
}

fn groups(shape: &[usize], reduced: &[bool]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (&size, &reduced) in shape.iter().zip(reduced).filter(|(size, _)| **size != 1) {
        match groups.last_mut() {
            Some(group) if group.reduced == reduced => group.size = group.size.saturating_mul(size),
            _ => groups.push(Group { reduced, size }),
        }
    }
    if !groups.iter().any(|g| g.reduced) {
        groups.push(Group { reduced: true, size: 1 });
    }
    groups
}

/// The sizes around the last group that is reduced, and its place.
fn last(groups: &[Group]) -> ([usize; 3], usize) {
    let at = groups.iter().rposition(|g| g.reduced).unwrap_or(0);
    let product = |groups: &[Group]| groups.iter().fold(1usize, |n, g| n.saturating_mul(g.size));
    ([product(&groups[..at]), groups[at].size, product(&groups[at + 1..])], at)
}
