//! Upper bounds of sizes, from bounds of symbols and of products of symbols.

use super::{Atom, Dim, Repr};

/// An upper bound of a symbol or of a product of symbols: `N <= 8192`, `B * S <= 16384`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// A symbol, or a product of symbols with coefficient 1.
    pub of: Dim,
    /// The largest value, inclusive.
    pub max: i64,
}

impl Dim {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn n() -> Dim {
        Dim::symbol("N")
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
