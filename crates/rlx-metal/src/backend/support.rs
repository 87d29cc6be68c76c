//! What the device runs: an op is supported where its launch can be made, for small sizes and for the largest.

use rlx_compile::{OpFacts, OperandFacts, Support};
use rlx_ir::{Bindings, Dim, Symbols, Type};
use rlx_kernels::layout::Layout;

use super::recipe::Recipe;
use crate::error::Result;

const SMALL: [usize; 8] = [3, 5, 7, 11, 13, 17, 19, 23];

/// The sizes in which symbol i has what `size` makes of its place and its own bound.
fn bind(symbols: &Symbols, size: impl Fn(usize, Option<usize>) -> usize) -> Bindings {
    let mut bindings = Bindings::new();
    for (i, name) in symbols.names().iter().enumerate() {
        let most = symbols.upper_bound(&Dim::symbol(name)).map(|most| usize::try_from(most).unwrap_or(0));
        let size = size(i, most).min(most.unwrap_or(usize::MAX));
        // Each name is declared once.
        let _ = bindings.bind(name, size);
    }
    bindings
}

/// The largest sizes: every symbol at its bound, or, where joint bounds forbid that, each in turn as large as all bounds allow
/// beside ones, and those after it as large as is left to them.
fn largest(symbols: &Symbols) -> Vec<Bindings> {
    let most = |i: usize, most: Option<usize>| most.unwrap_or(small(i));
    let all = bind(symbols, most);
    let count = symbols.names().len();
    if symbols.check(&all).is_ok() || count == 0 {
        return vec![all];
    }
    (0..count)
        .map(|first| {
            let mut sizes = vec![1; count];
            for i in (first..count).chain(0..first) {
                let bound = symbols.upper_bound(&Dim::symbol(&symbols.names()[i]));
                let bound = most(i, bound.map(|b| usize::try_from(b).unwrap_or(0)));
                // The number of sizes above 1 that fit: those that do come first.
                let (mut fits, mut fails) = (1, bound.saturating_add(1).max(2));
                while fails - fits > 1 {
                    let middle = fits + (fails - fits) / 2;
                    sizes[i] = middle;
                    match symbols.check(&bind(symbols, |j, _| sizes[j])) {
                        Ok(()) => fits = middle,
                        Err(_) => fails = middle,
                    }
                }
                sizes[i] = fits;
            }
            bind(symbols, |j, _| sizes[j])
        })
        .collect()
}

fn small(i: usize) -> usize {
    SMALL[i % SMALL.len()]
}

/// Sizes that stand for all: small ones that differ from each other, and the largest.
pub(super) fn representatives(symbols: &Symbols) -> Vec<Bindings> {
    let mut sizes = vec![bind(symbols, |i, _| small(i))];
    sizes.retain(|sizes| symbols.check(sizes).is_ok());
    sizes.extend(largest(symbols));
    sizes
}

/// Sizes by which kernels are chosen: those that stand for all, one of everything, and what neither a few rows nor the most
/// are.
pub(super) fn choosing(symbols: &Symbols) -> Vec<Bindings> {
    let mut sizes = representatives(symbols);
    sizes.extend([1, 64].map(|size| bind(symbols, |_, _| size)));
    sizes.retain(|sizes| symbols.check(sizes).is_ok());
    sizes
}

fn dense(ty: &Type, sizes: &Bindings) -> Result<Layout> {
    Ok(Layout::dense(&ty.eval(sizes)?))
}

fn layout(facts: &OperandFacts, sizes: &Bindings) -> Result<Layout> {
    let mut layout = dense(&facts.ty, sizes)?;
    if let Some(strides) = &facts.strides {
        layout.strides = strides.iter().map(|s| Ok(sizes.size(s)?)).collect::<Result<_>>()?;
    }
    Ok(layout)
}

/// Whether the device runs this.
pub(super) fn supports(facts: &OpFacts<'_>) -> Support {
    match attempt(facts) {
        Ok(()) => Support::Yes,
        Err(e) => Support::No(e.message().to_owned()),
    }
}

fn attempt(facts: &OpFacts<'_>) -> Result<()> {
    let dtypes: Vec<_> = facts.operands.iter().map(|o| o.ty.dtype).collect();
    let recipe = Recipe::of(facts.op, &dtypes)?;
    where_sizes_fit(
        facts.symbols,
        |sizes| {
            let operands = facts.operands.iter().map(|o| layout(o, sizes)).collect::<Result<Vec<_>>>()?;
            let results = facts.results.iter().map(|ty| dense(ty, sizes)).collect::<Result<Vec<_>>>()?;
            Ok((operands, results))
        },
        |(operands, results)| recipe.prepare(Some(facts.op), &operands, &results).map(|_| ()),
    )
}

/// Tries what `evaluate` makes of the sizes that stand for all. Some of them may be none of the graph's, as 3 is where `N - 5`
/// is a size too: they are passed over, but not all of them.
///
/// # Errors
/// Those of `try_one`; that of `evaluate`, where no sizes fit.
pub(super) fn where_sizes_fit<T>(
    symbols: &Symbols,
    evaluate: impl Fn(&Bindings) -> Result<T>,
    mut try_one: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    let (mut misfit, mut fits) = (None, false);
    for sizes in representatives(symbols) {
        match evaluate(&sizes) {
            Ok(evaluated) => {
                fits = true;
                try_one(evaluated)?;
            }
            Err(e) => misfit = Some(e),
        }
    }
    misfit.filter(|_| !fits).map_or(Ok(()), Err)
}
