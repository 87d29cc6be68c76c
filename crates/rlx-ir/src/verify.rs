//! The verifier. It runs when a graph is finished or parsed, after every pass in debug builds and in tests, and at the
//! compile entry for graphs that were not verified before.
//!
//! Invariants:
//! 1. `types`: a node's result types are what its op infers from its operand types.
//! 2. `order`: an operand is a declaration of this graph or the result of an earlier node.
//! 3. `results`: a result value points back to its node and index.
//! 4. `names`: value names are unique and consist of ASCII letters, digits, `_` and `.`; names of ops are words of the text form.
//! 5. `declarations`: inputs, weights and states have unique names within their kind; weights have constant sizes;
//!    constants and inline weights hold a tensor of their type; blocks divide the last axis.
//! 6. `symbols`: a symbol's name is a word of the text form that stands for nothing else there (it begins with an ASCII letter or
//!    `_`, goes on with these, digits and `.`, and is none of `inf`, `nan` and `graph`); every symbol in a type is declared, and bounds are on products of declared symbols.
//! 7. `state`: each state has one chain of writers: only states and results of writers are written, each version is
//!    written at most once, and no node reads a version after the node that overwrites it.
//! 8. `outputs`: returned values are of this graph, and a returned state version is the last of its chain.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::builder::check_type;
use crate::error::{Error, Result};
use crate::graph::{Def, Graph, Node, NodeId, Value, WeightInit};
use crate::op::check_op_name;
use crate::text::is_word;

/// Checks every invariant.
///
/// # Errors
/// `Bug` naming the rule and the node or value that breaks it.
pub fn verify(graph: &Graph) -> Result<()> {
    declarations(graph)?;
    symbols(graph)?;
    nodes(graph)?;
    states(graph)
}

fn broken<T>(rule: &str, place: impl std::fmt::Display, what: impl std::fmt::Display) -> Result<T> {
    crate::bail!(Bug, "verifier rule `{rule}`: {place}: {what}")
}

fn place(graph: &Graph, node: &Node) -> String {
    let results: Vec<String> = node.results.iter().map(|&v| format!("%{}", name(graph, v))).collect();
    format!("{} = {}", results.join(", "), node.op.name())
}

fn name(graph: &Graph, value: Value) -> &str {
    graph.values.get(value.index()).map_or("?", |v| &*v.name)
}

fn declarations(graph: &Graph) -> Result<()> {
    let mut names = FxHashSet::default();
    let mut declared = FxHashSet::default();
    for info in &graph.values {
        let well_formed = !info.name.is_empty()
            && info.name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
        if !well_formed || !names.insert(&*info.name) {
            return broken("names", format!("%{}", info.name), "not unique or not well formed");
        }
        if let Err(e) = check_type(&info.ty) {
            return broken("declarations", format!("%{}", info.name), e);
        }
        let (kind, declared_name, tensor) = match &info.def {
            Def::Input(n) => (0, &**n, None),
            Def::State(n) => (1, &**n, None),
            Def::Weight { name, init } => {
                if info.ty.shape.dims().iter().any(|d| d.as_usize().is_none()) {
                    return broken(
                        "declarations",
                        format!("%{}", info.name),
                        "a weight's sizes must be constants",
                    );
                }
                let tensor = if let WeightInit::Inline(t) = init { Some(t) } else { None };
                (2, &**name, tensor)
            }
            Def::Const(t) => (3, &*info.name, Some(t)),
            Def::Result { .. } => continue,
        };
        if !declared.insert((kind, declared_name)) {
            return broken(
                "declarations",
                format!("%{}", info.name),
                format!("{declared_name:?} is declared twice"),
            );
        }
        if tensor.is_some_and(|t| crate::Type::new(t.dtype(), t.shape()) != info.ty) {
            return broken("declarations", format!("%{}", info.name), "its values have another type");
        }
    }
    Ok(())
}

