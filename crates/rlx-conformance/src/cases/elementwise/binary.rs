//! Functions of two elements.

use rlx_ir::DType;
use rlx_ir::ops::elementwise::binary::BinaryKind;

use crate::Result;
use crate::cases::{Case, FLOATS, INTS, SIZES, Sample, Samples, ends};

/// Every function over its dtypes and over the ways to broadcast, with special values and the ends of integers.
pub(crate) struct Binary;

fn dtypes(kind: BinaryKind) -> Vec<DType> {
    match kind {
        BinaryKind::Pow => FLOATS.to_vec(),
        BinaryKind::And | BinaryKind::Or | BinaryKind::Xor => INTS.into_iter().chain([DType::Bool]).collect(),
        _ => FLOATS.into_iter().chain(INTS).collect(),
    }
}

/// Shapes of the operands, with what they are.
pub(crate) const PATTERNS: [(&str, &str, &str); 11] = [
    ("equal", "[N, 17]", "[N, 17]"),
    ("scalar", "[N, 17]", "[]"),
    ("scalar first", "[]", "[N, 17]"),
    ("row", "[N, 17]", "[17]"),
    ("row first", "[17]", "[N, 17]"),
    ("column", "[N, 17]", "[N, 1]"),
    ("column first", "[N, 1]", "[N, 17]"),
    ("both", "[N, 1]", "[1, 17]"),
    ("middle", "[2, N, 3]", "[2, 1, 3]"),
    ("three axes", "[2, 1, 3]", "[N, 1]"),
    ("column of three axes", "[2, N, 3]", "[N, 1]"),
];

/// Bases and exponents that have a rule of their own: signs, zeros, infinities, integers odd and even, and no integers.
const POWERS: [f64; 18] = [
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.0,
    -2.0,
    3.0,
    -3.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    15.0,
    -16.0,
    100.0,
];

/// Keeps operands where the function is defined.
fn domain(kind: BinaryKind, dtype: DType, sample: &mut Sample) -> Result<()> {
    match kind {
        BinaryKind::Pow => {
            sample.range("a", 0.1, 4.0)?;
        }
        BinaryKind::Div | BinaryKind::Rem if dtype.is_int() => {
            sample.range("b", 1.0, 50.0)?;
        }
        _ => {}
    }
    Ok(())
}

impl Case for Binary {
    fn name(&self) -> &'static str {
        "binary"
    }

    fn ops(&self) -> Vec<&'static str> {
        BinaryKind::ALL.iter().map(|k| k.name()).collect()
    }

    fn generate(&self, samples: &mut Samples) -> Result<()> {
        for &kind in BinaryKind::ALL {
            let op = kind.name();
            for dtype in dtypes(kind) {
                for (pattern, a, b) in PATTERNS {
                    let body = format!(
                        "%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n%y = {op} %a, %b\nreturn %y"
                    );
                    let wide = matches!(pattern, "equal" | "row") && matches!(dtype, DType::F32 | DType::F16);
                    let sizes = if wide { &SIZES[..] } else { &[0, 3] };
                    for &n in sizes {
                        let label = format!("{op} {pattern} n={n}");
                        let sample = samples.add(dtype, label, ("N <= 65", &[("N", n)]), &body)?;
                        domain(kind, dtype, sample)?;
                        if pattern == "equal" && n == 33 && dtype.is_float() {
                            sample.specials("a")?.specials("b")?;
                        }
                    }
                }
                // What a router does: the weights of a token's experts over their sum.
                for (pattern, a, b) in
                    [("column over", "[N, 8]", "[N, 1]"), ("over a column", "[N, 1]", "[N, 200]")]
                {
                    if !matches!(dtype, DType::F32 | DType::F16 | DType::I32) {
                        continue;
                    }
                    let body = format!(
                        "%a = input \"a\" : {dtype}{a}\n%b = input \"b\" : {dtype}{b}\n%y = {op} %a, %b\nreturn %y"
                    );
                    let label = format!("{op} {pattern} n=33");
                    let sample = samples.add(dtype, label, ("N <= 33", &[("N", 33)]), &body)?;
                    domain(kind, dtype, sample)?;
                    if dtype.is_float() && kind != BinaryKind::Pow {
                        sample.specials("a")?;
                    }
                }
                let body = format!(
                    "%x = input \"a\" : {dtype}[N, 5]\n%b = input \"b\" : {dtype}[5, N]\n\
                     %t = transpose %x {{perm = [1, 0]}}\n%y = {op} %t, %b\nreturn %y"
                );
                let sample =
                    samples.add(dtype, format!("{op} transposed"), ("N <= 20", &[("N", 7)]), &body)?;
                domain(kind, dtype, sample)?;
            }
        }
        for dtype in INTS {
            for &kind in BinaryKind::ALL {
                // Each end with each, but for divisions by 0.
                let divides = matches!(kind, BinaryKind::Div | BinaryKind::Rem);
                let (op, a) = (kind.name(), ends(dtype));
                let b: Vec<i64> = a.iter().copied().filter(|b| !divides || *b != 0).collect();
                if kind == BinaryKind::Pow {
                    continue;
                }
                let body = format!(
                    "%a = input \"a\" : {dtype}[N, 1]\n%b = input \"b\" : {dtype}[{}]\n%y = {op} %a, %b\nreturn %y",
                    b.len()
                );
                let (label, sizes) = (format!("{op} of the ends"), [("N", a.len())]);
                samples.add(dtype, label, ("N <= 9", &sizes), &body)?.ints("a", &a)?.ints("b", &b)?;
            }
        }
        for dtype in FLOATS {
            let body = format!(
                "%a = input \"a\" : {dtype}[N, 1]\n%b = input \"b\" : {dtype}[{}]\n%y = pow %a, %b\nreturn %y",
                POWERS.len()
            );
            let size = [("N", POWERS.len())];
            let sample = samples.add(dtype, "pow of edges", ("N <= 65", &size), &body)?;
            sample.floats("a", &POWERS)?.floats("b", &POWERS)?;
        }
        for op in ["div", "rem"] {
            let body =
                format!("%a = input \"a\" : i32[N]\n%b = input \"b\" : i32[N]\n%y = {op} %a, %b\nreturn %y");
            let label = format!("{op} by zero");
            samples.add(DType::I32, label, ("N <= 4", &[("N", 3)]), &body)?.ints("b", &[1, 0, 2])?.refuse();
        }
        Ok(())
    }
}
