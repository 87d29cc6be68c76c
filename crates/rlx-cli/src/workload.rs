//! Made-up inputs of chosen sizes, to measure models with.

use rlx::ir::Bindings;
use rlx::runtime::{RunContext, Session};

use crate::error::Result;
use crate::model::{Network, Sizes};

/// A context with its inputs filled, ready to run.
pub struct Workload {
    /// Where to run.
    pub context: RunContext,
    /// The sizes that are bound, besides those of states.
    pub sizes: Vec<(&'static str, usize)>,
    /// All sizes.
    pub bindings: Bindings,
}

/// Fills the inputs of `session` for `sizes.batch` sequences of `sizes.seq` tokens, all of them new.
pub fn start(network: &Network, session: &Session, sizes: &Sizes) -> Result<Workload> {
    let Sizes { batch, seq } = *sizes;
    let tokens = batch * seq;
    let mut bound = vec![("N", tokens), ("R", batch)];
    let mut states = Vec::new();
    let page_len = network.page_len();
    // A sequence has whole pages of its own.
    let pages = page_len.map_or(0, |len| seq.div_ceil(len));
    if page_len.is_some() {
        bound.extend([("T", pages), ("L", batch)]);
        states.push(("P", pages * batch));
    }
    let mut context = session.context(&states)?;
    context.bind(&bound)?;
    let ids = token_ids(tokens, network.vocab_size());
    fill(context.input("ids")?, ids.iter().map(|&id| id as usize));
    fill(context.input("positions")?, (0..batch).flat_map(|_| 0..seq));
    fill(context.input("starts")?, (0..=batch).map(|r| r * seq));
    if network.takes_pool_starts() {
        fill(context.input("pool_starts")?, (0..=2 * batch).map(|i| i.div_ceil(2) * seq));
    }
    if let Some(page_len) = page_len {
        let slot = |r: usize, i: usize| r * pages * page_len + i;
        fill(context.input("slots")?, (0..batch).flat_map(|r| (0..seq).map(move |i| slot(r, i))));
        fill(context.input("lengths")?, (0..batch).map(|_| seq));
        fill(context.input("table")?, 0..batch * pages);
        fill(context.input("rows")?, (1..=batch).map(|r| r * seq - 1));
    }
    let mut bindings = Bindings::new();
    for (name, size) in bound.iter().chain(&states) {
        bindings.bind(name, *size)?;
    }
    Ok(Workload { context, sizes: bound, bindings })
}

/// Token ids that differ, the same ones each time.
pub fn token_ids(n: usize, vocab_size: usize) -> Vec<u32> {
    // The step is a prime, so that neighbours are far from each other.
    let id = |i: usize| (i.wrapping_mul(7919).wrapping_add(101) % vocab_size.max(1)) as u32;
    (0..n).map(id).collect()
}

/// The median; 0 of nothing.
pub fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn fill(memory: &mut [i32], values: impl Iterator<Item = usize>) {
    for (place, value) in memory.iter_mut().zip(values) {
        *place = value as i32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_lie_in_the_vocabulary() {
        assert!(token_ids(1000, 32).iter().all(|id| *id < 32));
        assert_eq!(token_ids(3, 0), [0, 0, 0]);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![9, 1, 5]), 5);
        assert_eq!(median(vec![]), 0);
    }
}
