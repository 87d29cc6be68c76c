//! What an id stands for among the files of a repository. The same rules read the list of the hub and a folder of the cache.

use rlx_gguf::{nearest_names, shard_path};
use rlx_ir::bail;
use serde_json::Value;

use super::id::HubId;
use crate::{Error, Result};

/// The file that says in which shard a tensor stands.
pub(super) const INDEX: &str = "model.safetensors.index.json";
/// The weights where they are one file.
pub(super) const SINGLE: &str = "model.safetensors";
/// The modules of a sentence-transformers model.
pub(super) const MODULES: &str = "modules.json";

/// The most names in an error.
const MAX_NAMED: usize = 40;

/// What an id stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Model {
    /// A folder in the Hugging Face layout.
    Folder,
    /// A `.safetensors` file with what a folder has beside it.
    Safetensors(String),
    /// A `.gguf` file, the first one of several shards, or a file that is no model.
    File(String),
}

impl Model {
    /// What `id` stands for among the files `names` of `place`.
    ///
    /// # Errors
    /// `NotFound` where there is no file of that name, and where there are several GGUF files and none is named.
    pub(super) fn choose(id: &HubId, names: &[String], place: &str) -> Result<Self> {
        let models = gguf_models(names);
        let Some(file) = id.file() else {
            let is_folder = names.iter().any(|n| n == "config.json" || n == INDEX || n == SINGLE);
            let has_safetensors = names.iter().any(|n| is_root(n) && n.ends_with(".safetensors"));
            return match models.as_slice() {
                [] => Ok(Self::Folder),
                _ if has_safetensors => Ok(Self::Folder),
                [one] => Ok(Self::File(one.clone())),
                // A folder whose weights are elsewhere: its GGUF files are what can be run.
                many => {
                    let beside = if is_folder { ", and no .safetensors" } else { "" };
                    bail!(
                        NotFound,
                        "{id}: {place} holds {} GGUF models{beside}; name one of them, as {}\nthey are {}",
                        many.len(),
                        id.with_file(&many[0]),
                        listed(many)
                    )
                }
            };
        };
        if names.iter().any(|n| n == file) {
            return Ok(match shard_of(file) {
                Some(shard) => Self::File(shard.name(0)),
                None if file.ends_with(".safetensors") => Self::Safetensors(file.to_owned()),
                None => Self::File(file.to_owned()),
            });
        }
        let tagged: Vec<String> = models.iter().filter(|m| has_tag(m, file)).cloned().collect();
        match tagged.as_slice() {
            [one] => Ok(Self::File(one.clone())),
            [] => {
                let near = nearest_names(file, names.iter().map(String::as_str));
                let hint = match (near.as_slice(), models.as_slice()) {
                    ([], []) => String::new(),
                    ([], models) => format!("\nits models are {}", listed(models)),
                    (near, _) => format!("\nnear to it are {}", near.join(", ")),
                };
                bail!(NotFound, "{id}: {place} holds no file {file}{hint}")
            }
            many => bail!(
                NotFound,
                "{id}: {file} stands in the names of several files of {place}; name one of them\nthey are {}",
                listed(many)
            ),
        }
    }
}

/// The folders that a `modules.json` names, without the root and without those of `Normalize`, which has no files.
pub(super) fn module_folders(json: &[u8]) -> Vec<String> {
    let modules: Vec<Value> = serde_json::from_slice(json).unwrap_or_default();
    let text = |m: &Value, key: &str| m.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let has_files = modules.iter().filter(|m| !text(m, "type").ends_with(".Normalize"));
    let paths = has_files.map(|m| text(m, "path"));
    paths.filter(|p| !p.is_empty()).collect()
}

pub(super) fn is_root(name: &str) -> bool {
    !name.contains('/')
}

/// A shard of a split GGUF file.
struct Shard<'a> {
    prefix: &'a str,
    count: u32,
}

impl Shard<'_> {
    fn name(&self, no: u32) -> String {
        // Made of a name that is text.
        shard_path(self.prefix, no, self.count).to_string_lossy().into_owned()
    }
}

/// `prefix-00001-of-00003.gguf`.
fn shard_of(name: &str) -> Option<Shard<'_>> {
    let (front, count) = name.strip_suffix(".gguf")?.rsplit_once("-of-")?;
    let (prefix, no) = front.rsplit_once('-')?;
    let number = |s: &str| (s.len() == 5).then(|| s.parse::<u32>().ok()).flatten();
    let (no, count) = (number(no)?, number(count)?);
    (1..=count).contains(&no).then_some(Shard { prefix, count })
}

