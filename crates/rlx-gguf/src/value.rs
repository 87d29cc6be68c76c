//! Metadata values: as they lie in the file, read in place.

use rlx_ir::bail;

use crate::cursor::{Cursor, Width};
use crate::{Error, Result};

/// How deep arrays may nest.
const MAX_DEPTH: u32 = 8;

macro_rules! value_types {
    ($($variant:ident($type:ty) = $id:literal, $name:literal;)*) => {
        /// The type of a metadata value.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ValueType {
            $(#[doc = concat!("`", $name, "`")] $variant,)*
        }

        impl ValueType {
            /// The id in the file.
            pub fn id(self) -> u32 {
                match self { $(Self::$variant => $id,)* }
            }

            /// The name that errors and listings use.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The type with this id. Errors: `InvalidFile` that names the id.
            pub fn from_id(id: u32) -> Result<Self> {
                match id {
                    $($id => Ok(Self::$variant),)*
                    _ => bail!(InvalidFile, "value type {id} is not known"),
                }
            }
        }

        /// A metadata value, borrowed from the file.
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Value<'a> {
            $(#[doc = concat!("`", $name, "`")] $variant($type),)*
        }

        impl Value<'_> {
            /// The type.
            pub fn value_type(&self) -> ValueType {
                match self { $(Self::$variant(_) => ValueType::$variant,)* }
            }
        }

        $(impl<'a> From<$type> for Value<'a> {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

value_types! {
    U8(u8) = 0, "u8";
    I8(i8) = 1, "i8";
    U16(u16) = 2, "u16";
    I16(i16) = 3, "i16";
    U32(u32) = 4, "u32";
    I32(i32) = 5, "i32";
    F32(f32) = 6, "f32";
    Bool(bool) = 7, "bool";
    Str(&'a str) = 8, "string";
    Array(Array<'a>) = 9, "array";
    U64(u64) = 10, "u64";
    I64(i64) = 11, "i64";
    F64(f64) = 12, "f64";
}

impl ValueType {
    /// The bytes of a scalar; `None` for strings and arrays.
    fn scalar_bytes(self) -> Option<usize> {
        match self {
            Self::U8 | Self::I8 | Self::Bool => Some(1),
            Self::U16 | Self::I16 => Some(2),
            Self::U32 | Self::I32 | Self::F32 => Some(4),
            Self::U64 | Self::I64 | Self::F64 => Some(8),
            Self::Str | Self::Array => None,
        }
    }

    /// The fewest bytes that a value takes.
    fn least_bytes(self, width: Width) -> usize {
        match self {
            Self::Str => width.bytes(),
            Self::Array => 4 + width.bytes(),
            _ => self.scalar_bytes().unwrap_or(1),
        }
    }
}

/// Passes over a value and checks it whole.
pub(crate) fn check(cursor: &mut Cursor, value_type: ValueType) -> Result<()> {
    check_at_depth(cursor, value_type, 0)
}

fn check_at_depth(cursor: &mut Cursor, value_type: ValueType, depth: u32) -> Result<()> {
    match value_type {
        ValueType::Str => {
            cursor.str("a string")?;
        }
        ValueType::Array => {
            if depth == MAX_DEPTH {
                bail!(InvalidFile, "arrays nest deeper than {MAX_DEPTH}");
            }
            let (item, len) = array_header(cursor)?;
            match item.scalar_bytes() {
                // No overflow: the count was bounded by the bytes that are left.
                Some(size) => check_scalars(item, cursor.take(len * size, "an array")?)?,
                None => {
                    for i in 0..len {
                        check_at_depth(cursor, item, depth + 1)
                            .map_err(|e| e.context(format_args!("item {i}")))?;
                    }
                }
            }
        }
        scalar => {
            let size = scalar.scalar_bytes().unwrap_or(0);
            check_scalars(scalar, cursor.take(size, "a value")?)?;
        }
    }
    Ok(())
}

fn check_scalars(value_type: ValueType, bytes: &[u8]) -> Result<()> {
    if value_type == ValueType::Bool
        && let Some(byte) = bytes.iter().find(|b| **b > 1)
    {
        bail!(InvalidFile, "a bool is {byte}, expected 0 or 1");
    }
    Ok(())
}

/// Reads the one value that `bytes` holds, without a walk over an array's items.
pub(crate) fn read_whole(bytes: &[u8], value_type: ValueType, width: Width) -> Result<Value<'_>> {
    let mut cursor = Cursor::new(bytes, width);
    if value_type != ValueType::Array {
        return read(&mut cursor, value_type);
    }
    let (item, len) = array_header(&mut cursor)?;
    let items = cursor.take(cursor.remaining(), "an array")?;
    Ok(Value::Array(Array { item, len, items, width }))
}

fn array_header(cursor: &mut Cursor) -> Result<(ValueType, usize)> {
    let item = ValueType::from_id(cursor.u32("the type of an array")?)?;
    let len = cursor.count(item.least_bytes(cursor.width), "the length of an array")?;
    Ok((item, len))
}

/// Reads a value. Errors: `InvalidFile` where the bytes do not hold one.
pub(crate) fn read<'a>(cursor: &mut Cursor<'a>, value_type: ValueType) -> Result<Value<'a>> {
    macro_rules! scalar {
        ($type:ty) => {{
            let mut bytes = [0; size_of::<$type>()];
            bytes.copy_from_slice(cursor.take(size_of::<$type>(), "a value")?);
            <$type>::from_le_bytes(bytes).into()
        }};
    }
    Ok(match value_type {
        ValueType::U8 => scalar!(u8),
        ValueType::I8 => scalar!(i8),
        ValueType::U16 => scalar!(u16),
        ValueType::I16 => scalar!(i16),
        ValueType::U32 => scalar!(u32),
        ValueType::I32 => scalar!(i32),
        ValueType::F32 => scalar!(f32),
        ValueType::U64 => scalar!(u64),
        ValueType::I64 => scalar!(i64),
        ValueType::F64 => scalar!(f64),
        ValueType::Bool => Value::Bool(cursor.take(1, "a value")? != [0]),
        ValueType::Str => Value::Str(cursor.str("a string")?),
        ValueType::Array => {
            let (item, len) = array_header(cursor)?;
            let items = cursor.clone();
            match item.scalar_bytes() {
                Some(size) => {
                    cursor.take(len * size, "an array")?;
                }
                None => {
                    for _ in 0..len {
                        check_at_depth(cursor, item, 1)?;
                    }
                }
            }
            Value::Array(Array { item, len, items: items.until(cursor), width: cursor.width })
        }
    })
}

/// An array of metadata values, read in place.
#[derive(Clone, Copy, PartialEq)]
pub struct Array<'a> {
    item: ValueType,
    len: usize,
    items: &'a [u8],
    width: Width,
}

impl<'a> Array<'a> {
    /// The type of the items.
    pub fn item_type(&self) -> ValueType {
        self.item
    }

    /// The number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> + use<'a> {
        let (item, mut cursor) = (self.item, Cursor::new(self.items, self.width));
        (0..self.len).map_while(move |_| read(&mut cursor, item).ok())
    }

    /// The items as strings; `None` where they are none.
    pub fn strings(&self) -> Option<Strings<'a>> {
        let cursor = Cursor::new(self.items, self.width);
        (self.item == ValueType::Str).then_some(Strings { cursor, left: self.len })
    }
}

