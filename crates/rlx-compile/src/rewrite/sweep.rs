//! One sweep: which patches are taken, where their replacements go, and the rebuilt graph.
//!
//! Every node has a place on a line, in the order of the graph. A replacement goes to the place of the last node that it
//! covers, or just before the first reader of what it replaces where that comes earlier. It is taken only if all that it
//! reads is there by then, so that no set of patches can make a cycle; if it reads nothing that it replaces; and if it moves no
//! read of a version of a state, or of a view of one, past the node that overwrites it.

use std::cell::OnceCell;

use rlx_ir::{Builder, Def, Graph, NodeId, Value, Values};
use rustc_hash::FxHashSet;

use super::{Matcher, Patch};
use crate::{Error, Result};

/// The distance between the places of two nodes: room for replacements in between.
const STEP: i64 = 1 << 20;

fn place(node: NodeId) -> i64 {
    (i64::try_from(node.index()).unwrap_or(i64::MAX / STEP - 1) + 1) * STEP
}

struct Taken {
    patch: Patch,
    place: i64,
}

/// The patches of one sweep.
pub(crate) struct Sweep<'a> {
    matcher: &'a Matcher<'a>,
    taken: Vec<Taken>,
    /// Per node the patch that covers it.
    owner: Vec<Option<usize>>,
    /// Per value the patch that replaces it.
    replaced_by: Vec<Option<usize>>,
    /// Per value the patches that read it.
    readers: Vec<Vec<usize>>,
}

impl<'a> Sweep<'a> {
    pub(crate) fn new(matcher: &'a Matcher<'a>) -> Self {
        Self { matcher, taken: Vec::new(), owner: Vec::new(), replaced_by: Vec::new(), readers: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// Whether a patch that was taken covers `node`.
    pub(crate) fn is_covered(&self, node: NodeId) -> bool {
        self.owner_of(node).is_some()
    }

    fn owner_of(&self, node: NodeId) -> Option<usize> {
        self.owner.get(node.index()).copied().flatten()
    }

    /// Takes `patch`, unless it overlaps with one that was taken, or has no place.
    ///
    /// # Errors
    /// `Bug` where the patch forgets a reader of what it removes.
    pub(crate) fn offer(&mut self, patch: Patch) -> Result<bool> {
        let graph = self.matcher.graph();
        if patch.covers.iter().any(|n| self.is_covered(*n)) {
            return Ok(false);
        }
        // Most sweeps take no patch, and need no tables.
        if self.owner.is_empty() {
            self.owner = vec![None; graph.nodes().len()];
            self.replaced_by = vec![None; graph.values().len()];
            self.readers = vec![Vec::new(); graph.values().len()];
        }
        for result in patch.covers.iter().flat_map(|&n| &graph.node(n).results) {
            if patch.replaces.contains(result) {
                if patch.reads.contains(result) {
                    return Ok(false);
                }
                continue;
            }
            if !self.matcher.only_used_by(*result, &patch.covers) || patch.reads.contains(result) {
                rlx_ir::bail!(Bug, "a patch removes %{}, which is still read", graph.value(*result).name);
            }
            if !self.readers[result.index()].is_empty() {
                return Ok(false);
            }
        }
        let Some(place) = self.place_of(&patch) else { return Ok(false) };
        let index = self.taken.len();
        patch.covers.iter().for_each(|n| self.owner[n.index()] = Some(index));
        patch.replaces.iter().for_each(|v| self.replaced_by[v.index()] = Some(index));
        patch.reads.iter().for_each(|v| self.readers[v.index()].push(index));
        self.taken.push(Taken { patch, place });
        Ok(true)
    }

    fn place_of(&self, patch: &Patch) -> Option<i64> {
        let graph = self.matcher.graph();
        let mut at = patch.covers.iter().map(|&n| place(n)).max()?;
        for &value in &patch.replaces {
            let users = self.matcher.users(value).iter().filter(|u| !patch.covers.contains(u));
            let nodes = users.filter(|u| !self.is_covered(**u)).map(|&u| place(u));
            let patches = self.readers[value.index()].iter().map(|&p| self.taken[p].place);
            at = nodes.chain(patches).map(|p| p - 1).fold(at, i64::min);
        }
        for &value in &patch.reads {
            let there = match (self.replaced_by[value.index()], &graph.value(value).def) {
                (Some(p), _) => self.taken[p].place,
                (None, Def::Result { node, .. }) if self.is_covered(*node) => return None,
                (None, Def::Result { node, .. }) => place(*node),
                (None, _) => i64::MIN,
            };
            if there >= at {
                return None;
            }
            if self.breaks_state(patch, value, at) {
                return None;
            }
        }
        Some(at)
    }

    /// Whether `patch` at place `at` would make a reader of `value`, which is a version of a state or a view of one, where that
    /// was overwritten: a version is gone then, and a view has to be copied before. A view that was read there already may be
    /// read on.
    fn breaks_state(&self, patch: &Patch, value: Value, at: i64) -> bool {
        let Some((version, writer)) = self.matcher.overwriter(value) else { return false };
        if patch.covers.contains(&writer) {
            return false;
        }
        if patch.forwards {
            // Whoever reads what is replaced reads `value` then, wherever that is.
            let views = |&r: &Value| self.matcher.overwriter(r).is_some_and(|(of, _)| of == version);
            return value == version || !patch.replaces.iter().all(views);
        }
        let overwritten = self.owner_of(writer).map_or(place(writer), |p| self.taken[p].place);
        if overwritten > at {
            return false;
        }
        let after = patch.covers.iter().filter(|&&n| n > writer);
        let mut read = after.flat_map(|&n| &self.matcher.node(n).operands);
        value == version || !read.any(|&v| self.is_view_of(v, value))
    }

    /// Whether `view` is `value`, or a view of it.
    fn is_view_of(&self, view: Value, value: Value) -> bool {
        let mut at = view;
        while at != value {
            let of = self.matcher.producer(at).and_then(|(id, _)| self.matcher.viewed(id));
            match of {
                Some(of) => at = of,
                None => return false,
            }
        }
        true
    }

    /// The graph with all patches applied.
    ///
    /// # Errors
    /// Errors of the builder, naming the value that was to be replaced.
    pub(crate) fn rebuild(self) -> Result<Graph> {
        let graph = self.matcher.graph();
        let mut out = Rebuild::new(graph)?;
        let mut patches: Vec<Taken> = self.taken;
        patches.sort_by_key(|t| t.place);
        let mut patches = patches.into_iter().peekable();
        for (id, _) in graph.iter_nodes() {
            while let Some(taken) = patches.next_if(|t| t.place <= place(id)) {
                out.patch(taken.patch)?;
            }
            if self.owner.get(id.index()).is_none_or(Option::is_none) {
                out.copy(id)?;
            }
        }
        for taken in patches {
            out.patch(taken.patch)?;
        }
        out.finish()
    }
}

/// A new graph beside the old one.
struct Rebuild<'a> {
    old: &'a Graph,
    builder: Builder,
    map: Vec<Option<Value>>,
    /// Names of the old graph, which survivors keep; collected when a new value needs a name of its own.
    taken_names: OnceCell<FxHashSet<&'a str>>,
}

impl<'a> Rebuild<'a> {
    fn new(old: &'a Graph) -> Result<Self> {
        let mut builder = Builder::like(old);
        let mut map = vec![None; old.values().len()];
        for value in old.value_ids() {
            let info = old.value(value);
            if !matches!(info.def, Def::Result { .. }) {
                map[value.index()] = Some(builder.declare_like(info)?);
            }
        }
        Ok(Self { old, builder, map, taken_names: OnceCell::new() })
    }

