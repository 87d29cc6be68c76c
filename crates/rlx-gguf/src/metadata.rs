//! Metadata: an ordered map from keys to values that stay in the file.

use std::collections::HashMap;
use std::ops::Range;

use rlx_ir::bail;

use crate::cursor::Width;
use crate::value::{self, Strings, Value, ValueType};
use crate::{Error, Mapping, Result};

/// Where a value lies.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Box<str>,
    pub(crate) value_type: ValueType,
    pub(crate) range: Range<usize>,
}

/// Entries in order, each key once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    pub(crate) list: Vec<Entry>,
    index: HashMap<Box<str>, usize>,
}

impl Entries {
    pub(crate) fn position(&self, key: &str) -> Option<usize> {
        self.index.get(key).copied()
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.list.get(self.position(key)?)
    }

    /// False where the key is there already.
    pub(crate) fn insert(&mut self, key: &str, value_type: ValueType, range: Range<usize>) -> bool {
        if self.index.contains_key(key) {
            return false;
        }
        self.index.insert(key.into(), self.list.len());
        self.list.push(Entry { key: key.into(), value_type, range });
        true
    }

    pub(crate) fn remove(&mut self, key: &str) {
        if let Some(at) = self.index.remove(key) {
            self.list.remove(at);
            self.index.values_mut().filter(|i| **i > at).for_each(|i| *i -= 1);
        }
    }
}

/// The metadata of a file: keys in the file's order, values read in place.
///
/// The typed getters give `None` where the key is absent, and an `InvalidFile` error that names key, expected and found
/// type where it holds something else. Integers of any width convert where the value fits. The `require_` forms make an
/// absent key an error too.
#[derive(Clone, Debug)]
pub struct Metadata {
    bytes: Mapping,
    entries: Entries,
    width: Width,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $get:ident, $require:ident, $many:ident: $type:ty, $name:literal, $convert:expr;)*) => {
        impl Metadata {
            $(
                $(#[$doc])*
                pub fn $get(&self, key: &str) -> Result<Option<$type>> {
                    self.typed(key, $name, $convert)
                }

                #[doc = concat!("[`", stringify!($get), "`](Self::", stringify!($get), ") of a key that must be there.")]
                pub fn $require(&self, key: &str) -> Result<$type> {
                    self.$get(key)?.ok_or_else(|| missing(key, $name))
                }

                #[doc = concat!("An array whose items all are ", $name, ".")]
                pub fn $many(&self, key: &str) -> Result<Option<Vec<$type>>> {
                    self.typed_array(key, $name, $convert)
                }
            )*
        }
    };
}

getters! {
    /// An integer that fits into u32.
    u32, require_u32, u32s: u32, "u32", |v| integer(v)?.try_into().ok();
    /// An integer that fits into i32.
    i32, require_i32, i32s: i32, "i32", |v| integer(v)?.try_into().ok();
    /// An integer that fits into u64.
    u64, require_u64, u64s: u64, "u64", |v| integer(v)?.try_into().ok();
    /// An integer that fits into i64.
    i64, require_i64, i64s: i64, "i64", |v| integer(v)?.try_into().ok();
    /// An integer that fits into usize: a size or a count.
    usize, require_usize, usizes: usize, "unsigned integer", |v| integer(v)?.try_into().ok();
    /// A float; f64 is rounded to f32.
    f32, require_f32, f32s: f32, "f32", |v| match v {
        Value::F32(v) => Some(v),
        Value::F64(v) => Some(v as f32),
        _ => None,
    };
    /// A bool.
    bool, require_bool, bools: bool, "bool", |v| match v {
        Value::Bool(v) => Some(v),
        _ => None,
    };
}

fn integer(value: Value) -> Option<i128> {
    Some(match value {
        Value::U8(v) => v.into(),
        Value::I8(v) => v.into(),
        Value::U16(v) => v.into(),
        Value::I16(v) => v.into(),
        Value::U32(v) => v.into(),
        Value::I32(v) => v.into(),
        Value::U64(v) => v.into(),
        Value::I64(v) => v.into(),
        _ => return None,
    })
}

fn missing(key: &str, expected: &str) -> Error {
    Error::new(
        rlx_ir::ErrorKind::InvalidFile,
        format!("metadata key `{key}` is missing: expected a value of type {expected}"),
    )
}

fn mismatch(key: &str, expected: &str, found: Value) -> Error {
    let found = match found {
        Value::Str(_) => "a string".into(),
        Value::Array(array) => format!("an array {array:?}"),
        scalar => format!("{} {scalar}", scalar.value_type().name()),
    };
    Error::new(
        rlx_ir::ErrorKind::InvalidFile,
        format!("metadata key `{key}`: expected {expected}, found {found}"),
    )
}

impl Metadata {
    pub(crate) fn new(bytes: Mapping, entries: Entries, width: Width) -> Self {
        Self { bytes, entries, width }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.list.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.entries.list.is_empty()
    }

    /// The value of a key, of whatever type; `None` where it is absent.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.value(self.entries.get(key)?)
    }

    /// Whether the key is there.
    pub fn contains(&self, key: &str) -> bool {
        self.entries.get(key).is_some()
    }

    /// All keys and values in the file's order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        self.entries.list.iter().filter_map(|entry| Some((&*entry.key, self.value(entry)?)))
    }

    fn value(&self, entry: &Entry) -> Option<Value<'_>> {
        // Checked when the file was opened: `None` only where the file has changed since.
        value::read_whole(&self.bytes[entry.range.clone()], entry.value_type, self.width).ok()
    }

    fn typed<'a, T>(
        &'a self,
        key: &str,
        expected: &str,
        convert: impl Fn(Value<'a>) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.get(key) else { return Ok(None) };
        convert(value).map(Some).ok_or_else(|| mismatch(key, expected, value))
    }

    fn typed_array<T>(
        &self,
        key: &str,
        expected: &str,
        convert: impl Fn(Value) -> Option<T>,
    ) -> Result<Option<Vec<T>>> {
        let array = match self.get(key) {
            None => return Ok(None),
            Some(Value::Array(array)) => array,
            Some(other) => return Err(mismatch(key, &format!("an array of {expected}"), other)),
        };
        let mut items = Vec::with_capacity(array.len());
        for (i, value) in array.iter().enumerate() {
            match convert(value) {
                Some(item) => items.push(item),
                None => return Err(mismatch(&format!("{key}[{i}]"), expected, value)),
            }
        }
        if items.len() != array.len() {
            bail!(InvalidFile, "metadata key `{key}`: the file has changed since it was opened");
        }
        Ok(Some(items))
    }

    /// A string.
    pub fn str(&self, key: &str) -> Result<Option<&str>> {
        self.typed(key, "string", |v| match v {
            Value::Str(text) => Some(text),
            _ => None,
        })
    }

    /// [`str`](Self::str) of a key that must be there.
    pub fn require_str(&self, key: &str) -> Result<&str> {
        self.str(key)?.ok_or_else(|| missing(key, "string"))
    }

    /// An array of strings, borrowed from the file in order.
    pub fn strs(&self, key: &str) -> Result<Option<Strings<'_>>> {
        self.typed(key, "an array of strings", |v| match v {
            Value::Array(array) => array.strings(),
            _ => None,
        })
    }

    /// [`strs`](Self::strs) of a key that must be there.
    pub fn require_strs(&self, key: &str) -> Result<Strings<'_>> {
        self.strs(key)?.ok_or_else(|| missing(key, "array of strings"))
    }
}
