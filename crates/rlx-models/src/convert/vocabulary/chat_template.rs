//! The chat templates of a folder.

use std::path::Path;

use rlx_gguf::MetadataBuilder;
use serde_json::Value;

use crate::files::small;
use crate::json;
use crate::{Error, Result};

const KEY: &str = "tokenizer.chat_template";

/// Writes the templates: that of `chat_template.jinja`, else those of `tokenizer_config.json`, which may have names.
pub(crate) fn chat_template(m: &mut MetadataBuilder, folder: &Path) -> Result<()> {
    let file = folder.join("chat_template.jinja");
    match small::read_text(&file) {
        Ok(template) => {
            m.set(KEY, template.as_str());
            return Ok(());
        }
        Err(e) if e.kind() == rlx_ir::ErrorKind::NotFound => {}
        Err(e) => return Err(e),
    }
    let config = json::read_object(folder, "tokenizer_config.json")?.unwrap_or(Value::Null);
    match &config["chat_template"] {
        Value::Null => {}
        Value::String(template) => m.set(KEY, template.as_str()),
        Value::Array(templates) => {
            let mut names = Vec::new();
            for entry in templates {
                match (entry["name"].as_str(), entry["template"].as_str()) {
                    (Some("default"), Some(template)) => m.set(KEY, template),
                    (Some(name), Some(template)) => {
                        m.set(&format!("{KEY}.{name}"), template);
                        names.push(name);
                    }
                    _ => return Err(wrong(folder, entry)),
                }
            }
            if !names.is_empty() {
                m.set_strs("tokenizer.chat_templates", names);
            }
        }
        other => return Err(wrong(folder, other)),
    }
    Ok(())
}

fn wrong(folder: &Path, found: &Value) -> Error {
    let found: String = found.to_string().chars().take(80).collect();
    let place = folder.join("tokenizer_config.json");
    let message = format!("{}: chat_template: {found} is no template", place.display());
    Error::new(rlx_ir::ErrorKind::InvalidFile, message)
}
