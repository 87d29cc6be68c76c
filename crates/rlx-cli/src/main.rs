//! The `rlx` command: results on stdout, everything else on stderr, exit codes that mean something.

mod commands;
mod error;
mod lines;
mod log;
mod memory;
mod model;
mod options;
mod output;
mod progress;
mod sampling;
mod texts;
mod workload;

use std::process::ExitCode;

use clap::Parser;
use rlx::ir::ErrorKind;

use crate::commands::Command;
use crate::options::Global;

/// Runs embedding models and language models on what this machine has.
#[derive(Debug, Parser)]
#[command(
    name = "rlx",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    args_override_self = true
)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    // A panic is a bug, and a bug has the exit code 1; its message has been printed by then.
    let code = std::panic::catch_unwind(run).unwrap_or(ErrorKind::Bug.exit_code());
    ExitCode::from(code)
}

fn run() -> u8 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return error::report_usage(&e),
    };
    let done = commands::run(&cli.command, &cli.global);
    log::finish();
    match done {
        Ok(()) => 0,
        // The reader of stdout has gone: nobody is left to tell.
        Err(e) if e.kind() == ErrorKind::Cancelled => 0,
        Err(e) => {
            error::report(e.message());
            e.kind().exit_code()
        }
    }
}
