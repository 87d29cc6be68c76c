//! How the vectors of tokens become one vector.

use rlx_ir::bail;
use serde_json::Value;

use crate::{Error, Result};

/// One way to pool. Several that are asked for by flags are concatenated in the order of this list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PoolingMode {
    /// The first token's vector.
    Cls,
    /// The largest value of each component.
    Max,
    /// The mean over the tokens.
    Mean,
    /// The sum over the tokens divided by the square root of their number.
    MeanSqrtLen,
    /// The mean over the tokens, weighted by their position from 1.
    WeightedMean,
    /// The last token's vector.
    LastToken,
}

impl PoolingMode {
    const ALL: [(Self, &'static str, &'static str); 6] = [
        (Self::Cls, "cls", "pooling_mode_cls_token"),
        (Self::Max, "max", "pooling_mode_max_tokens"),
        (Self::Mean, "mean", "pooling_mode_mean_tokens"),
        (Self::MeanSqrtLen, "mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens"),
        (Self::WeightedMean, "weightedmean", "pooling_mode_weightedmean_tokens"),
        (Self::LastToken, "lasttoken", "pooling_mode_lasttoken"),
    ];

    /// The name that sentence-transformers gives it.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(mode, _, _)| *mode == self).map_or("", |(_, name, _)| name)
    }

    /// The mode of that name.
    pub(super) fn by_name(name: &str) -> Result<Self> {
        match Self::ALL.iter().find(|(_, known, _)| *known == name) {
            Some((mode, _, _)) => Ok(*mode),
            None => {
                let known: Vec<&str> = Self::ALL.iter().map(|(_, name, _)| *name).collect();
                bail!(
                    UnsupportedModel,
                    "pooling_mode: \"{name}\" is not known; known are {}",
                    known.join(", ")
                )
            }
        }
    }

    /// The number of GGUF's `pooling_type`; `None` where it has none.
    pub fn to_gguf(self) -> Option<u32> {
        match self {
            Self::Mean => Some(1),
            Self::Cls => Some(2),
            Self::LastToken => Some(3),
            Self::Max | Self::MeanSqrtLen | Self::WeightedMean => None,
        }
    }

    /// The mode with the number of GGUF's `pooling_type`. `None` for 0: no pooling.
    ///
    /// # Errors
    /// `UnsupportedModel` for 4 (rank: a score, no vector) and for numbers that GGUF does not define.
    pub fn from_gguf(pooling_type: u32) -> Result<Option<Self>> {
        match pooling_type {
            0 => Ok(None),
            1 => Ok(Some(Self::Mean)),
            2 => Ok(Some(Self::Cls)),
            3 => Ok(Some(Self::LastToken)),
            4 => bail!(
                UnsupportedModel,
                "pooling_type 4 (rank): the model scores pairs of texts and gives no vectors"
            ),
            n => bail!(
                UnsupportedModel,
                "pooling_type {n} is not known; known are 0 none, 1 mean, 2 cls, 3 last, 4 rank"
            ),
        }
    }

    /// The modes that a pooling module's `config.json` asks for: by `pooling_mode` (a name, several joined by `+`, or a
    /// list, in this order), else by the flags that are true. Empty where none is.
    pub(super) fn from_config(config: &Value) -> Result<Vec<Self>> {
        let modes: Vec<Self> = match config.get("pooling_mode") {
            Some(Value::String(names)) => {
                names.split('+').map(|n| Self::by_name(n.trim())).collect::<Result<_>>()?
            }
            Some(Value::Array(names)) => {
                let names = names.iter().map(|n| Self::by_name(n.as_str().unwrap_or(&n.to_string())));
                names.collect::<Result<Vec<_>>>()?
            }
            None | Some(Value::Null) => return Self::from_flags(config),
            Some(other) => bail!(InvalidFile, "pooling_mode: {other} is no name and no list of names"),
        };
        if modes.is_empty() {
            bail!(InvalidFile, "pooling_mode: an empty list is no pooling at all");
        }
        Ok(modes)
    }

    fn from_flags(config: &Value) -> Result<Vec<Self>> {
        let mut modes = Vec::new();
        for (mode, _, flag) in Self::ALL {
            match config.get(flag) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(true)) => modes.push(mode),
                Some(Value::Bool(false)) => {}
                Some(other) => bail!(InvalidFile, "{flag}: {other} is neither true nor false"),
            }
        }
        // A flag of a mode that came later than this list: its vectors would be missing.
        if let Some(object) = config.as_object()
            && let Some((flag, _)) = object.iter().find(|(key, on)| {
                key.starts_with("pooling_mode_")
                    && **on == Value::Bool(true)
                    && !Self::ALL.iter().any(|(_, _, flag)| flag == key)
            })
        {
            bail!(UnsupportedModel, "{flag}: this way to pool is not known");
        }
        Ok(modes)
    }
}

#[cfg(test)]
mod tests {
    use rlx_ir::ErrorKind;
    use serde_json::json;

    use super::*;

    fn modes(config: &Value) -> Result<Vec<PoolingMode>> {
        PoolingMode::from_config(config)
    }

    #[test]
    fn flags_are_optional_and_several_are_kept_in_order() {
        use PoolingMode::{Cls, LastToken, Max, Mean};
        assert_eq!(modes(&json!({})).unwrap(), []);
        assert_eq!(modes(&json!({ "pooling_mode_cls_token": true })).unwrap(), [Cls]);
        let three = json!({
            "pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true,
            "pooling_mode_cls_token": false,
        });
        assert_eq!(modes(&three).unwrap(), [Max, Mean, LastToken]);
        assert_eq!(modes(&json!({ "pooling_mode": "lasttoken" })).unwrap(), [LastToken]);
        assert_eq!(modes(&json!({ "pooling_mode": ["mean", "cls"] })).unwrap(), [Mean, Cls]);
        assert_eq!(modes(&json!({ "pooling_mode_mean_tokens": false })).unwrap(), []);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let e = modes(&json!({ "pooling_mode": "median" })).unwrap_err();
        assert!(e.kind() == ErrorKind::UnsupportedModel && e.to_string().contains("\"median\""), "{e}");
        let e = modes(&json!({ "pooling_mode_median": true })).unwrap_err();
        assert!(
            e.kind() == ErrorKind::UnsupportedModel && e.to_string().contains("pooling_mode_median"),
            "{e}"
        );
        assert_eq!(
            modes(&json!({ "pooling_mode_cls_token": 1 })).unwrap_err().kind(),
            ErrorKind::InvalidFile
        );
        assert_eq!(modes(&json!({ "pooling_mode": [] })).unwrap_err().kind(), ErrorKind::InvalidFile);
        assert_eq!(PoolingMode::from_gguf(4).unwrap_err().kind(), ErrorKind::UnsupportedModel);
        assert_eq!(PoolingMode::from_gguf(9).unwrap_err().kind(), ErrorKind::UnsupportedModel);
        assert_eq!(PoolingMode::from_gguf(0).unwrap(), None);
    }

    #[test]
    fn every_mode_has_a_name_that_leads_back() {
        for (mode, name, _) in PoolingMode::ALL {
            assert_eq!(mode.name(), name);
            assert_eq!(PoolingMode::by_name(name).unwrap(), mode);
        }
    }
}
