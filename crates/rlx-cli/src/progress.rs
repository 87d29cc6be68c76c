//! Progress bars on stderr: only on a terminal, only for what takes a while, never with `-q`.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rlx::ir::Tick;

use crate::options::Global;

/// Nothing is shown for work that ends within this time.
const PATIENCE: Duration = Duration::from_millis(300);

/// A bar that appears when the work turns out to be long. Clones share it.
#[derive(Clone, Debug)]
pub struct Bar {
    bar: ProgressBar,
    start: Tick,
}

impl Bar {
    /// A bar over bytes.
    pub fn bytes(global: &Global, what: &'static str) -> Self {
        Self::new(global, what, "{msg} [{bar:30}] {bytes}/{total_bytes} {eta}")
    }

    /// A bar over a number of things, in all or so far.
    pub fn count(global: &Global, what: &'static str) -> Self {
        Self::new(global, what, "{msg} [{bar:30}] {pos}/{len} {eta}")
    }

    fn new(global: &Global, what: &'static str, template: &str) -> Self {
        let bar = ProgressBar::hidden();
        if !global.quiet && std::io::stderr().is_terminal() {
            bar.set_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()));
            bar.set_message(what);
        } else {
            // Never shown.
            bar.finish();
        }
        Self { bar, start: Tick::now() }
    }

    /// So much is done, of so much.
    pub fn set(&self, done: u64, total: u64) {
        if self.bar.is_finished() {
            return;
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        if self.bar.is_hidden() && self.start.elapsed_ns() > PATIENCE.as_nanos() as u64 {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
