//! What keeps values of a template within bounds: containers in containers, lists that double, texts of lists.
//!
//! The engine counts instructions and the bytes of texts, but lists are lazy there: sixty additions make one of more items than
//! memory holds, and values may nest deeper than the stack is. [`compile`](super::compile) calls these functions wherever a
//! template builds, adds, joins or keeps a value.

use minijinja::value::{DynObject, Kwargs, Value, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, filters, functions};

use super::python::str_of;

/// Names that no template can write.
pub(super) const BUILT: &str = "[]";
pub(super) const OPERAND: &str = "+";
pub(super) const TEXT: &str = "~";
pub(super) const SET: &str = "=";
pub(super) const SET_FIELD: &str = ".=";

/// The most items of a list that is added, repeated or kept; and of a value, those of its parts included.
const MAX_ITEMS: usize = 100_000;
/// How deep containers may lie in each other.
const MAX_DEPTH: usize = 100;

const NAMESPACE_WITHIN: &str = "a namespace is put into another value";

/// Adds the guards, and puts them around what the engine brings and builds values with.
pub(super) fn add_to(env: &mut Environment<'static>) {
    env.add_function(BUILT, measured);
    env.add_function(OPERAND, operand);
    env.add_function(TEXT, text);
    env.add_function(SET, kept);
    env.add_function(SET_FIELD, kept_in_namespace);
    env.add_filter("batch", batch);
    env.add_filter("slice", slice);
    env.add_filter("groupby", groupby);
    env.add_function("dict", dict);
    env.add_function("namespace", namespace);
    // Not in Python's engine; they would nest and repeat without a bound.
    env.remove_filter("chain");
    env.remove_filter("zip");
    env.remove_global("debug");
}

/// `value`, unless it is too large or too deep.
fn measured(state: &State, value: Value) -> Result<Value, Error> {
    let mut pending = vec![(value.clone(), 0)];
    let mut items = 0;
    while let Some((value, depth)) = pending.pop() {
        items += 1;
        if items > MAX_ITEMS {
            return Err(error(format!("a value of more than {MAX_ITEMS} items is built")));
        }
        let Some(object) = value.as_object() else { continue };
        if depth > 0 && is_namespace(object) {
            return Err(error(NAMESPACE_WITHIN.to_owned()));
        }
        if depth > MAX_DEPTH {
            return Err(error(format!("a value of more than {MAX_DEPTH} levels is built")));
        }
        let room = MAX_ITEMS - items.min(MAX_ITEMS) + 1;
        match value.kind() {
            ValueKind::Map => {
                let pairs = DynObject::try_iter_pairs(object).into_iter().flatten();
                pending.extend(pairs.take(room).map(|(_, value)| (value, depth + 1)));
            }
            ValueKind::Seq | ValueKind::Iterable => {
                pending.extend(value.try_iter()?.take(room).map(|item| (item, depth + 1)));
            }
            _ => {}
        }
        if pending.len() > 2 * MAX_ITEMS {
            return Err(error(format!("a value of more than {MAX_ITEMS} items is built")));
        }
    }
    state.consume_fuel(items as u64 / 8)?;
    Ok(value)
}

/// `value`, unless it is a list of too many items to be added or repeated.
fn operand(value: Value) -> Result<Value, Error> {
    if value.as_object().is_some() && value.len().is_some_and(|len| len > MAX_ITEMS) {
        return Err(error(format!("a list of more than {MAX_ITEMS} items is added or repeated")));
    }
    Ok(value)
}

/// `value`, or its text where it is a container or a number with a fraction.
fn text(value: Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::Map | ValueKind::Seq | ValueKind::Iterable | ValueKind::Number => {
            Ok(Value::from(str_of(&value)?))
        }
        _ => Ok(value),
    }
}

/// `value` for a variable. What is lazy is computed, so that nothing lazy is made of it over and over.
fn kept(state: &State, value: Value) -> Result<Value, Error> {
    let value = operand(value)?;
    if value.kind() != ValueKind::Iterable {
        return Ok(value);
    }
    let items: Vec<Value> = value.try_iter()?.take(MAX_ITEMS + 1).collect();
    state.consume_fuel(items.len() as u64 / 16)?;
    operand(Value::from(items))
}

/// [`kept`] for a field of a namespace, which could come to hold itself.
fn kept_in_namespace(state: &State, value: Value) -> Result<Value, Error> {
    match value.as_object() {
        Some(object) if is_namespace(object) => Err(error(NAMESPACE_WITHIN.to_owned())),
        _ => kept(state, value),
    }
}

/// The engine's own type, which it does not name to others.
fn is_namespace(object: &DynObject) -> bool {
    object.type_name().ends_with("::Namespace")
}

fn batch(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    measured(state, filters::batch(state, operand(value)?, room(count)?, fill)?)
}

fn slice(state: &State, value: Value, count: usize, fill: Option<Value>) -> Result<Value, Error> {
    measured(state, filters::slice(state, operand(value)?, room(count)?, fill)?)
}

fn groupby(state: &State, value: Value, attribute: Option<&str>, kwargs: Kwargs) -> Result<Value, Error> {
    measured(state, filters::groupby(operand(value)?, attribute, kwargs)?)
}

fn dict(state: &State, value: Option<Value>, kwargs: Kwargs) -> Result<Value, Error> {
    measured(state, functions::dict(value, kwargs)?)
}

fn namespace(state: &State, defaults: Option<ValueOrKwargs>) -> Result<Value, Error> {
    if let Some(defaults) = &defaults {
        measured(state, Value::clone(defaults))?;
    }
    functions::namespace(defaults)
}

fn room(count: usize) -> Result<usize, Error> {
    if count > MAX_ITEMS { Err(error(format!("parts of {count} items are asked for"))) } else { Ok(count) }
}

fn error(message: String) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}
