//! Which step does what in a region. All numbers are indices of the plan's steps.

/// A kind of region with the roles of its steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Attention with the products before and after it.
    AttentionBlock(AttentionBlock),
    /// A layer of a BERT-like encoder.
    BertLayer(BertLayer),
    /// A layer of a NomicBERT-like encoder.
    NomicLayer(NomicLayer),
    /// What makes the vectors that the first layer reads.
    EmbeddingBlock(EmbeddingBlock),
    /// What makes unit vectors of sequences.
    PoolingHead(PoolingHead),
}

/// Queries, keys and values as products of one activation; attention; a product.
///
/// With one stacked product `q`, `k` and `v` are the same step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttentionBlock {
    /// The product that makes the queries.
    pub q: usize,
    /// The product that makes the keys.
    pub k: usize,
    /// The product that makes the values.
    pub v: usize,
    /// The `rms_norm` of the queries of each head.
    pub q_norm: Option<usize>,
    /// The `rms_norm` of the keys of each head.
    pub k_norm: Option<usize>,
    /// The rotation of the queries. Where keys are the same values, norm and rotation are the same steps.
    pub q_rope: Option<usize>,
    /// The rotation of the keys.
    pub k_rope: Option<usize>,
    /// The step that writes the keys into their pages.
    pub k_write: Option<usize>,
    /// The step that writes the values into their pages.
    pub v_write: Option<usize>,
    /// `attention` or `paged_attention`.
    pub attention: usize,
    /// The product after it, with bias and residual where they are in its epilogue.
    pub output: usize,
    /// Copies, casts and quantisations in between.
    pub conversions: Vec<usize>,
}

impl AttentionBlock {
    /// The product that makes queries, keys and values, where it is one.
    pub fn qkv(&self) -> Option<usize> {
        (self.q == self.k && self.k == self.v).then_some(self.q)
    }
}

/// Attention block, sum with the layer's input and `layer_norm`; product with activation, product, sum and `layer_norm`.
///
/// A sum is in the norm (`add_layer_norm`) or in the product before it (`linear` with residual).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BertLayer {
    /// The attention block.
    pub attention: AttentionBlock,
    /// The norm after it: `add_layer_norm` or `layer_norm`.
    pub attention_norm: usize,
    /// The first product of the feed-forward part.
    pub up: usize,
    /// The activation, where it is not in the product's epilogue.
    pub activation: Option<usize>,
    /// The second product.
    pub down: usize,
    /// The norm at the end: `add_layer_norm` or `layer_norm`.
    pub layer_norm: usize,
    /// Copies, casts and quantisations outside of the attention block.
    pub conversions: Vec<usize>,
}

/// As [`BertLayer`], but queries and keys are rotated, and the feed-forward part is gated.
///
/// With one stacked product `gate` and `up` are the same step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NomicLayer {
    /// The attention block.
    pub attention: AttentionBlock,
    /// The norm after it: `add_layer_norm` or `layer_norm`.
    pub attention_norm: usize,
    /// The product that makes the gate.
    pub gate: usize,
    /// The product that is gated.
    pub up: usize,
    /// The activation of the gate, where it is neither in the product's epilogue nor in `gating`.
    pub activation: Option<usize>,
    /// `glu` or `mul`.
    pub gating: usize,
    /// The product after it.
    pub down: usize,
    /// The norm at the end: `add_layer_norm` or `layer_norm`.
    pub layer_norm: usize,
    /// Copies, casts and quantisations outside of the attention block.
    pub conversions: Vec<usize>,
}

/// Rows of tables, added up, and their `layer_norm`.
///
/// Gathers and sums have the shape of the norm's result, and each is read as it was written; other terms are weights that
/// broadcast to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddingBlock {
    /// The `embedding` steps.
    pub gathers: Vec<usize>,
    /// The `add` steps, in order; the last sum may be in the norm.
    pub adds: Vec<usize>,
    /// `layer_norm` or `add_layer_norm`.
    pub norm: usize,
    /// The cast of its result, where nothing else reads that. The block without it is a region within this one.
    pub cast: Option<usize>,
}

/// One vector for each sequence, made to length 1. Each step reads all of the result before it, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolingHead {
    /// The cast of the tokens' vectors, where nothing else reads that. The head without it is a region within this one.
    pub cast: Option<usize>,
    /// `pool`.
    pub pool: usize,
    /// `l2_normalize`.
    pub normalize: usize,
}

