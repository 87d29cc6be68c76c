//! Attributes of ops: an ordered list of named values, and a reader that reports what is missing or left over.

use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::types::Shape;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrValue {
    /// Printed as the bare name: `{causal}`.
    Flag,
    /// A number without point or exponent.
    Int(i64),
    /// A number with point or exponent, `inf`, or `nan`.
    Float(f64),
    /// A word out of a fixed set, or a dtype: `tanh`, `f16`.
    Word(String),
    /// A text in double quotes.
    Text(String),
    /// A size that depends on symbols.
    Dim(Dim),
    /// Values in square brackets.
    List(Vec<AttrValue>),
    /// An inner graph.
    Graph(Box<Graph>),
}

/// Attributes in the order in which they are printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Attrs(Vec<(String, AttrValue)>);

impl Attrs {
    /// No attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// With `name = value`.
    #[must_use]
    pub fn with(mut self, name: &str, value: AttrValue) -> Self {
        self.0.push((name.to_owned(), value));
        self
    }

    /// With a flag, where `on`.
    #[must_use]
    pub fn flag(self, name: &str, on: bool) -> Self {
        if on { self.with(name, AttrValue::Flag) } else { self }
    }

    /// With an integer.
    #[must_use]
    pub fn int(self, name: &str, value: i64) -> Self {
        self.with(name, AttrValue::Int(value))
    }

    /// With a number.
    #[must_use]
    pub fn float(self, name: &str, value: f64) -> Self {
        self.with(name, AttrValue::Float(value))
    }

    /// With a word out of a fixed set.
    #[must_use]
    pub fn word(self, name: &str, value: &str) -> Self {
        self.with(name, AttrValue::Word(value.to_owned()))
    }

    /// With a dtype.
    #[must_use]
    pub fn dtype(self, name: &str, value: DType) -> Self {
        self.word(name, value.name())
    }

    /// With a list of sizes.
    #[must_use]
    pub fn dims(self, name: &str, dims: &[Dim]) -> Self {
        self.with(name, AttrValue::List(dims.iter().map(|d| AttrValue::from_dim(d.clone())).collect()))
    }

    /// With a list of integers.
    #[must_use]
    pub fn ints(self, name: &str, values: impl IntoIterator<Item = i64>) -> Self {
        self.with(name, AttrValue::List(values.into_iter().map(AttrValue::Int).collect()))
    }

    /// With a list of numbers.
    #[must_use]
    pub fn floats(self, name: &str, values: impl IntoIterator<Item = f64>) -> Self {
        self.with(name, AttrValue::List(values.into_iter().map(AttrValue::Float).collect()))
    }

    /// Names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttrValue)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AttrValue {
    /// A constant as an integer, else the expression.
    pub fn from_dim(dim: Dim) -> Self {
        match (dim.as_const(), dim.as_symbol()) {
            (Some(c), _) => Self::Int(c),
            (_, Some(s)) => Self::Word(s.to_owned()),
            _ => Self::Dim(dim),
        }
    }

    fn to_dim(&self) -> Option<Dim> {
        match self {
            Self::Int(v) => Some(Dim::constant(*v)),
            Self::Word(s) => Some(Dim::symbol(s)),
            Self::Dim(d) => Some(d.clone()),
            _ => None,
        }
    }

    fn to_float(&self) -> Option<f64> {
        match self {
            Self::Float(v) => Some(*v),
            Self::Int(v) => Some(*v as f64),
            _ => None,
        }
    }
}

/// Takes attributes one by one; [`finish`](Self::finish) refuses what nobody took.
///
/// Every method's error is `InvalidArgument` and names op and attribute.
#[derive(Debug)]
pub struct AttrReader<'a> {
    op: &'a str,
    left: Vec<(String, AttrValue)>,
}

impl<'a> AttrReader<'a> {
    /// A reader of `attrs` for the op called `op`.
    pub fn new(op: &'a str, attrs: Attrs) -> Self {
        Self { op, left: attrs.0 }
    }