fn symbols(graph: &Graph) -> Result<()> {
    for name in graph.symbols.names() {
        if !is_word(name) || matches!(&**name, "inf" | "nan" | "graph") {
            let what = "a symbol begins with an ASCII letter or _, goes on with these, digits and points, and is none of inf, nan \
                        and graph";
            return broken("symbols", format!("{name:?}"), what);
        }
    }
    let is_undeclared = |s: &str| !graph.symbols.contains(s);
    let undeclared = |dim: &crate::Dim| {
        dim.find_symbol(&is_undeclared)?;
        dim.symbols().into_iter().find(|s| is_undeclared(s))
    };
    for info in &graph.values {
        if let Some(s) = info.ty.shape.dims().iter().find_map(undeclared) {
            return broken(
                "symbols",
                format!("%{}: {}", info.name, info.ty),
                format!("symbol {s} is not declared"),
            );
        }
    }
    for bound in graph.symbols.bounds() {
        if let Some(s) = undeclared(&bound.of) {
            return broken("symbols", &bound.of, format!("symbol {s} is not declared"));
        }
    }
    Ok(())
}

fn nodes(graph: &Graph) -> Result<()> {
    for (id, node) in graph.iter_nodes() {
        if let Err(e) = check_op_name(node.op.name()) {
            return broken("names", place(graph, node), e);
        }
        for operand in &node.operands {
            if !graph.contains(*operand) {
                return broken("order", place(graph, node), "an operand is a value of another graph");
            }
            let defined = match graph.values.get(operand.index()).map(|v| &v.def) {
                Some(Def::Result { node, .. }) => *node < id,
                Some(_) => true,
                None => false,
            };
            if !defined {
                let what = format!("%{} is used before it is defined", name(graph, *operand));
                return broken("order", place(graph, node), what);
            }
        }
        let inferred = match node.op.infer(&graph.operand_types(node)) {
            Ok(types) => types,
            Err(e) => return broken("types", place(graph, node), e),
        };
        if inferred.len() != node.results.len() {
            return broken("results", place(graph, node), format!("the op has {} results", inferred.len()));
        }
        for (index, (&value, ty)) in node.results.iter().zip(&inferred).enumerate() {
            match graph.values.get(value.index()).map(|v| &v.def) {
                Some(Def::Result { node: n, index: i }) if *n == id && *i as usize == index => {}
                _ => {
                    return broken("results", place(graph, node), "a result does not point back to its node");
                }
            }
            if graph.ty(value) != ty {
                let what = format!("result is {}, but the op infers {ty}", graph.ty(value));
                return broken("types", place(graph, node), what);
            }
        }
    }
    let listed: usize = graph.nodes.iter().map(|n| n.results.len()).sum();
    let results = graph.values.iter().filter(|v| matches!(v.def, Def::Result { .. })).count();
    if listed != results {
        return broken("results", &graph.name, "a result value belongs to no node");
    }
    Ok(())
}

fn states(graph: &Graph) -> Result<()> {
    // The node that overwrites each version of a state.
    let mut overwritten: FxHashMap<Value, NodeId> = FxHashMap::default();
    let mut versions: FxHashSet<Value> = graph.states().map(|(v, _)| v).collect();
    for (id, node) in graph.iter_nodes() {
        for (i, operand) in node.operands.iter().enumerate() {
            if let Some(writer) = overwritten.get(operand) {
                let what = format!(
                    "%{} was overwritten by {}",
                    name(graph, *operand),
                    place(graph, graph.node(*writer))
                );
                return broken("state", place(graph, node), what);
            }
            if node.op.writes_state() && i > 0 && node.operands.first() == Some(operand) {
                return broken(
                    "state",
                    place(graph, node),
                    "it reads the state that it writes as another operand",
                );
            }
        }
        if node.op.writes_state() {
            let (Some(&target), Some(&result)) = (node.operands.first(), node.results.first()) else {
                return broken("state", place(graph, node), "a writer needs a state and a result");
            };
            if !versions.contains(&target) {
                return broken("state", place(graph, node), format!("%{} is no state", name(graph, target)));
            }
            overwritten.insert(target, id);
            versions.insert(result);
        }
    }
    for output in &graph.outputs {
        if !graph.contains(*output) {
            return broken("outputs", &graph.name, "a returned value is none of this graph");
        }
        if overwritten.contains_key(output) {
            return broken(
                "outputs",
                &graph.name,
                format!("%{} is an overwritten state", name(graph, *output)),
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
