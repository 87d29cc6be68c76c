//! `bert_layer` and `nomic_layer`: found from an attention block on, through the norm after it and the feed-forward part to
//! the norm at the end.

use std::ops::Range;

use rlx_ir::ops::activation::glu::Glu;
use rlx_ir::ops::elementwise::binary::{Binary, BinaryKind};
use rlx_ir::ops::norm::add_layer_norm::AddLayerNorm;
use rlx_ir::ops::norm::layer_norm::LayerNorm;

use super::dataflow::{At, Dataflow};
use super::embedding::normed;
use super::members::Members;
use super::roles::{AttentionBlock, BertLayer, NomicLayer};
use super::{Found, RegionKind, RegionMiss, ResultRef};
use crate::passes::fuse_linear::activation_of;

/// The layer that begins with `block`; none where no `layer_norm` follows it.
pub(super) fn find(flow: &Dataflow<'_>, block: &AttentionBlock, range: Range<usize>) -> Option<Found> {
    let mut conversions = Vec::new();
    let norm = Norm::after(flow, block.output, &mut conversions)?;
    let is_rotated = block.q_rope.is_some() || block.k_rope.is_some();
    let name = if is_rotated { NomicLayer::NAME } else { BertLayer::NAME };
    let layer = layer(flow, block, &norm, conversions, range);
    Some(layer.map_err(|reason| RegionMiss { kind: name, step: norm.step, reason }))
}

/// A norm of a product and a residual.
struct Norm {
    step: usize,
    residual: At,
}

impl Norm {
    /// The norm that alone reads the result of `product`.
    fn after(flow: &Dataflow<'_>, product: usize, conversions: &mut Vec<usize>) -> Option<Self> {
        let reader = flow.converted(ResultRef { step: product, index: 0 }, conversions)?;
        let step = reader.step;
        if flow.is::<AddLayerNorm>(step) && reader.operand < 2 {
            return Some(Self { step, residual: At::new(step, 1 - reader.operand) });
        }
        let residual = flow.residual(product)?;
        (flow.is::<LayerNorm>(step) && reader.operand == 0).then_some(Self { step, residual })
    }
}

/// What stands between the two products of a feed-forward part.
struct Inner {
    gate: Option<usize>,
    up: usize,
    activation: Option<usize>,
    gating: Option<usize>,
}

fn layer(
    flow: &Dataflow<'_>,
    block: &AttentionBlock,
    norm: &Norm,
    mut conversions: Vec<usize>,
    range: Range<usize>,
) -> Result<(RegionKind, Range<usize>), String> {
    check_input(flow, block, norm, &mut conversions)?;
    let Some(normed) = normed(flow, norm.step) else { return Err("the norm has no result".to_owned()) };
    let down = down(flow, normed, &mut conversions)?;
    let Some(last) = Norm::after(flow, down, &mut conversions) else {
        return Err(format!("no layer_norm alone reads the product of step {down}"));
    };
    if flow.writer(last.residual) != Some(normed) {
        return Err(format!("the residual of step {} is not the result of the norm", last.step));
    }
    let inner = Inner::before(flow, down, &mut conversions)?;
    for product in inner.gate.into_iter().chain([inner.up]) {
        let x = flow.unconverted(At::new(product, 0), &mut conversions);
        if flow.writer(x) != Some(normed) {
            return Err(format!("step {product}, {}, does not read the norm's result", flow.name(product)));
        }
    }
    conversions.sort_unstable();
    conversions.dedup();
    let mut members = Members::default();
    members.add(range);
    members.add([norm.step, inner.up, down, last.step]);
    members.add(inner.gate.into_iter().chain(inner.activation).chain(inner.gating));
    members.add(conversions.iter().copied());
    let range = members.range(flow)?;
    let kind = kind(block, norm.step, &inner, down, last.step, conversions)?;
    Ok((kind, range))
}

fn kind(
    block: &AttentionBlock,
    attention_norm: usize,
    inner: &Inner,
    down: usize,
    layer_norm: usize,
    conversions: Vec<usize>,
) -> Result<RegionKind, String> {
    let attention = block.clone();
    if block.k_write.is_some() || block.v_write.is_some() {
        return Err("keys and values are kept in pages".to_owned());
    }
    if block.q_norm.is_some() || block.k_norm.is_some() {
        return Err("queries or keys are normalised".to_owned());
    }
    let &Inner { up, activation, .. } = inner;
    match (block.q_rope.is_some(), block.k_rope.is_some(), inner.gating, inner.gate) {
        (false, false, None, _) => Ok(RegionKind::BertLayer(BertLayer {
            attention,
            attention_norm,
            up,
            activation,
            down,
            layer_norm,
            conversions,
        })),
        (true, true, Some(gating), gate) => Ok(RegionKind::NomicLayer(NomicLayer {
            attention,
            attention_norm,
            gate: gate.unwrap_or(up),
            up,
            activation,
            gating,
            down,
            layer_norm,
            conversions,
        })),
        (false, false, ..) => Err("the feed-forward part is gated, but queries are not rotated".to_owned()),
        (true, true, ..) => Err("queries are rotated, but the feed-forward part is not gated".to_owned()),
        _ => Err("of queries and keys, one alone is rotated".to_owned()),
    }
}

