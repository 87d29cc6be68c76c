//! The submission thread: it encodes and commits command buffers, one after the other, for all contexts of a device.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rlx_ir::bail;

use crate::driver::{CommandList, Driver, Run};
use crate::error::{Error, Result};

/// Command buffers that wait to be encoded; who comes with more waits.
const WAITING: usize = 8;

struct Job<D: Driver> {
    list: Arc<CommandList<D>>,
    reply: SyncSender<Result<D::Run>>,
}

/// Hands command lists to the submission thread, which ends with this.
pub(super) struct Submitter<D: Driver> {
    /// `None` at the end alone.
    jobs: Option<SyncSender<Job<D>>>,
    thread: Option<JoinHandle<()>>,
}

impl<D: Driver> Drop for Submitter<D> {
    /// The thread is over before the driver's libraries are.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the driver's has been reported where somebody waited.
            let _ = thread.join();
        }
    }
}

impl<D: Driver> Submitter<D> {
    /// Starts the thread.
    ///
    /// # Errors
    /// `Device` where the system gives no thread.
    pub(super) fn new(driver: Arc<D>) -> Result<Self> {
        let (jobs, queue): (_, Receiver<Job<D>>) = sync_channel(WAITING);
        let work = move || {
            for job in queue {
                // Nobody may wait for the answer any more.
                let _ = job.reply.send(driver.commit(&job.list));
            }
        };
        match thread::Builder::new().name("rlx-metal".to_owned()).spawn(work) {
            Ok(thread) => Ok(Self { jobs: Some(jobs), thread: Some(thread) }),
            Err(e) => bail!(Device, "the submission thread cannot be started: {e}"),
        }
    }

    /// Hands over a list.
    ///
    /// # Errors
    /// `Device` where the thread has ended.
    pub(super) fn submit(&self, list: &Arc<CommandList<D>>) -> Result<Submitted<D>> {
        let (reply, answer) = sync_channel(1);
        let job = Job { list: list.clone(), reply };
        if self.jobs.as_ref().is_none_or(|jobs| jobs.send(job).is_err()) {
            bail!(Device, "the submission thread has ended");
        }
        Ok(Submitted { _list: list.clone(), answer })
    }
}

/// A list on its way. It keeps what the device uses alive.
pub(super) struct Submitted<D: Driver> {
    _list: Arc<CommandList<D>>,
    answer: Receiver<Result<D::Run>>,
}

impl<D: Driver> Submitted<D> {
    /// Waits for the device; gives the nanoseconds that it took.
    ///
    /// # Errors
    /// `Device` where the command buffer failed.
    pub(super) fn wait(self) -> Result<u64> {
        match self.answer.recv() {
            Ok(run) => run?.wait(),
            Err(_) => bail!(Device, "the submission thread has ended"),
        }
    }
}
