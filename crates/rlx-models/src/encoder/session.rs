//! A compiled encoder and the contexts to run it in.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rlx_ir::Graph;
use rlx_runtime::{RunContext, Runtime, Session};

use super::packed::Packed;
use crate::Result;
use crate::files::NamedWeights;
use crate::options::LoadOptions;

/// What an encoder keeps in memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncoderMemory {
    /// Prepared weights that were allocated; those that are used in place from a mapped file are not among them.
    pub weights: u64,
    /// The arena of one run, planned at the largest batch; pages that were never touched take no memory.
    pub arena: u64,
    /// Inputs of one run.
    pub inputs: u64,
    /// How many arenas with their inputs wait for the next run. Runs that go on have one more each.
    pub idle_contexts: usize,
}

/// A compiled encoder. Runs at once from any number of threads: each takes a context of its own, which is made when
/// there is none that is free. As many as the backend has threads are kept for later runs.
#[derive(Debug)]
pub struct EncoderSession {
    session: Session,
    idle: Mutex<Vec<RunContext>>,
    most_idle: usize,
    takes_pool_starts: bool,
}

impl EncoderSession {
    /// Compiles the graph of an encoder.
    ///
    /// # Errors
    /// Errors of the compiler, the weights and the backend.
    pub fn new(
        runtime: &Runtime,
        graph: &Graph,
        weights: &NamedWeights,
        options: &LoadOptions,
    ) -> Result<Self> {
        let session = options.session(runtime, graph, weights)?;
        let takes_pool_starts = graph.inputs().any(|(_, name)| name == "pool_starts");
        // More runs at once than this gain nothing; their arenas are not kept for ever.
        let most_idle = session.backend().device().parallelism.max(1);
        Ok(Self { session, idle: Mutex::new(Vec::new()), most_idle, takes_pool_starts })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Runs one batch and gives its outputs to `read`.
    ///
    /// # Errors
    /// What the run and `read` report. The session stays usable.
    pub fn run<T>(&self, batch: &Packed, read: impl FnOnce(&RunContext) -> Result<T>) -> Result<T> {
        let mut context = self.check_out()?;
        context.bind(&[("N", batch.tokens()), ("R", batch.sequences())])?;
        context.set("ids", &batch.ids)?;
        context.set("positions", &batch.positions)?;
        context.set("starts", &batch.starts)?;
        if self.takes_pool_starts {
            context.set("pool_starts", &batch.pool_starts)?;
        }
        // A context whose run failed is dropped: the next run starts from a fresh one.
        context.run()?;
        let value = read(&context)?;
        self.check_in(context);
        Ok(value)
    }

    /// What it keeps in memory.
    ///
    /// # Errors
    /// `Device` where memory for a run cannot be had.
    pub fn memory(&self) -> Result<EncoderMemory> {
        let context = self.check_out()?;
        let memory = context.memory();
        self.check_in(context);
        Ok(EncoderMemory {
            weights: self.session.weight_bytes(),
            arena: memory.arena,
            inputs: memory.inputs,
            idle_contexts: self.idle().len(),
        })
    }

    fn check_out(&self) -> Result<RunContext> {
        let idle = self.idle().pop();
        match idle {
            Some(context) => Ok(context),
            None => Ok(self.session.context(&[])?),
        }
    }

    fn check_in(&self, context: RunContext) {
        let mut idle = self.idle();
        if idle.len() < self.most_idle {
            idle.push(context);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<RunContext>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
