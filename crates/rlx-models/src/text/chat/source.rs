//! Where the templates of a model are.

use std::path::Path;

use rlx_gguf::Metadata;
use rlx_ir::bail;
use serde_json::Value;

use crate::files::small;
use crate::json;
use crate::{Error, Result};

/// The name of the template that is taken where none is asked for.
pub(super) const DEFAULT: &str = "default";

/// Templates by name.
pub(super) type Sources = Vec<(String, String)>;

/// The templates of a folder in the Hugging Face layout: `chat_template.jinja` and those in `additional_chat_templates`;
/// else `chat_template` of `tokenizer_config.json`, a template or a list of named ones; else of `chat_template.json`.
///
/// # Errors
/// `NotFound` where there are none; `InvalidFile` and `Io`, naming the file.
pub(super) fn from_folder(folder: &Path) -> Result<Sources> {
    let mut sources = Sources::new();
    let file = folder.join("chat_template.jinja");
    if file.exists() {
        sources.push((DEFAULT.to_owned(), small::read_text(&file)?));
    }
    for path in jinja_files(&folder.join("additional_chat_templates")) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        sources.push((name, small::read_text(&path)?));
    }
    for name in ["tokenizer_config.json", "chat_template.json"] {
        if !sources.is_empty() {
            break;
        }
        let config = json::read_object(folder, name)?.unwrap_or(Value::Null);
        sources = from_json(&config["chat_template"]).map_err(|e| e.context(folder.join(name).display()))?;
    }
    if sources.is_empty() {
        bail!(
            NotFound,
            "{}: no chat template (chat_template.jinja, or \"chat_template\" in tokenizer_config.json), and without it \
             RLX does not guess how this model writes conversations",
            folder.display()
        );
    }
    Ok(sources)
}

/// The templates of a GGUF file: `tokenizer.chat_template`, and `tokenizer.chat_template.NAME` for each name in
/// `tokenizer.chat_templates`.
///
/// # Errors
/// `NotFound` where there are none; `InvalidFile` for keys of another type and for a name without its template.
pub(super) fn from_gguf(metadata: &Metadata) -> Result<Sources> {
    let mut sources = Sources::new();
    if let Some(template) = metadata.str("tokenizer.chat_template")? {
        sources.push((DEFAULT.to_owned(), template.to_owned()));
    }
    let names: Vec<String> = match metadata.strs("tokenizer.chat_templates")? {
        Some(names) => names.map(str::to_owned).collect(),
        None => Vec::new(),
    };
    for name in names {
        if sources.iter().all(|(known, _)| *known != name) {
            let template = metadata.require_str(&format!("tokenizer.chat_template.{name}"))?.to_owned();
            sources.push((name, template));
        }
    }
    if sources.is_empty() {
        bail!(
            NotFound,
            "no chat template (tokenizer.chat_template), and without it RLX does not guess how this model writes \
             conversations"
        );
    }
    Ok(sources)
}

/// One template, or a list of objects with `name` and `template`.
fn from_json(value: &Value) -> Result<Sources> {
    match value {
        Value::Null => Ok(Sources::new()),
        Value::String(template) => Ok(vec![(DEFAULT.to_owned(), template.clone())]),
        Value::Array(list) => {
            let named =
                |v: &Value| Some((v["name"].as_str()?.to_owned(), v["template"].as_str()?.to_owned()));
            match list.iter().map(named).collect() {
                Some(sources) => Ok(sources),
                None => bail!(
                    InvalidFile,
                    "chat_template: a list of anything but objects with \"name\" and \"template\""
                ),
            }
        }
        _ => bail!(InvalidFile, "chat_template: neither a text nor a list"),
    }
}

/// The `.jinja` files in a folder, in order of their names; none where there is no such folder.
fn jinja_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut files: Vec<_> = entries.filter(|p| p.extension().is_some_and(|e| e == "jinja")).collect();
    files.sort();
    files
}
