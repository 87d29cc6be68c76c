//! Where the cache and the hub are, and how the hub is asked: the variables of the Python client.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ENDPOINT: &str = "https://huggingface.co";
/// Of the Python client, in seconds.
const TIMEOUT: u64 = 10;

/// A variable of the Python client that RLX honours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it holds: `path`, `url`, `0|1`, `seconds` or [`SECRET`](Self::SECRET).
    pub ty: &'static str,
    /// What is taken where it is not set.
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
}

impl Variable {
    /// The type of a value that must not be shown.
    pub const SECRET: &str = "secret";
}

const fn variable(
    name: &'static str,
    ty: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Variable {
    Variable { name, ty, default, doc }
}

/// The variables that say where the cache and the hub are.
pub const VARIABLES: &[Variable] = &[
    variable("HF_HUB_CACHE", "path", "$HF_HOME/hub", "the cache of models from the Hugging Face hub"),
    variable(
        "HF_HOME",
        "path",
        "~/.cache/huggingface",
        "what the Hugging Face tools keep, the cache among it",
    ),
    variable("HF_HUB_OFFLINE", "0|1", "0", "1 asks the hub nothing: models come from the cache alone"),
    variable("HF_ENDPOINT", "url", ENDPOINT, "the hub, or a mirror of it"),
    variable("HF_TOKEN", Variable::SECRET, "", "the token for models that are private or gated"),
    variable("HF_TOKEN_PATH", "path", "$HF_HOME/token", "the file with the token, where HF_TOKEN is not set"),
    variable("HF_HUB_DISABLE_IMPLICIT_TOKEN", "0|1", "0", "1 sends no token"),
    variable("HF_HUB_ETAG_TIMEOUT", "seconds", "10", "how long the hub may take to answer a question"),
    variable("HF_HUB_DOWNLOAD_TIMEOUT", "seconds", "10", "how long a download may stand still"),
    variable("SSL_CERT_FILE", "path", "", "certificates to trust, instead of those of Mozilla"),
];

/// Words for on; all others are off, as for the Python client.
const ON: [&str; 4] = ["1", "on", "yes", "true"];
const OFF: [&str; 4] = ["0", "off", "no", "false"];

impl Variable {
    /// What is in force where the variable holds `text`: `None` for a text that stands for nothing.
    fn read(&self, text: &str) -> Option<String> {
        let word = text.trim().to_ascii_lowercase();
        match self.ty {
            "0|1" if ON.contains(&word.as_str()) => Some("1".into()),
            "0|1" if OFF.contains(&word.as_str()) => Some("0".into()),
            "0|1" => None,
            "seconds" => word.parse().ok().filter(|n: &u64| *n > 0).map(|n| n.to_string()),
            _ => Some(text.to_owned()),
        }
    }

    /// What is in force where the variable is set to `text`.
    pub fn in_force(&self, text: &str) -> String {
        self.read(text).unwrap_or_else(|| self.default.to_owned())
    }
}

/// What is wrong with variables that `lookup` gives and that stand for nothing, one line each.
pub fn unclear_variables(lookup: impl Fn(&str) -> Option<OsString>) -> Vec<String> {
    let line = |v: &Variable| {
        let text = lookup(v.name).filter(|text| !text.is_empty())?.to_string_lossy().into_owned();
        let expected = if v.ty == "seconds" { "a whole number of seconds" } else { "1 or 0" };
        let in_force = v.in_force(&text);
        v.read(&text)
            .is_none()
            .then(|| format!("{} is {text:?}: expected {expected}; {in_force} is taken", v.name))
    };
    VARIABLES.iter().filter_map(line).collect()
}

/// A token of the hub. It is sent to the hub alone, and never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// The token in `text`, without what stands around it; `None` where nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    #[cfg(feature = "hub")]
    pub(super) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Where the cache and the hub are, and how the hub is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubOptions {
    /// The folder of the cache; `None` where nothing says where it is.
    pub cache: Option<PathBuf>,
    /// The hub, without a slash at its end.
    pub endpoint: String,
    /// The token.
    pub token: Option<Token>,
    /// The file with the token, which is read where there is no `token` and the hub is asked.
    pub token_file: Option<PathBuf>,
    /// Whether the hub must not be asked.
    pub offline: bool,
    /// How long the hub may take to answer a question.
    pub answer_timeout: Duration,
    /// How long a download may stand still.
    pub read_timeout: Duration,
    /// How long to wait before the second attempt; each later one waits twice as long.
    pub retry_wait: Duration,
    /// Certificates to trust (PEM) instead of those of Mozilla.
    pub certificates: Option<PathBuf>,
}

impl HubOptions {
    /// What the environment says; see [`VARIABLES`].
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// What the variables say that `lookup` gives.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let raw = |name: &str| lookup(name).filter(|v| !v.is_empty());
        let text = |name: &str| raw(name).map(|v| v.to_string_lossy().trim().to_owned());
        let home = raw("HOME").or_else(|| raw("USERPROFILE")).map(PathBuf::from);
        let path = |name: &str| raw(name).map(|v| expand(v.into(), home.as_deref()));
        let is_on = |name: &str| text(name).is_some_and(|v| ON.contains(&v.to_ascii_lowercase().as_str()));
        let seconds = |name: &str| {
            let asked = text(name).and_then(|v| v.parse().ok()).filter(|n| *n > 0);
            Duration::from_secs(asked.unwrap_or(TIMEOUT))
        };
        let caches = || path("XDG_CACHE_HOME").or_else(|| home.as_ref().map(|h| h.join(".cache")));
        let hf_home = path("HF_HOME").or_else(|| caches().map(|c| c.join("huggingface")));
        let sends_token = !is_on("HF_HUB_DISABLE_IMPLICIT_TOKEN");
        let token = text("HF_TOKEN").or_else(|| text("HUGGING_FACE_HUB_TOKEN"));
        let token_file = path("HF_TOKEN_PATH").or_else(|| hf_home.as_ref().map(|h| h.join("token")));
        Self {
            cache: path("HF_HUB_CACHE")
                .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
                .or_else(|| hf_home.map(|h| h.join("hub"))),
            endpoint: text("HF_ENDPOINT").map_or(ENDPOINT.to_owned(), |e| e.trim_end_matches('/').to_owned()),
            token: token.as_deref().and_then(Token::new).filter(|_| sends_token),
            token_file: token_file.filter(|_| sends_token),
            offline: is_on("HF_HUB_OFFLINE") || is_on("TRANSFORMERS_OFFLINE"),
            answer_timeout: seconds("HF_HUB_ETAG_TIMEOUT"),
            read_timeout: seconds("HF_HUB_DOWNLOAD_TIMEOUT"),
            retry_wait: Duration::from_millis(500),
            certificates: path("SSL_CERT_FILE"),
        }
    }
}

