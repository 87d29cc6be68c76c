//! Tensors of a network that its graph does not read.

use std::collections::BTreeSet;

use rlx_ir::{Graph, bail};

use crate::files::NamedWeights;
use crate::{Error, Result};

/// How the name of a tensor of the network itself begins, without a model's prefix, in either layout: those of layers, and of
/// what stands before them. Poolers and heads of other tasks are called otherwise.
const NETWORK_TENSORS: [&str; 8] =
    ["blk.", "layers.", "encoder.", "embeddings.", "emb_ln.", "token_embd", "token_types.", "position_embd"];
/// How the name of a tensor ends that holds nothing but what the config says.
const DERIVED_TENSORS: [&str; 4] =
    ["rotary_emb.inv_freq", "attn_rot_embd.weight", "embeddings.position_ids", "embeddings.token_type_ids"];

/// Refuses a tensor of the network that `graph` does not read: a part of the model would be left out in silence.
///
/// # Errors
/// `UnsupportedModel` naming the tensor.
pub(crate) fn refuse_unused(graph: &Graph, weights: &NamedWeights, architecture: &str) -> Result<()> {
    let used: BTreeSet<String> = graph.weights().flat_map(|(_, name)| weights.parts_of(name)).collect();
    let unused = weights.raw_names().filter(|raw| !used.contains(*raw)).find(|raw| {
        let names = weights.bare_names(raw);
        names.into_iter().any(|name| NETWORK_TENSORS.iter().any(|start| name.starts_with(start)))
            && !DERIVED_TENSORS.iter().any(|end| raw.ends_with(end))
    });
    match unused {
        None => Ok(()),
        Some(name) => bail!(
            UnsupportedModel,
            "{}: tensor {name:?} is no part of the architecture \"{architecture}\" with this config: the model would give \
             something else",
            weights.place()
        ),
    }
}
