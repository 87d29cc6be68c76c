//! From the pre-tokenizer of a `tokenizer.json` to the name that GGUF has for it.

use rlx_ir::bail;
use serde_json::Value;

use super::patterns::TABLE;
use super::split::Run;
use crate::{Error, Result};

/// The alternatives of published patterns that a [`Run`] stands for.
const LOOK_AHEAD: &str = r"\s+(?!\S)|";
/// The words of GPT-2, which the `ByteLevel` step cuts where it is not told otherwise.
const GPT_2: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// The name of the pre-tokenizer that `definition` (`pre_tokenizer` of a `tokenizer.json` with a byte-level BPE) describes.
///
/// # Errors
/// `UnsupportedModel`, with the definition, where no name in the table means the same.
pub(crate) fn name_of(definition: &Value, ignore_merges: bool) -> Result<&'static str> {
    let mut patterns = Vec::new();
    let readable = collect(definition, &mut patterns);
    let found = TABLE.iter().filter(|e| readable && e.ignore_merges == ignore_merges).find(|entry| {
        entry.stages.len() == patterns.len()
            && entry.stages.iter().zip(&patterns).all(|(stage, pattern)| {
                let bare = pattern.replace(LOOK_AHEAD, "");
                // Other ways to cut have patterns of their own in such files.
                let same = match stage.run {
                    Run::Whole => bare == *pattern,
                    Run::LeaveLast | Run::LeaveLastUnlessBreak => bare != *pattern,
                    Run::PowersOfTwo | Run::Threes | Run::ThreesWithin => false,
                };
                same && stage.pattern == bare
            })
    });
    let Some(found) = found else {
        let definition: String = definition.to_string().chars().take(300).collect();
        bail!(
            UnsupportedModel,
            "pre_tokenizer: GGUF has no name that is known for {definition} with ignore_merges = {ignore_merges}"
        );
    };
    // Of names for the same, files mostly have this one.
    let usual = found.names.iter().find(|name| **name == "llama-bpe");
    match usual.or(found.names.first()) {
        Some(name) => Ok(name),
        None => bail!(Bug, "a pre-tokenizer without a name"),
    }
}

/// Adds the pattern of each step; `false` where a step is of another kind.
fn collect(step: &Value, patterns: &mut Vec<String>) -> bool {
    let flag = |key: &str| step[key].as_bool();
    match step["type"].as_str() {
        Some("Sequence") => {
            step["pretokenizers"].as_array().is_some_and(|steps| steps.iter().all(|s| collect(s, patterns)))
        }
        Some("Split") => {
            let whole = step["behavior"] == "Isolated" && flag("invert") != Some(true);
            match step["pattern"]["Regex"].as_str() {
                Some(pattern) if whole => patterns.push(pattern.to_owned()),
                _ => return false,
            }
            true
        }
        Some("Digits") => {
            let each = flag("individual_digits") == Some(true);
            patterns.push(if each { r"\p{N}" } else { r"\p{N}+" }.to_owned());
            true
        }
        Some("Punctuation") if step["behavior"] == "Contiguous" => {
            patterns.push(r"[\p{P}\$\+<=>\^~\|`]+".to_owned());
            true
        }
        Some("ByteLevel") => {
            if flag("use_regex") != Some(false) {
                patterns.push(GPT_2.to_owned());
            }
            flag("add_prefix_space") != Some(true)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LLAMA_3: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

    fn byte_level(use_regex: bool) -> Value {
        json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": use_regex })
    }

    fn split(pattern: &str) -> Value {
        let split = json!({
            "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false
        });
        json!({ "type": "Sequence", "pretokenizers": [split, byte_level(false)] })
    }

    #[test]
    fn definitions_of_known_models_have_names() {
        let digits = json!({ "type": "Digits", "individual_digits": true });
        let smollm = json!({ "type": "Sequence", "pretokenizers": [digits, byte_level(true)] });
        for (definition, ignore_merges, name) in [
            (byte_level(true), false, "gpt-2"),
            (split(GPT_2), false, "gpt-2"),
            (smollm, false, "smollm"),
            (split(LLAMA_3), true, "llama-bpe"),
            (split(LLAMA_3), false, "dbrx"),
            (split(&LLAMA_3.replace("{1,3}", "")), false, "qwen2"),
        ] {
            assert_eq!(name_of(&definition, ignore_merges).unwrap(), name);
        }
    }

    #[test]
    fn others_are_refused_with_their_definition() {
        let mut spaced = byte_level(true);
        spaced["add_prefix_space"] = true.into();
        for definition in [
            split(r"\w+"),
            split(&LLAMA_3.replace(LOOK_AHEAD, "")),
            spaced,
            json!({ "type": "Whitespace" }),
            json!(null),
        ] {
            let e = name_of(&definition, false).unwrap_err();
            assert_eq!(e.kind(), rlx_ir::ErrorKind::UnsupportedModel);
            let shown: String = definition.to_string().chars().take(40).collect();
            assert!(e.message().contains(&shown), "{e}");
        }
    }
}
