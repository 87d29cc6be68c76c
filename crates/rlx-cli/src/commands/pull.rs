//! `rlx pull`: a model from the hub into the Hugging Face cache.

use clap::Args;
use rlx::models::hub::{Hub, HubId, Pulled};
use serde::Serialize;

use crate::error::Result;
use crate::options::{Format, Global};
use crate::output::Stdout;
use crate::progress::Bar;

/// Downloads a model from the hub into the Hugging Face cache, and prints where it is
#[derive(Args, Debug)]
pub struct Pull {
    /// org/name, one GGUF file of it as org/name:file.gguf or org/name:Q4_K_M, another revision as org/name@revision
    #[arg(value_name = "ORG/NAME[:FILE]", value_parser = id)]
    id: HubId,
}

fn id(text: &str) -> Result<HubId, String> {
    HubId::parse(text).ok_or_else(|| "expected org/name, org/name:file or org/name@revision".to_owned())
}

#[derive(Serialize)]
struct Report<'a> {
    id: String,
    commit: &'a str,
    path: String,
    bytes: u64,
    downloaded_bytes: u64,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    name: &'a str,
    path: String,
    bytes: u64,
    downloaded: bool,
}

impl Pull {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let bar = Bar::bytes(global, "downloading");
        let pulled = Hub::from_env().pull(&self.id, &|done, total| bar.set(done, total));
        bar.clear();
        let pulled = pulled?;
        let mut out = Stdout::lock();
        match format {
            Format::Json => out.json_line(&self.report(&pulled))?,
            _ => out.line(pulled.path.display())?,
        }
        out.flush()
    }

    fn report<'a>(&self, pulled: &'a Pulled) -> Report<'a> {
        let files = &pulled.files;
        Report {
            id: self.id.to_string(),
            commit: &pulled.commit,
            path: pulled.path.display().to_string(),
            bytes: files.iter().map(|f| f.bytes).sum(),
            downloaded_bytes: files.iter().filter(|f| f.is_new).map(|f| f.bytes).sum(),
            files: files
                .iter()
                .map(|f| File {
                    name: &f.name,
                    path: f.path.display().to_string(),
                    bytes: f.bytes,
                    downloaded: f.is_new,
                })
                .collect(),
        }
    }
}