impl RegionKind {
    /// The name of the kind: `attention_block`, `bert_layer`, `nomic_layer`, `embedding_block`, `pooling_head`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AttentionBlock(_) => AttentionBlock::NAME,
            Self::BertLayer(_) => BertLayer::NAME,
            Self::NomicLayer(_) => NomicLayer::NAME,
            Self::EmbeddingBlock(_) => EmbeddingBlock::NAME,
            Self::PoolingHead(_) => PoolingHead::NAME,
        }
    }

    /// Every step of the region with the name of its role, in order. A step with several roles at once, as a stacked product,
    /// is there once: `qkv`, `qk_rope`, `gate_up`.
    pub fn roles(&self) -> Vec<(&'static str, usize)> {
        let mut roles = Roles(Vec::new());
        match self {
            Self::AttentionBlock(r) => r.list(&mut roles),
            Self::BertLayer(r) => {
                r.attention.list(&mut roles);
                roles.add("attention_norm", [r.attention_norm]);
                roles.add("up", [r.up]);
                roles.add("activation", r.activation);
                roles.add("down", [r.down]);
                roles.add("layer_norm", [r.layer_norm]);
                roles.add("conversion", r.conversions.iter().copied());
            }
            Self::NomicLayer(r) => {
                r.attention.list(&mut roles);
                roles.add("attention_norm", [r.attention_norm]);
                roles.both(["gate", "up", "gate_up"], Some(r.gate), Some(r.up));
                roles.add("activation", r.activation);
                roles.add("gating", [r.gating]);
                roles.add("down", [r.down]);
                roles.add("layer_norm", [r.layer_norm]);
                roles.add("conversion", r.conversions.iter().copied());
            }
            Self::EmbeddingBlock(r) => {
                roles.add("gather", r.gathers.iter().copied());
                roles.add("add", r.adds.iter().copied());
                roles.add("norm", [r.norm]);
                roles.add("cast", r.cast);
            }
            Self::PoolingHead(r) => {
                roles.add("cast", r.cast);
                roles.add("pool", [r.pool]);
                roles.add("normalize", [r.normalize]);
            }
        }
        roles.0.sort_by_key(|(_, step)| *step);
        roles.0
    }
}

impl AttentionBlock {
    pub(super) const NAME: &'static str = "attention_block";

    fn list(&self, roles: &mut Roles) {
        let Self { q, k, v, .. } = *self;
        match (q == k, k == v, q == v) {
            (true, true, _) => roles.add("qkv", [q]),
            (true, false, _) => {
                roles.add("qk", [q]);
                roles.add("v", [v]);
            }
            (false, true, _) => {
                roles.add("q", [q]);
                roles.add("kv", [k]);
            }
            (false, false, true) => {
                roles.add("qv", [q]);
                roles.add("k", [k]);
            }
            (false, false, false) => {
                roles.add("q", [q]);
                roles.add("k", [k]);
                roles.add("v", [v]);
            }
        }
        roles.both(["q_norm", "k_norm", "qk_norm"], self.q_norm, self.k_norm);
        roles.both(["q_rope", "k_rope", "qk_rope"], self.q_rope, self.k_rope);
        roles.add("k_write", self.k_write);
        roles.add("v_write", self.v_write);
        roles.add("attention", [self.attention]);
        roles.add("output", [self.output]);
        roles.add("conversion", self.conversions.iter().copied());
    }
}

impl BertLayer {
    pub(super) const NAME: &'static str = "bert_layer";
}

impl NomicLayer {
    pub(super) const NAME: &'static str = "nomic_layer";
}

impl EmbeddingBlock {
    pub(super) const NAME: &'static str = "embedding_block";
}

impl PoolingHead {
    pub(super) const NAME: &'static str = "pooling_head";
}

struct Roles(Vec<(&'static str, usize)>);

impl Roles {
    fn add(&mut self, name: &'static str, steps: impl IntoIterator<Item = usize>) {
        self.0.extend(steps.into_iter().map(|step| (name, step)));
    }

    /// Two roles, or the third name where one step has both.
    fn both(&mut self, [a, b, joint]: [&'static str; 3], step_a: Option<usize>, step_b: Option<usize>) {
        if step_a == step_b {
            self.add(joint, step_a);
        } else {
            self.add(a, step_a);
            self.add(b, step_b);
        }
    }
}
