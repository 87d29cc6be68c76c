//! `rlx settings`: every setting.

use clap::Args;
use rlx::ir::env::{Origin, SettingType};
use serde::Serialize;

use crate::error::Result;
use crate::options::{Format, Global};
use crate::output::{Align, Stdout, Table};

/// Lists the settings.
#[derive(Args, Debug)]
pub struct ShowSettings {}

#[derive(Serialize)]
struct Row<'a> {
    name: &'static str,
    #[serde(rename = "type")]
    ty: String,
    default: &'static str,
    value: &'a str,
    origin: &'static str,
    doc: &'static str,
}

impl ShowSettings {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let settings = global.settings()?;
        let rows: Vec<Row<'_>> = settings
            .iter()
            .map(|(s, value, origin)| Row {
                name: s.name,
                ty: type_name(s.ty),
                default: s.default,
                value,
                origin: origin_name(origin),
                doc: s.doc,
            })
            .collect();
        let mut out = Stdout::lock();
        if format == Format::Json {
            out.json_line(&rows)?;
            return out.flush();
        }
        let mut table = Table::new(
            ["name", "type", "default", "value", "from", "what it does"].map(|n| (n, Align::Left)),
        );
        for row in &rows {
            let cells = [row.name, &row.ty, shown(row.default), shown(row.value), row.origin, row.doc];
            table.row(cells.map(str::to_owned));
        }
        out.line(table)?;
        out.flush()
    }
}

fn type_name(ty: SettingType) -> String {
    match ty {
        SettingType::Bool => "0|1".to_owned(),
        SettingType::Count => "count".to_owned(),
        SettingType::Path => "path".to_owned(),
        SettingType::Choice(words) => words.join("|"),
    }
}

fn origin_name(origin: Origin) -> &'static str {
    match origin {
        Origin::Default => "default",
        Origin::Environment => "environment",
        Origin::Program => "command line",
    }
}

fn shown(value: &str) -> &str {
    if value.is_empty() { "-" } else { value }
}
