//! The thread pool: a few persistent threads that share numbered tasks.
//!
//! [`Pool::run`] calls a closure once for each task number, on the caller and on the workers, and returns when all are
//! done. Workers spin briefly after a run and then park. A run that finds the pool busy (another context, or a nested
//! run) does its tasks on the calling thread alone; so does a run of one task. A worker that has not woken by the time
//! the tasks are all taken is not waited for, so a run is never held up by a thread that the system does not schedule.
//!
//! Which thread runs which task is not fixed: kernels give each task its own part of the result, and the value of an
//! element never depends on it.

mod launch;

pub use launch::{MAX_THREADS, Pool, TileMut, chunks, chunks_pair, tiles};

/// Splits `total` items into at most `parts` runs of equal length, a multiple of `quantum` but for the last:
/// (items per part, number of parts).
pub fn split(total: usize, quantum: usize, parts: usize) -> (usize, usize) {
    let per_part = total.div_ceil(parts.max(1)).next_multiple_of(quantum.max(1)).max(1);
    (per_part, total.div_ceil(per_part))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn pool(threads: usize) -> Pool {
        Pool::new(NonZeroUsize::new(threads)).unwrap()
    }

    #[test]
    fn every_task_runs_exactly_once() {
        for threads in [1, 2, 5] {
            let pool = pool(threads);
            assert_eq!(pool.threads(), threads);
            for tasks in [0, 1, 2, 3, 100] {
                for _ in 0..50 {
                    let counts: Vec<_> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
                    pool.run(tasks, |i| {
                        counts[i].fetch_add(1, Ordering::Relaxed);
                    })
                    .unwrap();
                    assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
                }
            }
        }
    }

    #[test]
    fn more_threads_than_a_pool_takes_are_refused() {
        let e = Pool::new(NonZeroUsize::new(MAX_THREADS + 1)).unwrap_err();
        assert_eq!(e.kind(), rlx_ir::ErrorKind::InvalidArgument);
    }

    #[test]
    fn a_parked_pool_wakes() {
        let pool = pool(3);
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(5));
            let sum = AtomicUsize::new(0);
            pool.run(64, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            })
            .unwrap();
            assert_eq!(sum.into_inner(), 64 * 63 / 2);
        }
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_goes_on() {
        let pool = pool(2);
        for _ in 0..20 {
            let e = pool.run(8, |i| assert!(i != 3, "task {i} is bad")).unwrap_err();
            assert_eq!(e.kind(), rlx_ir::ErrorKind::Bug);
            assert!(e.message().contains("task 3 is bad"), "{e}");
            pool.run(8, |_| ()).unwrap();
        }
        assert!(pool.run(1, |_| panic!("alone")).unwrap_err().message().contains("alone"));
    }

    #[test]
    fn nested_and_concurrent_runs_finish() {
        let pool = pool(2);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.run(4, |_| {
                            pool.run(4, |_| {
                                sum.fetch_add(1, Ordering::Relaxed);
                            })
                            .unwrap();
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(sum.into_inner(), 4 * 50 * 16);
    }

    #[test]
    fn tiles_cover_the_matrix_once() {
        let pool = pool(2);
        let (rows, cols, stride) = (7, 10, 12);
        let mut out = vec![0u32; rows * stride];
        tiles(&pool, &mut out, [rows, cols], stride, [3, 4], |mut tile| {
            for r in 0..tile.rows() {
                let col = tile.col();
                for (c, x) in tile.row_mut(r).iter_mut().enumerate() {
                    *x += 1 + (col + c) as u32;
                }
            }
        })
        .unwrap();
        for row in out.chunks(stride) {
            assert_eq!(row, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0]);
        }
        assert!(tiles(&pool, &mut out, [rows + 1, cols], stride, [3, 4], |_| ()).is_err());
        tiles(&pool, &mut out, [0, cols], stride, [3, 4], |_| unreachable!()).unwrap();
    }

    #[test]
    fn chunks_are_disjoint_and_numbered() {
        let pool = pool(2);
        let (mut a, mut b) = (vec![0; 10], vec![0; 5]);
        chunks_pair(&pool, (&mut a, 4), (&mut b, 2), |i, a, b| {
            a.fill(i);
            b.fill(i);
        })
        .unwrap();
        assert_eq!(a, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]);
        assert_eq!(b, [0, 0, 1, 1, 2]);
        assert!(chunks_pair(&pool, (&mut a, 4), (&mut b, 3), |_, _, _| ()).is_err());
    }
}