impl std::fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}; {}]", self.item.name(), self.len)
    }
}

/// The strings of an array, in order, borrowed from the file.
#[derive(Clone, Debug)]
pub struct Strings<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Iterator for Strings<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.left = self.left.checked_sub(1)?;
        // Checked when the file was opened; should the file have changed since, the text is lost but not the count.
        Some(self.cursor.str("a string").unwrap_or_default())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Strings<'_> {}

impl std::fmt::Display for Value<'_> {
    /// Scalars and strings as they are; an array as its type, length and first items.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::U8(v) => v.fmt(f),
            Self::I8(v) => v.fmt(f),
            Self::U16(v) => v.fmt(f),
            Self::I16(v) => v.fmt(f),
            Self::U32(v) => v.fmt(f),
            Self::I32(v) => v.fmt(f),
            Self::U64(v) => v.fmt(f),
            Self::I64(v) => v.fmt(f),
            Self::F32(v) => v.fmt(f),
            Self::F64(v) => v.fmt(f),
            Self::Bool(v) => v.fmt(f),
            Self::Str(v) => f.write_str(v),
            Self::Array(array) => {
                write!(f, "{array:?} [")?;
                for (i, value) in array.iter().take(4).enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match value {
                        Value::Str(text) => write!(f, "{text:?}")?,
                        Value::Array(inner) => write!(f, "{inner:?}")?,
                        scalar => scalar.fmt(f)?,
                    }
                }
                f.write_str(if array.len > 4 { ", ...]" } else { "]" })
            }
        }
    }
}
