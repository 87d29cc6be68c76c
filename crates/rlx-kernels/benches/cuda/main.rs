//! Every kernel on an NVIDIA GPU, compiled by NVRTC, against the reference interpreter.
//!
//! `cargo bench -p rlx-kernels --features cuda --bench cuda [-- FAMILY...]` runs the cases that the tests run in the
//! simulator, and prints for each family the worst error as a share of the tolerance. With `--time` it measures
//! instead; with `--wrong TOOL` it runs the one kernel that this tool of `compute-sanitizer` must find. Exit code: 1
//! where a case fails, 2 for a family or a tool that there is not, 4 without driver, NVRTC or GPU.
#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "../../tests/cases/mod.rs"]
mod cases;
mod device;
mod ffi;
mod tally;
mod time;
mod wrong;

use std::process::ExitCode;
use std::sync::PoisonError;

use cases::{FAMILIES, harness};
use device::{Gpu, Gpu as Device, runner};

/// Failures of a family that are printed.
const SHOWN: usize = 10;

fn main() -> ExitCode {
    let mut families: Vec<String> = Vec::new();
    let mut timed = false;
    let mut wrong = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // Cargo says so to every bench.
            "--bench" => {}
            "--time" => timed = true,
            "--wrong" => {
                let tool = arguments.next().unwrap_or_default();
                if wrong::KERNELS.iter().all(|k| k.0 != tool) {
                    let all = wrong::KERNELS.map(|k| k.0).join(", ");
                    eprintln!("cuda: --wrong {tool}: expected one of {all}");
                    return ExitCode::from(2);
                }
                wrong = Some(tool);
            }
            name if FAMILIES.iter().any(|f| f.0 == name) => families.push(argument),
            other => {
                let all: Vec<&str> = FAMILIES.iter().map(|f| f.0).collect();
                eprintln!(
                    "cuda: {other}: expected --time, --wrong TOOL, or families among {}",
                    all.join(", ")
                );
                return ExitCode::from(2);
            }
        }
    }
    let gpu = match device::open() {
        Ok(gpu) => gpu,
        Err(e) => {
            eprintln!("cuda: {e}");
            return ExitCode::from(4);
        }
    };
    match gpu.describe() {
        Ok(line) => println!("{line}"),
        Err(e) => {
            eprintln!("cuda: {e}");
            return ExitCode::from(4);
        }
    }
    if timed || wrong.is_some() {
        return match wrong.map_or_else(|| time::run(gpu), |tool| wrong::run(gpu, &tool)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(e) => {
                eprintln!("cuda: {e}");
                ExitCode::FAILURE
            }
        };
    }
    let failed = check(gpu, &families);
    if failed > 0 {
        eprintln!("cuda: {failed} checks failed");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs the cases of `families`, all where it is empty; the number of failures.
fn check(gpu: &Gpu, families: &[String]) -> usize {
    println!("family          cases checks elements worst f32 worst f16 failed");
    let mut failed = 0;
    let mut worst = Vec::new();
    for (family, cases) in FAMILIES {
        if !families.is_empty() && !families.iter().any(|f| f == family) {
            continue;
        }
        for (name, case) in *cases {
            if std::panic::catch_unwind(case).is_err() {
                tally(gpu).failures.push(format!("{name} panicked"));
            }
        }
        let tally = std::mem::take(&mut *tally(gpu));
        println!(
            "{family:<15} {:>5} {:>6} {:>8} {:>9.3} {:>9.3} {:>6}",
            cases.len(),
            tally.checks,
            tally.elems,
            tally.worst_f32,
            tally.worst_f16,
            tally.failures.len()
        );
        for failure in tally.failures.iter().take(SHOWN) {
            println!("    {failure}");
        }
        if !tally.worst_at.is_empty() {
            worst.push(format!("{family}: {:.3} in {}", tally.worst_f32, tally.worst_at));
        }
        failed += tally.failures.len();
    }
    if families.is_empty() {
        let (all, missing) = (rlx_kernels::manifest::kernels().len(), gpu.never_ran());
        println!("\n{} of the {all} kernels of the manifest ran", all - missing.len());
        for name in &missing {
            println!("    {name} did not");
        }
        failed += missing.len();
    }
    println!("\nthe largest errors of f32, as shares of the tolerance:");
    for line in worst {
        println!("  {}", line.replace('\n', " "));
    }
    failed
}

fn tally(gpu: &Gpu) -> std::sync::MutexGuard<'_, tally::Tally> {
    gpu.tally.lock().unwrap_or_else(PoisonError::into_inner)
}
