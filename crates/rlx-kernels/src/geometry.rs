//! Launch geometry: how many threadgroups of how many threads, from sizes and limits alone.
//!
//! A threadgroup is one row of threads, a multiple of the 32 of a simdgroup.

use crate::error::{Error, Result};

/// The threads of a simdgroup.
pub const SIMD_WIDTH: u32 = 32;

/// What a device can launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceLimits {
    /// Threads of a threadgroup.
    pub threads: u32,
    /// Bytes of threadgroup memory.
    pub threadgroup_bytes: u32,
    /// Threadgroups along the first axis of the grid.
    pub groups: u32,
}

impl DeviceLimits {
    /// What every Apple GPU since the M1 offers.
    pub const APPLE: Self = Self { threads: 1024, threadgroup_bytes: 32 * 1024, groups: u32::MAX };
}

/// What is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Threadgroups along each axis of the grid.
    pub groups: [u32; 3],
    /// Threads of a threadgroup.
    pub threads: u32,
}

/// The threads that a threadgroup may have: a multiple of the simdgroup's.
///
/// `pipeline_threads` is the limit of the compiled kernel, which the device tells only after it was compiled.
fn most_threads(limits: DeviceLimits, pipeline_threads: u32) -> Result<u32> {
    let most = limits.threads.min(pipeline_threads) / SIMD_WIDTH * SIMD_WIDTH;
    if most == 0 {
        rlx_ir::bail!(UnsupportedOnDevice, "a threadgroup of {SIMD_WIDTH} threads does not fit");
    }
    Ok(most)
}

fn check_groups(groups: usize, limits: DeviceLimits) -> Result<u32> {
    match u32::try_from(groups) {
        Ok(groups) if groups <= limits.groups => Ok(groups),
        _ => {
            rlx_ir::bail!(UnsupportedOnDevice, "{groups} threadgroups, but the grid holds {}", limits.groups)
        }
    }
}

/// One thread for each of `elems` elements; `None` where there is nothing to do.
///
/// # Errors
/// `UnsupportedOnDevice` where an index does not fit 32 bits or the grid is too large.
pub fn per_element(elems: usize, limits: DeviceLimits, pipeline_threads: u32) -> Result<Option<Geometry>> {
    const THREADS: u32 = 256;
    if elems == 0 {
        return Ok(None);
    }
    let threads = THREADS.min(most_threads(limits, pipeline_threads)?);
    // The last threadgroup's threads must have an index of 32 bits as well.
    if elems > (u32::MAX - threads) as usize {
        rlx_ir::bail!(UnsupportedOnDevice, "{elems} elements in one dispatch: indices have 32 bits");
    }
    let groups = check_groups(elems.div_ceil(threads as usize), limits)?;
    Ok(Some(Geometry { groups: [groups, 1, 1], threads }))
}

/// One threadgroup for each of `rows` rows of `width` elements; `None` where there is no row.
///
/// # Errors
/// `UnsupportedOnDevice` where the grid is too large.
pub fn per_row(
    rows: usize,
    width: usize,
    limits: DeviceLimits,
    pipeline_threads: u32,
) -> Result<Option<Geometry>> {
    /// Elements for each thread, so that a row of 384 takes 96 threads.
    const ELEMS_PER_THREAD: usize = 4;
    if rows == 0 {
        return Ok(None);
    }
    let most = most_threads(limits, pipeline_threads)?;
    let wanted = width.div_ceil(ELEMS_PER_THREAD).next_multiple_of(SIMD_WIDTH as usize);
    let threads = u32::try_from(wanted).unwrap_or(most).clamp(SIMD_WIDTH, most);
    Ok(Some(Geometry { groups: [check_groups(rows, limits)?, 1, 1], threads }))
}

/// `groups` threadgroups of exactly `simds` simdgroups; `None` where there is none.
///
/// # Errors
/// `UnsupportedOnDevice` where the threadgroup or the grid is too large.
pub fn tiles(
    groups: usize,
    simds: usize,
    limits: DeviceLimits,
    pipeline_threads: u32,
) -> Result<Option<Geometry>> {
    if groups == 0 {
        return Ok(None);
    }
    let threads = index(simds)?.saturating_mul(SIMD_WIDTH);
    let most = most_threads(limits, pipeline_threads)?;
    if threads > most {
        rlx_ir::bail!(UnsupportedOnDevice, "a threadgroup of {threads} threads, but at most {most} fit");
    }
    Ok(Some(Geometry { groups: [check_groups(groups, limits)?, 1, 1], threads }))
}

/// Rows that are shared out among simdgroups, in threadgroups of as many as a device allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimdRows {
    /// The number of rows, along the grid's first axis.
    pub rows: usize,
    /// Threadgroups along the second axis, for the same rows.
    pub columns: usize,
    /// Rows that a simdgroup takes.
    pub simd_rows: u32,
    /// Simdgroups that take the same rows.
    pub simds_per_rows: u32,
    /// The most rows of a threadgroup.
    pub most_rows: u32,
}

