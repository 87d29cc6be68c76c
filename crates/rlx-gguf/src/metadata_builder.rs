//! Metadata that is built rather than read.

use crate::cursor::Width;
use crate::metadata::Entries;
use crate::value::{Array, Value, ValueType};
use crate::{Mapping, Metadata};

/// A number or bool that an array of metadata holds.
pub trait Number: Copy + Into<Value<'static>> + sealed::Sealed {
    /// The type in the file.
    const TYPE: ValueType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($type:ty => $variant:ident),*) => {
        $(impl sealed::Sealed for $type {}
        impl Number for $type {
            const TYPE: ValueType = ValueType::$variant;
        })*
    };
}

numbers!(u8 => U8, i8 => I8, u16 => U16, i16 => I16, u32 => U32, i32 => I32, u64 => U64, i64 => I64, f32 => F32,
    f64 => F64, bool => Bool);

/// Metadata in the making: for a file to write, or [`build`](Self::build) to read at once.
///
/// Keys keep the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub struct MetadataBuilder {
    bytes: Vec<u8>,
    entries: Entries,
}

impl MetadataBuilder {
    /// No keys.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key to a value, which may be borrowed from another file.
    pub fn set<'a>(&mut self, key: &str, value: impl Into<Value<'a>>) {
        let value = value.into();
        self.put(key, value.value_type(), |bytes| write_value(bytes, value));
    }

    /// Sets a key to an array of strings.
    pub fn set_strs<S: AsRef<str>>(&mut self, key: &str, items: impl IntoIterator<Item = S>) {
        self.put(key, ValueType::Array, |bytes| {
            bytes.extend(ValueType::Str.id().to_le_bytes());
            let len_at = bytes.len();
            bytes.extend([0; 8]);
            let mut len = 0u64;
            for item in items {
                write_str(bytes, item.as_ref());
                len += 1;
            }
            bytes[len_at..len_at + 8].copy_from_slice(&len.to_le_bytes());
        });
    }

    /// Sets a key to an array of numbers or bools.
    pub fn set_numbers<T: Number>(&mut self, key: &str, items: &[T]) {
        self.put(key, ValueType::Array, |bytes| {
            bytes.extend(T::TYPE.id().to_le_bytes());
            bytes.extend((items.len() as u64).to_le_bytes());
            items.iter().for_each(|&item| write_value(bytes, item.into()));
        });
    }

    /// Sets every key of `other`.
    pub fn extend(&mut self, other: &Metadata) {
        other.iter().for_each(|(key, value)| self.set(key, value));
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// The metadata, to be read.
    pub fn build(self) -> Metadata {
        Metadata::new(Mapping::from(self.bytes), self.entries, Width::Eight)
    }

    fn put(&mut self, key: &str, value_type: ValueType, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let range = start..self.bytes.len();
        match self.entries.position(key) {
            Some(at) => {
                let entry = &mut self.entries.list[at];
                (entry.value_type, entry.range) = (value_type, range);
            }
            None => {
                self.entries.insert(key, value_type, range);
            }
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.list.iter().map(|entry| &*entry.key)
    }

    /// The entries as a file holds them.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        for entry in &self.entries.list {
            write_str(out, &entry.key);
            out.extend(entry.value_type.id().to_le_bytes());
            out.extend(&self.bytes[entry.range.clone()]);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.list.len()
    }
}

pub(crate) fn write_str(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn write_value(out: &mut Vec<u8>, value: Value) {
    match value {
        Value::U8(v) => out.extend(v.to_le_bytes()),
        Value::I8(v) => out.extend(v.to_le_bytes()),
        Value::U16(v) => out.extend(v.to_le_bytes()),
        Value::I16(v) => out.extend(v.to_le_bytes()),
        Value::U32(v) => out.extend(v.to_le_bytes()),
        Value::I32(v) => out.extend(v.to_le_bytes()),
        Value::F32(v) => out.extend(v.to_le_bytes()),
        Value::U64(v) => out.extend(v.to_le_bytes()),
        Value::I64(v) => out.extend(v.to_le_bytes()),
        Value::F64(v) => out.extend(v.to_le_bytes()),
        Value::Bool(v) => out.push(v.into()),
        Value::Str(v) => write_str(out, v),
        Value::Array(array) => write_array(out, array),
    }
}

fn write_array(out: &mut Vec<u8>, array: Array) {
    out.extend(array.item_type().id().to_le_bytes());
    out.extend((array.len() as u64).to_le_bytes());
    array.iter().for_each(|item| write_value(out, item));
}
