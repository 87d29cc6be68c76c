//! Receiving one file of the hub.

use std::io::Read;
use std::path::Path;

use rlx_ir::{ErrorKind, bail};

use super::blob::{Incomplete, name_of_etag};
use super::http::{Asked, Client, Failure, LINKED_ETAG, Method, text};
use super::options::HubOptions;
use super::retry::Attempts;
use super::url::Url;
use crate::{Error, Result};

const BUFFER: usize = 256 << 10;

/// What the hub says of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Remote {
    /// What its content is called: the SHA-256 of a large file, the git id of a small one.
    pub(super) etag: String,
    /// Its length; `None` where the hub does not tell.
    pub(super) bytes: Option<u64>,
}

/// Asks what the hub says of a file.
///
/// # Errors
/// `NotFound` where it is not there or access is refused; `Io`.
pub(super) fn ask(
    client: &Client,
    options: &HubOptions,
    url: &Url,
    asked: &Asked<'_>,
    commit: &str,
) -> Result<Remote> {
    let mut attempts = Attempts::new(options.retry_wait);
    let answer = loop {
        match client.send(Method::Head, url, asked) {
            Ok(answer) => break answer,
            Err(failure) => attempts.failed(failure, 0)?,
        }
    };
    let headers = answer.headers();
    let number = |name: &str| text(headers, name).and_then(|v| v.trim().parse().ok());
    if let Some(found) = text(headers, "x-repo-commit").filter(|found| *found != commit) {
        bail!(Io, "{}: {} answers for the commit {found}, not for {commit}", asked.id, client.host());
    }
    let linked = text(headers, LINKED_ETAG);
    let Some(etag) = linked.or_else(|| text(headers, "etag")) else {
        bail!(Io, "{}: {} gives no ETag, so its content has no name in the cache", asked.id, client.host());
    };
    // The length of a redirect is that of its own text.
    let own_length = || answer.status().is_success().then(|| number("content-length")).flatten();
    let etag = name_of_etag(etag).map_err(|e| e.context(asked.id))?;
    Ok(Remote { etag, bytes: number("x-linked-size").or_else(own_length) })
}

/// Receives a file to `blob`; `told` hears the bytes that are there after each step.
///
/// # Errors
/// `InvalidFile` for a wrong length or checksum, of which nothing is left; `Io` where the connection breaks again and
/// again, after which a later call goes on.
pub(super) fn receive(
    client: &Client,
    options: &HubOptions,
    url: &Url,
    asked: &Asked<'_>,
    remote: &Remote,
    blob: &Path,
    told: &dyn Fn(u64),
) -> Result<()> {
    let mut file = Incomplete::open(blob, &remote.etag)?;
    let mut attempts = Attempts::new(options.retry_wait);
    let subject = asked.subject();
    loop {
        if let Err(failure) = receive_rest(client, url, asked, remote, &mut file, told) {
            attempts.failed(failure, file.bytes())?;
            continue;
        }
        if let Some(wanted) = remote.bytes {
            if file.bytes() > wanted {
                file.discard();
                bail!(
                    InvalidFile,
                    "{subject}: {} sends more than the {wanted} bytes that it announced; nothing was kept",
                    client.host()
                );
            }
            if file.bytes() < wanted {
                let message = format!("{subject}: {} bytes of {wanted} came, then the end", file.bytes());
                attempts.failed(Failure::Passing(Error::new(ErrorKind::Io, message), None), file.bytes())?;
                continue;
            }
        }
        if file.is_sound(&remote.etag) {
            return file.finish(blob);
        }
        if file.is_resumed() {
            tracing::info!("{subject}: what an earlier download has left is damaged; it starts over");
            file.clear()?;
            continue;
        }
        file.discard();
        bail!(
            InvalidFile,
            "{subject}: what {} sent does not have the SHA-256 {}; nothing was kept",
            client.host(),
            remote.etag
        );
    }
}

fn receive_rest(
    client: &Client,
    url: &Url,
    asked: &Asked<'_>,
    remote: &Remote,
    file: &mut Incomplete,
    told: &dyn Fn(u64),
) -> Result<(), Failure> {
    if remote.bytes.is_some_and(|wanted| file.bytes() > wanted) {
        file.clear()?;
    }
    if file.bytes() > 0 && remote.bytes == Some(file.bytes()) {
        told(file.bytes());
        return Ok(());
    }
    let mut answer = client.send(Method::Get(file.bytes()), url, asked)?;
    if answer.status().as_u16() == 416 {
        // There is nothing beyond what is here. Where the length is not known, the checksum decides.
        if file.bytes() > 0 && remote.bytes.is_none() {
            return Ok(());
        }
        file.clear()?;
        answer = client.send(Method::Get(0), url, asked)?;
    }
    match answer.status().as_u16() {
        206 if continues(text(answer.headers(), "content-range"), file.bytes(), remote.bytes) => {}
        200 => file.clear()?,
        status => {
            file.clear()?;
            let message =
                format!("{}: {} answers {status} with another part than asked for", asked.id, client.host());
            return Err(Failure::Passing(Error::new(ErrorKind::Io, message), None));
        }
    }
    let rest = text(answer.headers(), "content-length").and_then(|v| v.trim().parse::<u64>().ok());
    if let (Some(wanted), Some(rest)) = (remote.bytes, rest)
        && rest.checked_add(file.bytes()) != Some(wanted)
    {
        let message = format!(
            "{}: {} announced {wanted} bytes and sends {}",
            asked.subject(),
            client.host(),
            rest.saturating_add(file.bytes())
        );
        return Err(Error::new(ErrorKind::InvalidFile, message).into());
    }
    let mut body = answer.into_body().into_with_config().limit(u64::MAX).reader();
    let mut buffer = vec![0; BUFFER];
    loop {
        let n = match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(e) => return Err(client.broken(e.into(), url, asked)),
        };
        file.push(&buffer[..n])?;
        told(file.bytes());
        // A server that never ends must not fill the disk.
        if remote.bytes.is_some_and(|wanted| file.bytes() > wanted) {
            return Ok(());
        }
    }
}

/// Whether `Content-Range` is the rest after `from` of a file with `total` bytes.
fn continues(header: Option<&str>, from: u64, total: Option<u64>) -> bool {
    let parsed = || {
        let (range, all) = header?.trim().strip_prefix("bytes ")?.split_once('/')?;
        let first: u64 = range.split_once('-')?.0.trim().parse().ok()?;
        Some((first, all.trim().parse::<u64>().ok()))
    };
    parsed().is_some_and(|(first, all)| first == from && (all.is_none() || total.is_none() || all == total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_must_be_the_rest() {
        assert!(continues(Some("bytes 5-9/10"), 5, Some(10)));
        assert!(continues(Some("bytes 5-9/*"), 5, Some(10)));
        assert!(continues(Some("bytes 5-9/10"), 5, None));
        for wrong in [None, Some("bytes 4-9/10"), Some("bytes 5-9/11"), Some("bytes */10"), Some("5-9/10")] {
            assert!(!continues(wrong, 5, Some(10)), "{wrong:?}");
        }
    }
}
