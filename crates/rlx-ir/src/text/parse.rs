//! Parsing graphs.

use std::collections::HashMap;
use std::sync::Arc;

use super::lex::{Token, lex};
use crate::attrs::{AttrValue, Attrs};
use crate::builder::{Builder, Value};
use crate::dim::Dim;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::{Graph, WeightInit};
use crate::op::OpSet;
use crate::tensor::Tensor;
use crate::types::{Shape, TensorType, Type};

/// Inner graphs and lists nest at most this deep.
const MAX_DEPTH: usize = 32;

/// Parentheses in sizes nest at most this deep.
const MAX_DIM_DEPTH: usize = 32;

/// A size holds at most this many numbers, symbols and divisions once its products are multiplied out.
const MAX_DIM_WEIGHT: usize = 4096;

/// A tensor in the text holds at most this many elements, so that a short text cannot ask for much memory.
const MAX_LITERAL_ELEMS: usize = 1 << 24;

/// Parses one graph.
///
/// # Errors
/// `InvalidArgument` naming the line: what was expected and what came, or what an op says of its operands.
pub fn parse(text: &str, ops: &OpSet) -> Result<Graph> {
    let mut graphs = parse_many(text, ops)?;
    match (graphs.pop(), graphs.is_empty()) {
        (Some(graph), true) => Ok(graph),
        (None, _) => crate::bail!(InvalidArgument, "no graph in the text"),
        _ => crate::bail!(InvalidArgument, "more than one graph in the text"),
    }
}

/// Parses any number of graphs.
///
/// # Errors
/// As [`parse`].
pub fn parse_many(text: &str, ops: &OpSet) -> Result<Vec<Graph>> {
    let mut p = Parser { tokens: lex(text)?, at: 0, ops, depth: 0, dim_depth: 0 };
    let mut graphs = Vec::new();
    while p.at < p.tokens.len() {
        let graph = p.graph().map_err(|e| e.context(format!("line {}", p.line())))?;
        graphs.push(graph);
    }
    Ok(graphs)
}

struct Parser<'a> {
    tokens: Vec<(Token, u32)>,
    at: usize,
    ops: &'a OpSet,
    depth: usize,
    dim_depth: usize,
}

