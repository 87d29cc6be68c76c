//! Printing graphs.

use std::fmt::{self, Write};

use super::lex::is_name;
use crate::attrs::{AttrValue, Attrs};
use crate::dtype::DType;
use crate::graph::{Def, Graph, Node, Value, WeightInit};
use crate::tensor::Tensor;

/// How a graph is printed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintOptions {
    /// Print the types of results after each node.
    pub types: bool,
}

/// The text form of `graph`.
pub fn print(graph: &Graph, options: PrintOptions) -> String {
    let mut out = String::new();
    // Writing to a String does not fail.
    let _ = write_graph(&mut out, graph, options, 0);
    out
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_graph(f, self, PrintOptions::default(), 0)
    }
}

impl fmt::Display for Attrs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_attrs(f, self, 0)
    }
}

fn write_graph(f: &mut dyn Write, graph: &Graph, options: PrintOptions, depth: usize) -> fmt::Result {
    let pad = "  ".repeat(depth);
    if is_name(&graph.name) {
        write!(f, "graph @{}", graph.name)?;
    } else {
        write!(f, "graph @{}", quoted(&graph.name))?;
    }
    write_symbols(f, graph)?;
    f.write_str(" {\n")?;
    for info in &graph.values {
        let name = &info.name;
        match &info.def {
            Def::Input(n) => writeln!(f, "{pad}  %{name} = input {} : {}", quoted(n), info.ty)?,
            Def::State(n) => writeln!(f, "{pad}  %{name} = state {} : {}", quoted(n), info.ty)?,
            Def::Weight { name: n, init } => {
                write!(f, "{pad}  %{name} = weight {} : {}", quoted(n), info.ty)?;
                match init {
                    WeightInit::External => {}
                    WeightInit::Seed(seed) => write!(f, " = seed {seed}")?,
                    WeightInit::Inline(t) => write!(f, " = {}", literal(t))?,
                }
                f.write_str("\n")?;
            }
            Def::Const(t) => writeln!(f, "{pad}  %{name} = const {} = {}", info.ty, literal(t))?,
            Def::Result { .. } => {}
        }
    }
    for node in &graph.nodes {
        write!(f, "{pad}  ")?;
        write_node(f, graph, node, options, depth)?;
        f.write_str("\n")?;
    }
    let list = |values: &[Value]| names(graph, values);
    if !graph.outputs.is_empty() {
        writeln!(f, "{pad}  return {}", list(&graph.outputs))?;
    }
    write!(f, "{pad}}}")?;
    if depth == 0 { f.write_str("\n") } else { Ok(()) }
}

fn write_symbols(f: &mut dyn Write, graph: &Graph) -> fmt::Result {
    let symbols = &graph.symbols;
    if symbols.names().is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    for name in symbols.names() {
        let own = symbols.bounds().iter().find(|b| b.of.as_symbol() == Some(name));
        parts.push(own.map_or_else(|| name.to_string(), |b| format!("{name} <= {}", b.max)));
    }
    let joint = symbols.bounds().iter().filter(|b| b.of.as_symbol().is_none());
    parts.extend(joint.map(|b| format!("{} <= {}", b.of, b.max)));
    write!(f, "({})", parts.join(", "))
}

fn names(graph: &Graph, values: &[Value]) -> String {
    let list: Vec<String> = values.iter().map(|&v| format!("%{}", graph.value(v).name)).collect();
    list.join(", ")
}

fn write_node(
    f: &mut dyn Write,
    graph: &Graph,
    node: &Node,
    options: PrintOptions,
    depth: usize,
) -> fmt::Result {
    write!(f, "{} = {}", names(graph, &node.results), node.op.name())?;
    if !node.operands.is_empty() {
        write!(f, " {}", names(graph, &node.operands))?;
    }
    let attrs = node.op.attrs();
    if !attrs.is_empty() {
        f.write_str(" ")?;
        write_attrs(f, &attrs, depth + 1)?;
    }
    if !node.scope.is_empty() {
        write!(f, " in {}", quoted(&node.scope))?;
    }
    if options.types {
        let types: Vec<String> = node.results.iter().map(|&v| graph.ty(v).to_string()).collect();
        write!(f, " : {}", types.join(", "))?;
    }
    Ok(())
}

fn write_attrs(f: &mut dyn Write, attrs: &Attrs, depth: usize) -> fmt::Result {
    f.write_str("{")?;
    for (i, (name, value)) in attrs.iter().enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        f.write_str(name)?;
        if *value != AttrValue::Flag {
            f.write_str(" = ")?;
            write_value(f, value, depth)?;
        }
    }
    f.write_str("}")
}

fn write_value(f: &mut dyn Write, value: &AttrValue, depth: usize) -> fmt::Result {
    match value {
        AttrValue::Flag => f.write_str("true"),
        AttrValue::Int(v) => write!(f, "{v}"),
        AttrValue::Float(v) => f.write_str(&float(*v)),
        AttrValue::Word(w) => f.write_str(w),
        AttrValue::Text(t) => f.write_str(&quoted(t)),
        AttrValue::Dim(d) => write!(f, "{d}"),
        AttrValue::List(l) => {
            f.write_str("[")?;
            for (i, v) in l.iter().enumerate() {
                if i > 0 {
                    f.write_str(", ")?;
                }
                write_value(f, v, depth)?;
            }
            f.write_str("]")
        }
        AttrValue::Graph(g) => write_graph(f, g, PrintOptions::default(), depth),
    }
}

/// Always with a point, an exponent, `inf` or `nan`, and exact.
fn float(v: f64) -> String {
    if v.is_nan() {
        return "nan".to_owned();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    format!("{v:?}")
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The values in brackets; block types, and floats whose bits a number cannot carry, as bytes. Tensors of one type other than
/// `bool` have one text only where their bytes are equal.
pub fn literal(t: &Tensor) -> String {
    let hex = || {
        let digits: String = t.bytes().iter().map(|b| format!("{b:02x}")).collect();
        format!("bytes \"{digits}\"")
    };
    let dtype = t.dtype();
    let list = match dtype {
        DType::Block(_) => return hex(),
        d if d.is_float() => match t.to_f64() {
            Ok(values) if values.iter().any(|v| v.is_nan()) => return hex(),
            Ok(values) if dtype == DType::F32 => {
                values.iter().map(|&v| short_float(f64::from(v as f32), &format!("{:?}", v as f32))).collect()
            }
            Ok(values) => values.iter().map(|&v| float(v)).collect::<Vec<_>>(),
            Err(_) => return hex(),
        },
        _ => match t.to_i64() {
            Ok(values) => values.iter().map(i64::to_string).collect(),
            Err(_) => return hex(),
        },
    };
    format!("[{}]", list.join(", "))
}

/// The shortest digits that give the same f32.
fn short_float(v: f64, shortest: &str) -> String {
    if v.is_finite() { shortest.to_owned() } else { float(v) }
}
