//! Symbolic sizes.
//!
//! A [`Dim`] is a polynomial with integer coefficients over symbols and floor divisions, kept in a normal form:
//! two dims are equal exactly when their normal forms are. Symbols stand for sizes that are bound at run time.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

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

    /// Floor division. Folds where both sides are constants and where every coefficient is a multiple of a
    /// constant divisor. Division by a constant zero stays an expression, whose evaluation is an error.
    #[must_use]
    pub fn floor_div(&self, by: &Self) -> Self {
        match (self.as_const(), by.as_const()) {
            (_, Some(1)) => return self.clone(),
            (Some(a), Some(b)) if b > 0 => return Self::constant(a.div_euclid(b)),
            (None, Some(b)) if b > 0 && self.terms().all(|(_, c)| c % b == 0) => {
                return self.with_coefficients(|c| c / b);
            }
            (Some(_), Some(_)) => {}
            _ if self == by => return Self::constant(1),
            _ => {}
        }
        if let Some(exact) = self.div_by_monomial(by) {
            return exact;
        }
        Self::from_atom(Atom::FloorDiv(Arc::new((self.clone(), by.clone()))))
    }

    /// `self / by` where `by` is one term that divides every term of `self`.
    fn div_by_monomial(&self, by: &Self) -> Option<Self> {
        let mut out = Vec::new();
        // A divisor that is not positive stays, so that its evaluation is an error.
        let (by_monomial, by_coefficient) = match &by.0 {
            Repr::Const(c) if *c > 0 => (&ONE, *c),
            Repr::Term(monomial, c) if *c > 0 => (&**monomial, *c),
            _ => return None,
        };
        for (monomial, coefficient) in self.terms() {
            let mut rest = monomial.clone();
            for atom in by_monomial {
                let at = rest.iter().position(|a| a == atom)?;
                rest.remove(at);
            }
            // None also where the quotient overflows.
            if coefficient.checked_rem(by_coefficient)? != 0 {
                return None;
            }
            out.push((rest, coefficient / by_coefficient));
        }
        Some(Self::from_terms(out))
    }

    /// Division that rounds up.
    #[must_use]
    pub fn ceil_div(&self, by: &Self) -> Self {
        (self.clone() + by.clone() - Self::constant(1)).floor_div(by)
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

    /// An upper bound under `bounds` with every symbol at least 0, and at least 0 itself; `None` where a symbol that
    /// matters has no bound, and on overflow.
    pub fn upper_bound(&self, bounds: &[Bound]) -> Option<i64> {
        self.extreme(bounds, true).map(|v| v.max(0))
    }

    /// The largest value, or the least, that the terms allow one by one.
    fn extreme(&self, bounds: &[Bound], largest: bool) -> Option<i64> {
        let mut sum = 0i64;
        for (monomial, coefficient) in self.terms() {
            if monomial.is_empty() {
                sum = sum.checked_add(coefficient)?;
                continue;
            }
            let (least, most) = monomial_range(monomial, bounds);
            let side = if (coefficient > 0) == largest { most } else { least };
            sum = sum.checked_add(coefficient.checked_mul(side?)?)?;
        }
        Some(sum)
    }
}

/// The least and the largest value of `monomial`. A floor division is negative where its numerator is.
fn monomial_range(monomial: &[Atom], bounds: &[Bound]) -> (Option<i64>, Option<i64>) {
    if let [atom] = monomial {
        return atom_range(atom, bounds);
    }
    let ranges: Vec<_> = monomial.iter().map(|atom| atom_range(atom, bounds)).collect();
    if ranges.iter().all(|(least, _)| least.is_some_and(|v| v >= 0)) {
        let least = if monomial.is_empty() { 1 } else { 0 };
        return (Some(least), monomial_bound(monomial, bounds));
    }
    let mut product = Some((1i64, 1i64));
    for range in ranges {
        product = product.and_then(|(a, b)| {
            let (c, d) = (range.0?, range.1?);
            let ends = [a.checked_mul(c)?, a.checked_mul(d)?, b.checked_mul(c)?, b.checked_mul(d)?];
            Some((*ends.iter().min()?, *ends.iter().max()?))
        });
    }
    product.unzip()
}

