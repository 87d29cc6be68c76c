//! `rlx settings`: every setting.

use clap::Args;
use rlx::ir::env::{Origin, SettingType};
use rlx::models::hub::{HubOptions, VARIABLES, Variable};
use serde::Serialize;

use crate::error::Result;
use crate::options::{Format, Global};
use crate::output::{Align, Stdout, Table};

/// Lists the settings.
#[derive(Args, Debug)]
pub struct ShowSettings {}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    #[serde(rename = "type")]
    ty: String,
    default: &'static str,
    value: String,
    origin: &'static str,
    doc: &'static str,
}

impl ShowSettings {
    pub fn run(&self, global: &Global) -> Result<()> {
        let format = global.format_of(&[Format::Text, Format::Json])?;
        let settings = global.settings()?;
        let mut rows: Vec<Row> = settings
            .iter()
            .map(|(s, value, origin)| Row {
                name: s.name,
                ty: type_name(s.ty),
                default: s.default,
                value: value.to_owned(),
                origin: origin_name(origin),
                doc: s.doc,
            })
            .collect();
        rows.extend(hub_rows());
        let mut out = Stdout::lock();
        if format == Format::Json {
            out.json_line(&rows)?;
            return out.flush();
        }
        let mut table = Table::new(
            ["name", "type", "default", "value", "from", "what it does"].map(|n| (n, Align::Left)),
        );
        for row in &rows {
            let cells = [row.name, &row.ty, shown(row.default), shown(&row.value), row.origin, row.doc];
            table.row(cells.map(str::to_owned));
        }
        out.line(table)?;
        out.flush()
    }
}

/// The variables of the hub, which are those of the Python client and no settings of RLX alone.
fn hub_rows() -> impl Iterator<Item = Row> {
    let options = HubOptions::from_env();
    VARIABLES.iter().map(move |v| {
        let set = std::env::var_os(v.name).filter(|value| !value.is_empty());
        let own = set.as_ref().map(|value| value.to_string_lossy().into_owned());
        let value = match v.name {
            _ if v.ty == Variable::SECRET => own.map(|_| "(set)".to_owned()),
            // Where it is, whichever variable says so.
            "HF_HUB_CACHE" => options.cache.as_ref().map(|path| path.display().to_string()),
            _ => own.map(|text| v.in_force(&text)),
        };
        Row {
            name: v.name,
            ty: v.ty.to_owned(),
            default: v.default,
            value: value.unwrap_or_else(|| v.default.to_owned()),
            origin: origin_name(if set.is_some() { Origin::Environment } else { Origin::Default }),
            doc: v.doc,
        }
    })
}

fn type_name(ty: SettingType) -> String {
    match ty {
        SettingType::Count => "count".to_owned(),
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
