//! A compiled encoder and the contexts to run it in.

use std::sync::{Mutex, PoisonError};

use rlx_ir::Graph;
use rlx_runtime::{MemoryUse, RunContext, Runtime, Session};

use super::packed::Packed;
use crate::Result;
use crate::files::NamedWeights;
use crate::options::LoadOptions;

/// A compiled encoder. Runs at once from any number of threads: each takes a context of its own, which is made when
/// there is none that is free.
#[derive(Debug)]
pub struct EncoderSession {
    session: Session,
    contexts: Mutex<Vec<RunContext>>,
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
        Ok(Self { session, contexts: Mutex::new(Vec::new()), takes_pool_starts })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The memory of one context, planned at the bounds.
    ///
    /// # Errors
    /// `Device` where memory cannot be had.
    pub fn memory(&self) -> Result<MemoryUse> {
        let context = self.check_out()?;
        let memory = context.memory();
        self.check_in(context);
        Ok(memory)
    }

    fn check_out(&self) -> Result<RunContext> {
        match self.contexts.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            Some(context) => Ok(context),
            None => Ok(self.session.context(&[])?),
        }
    }

    fn check_in(&self, context: RunContext) {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner).push(context);
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
}
