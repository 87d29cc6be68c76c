//! What can go wrong, and the error type that every crate of RLX derives from one macro.
//!
//! [`ErrorKind`] is shared by all crates, so that a caller can decide without reading text, and so that one
//! table maps kinds to exit codes. Each crate has an opaque `Error` of its own, made by
//! [`define_error!`](crate::define_error); errors of lower crates convert upward with `?` and keep their kind.

/// The kinds of failure, shared by all crates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller asked for something that makes no sense: a wrong shape, option value or operand.
    InvalidArgument,
    /// A file, model, tensor or name does not exist.
    NotFound,
    /// A file is damaged, or is not what its name says.
    InvalidFile,
    /// The file is sound, but holds an architecture or block type that RLX does not know.
    UnsupportedModel,
    /// The device cannot run this.
    UnsupportedOnDevice,
    /// The device or its driver failed.
    Device,
    /// Reading or writing failed.
    Io,
    /// A result holds NaN or an infinity.
    NonFinite,
    /// The text and its continuation do not fit into the context.
    ContextExceeded,
    /// The caller asked to stop.
    Cancelled,
    /// A rule of RLX itself is broken: please report it.
    Bug,
}

impl ErrorKind {
    /// The exit code of a command that ends with this kind of error.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::InvalidArgument => 2,
            Self::NotFound | Self::InvalidFile | Self::UnsupportedModel => 3,
            Self::UnsupportedOnDevice | Self::Device => 4,
            Self::Io | Self::NonFinite | Self::ContextExceeded | Self::Cancelled | Self::Bug => 1,
        }
    }
}

/// Defines the opaque error type of a crate and its `Result` alias.
///
/// `define_error!(Error, from: [lower::Error, other::Error])` makes `Error` with `new`, `kind`, `message` and
/// `context`, and a `From` for each listed lower error that keeps kind and message.
#[macro_export]
macro_rules! define_error {
    ($name:ident, from: [$($lower:ty),* $(,)?]) => {
        /// The error of this crate: a [`kind`]($name::kind) for programs and a message for people.
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name(Box<($crate::ErrorKind, String)>);

        #[allow(dead_code)]
        impl $name {
            /// An error of `kind` whose message says what was wrong, where, and what to do.
            pub fn new(kind: $crate::ErrorKind, message: impl Into<String>) -> Self {
                Self(Box::new((kind, message.into())))
            }

            /// What kind of failure this is.
            pub fn kind(&self) -> $crate::ErrorKind {
                self.0.0
            }

            /// The message without its kind.
            pub fn message(&self) -> &str {
                &self.0.1
            }

            /// The same error with `place` (a file, a node, a pass) put before its message, if that does not begin with it.
            #[must_use]
            pub fn context(mut self, place: impl std::fmt::Display) -> Self {
                let start = format!("{place}: ");
                if !self.0.1.starts_with(&start) {
                    self.0.1.insert_str(0, &start);
                }
                self
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0.1)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{:?}: {}", self.0.0, self.0.1)
            }
        }

        impl std::error::Error for $name {}

        $(impl From<$lower> for $name {
            fn from(e: $lower) -> Self {
                Self::new(e.kind(), e.message())
            }
        })*

        /// The result type of this crate.
        #[allow(dead_code)]
        pub type Result<T, E = $name> = std::result::Result<T, E>;
    };
}

define_error!(Error, from: []);

/// Returns early with an error of the named kind: `bail!(InvalidFile, "{path}: ...")`.
///
/// Uses the `Error` that is in scope where it is called.
#[macro_export]
macro_rules! bail {
    ($kind:ident, $($arg:tt)*) => {
        return Err(Error::new($crate::ErrorKind::$kind, format!($($arg)*)))
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    mod outer {
        define_error!(Error, from: [crate::Error]);
    }

    #[test]
    fn context_is_put_in_front_and_the_kind_survives_conversion() {
        let e = Error::new(ErrorKind::InvalidFile, "bad magic").context("a.gguf");
        assert_eq!(e.message(), "a.gguf: bad magic");
        let e = e.context("a.gguf");
        let outer: outer::Error = e.into();
        assert_eq!(outer.kind(), ErrorKind::InvalidFile);
        assert_eq!(outer.message(), "a.gguf: bad magic");
        assert_eq!(outer.to_string(), outer.message());
        assert_eq!(outer.kind().exit_code(), 3);
    }
}
