//! Which of a repository's files make up a model. The same rules read the list of the hub and a folder of the cache.

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

/// Files beside the weights, by their whole names.
const COMPANIONS: &[&str] = &[
    "config.json",
    "generation_config.json",
    "added_tokens.json",
    "special_tokens_map.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "sentencepiece.bpe.model",
    "spiece.model",
    "config_sentence_transformers.json",
    MODULES,
    INDEX,
];
/// Files beside the weights, by the start and the ends of their names.
const COMPANION_KINDS: &[(&str, &[&str])] = &[
    ("tokenizer", &[".json", ".model"]),
    ("chat_template", &[".json", ".jinja"]),
    ("sentence_", &["_config.json"]),
];
/// Models in forms that RLX does not read, by the ends of their names.
const FOREIGN: &[&str] = &[".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".onnx", ".tflite", ".mlmodel"];
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

    /// Fails where the files `names` are no model that RLX reads.
    ///
    /// # Errors
    /// `UnsupportedModel` for weights in other forms; `NotFound` for a folder without config or weights.
    pub(super) fn require_weights(&self, id: &HubId, names: &[String], place: &str) -> Result<()> {
        if matches!(self, Self::File(_)) {
            return Ok(());
        }
        let foreign: Vec<String> =
            names.iter().filter(|n| FOREIGN.iter().any(|end| n.ends_with(end))).cloned().collect();
        let has_safetensors = names.iter().any(|n| is_root(n) && n.ends_with(".safetensors"));
        if !has_safetensors && !foreign.is_empty() {
            bail!(
                UnsupportedModel,
                "{id}: {place} holds no .safetensors and no .gguf, and other forms of weights are not read\nthere are {}",
                listed(&foreign)
            );
        }
        if !has_safetensors {
            bail!(NotFound, "{id}: {place} holds no .safetensors and no .gguf, so there is no model in it");
        }
        if !names.iter().any(|n| n == "config.json") {
            bail!(NotFound, "{id}: {place} holds no config.json, so nothing says what its weights are");
        }
        Ok(())
    }

    /// The files to read before the others, for they say which those are.
    pub(super) fn first_files(&self, names: &[String]) -> Vec<String> {
        match self {
            Self::File(file) => match shard_of(file) {
                Some(shard) => (0..shard.count).map(|no| shard.name(no)).collect(),
                None => vec![file.clone()],
            },
            Self::Folder => companions(names, ""),
            Self::Safetensors(_) => companions(names, "").into_iter().filter(|n| n != INDEX).collect(),
        }
    }

    /// The other files: weights and modules. `modules` are the folders that `modules.json` names, `shards` the files that
    /// the index names.
    ///
    /// # Errors
    /// `NotFound` for a shard that is not there, and for several weight files without an index.
    pub(super) fn other_files(
        &self,
        id: &HubId,
        names: &[String],
        modules: &[String],
        shards: Option<&[String]>,
    ) -> Result<Vec<String>> {
        let mut files = match self {
            Self::File(_) => return Ok(Vec::new()),
            Self::Safetensors(file) => vec![file.clone()],
            Self::Folder => weights(id, names, shards)?,
        };
        for module in modules {
            let folder = format!("{}/", module.trim_end_matches('/'));
            files.extend(companions(names, &folder));
            let in_folder = |n: &&String| n.strip_prefix(&folder).is_some_and(is_root);
            files.extend(names.iter().filter(in_folder).filter(|n| n.ends_with(".safetensors")).cloned());
        }
        Ok(files)
    }
}

/// The weights at the root: what the index names, `model.safetensors`, or the only such file.
fn weights(id: &HubId, names: &[String], shards: Option<&[String]>) -> Result<Vec<String>> {
    if let Some(shards) = shards {
        if let Some(missing) = shards.iter().find(|s| !names.contains(s)) {
            bail!(
                NotFound,
                "{id}: its {INDEX} names the shard {missing}, which the repository does not hold"
            );
        }
        return Ok(shards.to_vec());
    }
    if names.iter().any(|n| n == SINGLE) {
        return Ok(vec![SINGLE.to_owned()]);
    }
    let found: Vec<String> =
        names.iter().filter(|n| is_root(n) && n.ends_with(".safetensors")).cloned().collect();
    if found.len() > 1 {
        bail!(
            NotFound,
            "{id}: it holds several .safetensors files, and no {INDEX} says how they belong together; name one of \
             them, as {}\nthey are {}",
            id.with_file(&found[0]),
            listed(&found)
        );
    }
    Ok(found)
}

