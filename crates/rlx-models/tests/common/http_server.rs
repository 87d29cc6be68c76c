//! A server of HTTP/1.1 on this machine that does what a test tells it to, and a hub made of two of them.
#![allow(clippy::unwrap_used, clippy::panic, dead_code)]

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|h| h.0 == name).map(|h| h.1.as_str())
    }

    /// Where the part that is asked for begins.
    pub fn range_start(&self) -> Option<usize> {
        self.header("range")?.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
    }

    pub fn is_get(&self) -> bool {
        self.method == "GET"
    }
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Send {
    /// With its length.
    Whole,
    /// With its length, but the connection is closed after so many bytes.
    Cut(usize),
    /// In chunks, without a length.
    Chunked,
    /// In chunks, and the connection is closed before the last.
    ChunkedCut,
    /// Not at all, and the connection stays open for a while.
    Never,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub send: Send,
}

impl Reply {
    pub fn new(status: u16, body: impl AsRef<[u8]>) -> Self {
        Self { status, headers: Vec::new(), body: body.as_ref().to_vec(), send: Send::Whole }
    }

    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn sent(mut self, send: Send) -> Self {
        self.send = send;
        self
    }

    /// The file `bytes`, or the part of it that is asked for.
    pub fn part(request: &Request, bytes: &[u8]) -> Self {
        match request.range_start() {
            None => Self::new(200, bytes),
            Some(from) if from < bytes.len() => Self::new(206, &bytes[from..])
                .with("content-range", format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len())),
            Some(_) => Self::new(416, "").with("content-range", format!("bytes */{}", bytes.len())),
        }
    }
}

type Handler = dyn Fn(&Request) -> Reply + std::marker::Send + Sync;

/// A server that answers each request by a function, and remembers all of them.
pub struct Server {
    pub url: String,
    log: Arc<Mutex<Vec<Request>>>,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Reply + std::marker::Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log = Arc::new(Mutex::new(Vec::new()));
        let stopped = Arc::new(AtomicBool::new(false));
        let handler: Arc<Handler> = Arc::new(handler);
        let (own_log, own_stopped) = (log.clone(), stopped.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if own_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (log, handler) = (own_log.clone(), handler.clone());
                // A client that goes away is no failure of the server.
                std::thread::spawn(move || drop(serve(stream, &log, &*handler)));
            }
        });
        Self { url, log, stopped }
    }

    /// The requests so far.
    pub fn log(&self) -> Vec<Request> {
        self.log.lock().unwrap().clone()
    }

    /// `METHOD path` of the requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.log().iter().map(|r| format!("{} {}", r.method, r.path)).collect()
    }

    pub fn forget(&self) {
        self.log.lock().unwrap().clear();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Request>>, handler: &Handler) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(()) };
    let mut request = Request { method: method.into(), path: path.into(), headers: Vec::new() };
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        request.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    log.lock().unwrap().push(request.clone());
    let reply = handler(&request);
    if reply.send == Send::Never {
        // Until the client gives up.
        let _ = std::io::Read::read(&mut reader, &mut [0]);
        return Ok(());
    }
    let mut head = format!("HTTP/1.1 {} Status\r\nconnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    let is_chunked = matches!(reply.send, Send::Chunked | Send::ChunkedCut);
    if is_chunked {
        head += "transfer-encoding: chunked\r\n";
    } else if !reply.headers.iter().any(|h| h.0 == "content-length") {
        head += &format!("content-length: {}\r\n", reply.body.len());
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if request.method != "HEAD" {
        match reply.send {
            Send::Cut(bytes) => stream.write_all(&reply.body[..bytes.min(reply.body.len())])?,
            _ if is_chunked => {
                for chunk in reply.body.chunks(1000) {
                    stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes())?;
                    stream.write_all(chunk)?;
                    stream.write_all(b"\r\n")?;
                }
                if reply.send == Send::Chunked {
                    stream.write_all(b"0\r\n\r\n")?;
                }
            }
            _ => stream.write_all(&reply.body)?,
        }
    }
    stream.shutdown(Shutdown::Write)
}

/// A file of a repository.
#[derive(Clone, Debug)]
pub struct RepoFile {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// For a large file, which another server keeps: its SHA-256 in hex.
    pub sha256: Option<String>,
}

/// The commit of every repository here.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// The answer of a hub that has these files to a request; large ones are at `cdn`.
pub fn hub_reply(request: &Request, repo: &str, files: &[RepoFile], cdn: &str) -> Reply {
    if request.path == format!("/api/models/{repo}/revision/main") {
        let siblings: Vec<String> =
            files.iter().map(|f| format!(r#"{{"rfilename":{}}}"#, serde_json::json!(f.name))).collect();
        let json = format!(r#"{{"id":"{repo}","sha":"{COMMIT}","siblings":[{}]}}"#, siblings.join(","));
        return Reply::new(200, json);
    }
    let front = format!("/{repo}/resolve/{COMMIT}/");
    let file = request.path.strip_prefix(&front).and_then(|name| files.iter().find(|f| f.name == name));
    let Some(file) = file else { return Reply::new(404, "").with("x-error-code", "EntryNotFound") };
    let told = |reply: Reply| reply.with("x-repo-commit", COMMIT);
    match &file.sha256 {
        None => {
            let etag = format!("\"{:040x}\"", file.bytes.iter().map(|b| u64::from(*b)).sum::<u64>() + 1);
            told(Reply::part(request, &file.bytes)).with("etag", etag)
        }
        Some(sha256) => told(Reply::new(302, "over there"))
            .with("location", format!("{cdn}/blobs/{sha256}?signature=1"))
            .with("x-linked-etag", format!("\"{sha256}\""))
            .with("x-linked-size", file.bytes.len().to_string()),
    }
}

/// The answer of the server that keeps the large files.
pub fn cdn_reply(request: &Request, files: &[RepoFile]) -> Reply {
    let sha256 = request.path.strip_prefix("/blobs/").and_then(|p| p.split('?').next()).unwrap_or_default();
    match files.iter().find(|f| f.sha256.as_deref() == Some(sha256)) {
        Some(file) => Reply::part(request, &file.bytes).with("etag", "\"another\""),
        None => Reply::new(404, ""),
    }
}
