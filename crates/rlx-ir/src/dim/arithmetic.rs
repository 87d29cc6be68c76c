//! Sums, products and quotients of sizes. Sums and products saturate.

use std::sync::Arc;

use super::{Atom, Dim, ONE, Repr};

impl Dim {
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

impl From<usize> for Dim {
    fn from(value: usize) -> Self {
        Self::constant(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<i64> for Dim {
    fn from(value: i64) -> Self {
        Self::constant(value)
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
}
