//! The registry of settings: name, type, default and doc of every public `RLX_*` variable, as data.
//!
//! A value given by the program comes before the environment, and the environment before the default. The
//! environment is read once, at the edge, by `rlx-runtime`; from there a [`Settings`] value is passed down.

use crate::error::{Error, Result};

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingType {
    /// An integer that is not negative.
    Count,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The environment variable.
    pub name: &'static str,
    /// The type of its value.
    pub ty: SettingType,
    /// The value where nobody gives one, as text.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// Every setting.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "RLX_DEVICE",
        ty: SettingType::Choice(&["auto", "cpu", "metal", "mlx", "cuda"]),
        default: "auto",
        doc: "the device that models run on",
    },
    Setting {
        name: "RLX_THREADS",
        ty: SettingType::Count,
        default: "0",
        doc: "CPU threads; 0 takes the processors that this process may use",
    },
    Setting {
        name: "RLX_STRATEGY",
        ty: SettingType::Choice(&["auto", "thunks", "captured", "vendor"]),
        default: "auto",
        doc: "how a plan is executed",
    },
    Setting {
        name: "RLX_VERBOSE",
        ty: SettingType::Count,
        default: "0",
        doc: "log level on stderr: 0 warnings, 1 info, 2 debug, 3 trace",
    },
];

/// Where a setting's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody gave one.
    Default,
    /// The environment variable.
    Environment,
    /// The program or its command line.
    Program,
}

/// The value of every setting, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings(Vec<(String, Origin)>);

impl Settings {
    /// Every setting at its default.
    pub fn defaults() -> Self {
        Self(SETTINGS.iter().map(|s| (s.default.to_owned(), Origin::Default)).collect())
    }

    /// Defaults, then what `lookup` says of each variable.
    ///
    /// # Errors
    /// `InvalidArgument` naming the variable whose value does not fit its type.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut settings = Self::defaults();
        for s in SETTINGS {
            if let Some(value) = lookup(s.name) {
                settings.set(s.name, &value, Origin::Environment)?;
            }
        }
        Ok(settings)
    }

    /// Sets one value.
    ///
    /// # Errors
    /// `InvalidArgument` where the name is unknown or the value does not fit its type.
    pub fn set(&mut self, name: &str, value: &str, origin: Origin) -> Result<()> {
        let Some(at) = SETTINGS.iter().position(|s| s.name == name) else {
            crate::bail!(InvalidArgument, "unknown setting {name}; `rlx settings` lists them");
        };
        check(&SETTINGS[at], value)?;
        self.0[at] = (value.trim().to_owned(), origin);
        Ok(())
    }

    /// The value of `name` as text and where it came from; `None` for an unknown name.
    pub fn get(&self, name: &str) -> Option<(&str, Origin)> {
        let at = SETTINGS.iter().position(|s| s.name == name)?;
        Some((self.0[at].0.as_str(), self.0[at].1))
    }

    /// The value of `name` as text; empty for an unknown name.
    pub fn text(&self, name: &str) -> &str {
        self.get(name).map_or("", |(v, _)| v)
    }

    /// The value of `name` as a number; 0 for an unknown name.
    pub fn count(&self, name: &str) -> usize {
        self.text(name).parse().unwrap_or(0)
    }

    /// Every setting with its value and origin.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Setting, &str, Origin)> {
        SETTINGS.iter().zip(&self.0).map(|(s, (v, o))| (s, v.as_str(), *o))
    }
}

fn check(setting: &Setting, value: &str) -> Result<()> {
    let value = value.trim();
    let (fits, expected) = match setting.ty {
        SettingType::Count => (value.parse::<u32>().is_ok(), "an integer that is not negative".to_owned()),
        SettingType::Choice(words) => (words.contains(&value), format!("one of {}", words.join(", "))),
    };
    if fits {
        return Ok(());
    }
    crate::bail!(InvalidArgument, "{}: expected {expected}, got {value:?}", setting.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_fits_its_own_type() {
        for s in SETTINGS {
            check(s, s.default).unwrap();
        }
        assert!(SETTINGS.len() < 25);
    }

    /// So a variable that is not UTF-8 can be read with a replacement for what is not, and is refused.
    #[test]
    fn no_setting_takes_a_replacement_character() {
        for s in SETTINGS {
            let e = check(s, "\u{fffd}").unwrap_err();
            assert!(e.kind() == crate::ErrorKind::InvalidArgument && e.message().contains(s.name), "{e}");
        }
    }

    #[test]
    fn the_program_comes_before_the_environment() {
        let mut s = Settings::from_lookup(|n| (n == "RLX_THREADS").then(|| "3".to_owned())).unwrap();
        assert_eq!((s.count("RLX_THREADS"), s.get("RLX_THREADS").unwrap().1), (3, Origin::Environment));
        s.set("RLX_THREADS", "5", Origin::Program).unwrap();
        assert_eq!(s.count("RLX_THREADS"), 5);
        let e = Settings::from_lookup(|n| (n == "RLX_DEVICE").then(|| "gpu".to_owned())).unwrap_err();
        assert!(e.message().contains("RLX_DEVICE"), "{e}");
    }
}