impl SimdRows {
    /// What to launch; `None` where there is nothing to do.
    ///
    /// # Errors
    /// `UnsupportedOnDevice` where the simdgroups that share rows do not fit a threadgroup, or the grid is too large.
    pub fn geometry(self, limits: DeviceLimits, pipeline_threads: u32) -> Result<Option<Geometry>> {
        if self.rows == 0 || self.columns == 0 {
            return Ok(None);
        }
        let simds = most_threads(limits, pipeline_threads)? / SIMD_WIDTH;
        let shares = (simds / self.simds_per_rows).min(self.most_rows / self.simd_rows);
        if shares == 0 {
            rlx_ir::bail!(
                UnsupportedOnDevice,
                "a threadgroup of {} simdgroups does not fit",
                self.simds_per_rows
            );
        }
        let tiles = self.rows.div_ceil((shares * self.simd_rows) as usize);
        let groups = [check_groups(tiles, limits)?, check_columns(self.columns)?, 1];
        Ok(Some(Geometry { groups, threads: shares * self.simds_per_rows * SIMD_WIDTH }))
    }
}

/// What every device has along the grid's second axis.
fn check_columns(groups: usize) -> Result<u32> {
    match u16::try_from(groups) {
        Ok(groups) => Ok(groups.into()),
        Err(_) => rlx_ir::bail!(UnsupportedOnDevice, "{groups} threadgroups along the grid's second axis"),
    }
}

/// A size or stride as kernels take it.
///
/// # Errors
/// `UnsupportedOnDevice` where it does not fit 32 bits.
pub fn index(value: usize) -> Result<u32> {
    match u32::try_from(value) {
        Ok(value) => Ok(value),
        Err(_) => rlx_ir::bail!(UnsupportedOnDevice, "{value} elements: indices have 32 bits"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: DeviceLimits = DeviceLimits::APPLE;

    #[test]
    fn elements_fill_threadgroups_and_the_last_one_has_a_tail() {
        let at =
            |elems, pipeline| per_element(elems, LIMITS, pipeline).unwrap().map(|g| (g.groups[0], g.threads));
        assert_eq!(at(0, 1024), None);
        assert_eq!(at(1, 1024), Some((1, 256)));
        assert_eq!(at(257, 1024), Some((2, 256)));
        assert_eq!(at(257, 96), Some((3, 96)));
        assert_eq!(at(257, 100), Some((3, 96)), "whole simdgroups");
    }

    #[test]
    fn rows_get_threads_by_their_width() {
        let at =
            |width, pipeline| per_row(5, width, LIMITS, pipeline).unwrap().map(|g| (g.groups[0], g.threads));
        assert_eq!(at(0, 1024), Some((5, 32)));
        assert_eq!(at(1, 1024), Some((5, 32)));
        assert_eq!(at(384, 1024), Some((5, 96)));
        assert_eq!(at(100_000, 1024), Some((5, 1024)));
        assert_eq!(at(100_000, 448), Some((5, 448)));
        assert_eq!(per_row(0, 384, LIMITS, 1024).unwrap(), None);
    }

    #[test]
    fn tiles_have_their_threads_or_none() {
        let at = |groups, pipeline| tiles(groups, 4, LIMITS, pipeline);
        assert_eq!(at(0, 1024).unwrap(), None);
        assert_eq!(at(3, 1024).unwrap(), Some(Geometry { groups: [3, 1, 1], threads: 128 }));
        assert_eq!(at(3, 128).unwrap(), Some(Geometry { groups: [3, 1, 1], threads: 128 }));
        assert!(at(3, 127).unwrap_err().message().contains("at most 96 fit"));
    }

    #[test]
    fn simdgroups_that_share_rows_come_together() {
        let at = |rows, simds_per_rows, pipeline| {
            let work = SimdRows { rows, columns: 3, simd_rows: 8, simds_per_rows, most_rows: 32 };
            work.geometry(LIMITS, pipeline).unwrap().map(|g| (g.groups[0], g.threads))
        };
        assert_eq!(at(0, 1, 1024), None);
        assert_eq!(at(1, 1, 1024), Some((1, 128)));
        assert_eq!(at(33, 1, 1024), Some((2, 128)));
        assert_eq!(at(33, 2, 1024), Some((2, 256)));
        assert_eq!(at(33, 2, 160), Some((3, 128)));
        assert_eq!(at(33, 1, 32), Some((5, 32)));
        let work = SimdRows { rows: 1, columns: 1, simd_rows: 8, simds_per_rows: 2, most_rows: 32 };
        assert!(work.geometry(LIMITS, 32).is_err());
        let wide = SimdRows { columns: 70_000, ..work };
        assert!(wide.geometry(LIMITS, 1024).is_err());
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let kind = |r: Result<Option<Geometry>>| r.unwrap_err().kind();
        let refused = rlx_ir::ErrorKind::UnsupportedOnDevice;
        assert_eq!(kind(per_element(u32::MAX as usize, LIMITS, 1024)), refused);
        assert_eq!(kind(per_element(1, LIMITS, 31)), refused);
        assert_eq!(kind(per_row(70_000, 4, DeviceLimits { groups: 65_535, ..LIMITS }, 1024)), refused);
        assert!(index(1 << 33).is_err());
    }
}