fn atom_range(atom: &Atom, bounds: &[Bound]) -> (Option<i64>, Option<i64>) {
    let Atom::FloorDiv(ab) = atom else {
        return (Some(0), monomial_bound(std::slice::from_ref(atom), bounds));
    };
    let (least, most) = (ab.0.extreme(bounds, false), ab.0.extreme(bounds, true));
    match ab.1.as_const() {
        Some(by) if by > 0 => (least.map(|v| v.div_euclid(by)), most.map(|v| v.div_euclid(by))),
        // A divisor is at least 1, and may be large.
        _ => (least.map(|v| v.min(0)), most.map(|v| v.max(0))),
    }
}

/// The least product of bounds that covers `monomial`: single symbols, and joint bounds where they divide it.
fn monomial_bound(monomial: &[Atom], bounds: &[Bound]) -> Option<i64> {
    let Some((first, rest)) = monomial.split_first() else { return Some(1) };
    let mut best: Option<i64> = None;
    let mut consider = |candidate: Option<i64>| {
        best = match (best, candidate) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    };
    if let Atom::FloorDiv(ab) = first {
        let own = ab.1.as_const().filter(|b| *b > 0).and_then(|b| Some(ab.0.upper_bound(bounds)? / b));
        let own = own.or_else(|| ab.0.upper_bound(bounds));
        consider(own.and_then(|o| o.checked_mul(monomial_bound(rest, bounds)?)));
        return best;
    }
    for bound in bounds {
        let Repr::Term(factors, 1) = &bound.of.0 else { continue };
        if !factors.contains(first) {
            continue;
        }
        let mut left = monomial.to_vec();
        let divides = factors.iter().all(|f| match left.iter().position(|a| a == f) {
            Some(at) => {
                left.remove(at);
                true
            }
            None => false,
        });
        if divides {
            consider(monomial_bound(&left, bounds).and_then(|r| r.checked_mul(bound.max)));
        }
    }
    best
}

/// An upper bound of a symbol or of a product of symbols: `N <= 8192`, `B * S <= 16384`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// A symbol, or a product of symbols with coefficient 1.
    pub of: Dim,
    /// The largest value, inclusive.
    pub max: i64,
}

impl std::ops::Add for Dim {
    type Output = Dim;
    fn add(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Self::constant(a.saturating_add(b));
        }
        match (&self.0, &other.0) {
            (Repr::Const(0), _) => return other,
            (_, Repr::Const(0)) => return self,
            _ => {}
        }
        Self::from_terms(self.owned_terms().chain(other.owned_terms()))
    }
}

impl std::ops::Sub for Dim {
    type Output = Dim;
    fn sub(self, other: Self) -> Self {
        self + other * Self::constant(-1)
    }
}

