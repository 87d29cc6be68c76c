//! The submission thread: it encodes and commits command buffers, one after the other, for all contexts of a device.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rlx_ir::bail;

use crate::driver::{CommandList, Driver, Event, Run};
use crate::error::{Error, Result};

/// Command buffers that wait to be encoded; who comes with more waits.
const WAITING: usize = 8;

/// How long a wait lasts before the device is asked whether it has failed.
const PATIENCE: Duration = Duration::from_millis(500);

struct Job<D: Driver> {
    list: Arc<CommandList<D>>,
    event: Arc<D::Event>,
    value: u64,
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
                let _ = job.reply.send(driver.commit(&job.list, &job.event, job.value));
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
    pub(super) fn submit(
        &self,
        list: &Arc<CommandList<D>>,
        event: &Arc<D::Event>,
        value: u64,
    ) -> Result<Submitted<D>> {
        let (reply, answer) = sync_channel(1);
        let job = Job { list: list.clone(), event: event.clone(), value, reply };
        if self.jobs.as_ref().is_none_or(|jobs| jobs.send(job).is_err()) {
            bail!(Device, "the submission thread has ended");
        }
        Ok(Submitted { _list: list.clone(), event: event.clone(), value, answer })
    }
}

/// A list on its way. It keeps what the device uses alive.
pub(super) struct Submitted<D: Driver> {
    _list: Arc<CommandList<D>>,
    event: Arc<D::Event>,
    value: u64,
    answer: Receiver<Result<D::Run>>,
}

impl<D: Driver> Submitted<D> {
    /// Waits for the device; gives the nanoseconds that it took.
    ///
    /// # Errors
    /// `Device` where the command buffer failed.
    pub(super) fn wait(self, driver: &D) -> Result<u64> {
        let run = match self.answer.recv() {
            Ok(run) => run?,
            Err(_) => bail!(Device, "the submission thread has ended"),
        };
        driver.waited();
        loop {
            let done = self.event.wait(self.value, PATIENCE);
            if let Some(why) = run.failure() {
                bail!(Device, "{why}");
            }
            if done {
                return Ok(run.device_ns());
            }
        }
    }
}
