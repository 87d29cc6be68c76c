//! Addresses: origins, redirects, percent-encoding.

use std::fmt;

/// An `http` or `https` address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url {
    text: String,
    /// Where host and port start and end in `text`.
    authority: std::ops::Range<usize>,
}

impl Url {
    /// The address in `text`; `None` for another scheme, for a missing host, and for a user or a password in it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text: String = text.chars().take_while(|c| *c != '#').collect();
        if !text.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        let (scheme, rest) = text.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let authority = &rest[..rest.find(['/', '?']).unwrap_or(rest.len())];
        let sound = matches!(scheme.as_str(), "http" | "https")
            && !authority.is_empty()
            && !authority.starts_with(':')
            && !authority.contains(['@', '\\']);
        let start = scheme.len() + 3;
        sound.then(|| Self { authority: start..start + authority.len(), text: format!("{scheme}://{rest}") })
    }

    /// The whole address.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// Host and port, for messages.
    pub(super) fn host(&self) -> &str {
        &self.text[self.authority.clone()]
    }

    /// Whether what is sent is encrypted.
    pub(super) fn is_secure(&self) -> bool {
        self.text.starts_with("https:")
    }

    /// The address of `path` below this one.
    pub(super) fn join(&self, path: &str) -> Self {
        let text = format!("{}/{path}", self.text.trim_end_matches('/'));
        Self { text, authority: self.authority.clone() }
    }

    /// Where a redirect from here leads; `None` for an address that cannot be used.
    pub(super) fn redirect(&self, location: &str) -> Option<Self> {
        let location = location.trim();
        let origin = &self.text[..self.authority.end];
        if let Some(rest) = location.strip_prefix("//") {
            return Self::parse(&format!("{}//{rest}", &self.text[..self.authority.start - 2]));
        }
        if location.starts_with('/') {
            return Self::parse(&format!("{origin}{location}"));
        }
        if location.split(['/', '?']).next().is_some_and(|front| front.contains(':')) {
            return Self::parse(location);
        }
        let path = self.text[self.authority.end..].split('?').next().unwrap_or_default();
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        Self::parse(&format!("{origin}{folder}{location}"))
    }

    /// Whether it is at the same server as `other`: host and port, and no weaker scheme.
    pub(super) fn is_of(&self, other: &Self) -> bool {
        let (own, others) = (self.origin(), other.origin());
        let upgraded = self.is_secure() && !other.is_secure() && own.1 == 443 && others.1 == 80;
        own.0 == others.0 && (own.1 == others.1 && self.is_secure() == other.is_secure() || upgraded)
    }

    fn origin(&self) -> (String, u16) {
        let host = self.host().to_ascii_lowercase();
        let default = if self.is_secure() { 443 } else { 80 };
        let split = host.rsplit_once(':').and_then(|(h, p)| Some((h.to_owned(), p.parse().ok()?)));
        // The last colon of `[::1]` starts no port.
        match split {
            Some((name, port)) if !name.starts_with('[') || name.ends_with(']') => (name, port),
            _ => (host, default),
        }
    }
}

impl fmt::Display for Url {
    /// Without the query, which may hold a signature.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.split('?').next().unwrap_or_default())
    }
}

/// A path with all percent-encoded but letters, digits, `-_.~` and the slashes.
pub(super) fn encode_path(path: &str) -> String {
    encode(path, b"-_.~/")
}

/// A part of a path, whose slashes are encoded too.
pub(super) fn encode_part(part: &str) -> String {
    encode(part, b"-_.~")
}

fn encode(text: &str, plain: &[u8]) -> String {
    let one = |b: u8| match b {
        b if b.is_ascii_alphanumeric() || plain.contains(&b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn addresses_that_cannot_be_used_are_refused() {
        for text in [
            "",
            "huggingface.co",
            "ftp://a",
            "https://",
            "https:///a",
            "https://u:p@a/b",
            "http://a b",
            "http://:80",
        ] {
            assert_eq!(Url::parse(text), None, "{text}");
        }
        assert_eq!(url("HTTPS://a/b#c").as_str(), "https://a/b");
    }

    #[test]
    fn redirects_lead_where_they_say() {
        let from = url("https://a:1/x/y?q=1");
        for (location, to) in [
            ("/z?k=v", "https://a:1/z?k=v"),
            ("z", "https://a:1/x/z"),
            ("//b/z", "https://b/z"),
            ("http://c/z", "http://c/z"),
            ("https://d?e=http://f", "https://d?e=http://f"),
        ] {
            assert_eq!(from.redirect(location).unwrap().as_str(), to);
        }
        assert_eq!(from.redirect("javascript:x"), None);
        assert_eq!(url("https://a").redirect("z").unwrap().as_str(), "https://a/z");
    }

    #[test]
    fn the_same_server_has_the_same_host_port_and_scheme() {
        let hub = url("https://Hub.co");
        for same in ["https://hub.co/a", "https://hub.co:443/a"] {
            assert!(url(same).is_of(&hub), "{same}");
        }
        for other in [
            "http://hub.co",
            "https://hub.co:444",
            "https://cdn.hub.co",
            "https://hub.com",
            "https://hub.co.x",
        ] {
            assert!(!url(other).is_of(&hub), "{other}");
        }
        assert!(url("https://a").is_of(&url("http://a")));
        assert!(!url("https://a:80").is_of(&url("http://a")));
        assert!(url("http://[::1]").is_of(&url("http://[::1]:80")));
        assert!(!url("http://[::1]:81").is_of(&url("http://[::1]")));
    }

    #[test]
    fn paths_are_encoded_byte_by_byte() {
        assert_eq!(encode_path("a b/c#d?é%"), "a%20b/c%23d%3F%C3%A9%25");
        assert_eq!(encode_part("refs/pr/1"), "refs%2Fpr%2F1");
    }

    #[test]
    fn a_signature_is_not_shown() {
        assert_eq!(url("https://a/b?signature=1").to_string(), "https://a/b");
    }
}