impl std::ops::Mul for Dim {
    type Output = Dim;
    fn mul(self, other: Self) -> Self {
        if let (Some(a), Some(b)) = (self.as_const(), other.as_const()) {
            return Self::constant(a.saturating_mul(b));
        }
        // A constant scales: the common case, without taking monomials apart.
        for (factor, of) in [(self.as_const(), &other), (other.as_const(), &self)] {
            match factor {
                Some(0) => return Self::constant(0),
                Some(1) => return of.clone(),
                Some(c) => return of.with_coefficients(|k| k.saturating_mul(c)),
                None => {}
            }
        }
        let products = self.terms().flat_map(|(m, c)| {
            other.terms().map(move |(n, d)| {
                let mut product = [m.as_slice(), n.as_slice()].concat();
                product.sort();
                (product, c.saturating_mul(d))
            })
        });
        Self::from_terms(products)
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

impl From<usize> for Dim {
    fn from(value: usize) -> Self {
        Self::constant(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<i32> for Dim {
    fn from(value: i32) -> Self {
        Self::constant(value.into())
    }
}

impl From<&str> for Dim {
    fn from(symbol: &str) -> Self {
        Self::symbol(symbol)
    }
}

impl From<&Dim> for Dim {
    fn from(dim: &Dim) -> Self {
        dim.clone()
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Repr::Const(c) = self.0 {
            return write!(f, "{c}");
        }
        // Symbols first, the constant last, as people write it.
        let constant = self.terms().filter(|(m, _)| m.is_empty());
        let rest = self.terms().filter(|(m, _)| !m.is_empty());
        for (i, (monomial, coefficient)) in rest.chain(constant).enumerate() {
            let magnitude = coefficient.unsigned_abs();
            match (i, coefficient < 0) {
                (0, false) => {}
                (0, true) => f.write_str("-")?,
                (_, false) => f.write_str(" + ")?,
                (_, true) => f.write_str(" - ")?,
            }
            let mut first = true;
            if magnitude != 1 || monomial.is_empty() {
                write!(f, "{magnitude}")?;
                first = false;
            }
            for atom in monomial {
                if !first {
                    f.write_str(" * ")?;
                }
                first = false;
                match atom {
                    Atom::Symbol(s) => f.write_str(s)?,
                    Atom::FloorDiv(ab) => write!(f, "(({}) / ({}))", ab.0, ab.1)?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
    }

    #[test]
    fn equal_expressions_have_one_form() {
        let a = (n() + 1.into()) * (n() - 1.into());
        assert_eq!(a, n() * n() - 1.into());
        assert_eq!(n() - n(), Dim::constant(0));
        assert_eq!((n() * 4.into()).floor_div(&2.into()), n() * 2.into());
        assert_eq!((n() * Dim::symbol("D")).floor_div(&"D".into()), n());
        assert_eq!(a.to_string(), "N * N - 1");
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

    #[test]
    fn division_rounds_down_and_refuses_zero() {
        let pages = n().ceil_div(&16.into());
        let at = |v: i64| pages.eval(&|_| Some(v));
        assert_eq!((at(0), at(16), at(17)), (Ok(0), Ok(1), Ok(2)));
        assert!(n().floor_div(&"Z".into()).eval(&|s| Some(i64::from(s == "N"))).is_err());
        assert!(n().eval(&|_| None).is_err());
        assert!((n() * n()).eval(&|_| Some(i64::MAX)).is_err());
        let least = n() * Dim::constant(i64::MIN);
        assert!(least.floor_div(&(n() * Dim::constant(-1))).eval(&|_| Some(1)).is_err());
    }

    #[test]
    fn a_joint_bound_is_tighter_than_the_product_of_single_ones() {
        let (b, s) = (Dim::symbol("B"), Dim::symbol("S"));
        let mut bounds = vec![Bound { of: b.clone(), max: 64 }, Bound { of: s.clone(), max: 512 }];
        let size = b.clone() * s.clone() * 384.into();
        assert_eq!(size.upper_bound(&bounds), Some(64 * 512 * 384));
        bounds.push(Bound { of: b * s, max: 8192 });
        assert_eq!(size.upper_bound(&bounds), Some(8192 * 384));
        assert_eq!(n().upper_bound(&bounds), None);
        assert_eq!((n() - 5.into()).upper_bound(&[Bound { of: n(), max: 3 }]), Some(0));
        assert_eq!((Dim::constant(8) - n()).upper_bound(&[]), Some(8));
    }

    #[test]
    fn a_division_below_zero_counts_where_it_is_subtracted_or_squared() {
        let bounds = [Bound { of: n(), max: 3 }];
        // (N - 5) / 2 is -3 to -1.
        let half = (n() - 5.into()).floor_div(&2.into());
        assert_eq!(half.upper_bound(&bounds), Some(0));
        assert_eq!((Dim::constant(1) - half.clone()).upper_bound(&bounds), Some(4));
        assert_eq!((half.clone() * half).upper_bound(&bounds), Some(9));
        assert!(Dim::constant(0).floor_div(&0.into()).eval(&|_| None).is_err());
    }
}
