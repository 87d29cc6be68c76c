//! Filetests: small graphs in the text form, with a command and what is expected of it.
//!
//! A file (`*.rlx`) holds one or more cases. A case starts with `// test: COMMAND` and ends before the next:
//!
//! ```text
//! // test: pass fold
//! graph @g(N) {
//!   %x = input "x" : f32[N]
//!   %one = const f32[] = [1.0]
//!   %y = mul %x, %one
//!   return %y
//! }
//! // not: mul
//! // check: return %x
//! // check: neutral_operand fired at %y
//! ```
//!
//! Commands:
//! - `parse`: prints what was parsed, and checks that it parses to the same text again;
//! - `verify`: parses, and says `ok`;
//! - `pass NAME [TARGET] [OPTION=VALUE...]`: runs a pass, and prints the graph and what the rules did. The runner also checks
//!   that the result parses again and holds the verifier's invariants, that a second run changes nothing, and that
//!   the interpreter computes the same before and after;
//! - `pipeline [TARGET] [OPTION=VALUE...]`: the same for all stages; also `fuse=off` and `stop_after=STAGE`;
//!   `pass` and `pipeline` take `compute=f32|f16|bf16|int8` and `keep=scope:NAME|op:NAME|weight:NAME`;
//! - `plan [passes] [TARGET] [OPTION=VALUE...]`: prints the plan of the graph as it is or, with `passes`, after all stages;
//!   the options are those of `pipeline`. The runner also checks the regions;
//! - `run [half]`: interprets the graph; with [`run_dir_on`] a backend also runs it, and must agree: but for roundings to
//!   f32, or with `half` to f16, as where keys and values are kept in f16.
//!
//! Targets: `any` (the default) runs every op, `core` none but core ops, `without=OP,OP` every op but those, where a dtype stands for
//! all ops on it and `blocks` for all on block types. With [`run_dir_on`]
//! `pipeline` and `plan` also take `device`: the backend. For `plan`
//! also `claim=KIND,KIND`: the regions that it runs as a whole; and `in_place`: results may overwrite the first operand.
//!
//! Expectations, each a comment of its own:
//! - `check: TEXT`: a line after the one that the last `check:` found holds TEXT;
//! - `not: TEXT`: no line holds TEXT;
//! - `count: N TEXT`: N lines hold TEXT;
//! - `expect:`, followed by comment lines: the whole output; `BLESS=1` in the environment writes it;
//! - `error: TEXT`: the command fails, and the message holds TEXT.
//!
//! Data for `run`, and for the check that a pass keeps the meaning (where none is given, values are pseudo-random and
//! symbols are 3):
//! - `input: "NAME" : TYPE = LITERAL`, `state: "NAME" : TYPE = LITERAL`, where LITERAL is as for weights, `seed N` too;
//! - `size: SYMBOL = N`;
//! - `output: INDEX : TYPE = LITERAL [tol T]`, `state-after: "NAME" : TYPE = LITERAL [tol T]`: within T, absolute and
//!   relative to the expected value.

mod case;
mod command;
mod data;
mod expect;
pub(crate) mod on_backend;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use case::Case;
use rlx_runtime::Backend;

use crate::{Error, Result};

/// Runs every filetest below `dir`; returns the number of cases.
///
/// # Errors
/// `Io` where a file cannot be read (or, blessing, written); `InvalidArgument` listing every case that failed, with
/// file, line, and what came out. No case at all is an error too.
pub fn run_dir(dir: &Path) -> Result<usize> {
    run_files(dir, None)
}

/// As [`run_dir`]; the graphs of `run` cases also run on `backend`, whose results must be those of the interpreter but for
/// roundings.
///
/// # Errors
/// As [`run_dir`].
pub fn run_dir_on(dir: &Path, backend: &Arc<dyn Backend>) -> Result<usize> {
    run_files(dir, Some(backend))
}

fn run_files(dir: &Path, backend: Option<&Arc<dyn Backend>>) -> Result<usize> {
    let bless = std::env::var_os("BLESS").is_some_and(|v| v == "1");
    let mut files = Vec::new();
    collect(dir, &mut files)?;
    files.sort();
    let (mut cases, mut failures) = (0, Vec::new());
    for path in &files {
        let text = std::fs::read_to_string(path).map_err(|e| io(path, &e))?;
        let parsed = Case::split(&text).map_err(|e| e.context(path.display()))?;
        let mut blessed = text.clone();
        for case in parsed.iter().rev() {
            cases += 1;
            let output = command::run(case, backend);
            if let (true, Ok(output)) = (bless, &output) {
                blessed = expect::bless(case, output, &blessed);
                continue;
            }
            if let Err(e) = expect::check(case, &output) {
                let shown = match &output {
                    Ok(o) => format!("output:\n{o}"),
                    Err(e) => format!("error: {e}"),
                };
                failures.push(format!("{}:{}: {e}\n{shown}", path.display(), case.line));
            }
        }
        if blessed != text {
            std::fs::write(path, blessed).map_err(|e| io(path, &e))?;
        }
    }
    if cases == 0 {
        rlx_ir::bail!(NotFound, "no filetest in {}", dir.display());
    }
    if !failures.is_empty() {
        rlx_ir::bail!(InvalidArgument, "{} of {cases} cases failed\n{}", failures.len(), failures.join("\n"));
    }
    Ok(cases)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(dir).map_err(|e| io(dir, &e))? {
        let path = entry.map_err(|e| io(dir, &e))?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|e| e == "rlx") {
            files.push(path);
        }
    }
    Ok(())
}

fn io(path: &Path, e: &std::io::Error) -> Error {
    Error::new(rlx_ir::ErrorKind::Io, format!("{}: {e}", path.display()))
}
