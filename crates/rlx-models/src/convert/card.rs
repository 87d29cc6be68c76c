//! What there is to say about a model as such: its name, and the licence in the head of `README.md`.

use std::path::Path;

use rlx_gguf::MetadataBuilder;

use crate::files::small;

/// The longest card that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Adds name, kind and licence of the model in `folder`.
pub(super) fn metadata(m: &mut MetadataBuilder, folder: &Path) {
    m.set("general.type", "model");
    let name = folder.canonicalize().ok().and_then(|f| Some(f.file_name()?.to_string_lossy().into_owned()));
    if let Some(name) = &name {
        m.set("general.name", name.as_str());
    }
    if let Some(license) = license(folder) {
        m.set("general.license", license.as_str());
    }
}

/// The `license` of the card in `folder`, if there is one.
fn license(folder: &Path) -> Option<String> {
    let bytes = small::read_up_to(&folder.join("README.md"), MAX_BYTES).ok()?;
    of_text(std::str::from_utf8(&bytes).ok()?)
}

fn of_text(card: &str) -> Option<String> {
    let mut lines = card.lines();
    if lines.next()?.trim_end() != "---" {
        return None;
    }
    let head = lines.take_while(|line| line.trim_end() != "---");
    let value = head.filter_map(|line| line.strip_prefix("license:")).next()?.trim();
    (!value.is_empty()).then(|| value.trim_matches(['"', '\'']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_licence_is_in_the_head() {
        assert_eq!(of_text("---\na: b\nlicense: apache-2.0\n---\n").as_deref(), Some("apache-2.0"));
        assert_eq!(of_text("---\na: b\n---\nlicense: mit\n"), None);
        assert_eq!(of_text("license: mit\n"), None);
    }
}
