//! The precision policy: in what type a program computes, and which parts keep f32.

use rlx_ir::{Def, Graph, Node};

/// The type of activations in products, and of what stands between products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Compute {
    /// As the graph says.
    #[default]
    F32,
    /// f16, accumulated in f32.
    F16,
    /// bf16, accumulated in f32.
    BF16,
    /// Activations of products with block-quantised weights are quantised to 8 bits, in blocks of 32 with an f32 scale.
    Int8,
}

impl Compute {
    /// The word for it in options: `f32`, `f16`, `bf16`, `int8`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::BF16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

/// What a program computes in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrecisionPolicy {
    /// The type of activations.
    pub compute: Compute,
    /// What keeps f32 nevertheless.
    pub keep: Vec<Keep>,
}

/// Nodes that a policy leaves alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nodes whose scope is this, or ends with a point and this: `lm_head` is the scope `model.lm_head`, too.
    Scope(String),
    /// Nodes whose op has this name.
    Op(String),
    /// Nodes that read a weight whose name is this, or ends with a point and this.
    Weight(String),
}

impl PrecisionPolicy {
    /// A policy without exceptions.
    pub fn new(compute: Compute) -> Self {
        Self { compute, keep: Vec::new() }
    }

    /// With an exception.
    #[must_use]
    pub fn keeping(mut self, keep: Keep) -> Self {
        self.keep.push(keep);
        self
    }

    /// The exception that holds for `node`, if one does.
    pub fn kept(&self, graph: &Graph, node: &Node) -> Option<&Keep> {
        let ends = |text: &str, end: &str| {
            text.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.keep.iter().find(|keep| match keep {
            Keep::Scope(scope) => ends(&node.scope, scope),
            Keep::Op(name) => node.op.name() == name,
            Keep::Weight(end) => node.operands.iter().any(|&v| match &graph.value(v).def {
                Def::Weight { name, .. } => ends(name, end),
                _ => false,
            }),
        })
    }
}

impl std::fmt::Display for Keep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scope(s) => write!(f, "scope {s}"),
            Self::Op(s) => write!(f, "op {s}"),
            Self::Weight(s) => write!(f, "weight {s}"),
        }
    }
}