impl Parser<'_> {
    fn line(&self) -> u32 {
        // The line of the token that was taken last.
        self.tokens.get(self.at.saturating_sub(1)).or(self.tokens.last()).map_or(1, |t| t.1)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|t| &t.0)
    }

    fn next(&mut self) -> Result<Token> {
        match self.tokens.get(self.at) {
            Some((t, _)) => {
                self.at += 1;
                Ok(t.clone())
            }
            None => crate::bail!(InvalidArgument, "the text ends too early"),
        }
    }

    fn eat(&mut self, punct: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Punct(p)) if *p == punct);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Word(w)) if w == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, punct: &str) -> Result<()> {
        match self.next()? {
            Token::Punct(p) if p == punct => Ok(()),
            t => crate::bail!(InvalidArgument, "expected `{punct}`, got `{t}`"),
        }
    }

    fn word(&mut self, what: &str) -> Result<String> {
        match self.next()? {
            Token::Word(w) => Ok(w),
            t => crate::bail!(InvalidArgument, "expected {what}, got `{t}`"),
        }
    }

    fn text(&mut self) -> Result<String> {
        match self.next()? {
            Token::Text(t) => Ok(t),
            t => crate::bail!(InvalidArgument, "expected a text in quotes, got `{t}`"),
        }
    }

    fn magnitude(&mut self) -> Result<u64> {
        match self.next()? {
            Token::Int(v) => Ok(v),
            t => crate::bail!(InvalidArgument, "expected an integer, got `{t}`"),
        }
    }

    /// An integer with its sign.
    fn int(&mut self) -> Result<i64> {
        let negative = self.eat("-");
        let magnitude = self.magnitude()?;
        let value = if negative {
            0i64.checked_sub_unsigned(magnitude)
        } else {
            0i64.checked_add_unsigned(magnitude)
        };
        match value {
            Some(value) => Ok(value),
            None => crate::bail!(InvalidArgument, "{magnitude} does not fit into 64 bits with its sign"),
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            crate::bail!(InvalidArgument, "nested deeper than {MAX_DEPTH}");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn graph(&mut self) -> Result<Graph> {
        if !self.eat_word("graph") {
            let t = self.next()?;
            crate::bail!(InvalidArgument, "expected `graph`, got `{t}`");
        }
        let name = match self.next()? {
            Token::Name(n) => n,
            t => crate::bail!(InvalidArgument, "expected a name with @, got `{t}`"),
        };
        let mut b = Builder::new(&name);
        if self.eat("(") {
            self.symbols(&mut b)?;
        }
        self.expect("{")?;
        let mut names: HashMap<String, Value> = HashMap::new();
        let mut outputs = Vec::new();
        while !self.eat("}") {
            if self.eat_word("return") {
                outputs = self.operands(&names)?;
                self.expect("}")?;
                break;
            }
            self.statement(&mut b, &mut names)?;
        }
        b.finish(&outputs)
    }

    fn symbols(&mut self, b: &mut Builder) -> Result<()> {
        while !self.eat(")") {
            let of = self.dim()?;
            let max = if self.eat("<=") { Some(self.int()?) } else { None };
            let max = max.map(|m| usize::try_from(m).unwrap_or(0));
            match (of.as_symbol(), max) {
                (Some(name), Some(max)) => {
                    b.symbol(name, max);
                }
                (Some(name), None) => {
                    b.unbounded_symbol(name);
                }
                (None, Some(max)) => b.bound(of, max),
                (None, None) => crate::bail!(InvalidArgument, "expected a symbol or a bound, got {of}"),
            }
            if !self.eat(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(())
    }

    fn operands(&mut self, names: &HashMap<String, Value>) -> Result<Vec<Value>> {
        let mut out = Vec::new();
        while let Some(Token::Value(name)) = self.peek() {
            match names.get(name) {
                Some(v) => out.push(*v),
                None => crate::bail!(InvalidArgument, "%{name} is not defined"),
            }
            self.at += 1;
            if !self.eat(",") {
                break;
            }
        }
        Ok(out)
    }

    fn statement(&mut self, b: &mut Builder, names: &mut HashMap<String, Value>) -> Result<()> {
        let mut results = Vec::new();
        loop {
            match self.next()? {
                Token::Value(v) => results.push(v),
                t => crate::bail!(InvalidArgument, "expected a result (%name), got `{t}`"),
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect("=")?;
        let op = self.word("an op")?;
        let values = match op.as_str() {
            "input" | "state" => {
                let name = self.text()?;
                self.expect(":")?;
                let ty = self.ty()?;
                let declare = if op == "input" { Builder::input } else { Builder::state };
                vec![declare(b, &name, ty.dtype, ty.shape)?]
            }
            "weight" => {
                let name = self.text()?;
                self.expect(":")?;
                let ty = self.ty()?;
                let init = self.weight_init(&ty)?;
                vec![b.weight_with(&name, ty, init)?]
            }
            "const" => {
                let ty = self.ty()?;
                self.expect("=")?;
                vec![b.constant(self.literal(&ty)?)]
            }
            _ => self.node(b, &op, names)?,
        };
        if values.len() != results.len() {
            crate::bail!(InvalidArgument, "{op} has {} results, not {}", values.len(), results.len());
        }
        // Generated names make room first: a text may use the same numbers.
        for &value in &values {
            b.name(value, "_")?;
        }
        for (name, value) in results.into_iter().zip(values) {
            b.name(value, &name)?;
            if names.insert(name.clone(), value).is_some() {
                crate::bail!(InvalidArgument, "%{name} is defined twice");
            }
        }
        Ok(())
    }

    fn node(&mut self, b: &mut Builder, op: &str, names: &HashMap<String, Value>) -> Result<Vec<Value>> {
        let operands = self.operands(names)?;
        let attrs = if self.eat("{") { self.nested(Self::attrs)? } else { Attrs::new() };
        let scope = if self.eat_word("in") { self.text()? } else { String::new() };
        b.set_scope(scope);
        let values = b.emit_ref(self.ops.make(op, attrs)?, &operands)?;
        if self.eat(":") {
            for (i, &value) in values.iter().enumerate() {
                if i > 0 {
                    self.expect(",")?;
                }
                let stated = self.ty()?;
                if stated != *b.ty(value) {
                    crate::bail!(InvalidArgument, "{op}: stated as {stated}, but it is {}", b.ty(value));
                }
            }
        }
        Ok(values)
    }

    fn ty(&mut self) -> Result<Type> {
        let name = self.word("a dtype")?;
        let Some(dtype) = DType::from_name(&name) else {
            crate::bail!(InvalidArgument, "unknown dtype {name}");
        };
        self.expect("[")?;
        let mut dims = Vec::new();
        while !self.eat("]") {
            dims.push(self.dim()?);
            if !self.eat(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(Type::new(dtype, Shape::from(dims)))
    }

    /// Sum of products of atoms.
    fn dim(&mut self) -> Result<Dim> {
        let mut sum = if self.eat("-") { negated(&self.dim_product()?)? } else { self.dim_product()? };
        loop {
            if self.eat("+") {
                sum = checked_sum(sum, self.dim_product()?)?;
            } else if self.eat("-") {
                sum = checked_sum(sum, negated(&self.dim_product()?)?)?;
            } else {
                return Ok(sum);
            }
        }
    }

    fn dim_product(&mut self) -> Result<Dim> {
        let mut product = self.dim_atom()?;
        loop {
            if self.eat("*") {
                product = checked_product(product, self.dim_atom()?)?;
            } else if self.eat("/") {
                product = checked_quotient(&product, &self.dim_atom()?)?;
            } else {
                return Ok(product);
            }
        }
    }

    fn dim_atom(&mut self) -> Result<Dim> {
        match self.next()? {
            Token::Int(v) => checked_range(Dim::constant(i64::try_from(v).unwrap_or(i64::MAX))),
            Token::Word(w) => Ok(Dim::symbol(&w)),
            Token::Punct("(") => {
                if self.dim_depth >= MAX_DIM_DEPTH {
                    crate::bail!(InvalidArgument, "a size nests deeper than {MAX_DIM_DEPTH}");
                }
                self.dim_depth += 1;
                let inner = self.dim()?;
                self.dim_depth -= 1;
                self.expect(")")?;
                Ok(inner)
            }
            t => crate::bail!(InvalidArgument, "expected a size, got `{t}`"),
        }
    }

    fn attrs(&mut self) -> Result<Attrs> {
        let mut attrs = Attrs::new();
        while !self.eat("}") {
            let name = self.word("an attribute")?;
            let value = if self.eat("=") { self.value()? } else { AttrValue::Flag };
            if attrs.iter().any(|(n, _)| n == name) {
                crate::bail!(InvalidArgument, "attribute {name} is given twice");
            }
            attrs = attrs.with(&name, value);
            if !self.eat(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(attrs)
    }

    fn value(&mut self) -> Result<AttrValue> {
        match self.peek() {
            Some(Token::Text(_)) => Ok(AttrValue::Text(self.text()?)),
            Some(Token::Punct("[")) => {
                self.at += 1;
                self.nested(|p| {
                    let mut list = Vec::new();
                    while !p.eat("]") {
                        list.push(p.value()?);
                        if !p.eat(",") {
                            p.expect("]")?;
                            break;
                        }
                    }
                    Ok(AttrValue::List(list))
                })
            }
            Some(Token::Word(w)) if w == "graph" => Ok(AttrValue::Graph(Box::new(self.nested(Self::graph)?))),
            _ => match self.number()? {
                Some(v) => Ok(AttrValue::Float(v)),
                None => Ok(AttrValue::from_dim(self.dim()?)),
            },
        }
    }

    /// A float with its sign, if one comes next.
    fn number(&mut self) -> Result<Option<f64>> {
        let start = self.at;
        let sign = if self.eat("-") { -1.0 } else { 1.0 };
        let value = match self.next()? {
            Token::Float(v) => v,
            Token::Word(w) if w == "inf" => f64::INFINITY,
            Token::Word(w) if w == "nan" => f64::NAN,
            _ => {
                self.at = start;
                return Ok(None);
            }
        };
        Ok(Some(sign * value))
    }

    fn weight_init(&mut self, ty: &Type) -> Result<WeightInit> {
        if !self.eat("=") {
            return Ok(WeightInit::External);
        }
        if self.eat_word("seed") {
            return Ok(WeightInit::Seed(self.magnitude()?));
        }
        Ok(WeightInit::Inline(Arc::new(self.literal(ty)?)))
    }

    fn literal(&mut self, ty: &Type) -> Result<Tensor> {
        let shape: Option<Vec<usize>> = ty.shape.dims().iter().map(Dim::as_usize).collect();
        let Some(shape) = shape else {
            crate::bail!(InvalidArgument, "{ty}: values need constant sizes");
        };
        let ty = TensorType::new(ty.dtype, shape);
        if ty.elems() > MAX_LITERAL_ELEMS {
            crate::bail!(InvalidArgument, "{ty}: more than {MAX_LITERAL_ELEMS} values in a text");
        }
        if self.eat_word("bytes") {
            let digits = self.text()?;
            let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
            let bytes: Option<Vec<u8>> = digits
                .as_bytes()
                .chunks(2)
                .map(|p| Some(digit(*p.first()?)? * 16 + digit(*p.get(1)?)?))
                .collect();
            return match bytes {
                Some(bytes) => Tensor::from_bytes(ty, bytes),
                None => crate::bail!(InvalidArgument, "bytes need an even number of hex digits"),
            };
        }
        self.expect("[")?;
        let (mut floats, mut ints) = (Vec::new(), Vec::new());
        while !self.eat("]") {
            match self.number()? {
                Some(v) => floats.push(v),
                None => {
                    let negative = self.peek() == Some(&Token::Punct("-"));
                    let v = self.int()?;
                    ints.push(v);
                    // The sign of a zero counts in floats.
                    floats.push(if negative && v == 0 { -0.0 } else { v as f64 });
                }
            }
            if !self.eat(",") {
                self.expect("]")?;
                break;
            }
        }
        if ty.dtype.is_float() || ints.len() != floats.len() {
            return Tensor::from_f64(ty, &floats);
        }
        Tensor::from_i64(ty, &ints)
    }
}

fn checked_weight(weight: usize) -> Result<()> {
    if weight > MAX_DIM_WEIGHT {
        crate::bail!(
            InvalidArgument,
            "a size is too long: multiplied out it has more than {MAX_DIM_WEIGHT} parts"
        );
    }
    Ok(())
}

fn checked_range(dim: Dim) -> Result<Dim> {
    if dim.is_saturated() {
        crate::bail!(InvalidArgument, "a number in a size is out of range");
    }
    Ok(dim)
}

fn negated(dim: &Dim) -> Result<Dim> {
    checked_range(Dim::constant(0) - dim.clone())
}

fn checked_sum(a: Dim, b: Dim) -> Result<Dim> {
    checked_weight(a.weight() + b.weight())?;
    checked_range(a + b)
}

fn checked_product(a: Dim, b: Dim) -> Result<Dim> {
    checked_weight(a.num_terms() * b.weight() + b.num_terms() * a.weight())?;
    checked_range(a * b)
}

fn checked_quotient(a: &Dim, by: &Dim) -> Result<Dim> {
    checked_weight(1 + a.weight() + by.weight())?;
    let quotient = a.floor_div(by);
    // A division prints as two pairs of parentheses, and what is printed parses again.
    if quotient.depth() > MAX_DIM_DEPTH / 2 {
        crate::bail!(InvalidArgument, "divisions in a size nest deeper than {}", MAX_DIM_DEPTH / 2);
    }
    checked_range(quotient)
}