    fn get(&self, value: Value) -> Result<Value> {
        match self.map[value.index()] {
            Some(v) => Ok(v),
            None => rlx_ir::bail!(Bug, "%{} is read before it is rebuilt", self.old.value(value).name),
        }
    }

    fn copy(&mut self, id: NodeId) -> Result<()> {
        let node = self.old.node(id);
        let operands = node.operands.iter().map(|&v| self.get(v)).collect::<Result<Values>>()?;
        let results = self.builder.copy_node(self.old, node, operands)?;
        for (&old, new) in node.results.iter().zip(results) {
            self.map[old.index()] = Some(new);
        }
        Ok(())
    }

    fn patch(&mut self, patch: Patch) -> Result<()> {
        let name = |v: &Value| self.old.value(*v).name.as_ref();
        let root = patch.replaces.first().map_or("patch", name);
        let reads = patch.reads.iter().map(|&v| self.get(v)).collect::<Result<Vec<_>>>()?;
        if let Some(last) = patch.covers.iter().max() {
            self.builder.set_scope(self.old.node(*last).scope.clone());
        }
        let existing = self.builder.graph().values().len();
        let made = (patch.build)(&mut self.builder, &reads).map_err(|e| e.context(format!("%{root}")))?;
        if made.len() != patch.replaces.len() {
            rlx_ir::bail!(Bug, "%{root}: {} values replace {}", made.len(), patch.replaces.len());
        }
        for (&old, &new) in patch.replaces.iter().zip(&made) {
            if self.builder.ty(new) != self.old.ty(old) {
                let (was, is) = (self.old.ty(old), self.builder.ty(new));
                rlx_ir::bail!(Bug, "%{}: {is} replaces {was}", self.old.value(old).name);
            }
            self.map[old.index()] = Some(new);
        }
        self.name_new(existing, root, &patch.replaces, &made)
    }

