//! `rlx devices`: which backends are here, and why others are not.

use clap::Args;
use serde::Serialize;

use crate::error::Result;
use crate::options::{Format, Global};
use crate::output::{Stdout, bytes};

/// Lists the devices.
#[derive(Args, Debug)]
pub struct Devices {}

#[derive(Serialize)]
struct Device {
    backend: &'static str,
    available: bool,
    /// Why it is not there.
    reason: Option<String>,
    name: Option<String>,
    memory_bytes: Option<u64>,
    parallelism: Option<usize>,
    features: Vec<String>,
    strategies: Vec<&'static str>,
}

impl Devices {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let runtime = global.runtime()?;
        let mut out = Stdout::lock();
        let mut devices = Vec::new();
        for status in rlx::backend_statuses() {
            let backend = runtime.backends().iter().find(|b| b.name() == status.name);
            let info = backend.map(|b| b.device());
            devices.push(Device {
                backend: status.name,
                available: info.is_some(),
                reason: status.missing,
                name: info.as_ref().map(|i| i.name.clone()),
                memory_bytes: info.as_ref().map(|i| i.memory_bytes).filter(|n| *n > 0),
                parallelism: info.as_ref().map(|i| i.parallelism).filter(|n| *n > 0),
                features: info.map(|i| i.features).unwrap_or_default(),
                strategies: backend
                    .map(|b| b.strategies().iter().map(|s| s.name()).collect())
                    .unwrap_or_default(),
            });
        }
        if format == Format::Json {
            out.json_line(&devices)?;
            return out.flush();
        }
        for d in &devices {
            match &d.name {
                None => {
                    out.line(format_args!(
                        "{}: not here: {}",
                        d.backend,
                        d.reason.as_deref().unwrap_or("unknown")
                    ))?;
                }
                Some(name) => {
                    out.line(format_args!("{}: {name}", d.backend))?;
                    let memory = d.memory_bytes.map_or("unknown".to_owned(), bytes);
                    let parallel = d.parallelism.map_or(String::new(), |n| format!(", in parallel {n}"));
                    out.line(format_args!("  memory {memory}{parallel}"))?;
                    out.line(format_args!("  features {}", or_none(d.features.join(" "))))?;
                    out.line(format_args!("  strategies {}", d.strategies.join(" ")))?;
                }
            }
        }
        out.flush()
    }
}

fn or_none(text: String) -> String {
    if text.is_empty() { "none".to_owned() } else { text }
}