/// The folders that a `modules.json` names, without the root.
pub(super) fn module_folders(json: &[u8]) -> Vec<String> {
    let modules: Vec<Value> = serde_json::from_slice(json).unwrap_or_default();
    let paths = modules.iter().filter_map(|m| m.get("path")?.as_str());
    paths.filter(|p| !p.is_empty()).map(str::to_owned).collect()
}

/// The files beside the weights in `folder`, which is empty or ends in a slash.
fn companions(names: &[String], folder: &str) -> Vec<String> {
    let fits = |name: &str| {
        let (start, end) = (|s: &str| name.starts_with(s), |e: &&str| name.ends_with(*e));
        COMPANIONS.contains(&name) || COMPANION_KINDS.iter().any(|(s, ends)| start(s) && ends.iter().any(end))
    };
    let in_folder = |n: &&String| n.strip_prefix(folder).is_some_and(|rest| is_root(rest) && fits(rest));
    names.iter().filter(in_folder).cloned().collect()
}

fn is_root(name: &str) -> bool {
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
    Model::File(name.to_owned()).first_files(&[])
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

fn listed(names: &[String]) -> String {
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

    const SENTENCES: &str = "README.md config.json model.safetensors pytorch_model.bin tokenizer.json vocab.txt \
        tokenizer_config.json special_tokens_map.json modules.json sentence_bert_config.json train_script.py \
        config_sentence_transformers.json 1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors \
        2_Dense/pytorch_model.bin onnx/model.onnx onnx/config.json openvino/openvino_model.xml tf_model.h5";

    #[test]
    fn a_folder_is_what_rlx_reads_and_nothing_else() {
        let files = names(SENTENCES);
        let model = choose("a/b", SENTENCES).unwrap();
        assert_eq!(model, Model::Folder);
        let first = model.first_files(&files);
        assert_eq!(
            first,
            names(
                "config.json tokenizer.json vocab.txt tokenizer_config.json special_tokens_map.json modules.json \
                 sentence_bert_config.json config_sentence_transformers.json"
            )
        );
        let id = HubId::parse("a/b").unwrap();
        let modules =
            module_folders(br#"[{"path":""},{"path":"1_Pooling"},{"path":"2_Dense"},{"path":"3_N"}]"#);
        let rest = model.other_files(&id, &files, &modules, None).unwrap();
        assert_eq!(
            rest,
            names("model.safetensors 1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors")
        );
    }

    #[test]
    fn the_index_decides_which_shards_there_are() {
        let files = names(
            "config.json model.safetensors.index.json consolidated.safetensors model-00001-of-00002.safetensors \
             model-00002-of-00002.safetensors",
        );
        let id = HubId::parse("a/b").unwrap();
        let shards = names("model-00001-of-00002.safetensors model-00002-of-00002.safetensors");
        assert_eq!(Model::Folder.other_files(&id, &files, &[], Some(&shards)).unwrap(), shards);
        let e = Model::Folder.other_files(&id, &files, &[], Some(&names("x.safetensors"))).unwrap_err();
        assert!(e.message().contains("x.safetensors"), "{e}");
        let e = Model::Folder.other_files(&id, &files, &[], None).unwrap_err();
        assert!(e.message().contains("a/b:consolidated.safetensors"), "{e}");
        let one = Model::Safetensors("consolidated.safetensors".into());
        assert_eq!(one.first_files(&files), ["config.json"]);
        assert_eq!(one.other_files(&id, &files, &[], None).unwrap(), ["consolidated.safetensors"]);
    }

    #[test]
    fn weights_in_other_forms_are_refused_by_name() {
        let id = HubId::parse("a/b").unwrap();
        let of = |files: &str| Model::Folder.require_weights(&id, &names(files), "it").unwrap_err();
        let e = of("config.json pytorch_model.bin");
        assert_eq!(e.kind(), rlx_ir::ErrorKind::UnsupportedModel);
        assert!(e.message().contains("pytorch_model.bin"), "{e}");
        assert!(of("README.md").message().contains("no model"));
        assert!(of("model.safetensors").message().contains("config.json"));
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
            assert_eq!(model.first_files(&[]), names("m-F16-00001-of-00002.gguf m-F16-00002-of-00002.gguf"));
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