/// The residual of the first norm is what the block reads, or what that was converted from.
fn check_input(
    flow: &Dataflow<'_>,
    block: &AttentionBlock,
    norm: &Norm,
    conversions: &mut Vec<usize>,
) -> Result<(), String> {
    let x = At::new(block.q, 0);
    if flow.same(x, norm.residual) {
        return Ok(());
    }
    let mut before = Vec::new();
    if !flow.same(flow.unconverted(x, &mut before), norm.residual) {
        return Err("the residual is not what the attention block reads".to_owned());
    }
    conversions.extend(before);
    Ok(())
}

/// The last product of the feed-forward part: its result and the norm's are added up.
fn down(flow: &Dataflow<'_>, normed: ResultRef, conversions: &mut Vec<usize>) -> Result<usize, String> {
    let Some(reader) = flow.last_reader(normed) else {
        return Err("the result of the norm is used outside".to_owned());
    };
    if flow.residual(reader).is_some_and(|at| flow.writer(at) == Some(normed)) {
        return Ok(reader);
    }
    let sides = [0, 1].map(|operand| At::new(reader, operand));
    let other = sides.into_iter().find(|&at| flow.writer(at) != Some(normed));
    let (true, Some(other)) = (flow.is::<AddLayerNorm>(reader), other) else {
        return Err("the feed-forward part adds nothing to the norm's result".to_owned());
    };
    let at = flow.unconverted(other, conversions);
    match flow.writer(at) {
        Some(w) if flow.is_product(w.step) => Ok(w.step),
        Some(w) => Err(format!("the feed-forward part ends with {}", flow.name(w.step))),
        None => Err("the feed-forward part has no product".to_owned()),
    }
}

impl Inner {
    fn before(flow: &Dataflow<'_>, down: usize, conversions: &mut Vec<usize>) -> Result<Self, String> {
        let at = flow.unconverted(At::new(down, 0), conversions);
        let Some(writer) = flow.writer(at) else { return Err("the feed-forward part is open".to_owned()) };
        let step = writer.step;
        if flow.is::<Glu>(step) {
            let (up, activation) = activated(flow, At::new(step, 0), conversions)?;
            return match activation {
                None => Ok(Self { gate: None, up, activation, gating: Some(step) }),
                Some(activation) => Err(format!("{} stands between product and gate", flow.name(activation))),
            };
        }
        if !matches!(flow.op_as(step), Some(Binary { kind: BinaryKind::Mul })) {
            let (up, activation) = activated(flow, at, conversions)?;
            return Ok(Self { gate: None, up, activation, gating: None });
        }
        let (a, of_a) = activated(flow, At::new(step, 0), conversions)?;
        let (b, of_b) = activated(flow, At::new(step, 1), conversions)?;
        let in_product = |product: usize| {
            use rlx_ir::ops::activation::Activation;
            use rlx_ir::ops::matmul::linear::Linear;
            flow.op_as::<Linear>(product).is_some_and(|l| l.activation != Activation::None)
        };
        let (gate, up) = match (of_a.is_some() || in_product(a), of_b.is_some() || in_product(b)) {
            (true, false) => (a, b),
            (false, true) => (b, a),
            _ => return Err("of the two gated products, not one alone has an activation".to_owned()),
        };
        Ok(Self { gate: Some(gate), up, activation: of_a.or(of_b), gating: Some(step) })
    }
}

/// The product that `at` comes from, and the activation in between.
fn activated(
    flow: &Dataflow<'_>,
    at: At,
    conversions: &mut Vec<usize>,
) -> Result<(usize, Option<usize>), String> {
    let mut activation = None;
    let mut at = flow.unconverted(at, conversions);
    loop {
        let Some(writer) = flow.writer(at) else {
            return Err("the feed-forward part does not begin with a product".to_owned());
        };
        let step = writer.step;
        if flow.is_product(step) {
            return Ok((step, activation));
        }
        if activation.is_some() || flow.op(step).and_then(activation_of).is_none() {
            return Err(format!("{} is in the feed-forward part", flow.name(step)));
        }
        activation = Some(step);
        at = flow.unconverted(At::new(step, 0), conversions);
    }
}
