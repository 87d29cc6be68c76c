//! The template engine, set up as `transformers` sets up its own.

use std::time::SystemTime;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, UndefinedBehavior};
use serde_json::Value as Json;

use super::{guards, methods, strftime, tests_and_filters};

/// What one rendering may compute, in instructions and in 64 bytes of texts made: a template of a few hundred
/// instructions over a thousand messages takes a tenth of it, and one that would never end does so within a second.
const FUEL: u64 = 5_000_000;

/// An engine without templates.
pub(super) fn new() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Lenient);
    env.set_fuel(Some(FUEL));
    env.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    env.set_unknown_method_callback(methods::call);
    tests_and_filters::add_to(&mut env);
    guards::add_to(&mut env);
    env
}

/// How templates are written.
pub(super) fn syntax() -> Result<SyntaxConfig, Error> {
    SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()
}

/// Sets the time that templates are told.
pub(super) fn set_now(env: &mut Environment<'static>, now: Option<SystemTime>) {
    env.add_function("strftime_now", move |format: &str| {
        strftime::strftime(now.unwrap_or_else(SystemTime::now), format)
    });
}

/// A JSON value for a template; objects keep their order.
pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(b) => Value::from(*b),
        Json::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(n), _) => Value::from(n),
            (_, Some(n)) => Value::from(n),
            _ => Value::from(n.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => items.iter().map(value).collect(),
        Json::Object(fields) => {
            Value::from_pairs(fields.iter().map(|(name, field)| (name.as_str(), value(field))))
        }
    }
}
