//! Requests to the hub: redirects, the token, timeouts, and what a refusal means.

use std::time::Duration;

use rlx_ir::{ErrorKind, bail};
use ureq::http::{HeaderMap, Response};
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Body, Timeout};

use super::options::{HubOptions, Token};
use super::url::Url;
use crate::{Error, Result};

/// More redirects are refused.
const MAX_REDIRECTS: usize = 10;
/// What is read at most of an answer that explains a refusal, in bytes.
const MAX_EXPLANATION: u64 = 64 << 10;
/// A server that asks for a longer wait is not waited for.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The answer to a request.
pub(super) type Answer = Response<Body>;

/// Why there is no answer that can be used.
#[derive(Debug)]
pub(super) enum Failure {
    /// Nobody answers.
    Unreachable(Error),
    /// The connection broke, or the server is busy: another attempt may succeed, after this time if it says so.
    Passing(Error, Option<Duration>),
    /// Another attempt would fail too.
    Final(Error),
}

impl From<Error> for Failure {
    fn from(e: Error) -> Self {
        Self::Final(e)
    }
}

/// What a request is for, for messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'a> {
    /// `org/name@revision`.
    pub(super) id: &'a str,
    /// The file, where it is one.
    pub(super) file: Option<&'a str>,
}

/// The part of a request that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// The headers alone. Redirects are followed until one tells of the file.
    Head,
    /// What follows the first so many bytes.
    Get(u64),
}

/// The hub over HTTP.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    endpoint: Url,
    token: Option<Token>,
}

impl Client {
    /// Makes no connection yet.
    ///
    /// # Errors
    /// `InvalidArgument` for an endpoint, a token or certificates that cannot be used; `Io`.
    pub(super) fn new(options: &HubOptions) -> Result<Self> {
        let Some(endpoint) = Url::parse(&options.endpoint) else {
            bail!(
                InvalidArgument,
                "HF_ENDPOINT is {:?}: expected a URL that starts with https:// or http://",
                options.endpoint
            );
        };
        let config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect decides whether the token is sent on, so each is followed by hand.
            .max_redirects(0)
            // Lengths and checksums are those of the bytes that come.
            .accept_encoding("identity")
            .user_agent(concat!("rlx/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.answer_timeout))
            .timeout_connect(Some(options.answer_timeout))
            .timeout_recv_response(Some(options.answer_timeout))
            .timeout_per_read(Some(options.read_timeout))
            .tls_config(tls(options)?)
            .build();
        Ok(Self { agent: config.new_agent(), endpoint, token: token(options)? })
    }

    /// The host, for messages.
    pub(super) fn host(&self) -> &str {
        self.endpoint.host()
    }

    /// The address of `path` (percent-encoded, without a slash at its start) at the hub.
    pub(super) fn url(&self, path: &str) -> Url {
        self.endpoint.join(path)
    }

    /// Sends a request, and follows redirects.
    ///
    /// The token goes to the hub alone, never to a host that it points to.
    pub(super) fn send(&self, method: Method, url: &Url, asked: &Asked<'_>) -> Result<Answer, Failure> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send_once(method, &url).map_err(|e| self.broken(e, &url, asked))?;
            let status = answer.status().as_u16();
            let tells = method == Method::Head && answer.headers().contains_key(LINKED_ETAG);
            if matches!(status, 200 | 206 | 416) || tells && status < 400 {
                return Ok(answer);
            }
            if !matches!(status, 301 | 302 | 303 | 307 | 308) {
                return Err(self.refused(answer, &url, asked));
            }
            let place = format!("{}: {}", asked.id, url.host());
            let Some(next) = text(answer.headers(), "location").and_then(|l| url.redirect(l)) else {
                return Err(Error::new(ErrorKind::Io, format!("{place} redirects to no address")).into());
            };
            if url.is_secure() && !next.is_secure() {
                let message = format!("{place} redirects to http://{}, which is not safe", next.host());
                return Err(Error::new(ErrorKind::Io, message).into());
            }
            url = next;
        }
        let message = format!("{}: {} redirects more than {MAX_REDIRECTS} times", asked.id, self.host());
        Err(Error::new(ErrorKind::Io, message).into())
    }

    fn send_once(&self, method: Method, url: &Url) -> Result<Answer, ureq::Error> {
        let mut request = match method {
            Method::Head => self.agent.head(url.as_str()),
            Method::Get(_) => self.agent.get(url.as_str()),
        };
        if let Method::Get(from @ 1..) = method {
            request = request.header("range", format!("bytes={from}-"));
        }
        if let Some(token) = &self.token
            && url.is_of(&self.endpoint)
        {
            request = request.header("authorization", format!("Bearer {}", token.secret()));
        }
        tracing::debug!("{method:?} {url}");
        request.call()
    }

    /// What a request means that got no answer.
    pub(super) fn broken(&self, e: ureq::Error, url: &Url, asked: &Asked<'_>) -> Failure {
        use std::io::ErrorKind as Io;
        let host = url.host();
        let error = |what: String| Error::new(ErrorKind::Io, format!("{}: {what}", asked.subject()));
        match e {
            ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
                Failure::Unreachable(error(format!("{host} does not answer")))
            }
            ureq::Error::Timeout(_) => Failure::Passing(
                error(format!("{host} took too long to answer (HF_HUB_DOWNLOAD_TIMEOUT)")),
                None,
            ),
            ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                Failure::Unreachable(error(format!("{host} cannot be reached")))
            }
            ureq::Error::Io(e) => {
                let broke = [
                    Io::ConnectionReset,
                    Io::ConnectionAborted,
                    Io::BrokenPipe,
                    Io::UnexpectedEof,
                    Io::TimedOut,
                    Io::WouldBlock,
                    Io::Interrupted,
                ];
                if broke.contains(&e.kind()) {
                    Failure::Passing(error(format!("the connection to {host} broke ({e})")), None)
                } else {
                    Failure::Unreachable(error(format!("{host} cannot be reached ({e})")))
                }
            }
            e => Failure::Final(error(format!("{host}: {e}"))),
        }
    }

    /// What an answer means that is neither a file nor a redirect.
    fn refused(&self, mut answer: Answer, url: &Url, asked: &Asked<'_>) -> Failure {
        let status = answer.status().as_u16();
        let host = url.host();
        let subject = asked.subject();
        let headers = answer.headers().clone();
        let code = text(&headers, "x-error-code").unwrap_or_default();
        let error = |kind, message: String| Failure::Final(Error::new(kind, message));
        let with_token = if self.token.is_some() {
            "the token that was sent (HF_TOKEN) does not give access"
        } else {
            "set HF_TOKEN if it is private or gated"
        };
        match (status, code) {
            (401 | 403, "GatedRepo") => error(
                ErrorKind::NotFound,
                format!(
                    "{subject}: the model is gated: ask for access at {host}/{}\n{with_token}",
                    asked.repo()
                ),
            ),
            // The hub answers so for models that do not exist, lest it tells of those that are private.
            (401 | 403, _) => error(
                ErrorKind::NotFound,
                format!(
                    "{subject}: {host} refuses it ({status}): there is no such model, or it is private or gated\n\
                     {with_token}"
                ),
            ),
            (404, "RevisionNotFound") => {
                error(ErrorKind::NotFound, format!("{subject}: {host} has no such revision of this model"))
            }
            (404 | 410, _) => {
                let what = if asked.file.is_some() { "file" } else { "model" };
                error(ErrorKind::NotFound, format!("{subject}: {host} has no such {what} ({status})"))
            }
            (408 | 429 | 500.., _) => {
                let seconds = text(&headers, "retry-after").and_then(|v| v.trim().parse().ok());
                let wait = seconds.map(Duration::from_secs);
                let busy = if status == 429 { "asks to come back later" } else { "has failed" };
                let message =
                    format!("{subject}: {host} {busy} ({status}{})", explanation(&mut answer, &headers));
                let e = Error::new(ErrorKind::Io, message);
                if wait.is_some_and(|w| w > MAX_WAIT) { Failure::Final(e) } else { Failure::Passing(e, wait) }
            }
            _ => error(
                ErrorKind::Io,
                format!("{subject}: {host} answers {status}{}", explanation(&mut answer, &headers)),
            ),
        }
    }
}

