//! The text form of sizes.

use std::fmt;

use super::{Atom, Dim, Repr};

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