/// The files of the split model that `name` is a shard of, or itself.
pub(super) fn with_shards(name: &str) -> Vec<String> {
    match shard_of(name) {
        Some(shard) => (0..shard.count).map(|no| shard.name(no)).collect(),
        None => vec![name.to_owned()],
    }
}

/// The GGUF models, split ones by their first shard; neither projectors of images nor importance matrices.
fn gguf_models(names: &[String]) -> Vec<String> {
    let is_model = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let beside = ["mmproj", "imatrix"].iter().any(|w| file.contains(w));
        let first = shard_of(name).is_none_or(|shard| shard.name(0) == name);
        file.ends_with(".gguf") && !beside && first
    };
    names.iter().filter(|n| is_model(n)).cloned().collect()
}

/// Whether the word `tag` (`Q4_K_M`) stands in a file's name.
fn has_tag(name: &str, tag: &str) -> bool {
    let (name, tag) = (name.to_ascii_lowercase(), tag.to_ascii_lowercase());
    let splits = |c: char| "-./".contains(c);
    let found = name.match_indices(&tag).any(|(at, _)| {
        let (before, after) = (name[..at].chars().next_back(), name[at + tag.len()..].chars().next());
        before.is_none_or(|c| splits(c) || c == '_') && after.is_none_or(splits)
    });
    found && !tag.is_empty() && !tag.contains(splits)
}

pub(super) fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMED)].join(", ");
    if names.len() > MAX_NAMED { format!("{shown}, ...") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn choose(id: &str, files: &str) -> Result<Model> {
        Model::choose(&HubId::parse(id).unwrap(), &names(files), "it")
    }

    const GGUFS: &str = "config.json m-Q4_K_M.gguf m-Q4_K_S.gguf m-q8_0.gguf mmproj-m-f16.gguf \
        m-F16-00001-of-00002.gguf m-F16-00002-of-00002.gguf";

    #[test]
    fn one_of_several_gguf_files_must_be_named() {
        let e = choose("a/b", GGUFS).unwrap_err();
        assert!(e.message().contains("4 GGUF models") && e.message().contains("a/b:m-Q4_K_M.gguf"), "{e}");
        assert!(e.message().contains("m-F16-00001-of-00002.gguf") && !e.message().contains("mmproj"), "{e}");
        assert_eq!(choose("a/b", "x.gguf README.md").unwrap(), Model::File("x.gguf".into()));
        assert_eq!(choose("a/b", "x.gguf model.safetensors config.json").unwrap(), Model::Folder);
    }

    #[test]
    fn a_file_is_named_whole_or_by_its_type() {
        let file = |name: &str| Model::File(name.to_owned());
        assert_eq!(choose("a/b:m-q8_0.gguf", GGUFS).unwrap(), file("m-q8_0.gguf"));
        assert_eq!(choose("a/b:q4_k_m", GGUFS).unwrap(), file("m-Q4_K_M.gguf"));
        for name in ["a/b:F16", "a/b:m-F16-00002-of-00002.gguf"] {
            let model = choose(name, GGUFS).unwrap();
            assert_eq!(model, file("m-F16-00001-of-00002.gguf"));
            assert_eq!(
                with_shards("m-F16-00001-of-00002.gguf"),
                names("m-F16-00001-of-00002.gguf m-F16-00002-of-00002.gguf")
            );
        }
        let e = choose("a/b:m-q8_1.gguf", GGUFS).unwrap_err();
        assert!(e.message().contains("near to it are m-q8_0.gguf"), "{e}");
        assert!(choose("a/b:Q4_K", GGUFS).is_err());
        let e = choose("a/b:Q4", "x-Q4.gguf y-Q4.gguf").unwrap_err();
        assert!(e.message().contains("several"), "{e}");
        assert_eq!(
            choose("a/b:w.safetensors", "w.safetensors").unwrap(),
            Model::Safetensors("w.safetensors".into())
        );
    }

    #[test]
    fn names_of_shards_are_counted_from_one() {
        assert_eq!(with_shards("d/m-00002-of-00002.gguf").len(), 2);
        for whole in ["m-00000-of-00002.gguf", "m-00003-of-00002.gguf", "m-1-of-2.gguf", "m.gguf"] {
            assert_eq!(with_shards(whole), [whole]);
        }
    }
}
