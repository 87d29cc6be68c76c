//! What the device runs: an op is supported where its launch can be made, for small sizes and for the largest.

use rlx_compile::{OpFacts, OperandFacts, Support};
use rlx_ir::{Bindings, Dim, Symbols, Type};
use rlx_kernels::layout::Layout;

use super::recipe::Recipe;
use crate::error::Result;

/// Sizes that stand for all: small ones that differ from each other, and the bounds.
pub(super) fn representatives(symbols: &Symbols) -> Vec<Bindings> {
    const SMALL: [i64; 8] = [3, 5, 7, 11, 13, 17, 19, 23];
    let most = |name: &str| symbols.upper_bound(&Dim::symbol(name));
    let bind = |size: &dyn Fn(usize, Option<i64>) -> i64| {
        let mut bindings = Bindings::new();
        for (i, name) in symbols.names().iter().enumerate() {
            let size = size(i, most(name)).max(0);
            // Each name is declared once.
            let _ = bindings.bind(name, usize::try_from(size).unwrap_or(0));
        }
        bindings
    };
    let small = |i: usize, most: Option<i64>| SMALL[i % SMALL.len()].min(most.unwrap_or(i64::MAX));
    let large = |i: usize, most: Option<i64>| most.unwrap_or(SMALL[i % SMALL.len()]);
    vec![bind(&small), bind(&large)]
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