/// The path with `~` at its start replaced: variables that no shell has seen hold it.
fn expand(path: PathBuf, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> HubOptions {
        HubOptions::from_lookup(|n| set.iter().find(|s| s.0 == n).map(|s| s.1.into()))
    }

    #[test]
    fn the_cache_is_where_the_variables_say() {
        let cache = |set: &[(&str, &str)]| with(set).cache;
        assert_eq!(cache(&[("HF_HUB_CACHE", "/c"), ("HF_HOME", "/h")]), Some("/c".into()));
        assert_eq!(cache(&[("HUGGINGFACE_HUB_CACHE", "/c"), ("HF_HOME", "/h")]), Some("/c".into()));
        assert_eq!(cache(&[("HF_HOME", "/h"), ("HOME", "/u")]), Some("/h/hub".into()));
        assert_eq!(cache(&[("HF_HOME", "~/h"), ("HOME", "/u")]), Some("/u/h/hub".into()));
        assert_eq!(
            cache(&[("XDG_CACHE_HOME", "/x"), ("HF_HOME", ""), ("HOME", "/u")]),
            Some("/x/huggingface/hub".into())
        );
        assert_eq!(cache(&[("HOME", "/u")]), Some("/u/.cache/huggingface/hub".into()));
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn words_that_mean_yes_are_those_of_the_python_client() {
        for yes in ["1", "ON", "Yes", "true"] {
            assert!(with(&[("HF_HUB_OFFLINE", yes)]).offline, "{yes}");
        }
        for no in ["0", "", "off", "2"] {
            assert!(!with(&[("HF_HUB_OFFLINE", no)]).offline, "{no}");
        }
        assert!(with(&[("TRANSFORMERS_OFFLINE", "1")]).offline);
    }

    #[test]
    fn a_variable_that_stands_for_nothing_is_told() {
        let unclear = |name: &str, text: &str| unclear_variables(|n| (n == name).then(|| text.into()));
        for (name, text) in
            [("HF_HUB_OFFLINE", "maybe"), ("HF_HUB_ETAG_TIMEOUT", "abc"), ("HF_HUB_DOWNLOAD_TIMEOUT", "0")]
        {
            let lines = unclear(name, text);
            assert!(lines.len() == 1 && lines[0].contains(name) && lines[0].contains(text), "{lines:?}");
            let variable = VARIABLES.iter().find(|v| v.name == name).unwrap();
            assert_eq!(variable.in_force(text), variable.default);
        }
        for (name, text) in [("HF_HUB_OFFLINE", "No"), ("HF_HUB_ETAG_TIMEOUT", "3"), ("HF_HUB_OFFLINE", "")] {
            assert_eq!(unclear(name, text), [""; 0]);
        }
    }

    #[test]
    fn a_token_is_taken_from_the_variable_or_the_file_and_never_shown() {
        let options = with(&[("HF_TOKEN", " hf_secret\n"), ("HF_HOME", "/h")]);
        assert_eq!(
            (&options.token, &options.token_file),
            (&Token::new("hf_secret"), &Some("/h/token".into()))
        );
        assert!(!format!("{options:?}").contains("hf_secret"));
        assert_eq!(with(&[("HF_TOKEN_PATH", "/t"), ("HF_HOME", "/h")]).token_file, Some("/t".into()));
        let without = with(&[("HF_TOKEN", "a"), ("HF_HOME", "/h"), ("HF_HUB_DISABLE_IMPLICIT_TOKEN", "1")]);
        assert_eq!((without.token, without.token_file), (None, None));
        assert_eq!(Token::new(" \n"), None);
    }

    #[test]
    fn an_endpoint_has_no_slash_at_its_end() {
        assert_eq!(with(&[]).endpoint, "https://huggingface.co");
        assert_eq!(with(&[("HF_ENDPOINT", "http://localhost:80/hub/")]).endpoint, "http://localhost:80/hub");
        assert_eq!(with(&[("HF_HUB_DOWNLOAD_TIMEOUT", "3")]).read_timeout, Duration::from_secs(3));
        assert_eq!(with(&[("HF_HUB_DOWNLOAD_TIMEOUT", "0")]).read_timeout, Duration::from_secs(10));
    }
}