impl Asked<'_> {
    /// `org/name:file`.
    pub(super) fn subject(&self) -> String {
        self.file.map_or(self.id.to_owned(), |file| format!("{}:{file}", self.id))
    }

    fn repo(&self) -> &str {
        self.id.split('@').next().unwrap_or(self.id)
    }
}

/// Where the hub says what a file that it keeps elsewhere holds.
pub(super) const LINKED_ETAG: &str = "x-linked-etag";

/// A header as text.
pub(super) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// What the server says about its refusal, if that is short: `: message`.
fn explanation(answer: &mut Answer, headers: &HeaderMap) -> String {
    let from_header = text(headers, "x-error-message").map(str::to_owned);
    let from_body = || {
        let body = answer.body_mut().with_config().limit(MAX_EXPLANATION).read_to_string().ok()?;
        let json: serde_json::Value = serde_json::from_str(&body).ok()?;
        Some(json.get("error")?.as_str()?.to_owned())
    };
    match from_header.or_else(from_body) {
        Some(message) if !message.is_empty() => {
            format!(": {}", message.chars().take(200).collect::<String>())
        }
        _ => String::new(),
    }
}

fn token(options: &HubOptions) -> Result<Option<Token>> {
    let from_file = |path: &std::path::PathBuf| match std::fs::read_to_string(path) {
        Ok(text) => Token::new(&text),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => {
            // Most models are public; what is not is refused by the hub, which then says so.
            tracing::warn!("{}: {e}: the hub is asked without a token", path.display());
            None
        }
    };
    let token = match (&options.token, &options.token_file) {
        (Some(token), _) => Some(token.clone()),
        (None, Some(path)) => from_file(path),
        (None, None) => None,
    };
    if token.as_ref().is_some_and(|t| !t.secret().bytes().all(|b| b.is_ascii_graphic())) {
        bail!(InvalidArgument, "the token of HF_TOKEN or HF_TOKEN_PATH holds characters that no token has");
    }
    Ok(token)
}

fn tls(options: &HubOptions) -> Result<TlsConfig> {
    let Some(path) = &options.certificates else { return Ok(TlsConfig::default()) };
    let pem = match std::fs::read(path) {
        Ok(pem) => pem,
        Err(e) => bail!(Io, "SSL_CERT_FILE: {}: {e}", path.display()),
    };
    let mut certificates = Vec::new();
    for item in parse_pem(&pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(e) => bail!(InvalidFile, "SSL_CERT_FILE: {}: {e}", path.display()),
        }
    }
    if certificates.is_empty() {
        bail!(InvalidFile, "SSL_CERT_FILE: {}: it holds no certificate in PEM form", path.display());
    }
    Ok(TlsConfig::builder().root_certs(RootCerts::from(certificates)).build())
}
