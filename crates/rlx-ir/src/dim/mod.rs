//! Symbolic sizes.
//!
//! A [`Dim`] is a polynomial with integer coefficients over symbols and floor divisions, kept in a normal form:
//! two dims are equal exactly when their normal forms are. Symbols stand for sizes that are bound at run time.
//!
//! Next door: `arithmetic` adds, multiplies and divides, `bound` finds upper bounds, `text` writes sizes as people do.

mod arithmetic;
mod bound;
mod text;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};

pub use bound::Bound;

/// One factor of a monomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Atom {
    Symbol(Arc<str>),
    FloorDiv(Arc<(Dim, Dim)>),
}

/// A sorted product of atoms; empty for the constant term.
type Monomial = Vec<Atom>;

/// The monomial of the constant term.
static ONE: Monomial = Vec::new();

/// A size: a constant, or an expression over symbols.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Dim(Repr);

/// No coefficient but that of a constant is zero.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Const(i64),
    /// One monomial that is not empty: what most sizes are. Scaling it shares it.
    Term(Arc<Monomial>, i64),
    /// Two or more monomials, sorted, each once.
    Poly(Arc<Vec<(Monomial, i64)>>),
}

/// The terms of a dim, sorted by monomial.
enum Terms<'a> {
    One(Option<(&'a Monomial, i64)>),
    Many(std::slice::Iter<'a, (Monomial, i64)>),
}

impl<'a> Iterator for Terms<'a> {
    type Item = (&'a Monomial, i64);

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::One(term) => term.take(),
            Self::Many(terms) => terms.next().map(|(m, c)| (m, *c)),
        }
    }
}

impl Dim {
    /// The constant `value`.
    pub fn constant(value: i64) -> Self {
        Self(Repr::Const(value))
    }

    /// The symbol `name`.
    pub fn symbol(name: &str) -> Self {
        Self::from_atom(Atom::Symbol(name.into()))
    }

    fn from_atom(atom: Atom) -> Self {
        Self(Repr::Term(Arc::new(vec![atom]), 1))
    }

    /// The sum of terms, whose monomials may be there several times.
    fn from_terms(terms: impl IntoIterator<Item = (Monomial, i64)>) -> Self {
        let mut sums: BTreeMap<Monomial, i64> = BTreeMap::new();
        for (monomial, coefficient) in terms {
            let slot = sums.entry(monomial).or_insert(0);
            *slot = slot.saturating_add(coefficient);
        }
        let mut terms: Vec<(Monomial, i64)> = sums.into_iter().filter(|(_, c)| *c != 0).collect();
        match terms.len() {
            0 | 1 => match terms.pop() {
                None => Self::constant(0),
                Some((monomial, c)) if monomial.is_empty() => Self::constant(c),
                Some((monomial, c)) => Self(Repr::Term(Arc::new(monomial), c)),
            },
            _ => Self(Repr::Poly(Arc::new(terms))),
        }
    }

    /// The terms, sorted by monomial; none for zero.
    fn terms(&self) -> Terms<'_> {
        match &self.0 {
            Repr::Const(0) => Terms::One(None),
            Repr::Const(c) => Terms::One(Some((&ONE, *c))),
            Repr::Term(monomial, c) => Terms::One(Some((monomial, *c))),
            Repr::Poly(terms) => Terms::Many(terms.iter()),
        }
    }

    fn owned_terms(&self) -> impl Iterator<Item = (Monomial, i64)> {
        self.terms().map(|(m, c)| (m.clone(), c))
    }

    /// The factors of every term that is not constant.
    fn atoms(&self) -> impl Iterator<Item = &Atom> {
        self.terms().flat_map(|(m, _)| m)
    }

    /// This, with every coefficient changed to another that is not zero.
    fn with_coefficients(&self, change: impl Fn(i64) -> i64) -> Self {
        Self(match &self.0 {
            Repr::Const(c) => Repr::Const(change(*c)),
            Repr::Term(monomial, c) => Repr::Term(monomial.clone(), change(*c)),
            Repr::Poly(terms) => {
                Repr::Poly(Arc::new(terms.iter().map(|(m, c)| (m.clone(), change(*c))).collect()))
            }
        })
    }

    /// The value, where this is a constant.
    pub fn as_const(&self) -> Option<i64> {
        match self.0 {
            Repr::Const(c) => Some(c),
            Repr::Term(..) | Repr::Poly(_) => None,
        }
    }

    /// The value as a size, where this is a constant that is not negative.
    pub fn as_usize(&self) -> Option<usize> {
        self.as_const().and_then(|c| usize::try_from(c).ok())
    }

    /// The name, where this is one symbol and nothing else.
    pub fn as_symbol(&self) -> Option<&str> {
        let Repr::Term(monomial, 1) = &self.0 else { return None };
        match monomial.as_slice() {
            [Atom::Symbol(name)] => Some(name),
            _ => None,
        }
    }
    /// The number of terms of the sum; at least 1.
    pub(crate) fn num_terms(&self) -> usize {
        match &self.0 {
            Repr::Const(_) | Repr::Term(..) => 1,
            Repr::Poly(terms) => terms.len(),
        }
    }

    /// How long the expression is when it is written out: its numbers, symbols and divisions.
    pub(crate) fn weight(&self) -> usize {
        let atom = |a: &Atom| match a {
            Atom::Symbol(_) => 1,
            Atom::FloorDiv(ab) => 1 + ab.0.weight() + ab.1.weight(),
        };
        self.num_terms() + self.atoms().map(atom).sum::<usize>()
    }

    /// How deep divisions nest.
    pub(crate) fn depth(&self) -> usize {
        let atom = |a: &Atom| match a {
            Atom::Symbol(_) => 0,
            Atom::FloorDiv(ab) => 1 + ab.0.depth().max(ab.1.depth()),
        };
        self.atoms().map(atom).max().unwrap_or(0)
    }

    /// Whether a number in it went out of range: sums and products saturate.
    pub(crate) fn is_saturated(&self) -> bool {
        self.terms().any(|(_, c)| c == i64::MIN || c == i64::MAX)
            || self.atoms().any(|a| match a {
                Atom::Symbol(_) => false,
                Atom::FloorDiv(ab) => ab.0.is_saturated() || ab.1.is_saturated(),
            })
    }

    /// The first symbol that `keep` answers yes for.
    pub(crate) fn find_symbol(&self, keep: &dyn Fn(&str) -> bool) -> Option<&Arc<str>> {
        self.atoms().find_map(|atom| match atom {
            Atom::Symbol(s) => keep(s).then_some(s),
            Atom::FloorDiv(ab) => ab.0.find_symbol(keep).or_else(|| ab.1.find_symbol(keep)),
        })
    }

    /// The symbols in this expression, each once, sorted.
    pub fn symbols(&self) -> Vec<Arc<str>> {
        let mut out = Vec::new();
        self.collect_symbols(&mut out);
        out.sort();
        out.dedup();
        out
    }

    fn collect_symbols(&self, out: &mut Vec<Arc<str>>) {
        for atom in self.atoms() {
            match atom {
                Atom::Symbol(s) => out.push(s.clone()),
                Atom::FloorDiv(ab) => {
                    ab.0.collect_symbols(out);
                    ab.1.collect_symbols(out);
                }
            }
        }
    }

    /// The value with `lookup` giving each symbol's size.
    ///
    /// # Errors
    /// `InvalidArgument` where a symbol is unbound, where a divisor is not positive, and on overflow.
    pub fn eval(&self, lookup: &dyn Fn(&str) -> Option<i64>) -> Result<i64> {
        if let Repr::Const(c) = self.0 {
            return Ok(c);
        }
        let overflow = || Error::new(crate::ErrorKind::InvalidArgument, format!("size {self} overflows"));
        let mut sum = 0i64;
        for (monomial, coefficient) in self.terms() {
            let mut product = coefficient;
            for atom in monomial {
                let factor = match atom {
                    Atom::Symbol(s) => match lookup(s) {
                        Some(v) => v,
                        None => crate::bail!(InvalidArgument, "symbol {s} is not bound to a size"),
                    },
                    Atom::FloorDiv(ab) => match (ab.0.eval(lookup)?, ab.1.eval(lookup)?) {
                        (_, ..=0) => crate::bail!(InvalidArgument, "{self} divides by zero or less"),
                        (a, b) => a.div_euclid(b),
                    },
                };
                product = product.checked_mul(factor).ok_or_else(overflow)?;
            }
            sum = sum.checked_add(product).ok_or_else(overflow)?;
        }
        Ok(sum)
    }

    /// This expression with `replace` applied to every symbol that it answers for.
    #[must_use]
    pub fn substitute(&self, replace: &dyn Fn(&str) -> Option<Dim>) -> Self {
        let mut sum = Self::constant(0);
        for (monomial, coefficient) in self.terms() {
            let mut product = Self::constant(coefficient);
            for atom in monomial {
                product = product
                    * match atom {
                        Atom::Symbol(s) => replace(s).unwrap_or_else(|| Self::from_atom(atom.clone())),
                        Atom::FloorDiv(ab) => ab.0.substitute(replace).floor_div(&ab.1.substitute(replace)),
                    };
            }
            sum = sum + product;
        }
        sum
    }
}

impl Ord for Dim {
    /// Constants by value, then sums term by term.
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Const(a), Repr::Const(b)) => a.cmp(b),
            (Repr::Const(_), _) => Ordering::Less,
            (_, Repr::Const(_)) => Ordering::Greater,
            _ => self.terms().cmp(other.terms()),
        }
    }
}

impl PartialOrd for Dim {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
    }

    #[test]
    fn sizes_have_an_order_that_agrees_with_equality() {
        let half = n().floor_div(&2.into());
        let sorted: Vec<Dim> = vec![
            (-1).into(),
            3.into(),
            n() * 2.into() + 1.into(),
            half.clone() + 2.into(),
            n() * (-1).into(),
            n(),
            n() + Dim::symbol("R"),
            n() * n(),
            Dim::symbol("R"),
            half,
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                assert_eq!((a.cmp(b), a == b), (i.cmp(&j), i == j), "{a} and {b}");
            }
        }
    }
}