    /// Replacements take over the names of what they replace; what is made on the way is named after the first of them.
    fn name_new(&mut self, existing: usize, root: &str, replaces: &[Value], made: &[Value]) -> Result<()> {
        let new: Vec<Value> = self.builder.graph().value_ids().skip(existing).collect();
        for value in new {
            if let Some(i) = made.iter().position(|m| *m == value) {
                self.builder.name_like(value, &self.old.value(replaces[i]).name)?;
                continue;
            }
            let graph = self.builder.graph();
            let part = match &graph.value(value).def {
                Def::Result { node, .. } => graph.node(*node).op.name(),
                _ => "const",
            };
            let old = self.old;
            let taken_names =
                self.taken_names.get_or_init(|| old.values().iter().map(|v| &*v.name).collect());
            let base = format!("{root}.{part}");
            let mut name = base.clone();
            let mut n = 1;
            while taken_names.contains(name.as_str()) {
                n += 1;
                name = format!("{base}_{n}");
            }
            self.builder.name(value, &name)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Graph> {
        let outputs = self.old.outputs().iter().map(|&v| self.get(v)).collect::<Result<Vec<_>>>()?;
        Ok(self.builder.finish_unverified(&outputs)?)
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::text::parse;
    use rlx_ir::{Graph, NodeId, OpSet, verify};

    use super::*;
    use crate::AnyTarget;
    use crate::passes::PassContext;
    use crate::precision::PrecisionPolicy;

    fn graph(text: &str) -> Graph {
        parse(text, &OpSet::builtin()).unwrap()
    }

    fn value(graph: &Graph, name: &str) -> Value {
        graph.value_ids().find(|v| &*graph.value(*v).name == name).unwrap()
    }

    /// A patch that covers the makers of `covers`, and replaces the values `replaces` by negations of the values `reads`.
    fn negate(graph: &Graph, covers: &[&str], reads: &[&str], replaces: &[&str]) -> Patch {
        let values = |names: &[&str]| names.iter().map(|n| value(graph, n)).collect::<Vec<_>>();
        let nodes: Vec<NodeId> = values(covers)
            .into_iter()
            .filter_map(|v| graph.iter_nodes().find(|(_, n)| n.results.contains(&v)).map(|(id, _)| id))
            .collect();
        Patch::new(nodes, values(reads), values(replaces), |b, x| x.iter().map(|&v| Ok(b.neg(v)?)).collect())
    }

    /// Which of the patches are taken, and the rebuilt graph.
    fn apply(graph: &Graph, patches: Vec<Patch>) -> (Vec<bool>, Graph) {
        let precision = PrecisionPolicy::default();
        let matcher = Matcher::new(graph, &PassContext { target: &AnyTarget, precision: &precision });
        let mut sweep = Sweep::new(&matcher);
        let taken = patches.into_iter().map(|p| sweep.offer(p).unwrap()).collect();
        let out = sweep.rebuild().unwrap();
        verify(&out).unwrap();
        (taken, out)
    }

    #[test]
    fn a_state_is_not_read_after_it_was_overwritten() {
        let g = graph(
            "graph @g {
               %s = state \"s\" : f32[1, 4, 1, 2]
               %x = input \"x\" : f32[1, 1, 2]
               %i = input \"i\" : i32[1]
               %a = neg %s
               %s1 = kv_write %s, %x, %i
               %b = abs %a
               return %b
             }",
        );
        let (taken, out) = apply(&g, vec![negate(&g, &["a", "b"], &["s"], &["b"])]);
        assert_eq!(taken, [false]);
        assert_eq!(out.to_string(), g.to_string());
        let (taken, _) = apply(&g, vec![negate(&g, &["b"], &["a"], &["b"])]);
        assert_eq!(taken, [true]);
    }

    #[test]
    fn patches_that_would_wait_for_each_other_are_not_both_taken() {
        let g = graph(
            "graph @g {
               %x = input \"x\" : f32[2]
               %a = exp %x
               %b = exp %x
               %c = abs %b
               %d = abs %a
               return %c, %d
             }",
        );
        // The first makes a and c of x and b, the second b and d of x and a.
        let first = negate(&g, &["a", "c"], &["x", "b"], &["a", "c"]);
        let second = negate(&g, &["b", "d"], &["x", "a"], &["b", "d"]);
        let (taken, out) = apply(&g, vec![first, second]);
        assert_eq!(taken, [true, false]);
        assert_eq!(out.nodes().len(), 4);
    }

    #[test]
    fn a_replacement_comes_before_the_first_reader_of_what_it_replaces() {
        let g = graph(
            "graph @g {
               %x = input \"x\" : f32[2]
               %a = exp %x
               %r = abs %a
               %b = exp %x
               return %r, %b
             }",
        );
        let (taken, out) = apply(&g, vec![negate(&g, &["a", "b"], &["x", "x"], &["a", "b"])]);
        assert_eq!(taken, [true]);
        let names: Vec<&str> = out.nodes().iter().map(|n| &*out.value(n.results[0]).name).collect();
        assert_eq!(names, ["a", "b", "r"]);
    }

    #[test]
    fn a_patch_that_forgets_a_reader_is_an_error() {
        let g = graph(
            "graph @g {
               %x = input \"x\" : f32[2]
               %a = exp %x
               %b = abs %a
               %c = abs %a
               return %b, %c
             }",
        );
        let precision = PrecisionPolicy::default();
        let matcher = Matcher::new(&g, &PassContext { target: &AnyTarget, precision: &precision });
        let e = Sweep::new(&matcher).offer(negate(&g, &["a", "b"], &["x"], &["b"])).unwrap_err();
        assert!(e.message().contains("%a, which is still read"), "{e}");
    }
}
