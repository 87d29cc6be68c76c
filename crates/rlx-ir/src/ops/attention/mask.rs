//! Which keys a query sees: one enum for every attention op, so that the rule has one owner.

use crate::attrs::{AttrReader, Attrs};
use crate::builder::{Builder, Value};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Which keys of its sequence a query sees, by position within the sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mask {
    /// All.
    #[default]
    None,
    /// Those up to its own position.
    Causal,
    /// Its own position and the `window - 1` before it: `i - window < j <= i`.
    SlidingWindow {
        /// The number of keys, at least 1.
        window: usize,
    },
    /// Those at most `window` positions away on either side: `|i - j| <= window`.
    Local {
        /// The distance.
        window: usize,
    },
    /// Those where an operand is true.
    Custom,
    /// All, with an operand added to their scores.
    Bias,
}

impl Mask {
    /// The word in the text form.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Causal => "causal",
            Self::SlidingWindow { .. } => "sliding_window",
            Self::Local { .. } => "local",
            Self::Custom => "custom",
            Self::Bias => "bias",
        }
    }

    /// The window, for the kinds that have one.
    pub fn window(self) -> Option<usize> {
        match self {
            Self::SlidingWindow { window } | Self::Local { window } => Some(window),
            _ => None,
        }
    }

    /// Whether attention has an operand for the mask.
    pub fn has_operand(self) -> bool {
        matches!(self, Self::Custom | Self::Bias)
    }

    /// Whether the query at position `i` sees the key at position `j` of its sequence, as far as positions say.
    pub fn sees(self, i: i64, j: i64) -> bool {
        match self {
            Self::None | Self::Custom | Self::Bias => true,
            Self::Causal => j <= i,
            Self::SlidingWindow { window } => j <= i && i - j < as_i64(window),
            Self::Local { window } => (i - j).abs() <= as_i64(window),
        }
    }

    /// Adds the attributes `mask` and `window`.
    pub(super) fn write(self, attrs: Attrs) -> Attrs {
        let attrs = attrs.word("mask", self.name());
        match self.window() {
            Some(window) => attrs.int("window", as_i64(window)),
            None => attrs,
        }
    }

    /// Reads the attributes `mask` and `window`.
    pub(super) fn read(reader: &mut AttrReader<'_>) -> Result<Self> {
        let word = reader.word("mask")?;
        Ok(match word.as_str() {
            "none" => Self::None,
            "causal" => Self::Causal,
            "sliding_window" => Self::SlidingWindow { window: reader.usize("window")? },
            "local" => Self::Local { window: reader.usize("window")? },
            "custom" => Self::Custom,
            "bias" => Self::Bias,
            _ => crate::bail!(
                InvalidArgument,
                "{}: attribute mask must be one of none, causal, sliding_window, local, custom, bias, got {word}",
                reader.op()
            ),
        })
    }

    /// Checks the window, which positions in i32 must be able to hold.
    pub(super) fn check(self) -> Result<()> {
        let least = usize::from(matches!(self, Self::SlidingWindow { .. }));
        match self.window() {
            Some(w) if w < least || i32::try_from(w).is_err() => {
                crate::bail!(InvalidArgument, "window must be {least} to {}, got {w}", i32::MAX)
            }
            _ => Ok(()),
        }
    }

    /// Emits [`sees`](Self::sees) for i32 positions that broadcast; `None` where it is always true.
    pub(super) fn emit(self, b: &mut Builder, i: Value, j: Value) -> Result<Option<Value>> {
        let window = self.window().map(|w| b.scalar(DType::I32, w as f64)).transpose()?;
        Ok(match (self, window) {
            (Self::Causal, _) => Some(b.le(j, i)?),
            (Self::SlidingWindow { .. }, Some(window)) => {
                let (before, distance) = (b.le(j, i)?, b.sub(i, j)?);
                let near = b.lt(distance, window)?;
                Some(b.and(before, near)?)
            }
            (Self::Local { .. }, Some(window)) => {
                let distance = b.sub(i, j)?;
                let distance = b.abs(distance)?;
                Some(b.le(distance, window)?)
            }
            _ => None,
        })
    }
}

fn as_i64(window: usize) -> i64 {
    i64::try_from(window).unwrap_or(i64::MAX)
}
