//! Attempts at what may succeed later.

use std::time::Duration;

use super::http::Failure;
use crate::{Error, Result};

/// Attempts that bring nothing, one after the other, before it is given up.
const MAX_ATTEMPTS: u32 = 5;
/// So many bytes are progress, after which attempts are counted from the start: a slow line is not given up.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Counts attempts and waits between them.
#[derive(Debug)]
pub(super) struct Attempts {
    wait: Duration,
    failed: u32,
    /// Bytes that were there when they were counted from the start.
    bytes: u64,
}

impl Attempts {
    /// The second attempt comes after `wait`, each later one after twice as long.
    pub(super) fn new(wait: Duration) -> Self {
        Self { wait, failed: 0, bytes: 0 }
    }

    /// Counts a failure, with `bytes` received so far; returns after the time to wait.
    ///
    /// # Errors
    /// The failure, where another attempt makes no sense.
    pub(super) fn failed(&mut self, failure: Failure, bytes: u64) -> Result<()> {
        if bytes >= self.bytes + PROGRESS_BYTES {
            (self.failed, self.bytes) = (0, bytes);
        }
        self.failed += 1;
        let (error, asked) = match failure {
            Failure::Final(e) => return Err(e),
            // Where nothing came at all, waiting for a machine that is not there helps nobody.
            Failure::Unreachable(e) if bytes == 0 => return Err(e),
            Failure::Unreachable(e) => (e, None),
            Failure::Passing(e, asked) => (e, asked),
        };
        if self.failed >= MAX_ATTEMPTS {
            let message = format!("{} ({MAX_ATTEMPTS} attempts)", error.message());
            return Err(Error::new(error.kind(), message));
        }
        tracing::info!("{}; attempt {} follows", error.message(), self.failed + 1);
        std::thread::sleep(asked.unwrap_or(self.wait * 2u32.pow(self.failed - 1)));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;

    use super::*;

    fn error() -> Error {
        Error::new(ErrorKind::Io, "broke")
    }

    #[test]
    fn attempts_end_unless_bytes_come() {
        let mut attempts = Attempts::new(Duration::ZERO);
        let mut fail = |bytes| attempts.failed(Failure::Passing(error(), None), bytes);
        for _ in 1..MAX_ATTEMPTS {
            fail(10).unwrap();
        }
        // New bytes: counted from the start.
        for _ in 1..MAX_ATTEMPTS {
            fail(10 + PROGRESS_BYTES).unwrap();
        }
        assert!(fail(10 + PROGRESS_BYTES).unwrap_err().message().contains("5 attempts"));
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again() {
        let mut attempts = Attempts::new(Duration::ZERO);
        assert!(attempts.failed(Failure::Final(error()), 1).is_err());
        assert!(attempts.failed(Failure::Unreachable(error()), 0).is_err());
        attempts.failed(Failure::Unreachable(error()), 1).unwrap();
    }
}