    /// The op's name.
    pub fn op(&self) -> &'a str {
        self.op
    }

    /// The value of `name`, if it is there.
    pub fn take(&mut self, name: &str) -> Option<AttrValue> {
        let at = self.left.iter().position(|(n, _)| n == name)?;
        Some(self.left.remove(at).1)
    }

    fn wrong<T>(&self, name: &str, expected: &str, got: &AttrValue) -> Result<T> {
        crate::bail!(InvalidArgument, "{}: attribute {name} must be {expected}, got {got:?}", self.op)
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T> {
        match value {
            Some(v) => Ok(v),
            None => crate::bail!(InvalidArgument, "{}: attribute {name} is missing", self.op),
        }
    }

    fn optional<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl Fn(&AttrValue) -> Option<T>,
    ) -> Result<Option<T>> {
        match self.take(name) {
            None => Ok(None),
            Some(v) => match read(&v) {
                Some(t) => Ok(Some(t)),
                None => self.wrong(name, expected, &v),
            },
        }
    }

    /// Whether the flag is there.
    pub fn flag(&mut self, name: &str) -> Result<bool> {
        let value =
            self.optional(name, "a flag without a value", |v| (*v == AttrValue::Flag).then_some(()))?;
        Ok(value.is_some())
    }

    /// An optional integer.
    pub fn opt_int(&mut self, name: &str) -> Result<Option<i64>> {
        self.optional(name, "an integer", |v| if let AttrValue::Int(i) = v { Some(*i) } else { None })
    }

    /// An integer.
    pub fn int(&mut self, name: &str) -> Result<i64> {
        let v = self.opt_int(name)?;
        self.required(name, v)
    }

    /// An optional integer that is not negative.
    pub fn opt_usize(&mut self, name: &str) -> Result<Option<usize>> {
        self.optional(name, "an integer that is not negative", |v| match v {
            AttrValue::Int(i) => usize::try_from(*i).ok(),
            _ => None,
        })
    }

    /// An integer that is not negative.
    pub fn usize(&mut self, name: &str) -> Result<usize> {
        let v = self.opt_usize(name)?;
        self.required(name, v)
    }

    /// An optional number.
    pub fn opt_float(&mut self, name: &str) -> Result<Option<f64>> {
        self.optional(name, "a number", AttrValue::to_float)
    }

    /// A number.
    pub fn float(&mut self, name: &str) -> Result<f64> {
        let v = self.opt_float(name)?;
        self.required(name, v)
    }

    /// An optional word.
    pub fn opt_word(&mut self, name: &str) -> Result<Option<String>> {
        self.optional(name, "a word", |v| if let AttrValue::Word(w) = v { Some(w.clone()) } else { None })
    }

    /// A word.
    pub fn word(&mut self, name: &str) -> Result<String> {
        let v = self.opt_word(name)?;
        self.required(name, v)
    }

    /// A word out of a table of (word, meaning).
    pub fn choice<T: Copy>(&mut self, name: &str, table: &[(&str, T)]) -> Result<T> {
        let v = self.opt_choice(name, table)?;
        self.required(name, v)
    }

    /// An optional word out of a table of (word, meaning).
    pub fn opt_choice<T: Copy>(&mut self, name: &str, table: &[(&str, T)]) -> Result<Option<T>> {
        let Some(word) = self.opt_word(name)? else { return Ok(None) };
        match table.iter().find(|(w, _)| *w == word) {
            Some((_, t)) => Ok(Some(*t)),
            None => {
                let known: Vec<&str> = table.iter().map(|(w, _)| *w).collect();
                self.wrong(name, &format!("one of {}", known.join(", ")), &AttrValue::Word(word))
            }
        }
    }

    /// A dtype.
    pub fn dtype(&mut self, name: &str) -> Result<DType> {
        let v = self.opt_dtype(name)?;
        self.required(name, v)
    }

    /// An optional dtype.
    pub fn opt_dtype(&mut self, name: &str) -> Result<Option<DType>> {
        self.optional(name, "a dtype", |v| match v {
            AttrValue::Word(w) => DType::from_name(w),
            _ => None,
        })
    }

    /// A list of sizes.
    pub fn shape(&mut self, name: &str) -> Result<Shape> {
        let v = self.optional(name, "a list of sizes", |v| match v {
            AttrValue::List(l) => l.iter().map(AttrValue::to_dim).collect::<Option<Vec<Dim>>>(),
            _ => None,
        })?;
        Ok(Shape::from(self.required(name, v)?))
    }

    /// A size.
    pub fn dim(&mut self, name: &str) -> Result<Dim> {
        let v = self.optional(name, "a size", AttrValue::to_dim)?;
        self.required(name, v)
    }

    /// An optional list of integers.
    pub fn opt_ints(&mut self, name: &str) -> Result<Option<Vec<i64>>> {
        self.optional(name, "a list of integers", |v| match v {
            AttrValue::List(l) => {
                l.iter().map(|v| if let AttrValue::Int(i) = v { Some(*i) } else { None }).collect()
            }
            _ => None,
        })
    }

    /// A list of integers.
    pub fn ints(&mut self, name: &str) -> Result<Vec<i64>> {
        let v = self.opt_ints(name)?;
        self.required(name, v)
    }

    /// An optional list of numbers.
    pub fn opt_floats(&mut self, name: &str) -> Result<Option<Vec<f64>>> {
        self.optional(name, "a list of numbers", |v| match v {
            AttrValue::List(l) => l.iter().map(AttrValue::to_float).collect(),
            _ => None,
        })
    }

    /// An inner graph.
    pub fn graph(&mut self, name: &str) -> Result<Graph> {
        let v = self.optional(name, "a graph", |v| match v {
            AttrValue::Graph(g) => Some((**g).clone()),
            _ => None,
        })?;
        self.required(name, v)
    }

    /// Checks that every attribute was taken.
    pub fn finish(self) -> Result<()> {
        match self.left.first() {
            None => Ok(()),
            Some((name, _)) => crate::bail!(InvalidArgument, "{}: unknown attribute {name}", self.op),
        }
    }
}
