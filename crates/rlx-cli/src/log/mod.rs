//! What `tracing` tells: log lines on stderr, and the file of `--trace`.

mod chrome;
mod subscriber;

use std::sync::{Arc, OnceLock};

use tracing::level_filters::LevelFilter;

use crate::error::Result;
use crate::options::Global;
use chrome::ChromeTrace;
use subscriber::Logger;

static TRACE: OnceLock<Arc<ChromeTrace>> = OnceLock::new();

/// Starts logging as the command line says.
pub fn start(global: &Global) -> Result<()> {
    let verbosity = global.settings()?.count("RLX_VERBOSE");
    let lines = match (global.quiet, verbosity) {
        (true, _) => LevelFilter::OFF,
        (false, 0) => LevelFilter::WARN,
        (false, 1) => LevelFilter::INFO,
        (false, 2) => LevelFilter::DEBUG,
        (false, _) => LevelFilter::TRACE,
    };
    let trace = match &global.trace {
        None => None,
        Some(path) => {
            let trace = Arc::new(ChromeTrace::create(path)?);
            Some(TRACE.get_or_init(|| trace).clone())
        }
    };
    // Fails where a subscriber is there already, which is this one then.
    let _ = tracing::subscriber::set_global_default(Logger::new(lines, trace));
    Ok(())
}

/// Ends the trace's file.
pub fn finish() {
    if let Some(trace) = TRACE.get() {
        trace.finish();
    }
}
