//! Which files of a repository are downloaded.

use rlx_ir::bail;

use super::id::HubId;
use super::select::{INDEX, MODULES, Model, SINGLE, is_root, listed, with_shards};
use crate::{Error, Result};

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

impl Model {
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
            Self::File(file) => with_shards(file),
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

/// The files beside the weights in `folder`, which is empty or ends in a slash.
fn companions(names: &[String], folder: &str) -> Vec<String> {
    let fits = |name: &str| {
        let (start, end) = (|s: &str| name.starts_with(s), |e: &&str| name.ends_with(*e));
        COMPANIONS.contains(&name) || COMPANION_KINDS.iter().any(|(s, ends)| start(s) && ends.iter().any(end))
    };
    let in_folder = |n: &&String| n.strip_prefix(folder).is_some_and(|rest| is_root(rest) && fits(rest));
    names.iter().filter(in_folder).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::select::module_folders;
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    const SENTENCES: &str = "README.md config.json model.safetensors pytorch_model.bin tokenizer.json vocab.txt \
        tokenizer_config.json special_tokens_map.json modules.json sentence_bert_config.json train_script.py \
        config_sentence_transformers.json 1_Pooling/config.json 2_Dense/config.json 2_Dense/model.safetensors \
        2_Dense/pytorch_model.bin onnx/model.onnx onnx/config.json openvino/openvino_model.xml tf_model.h5";

    #[test]
    fn a_folder_is_what_rlx_reads_and_nothing_else() {
        let files = names(SENTENCES);
        let model = Model::choose(&HubId::parse("a/b").unwrap(), &files, "it").unwrap();
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
        let modules = module_folders(
            br#"[{"path":""},{"path":"1_Pooling"},{"path":"2_Dense"},{"path":"3_N","type":"a.Normalize"}]"#,
        );
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
}
