//! The HTTP side: one question per connection, few connections at a time, and patience with none of them.
//! A client that hangs keeps neither the others nor the end of the server.

use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Source, json, text};
use crate::ServeError;
use crate::nbd::{Endpoint as Place, ListenError, Listener, Stop};

/// Clients at a time; one more is closed.
const CLIENTS: usize = 16;
/// Time for a question, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest question, in bytes.
const QUESTION_MAX: usize = 8 << 10;

/// The running endpoint.
pub(crate) struct Endpoint {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Endpoint {
    /// Listens on `address`, which has to be a loopback address unless `insecure`.
    pub(crate) fn start(
        address: SocketAddr,
        insecure: bool,
        source: Box<dyn Source>,
    ) -> Result<Self, ServeError> {
        let failed = |action| move |source| ServeError::Io { action, source };
        let listener = Listener::bind(&Place::Tcp(address), insecure)?;
        let Place::Tcp(address) = *listener.endpoint() else {
            return Err(ListenError::WrongSocket.into());
        };
        let stop = Stop::new().map_err(failed("create an event descriptor"))?;
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || serve(&listener, &stopped, &source.into()))
            .map_err(failed("start a thread"))?;
        Ok(Self { stop, thread: Some(thread), address })
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.stop.fire();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A client that is being answered.
struct Client {
    stream: TcpStream,
    thread: JoinHandle<()>,
}

fn serve(listener: &Listener, stop: &Stop, source: &Arc<dyn Source>) {
    let mut clients: Vec<Client> = Vec::new();
    loop {
        match listener.accept(stop) {
            Ok(Some((socket, _))) => {
                clients.retain(|client| !client.thread.is_finished());
                if clients.len() < CLIENTS {
                    // One for which there is no thread is closed.
                    clients.extend(start(socket.into(), source).ok());
                }
            }
            Ok(None) => break,
            Err(error) => {
                tracing::error!(%error, endpoint = %listener.endpoint(), "cannot accept");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
    }
    for Client { stream, thread } in clients {
        // It wakes up, whatever it waits for. One that is gone already needs no help.
        let _ = stream.shutdown(Shutdown::Both);
        let _ = thread.join();
    }
}

fn start(stream: TcpStream, source: &Arc<dyn Source>) -> std::io::Result<Client> {
    let (mut own, source) = (stream.try_clone()?, Arc::clone(source));
    let thread = std::thread::Builder::new().name("metrics-client".into());
    let thread = thread.spawn(move || {
        // A client that left needs no answer.
        let _ = converse(&mut own, source.as_ref());
        let _ = own.shutdown(Shutdown::Both);
    })?;
    Ok(Client { stream, thread })
}

fn converse(stream: &mut TcpStream, source: &dyn Source) -> std::io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut question = Vec::new();
    while !question.windows(4).any(|bytes| bytes == b"\r\n\r\n") {
        let mut bytes = [0; 1024];
        stream.set_read_timeout(Some(left(end)?))?;
        let count = stream.read(&mut bytes)?;
        question.extend_from_slice(&bytes[..count]);
        if count == 0 || question.len() > QUESTION_MAX {
            return Ok(());
        }
    }
    let (answer, end) = (answer(&question, source), Instant::now() + PATIENCE);
    let mut rest = &answer[..];
    while !rest.is_empty() {
        stream.set_write_timeout(Some(left(end)?))?;
        let count = stream.write(rest)?;
        rest = &rest[count..];
    }
    Ok(())
}

/// The time until `end`.
fn left(end: Instant) -> std::io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn answer(question: &[u8], source: &dyn Source) -> Vec<u8> {
    let question = String::from_utf8_lossy(question);
    let mut lines = question.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return plain("400 Bad Request", "expected GET PATH HTTP/1.1\n");
    };
    let headers = lines.filter_map(|line| line.split_once(':'));
    let mut host = headers.filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    if !is_local_name(host.next().map(|(_, value)| value.trim())) {
        return plain("403 Forbidden", "the Host header names no address of this server\n");
    }
    if !matches!(method, "GET" | "HEAD") {
        return plain("405 Method Not Allowed", "only GET and HEAD are served\n");
    }
    let mut bytes = match target.split(['?', '#']).next().unwrap_or_default() {
        "/metrics" => body("200 OK", text::CONTENT_TYPE, &text::encode(&source.snapshot())),
        "/api/v1/stats" => body("200 OK", "application/json", &json::encode(&source.snapshot())),
        "/healthz" => plain("200 OK", "ok\n"),
        "/" => plain("200 OK", "/metrics\n/api/v1/stats\n/healthz\n"),
        _ => plain("404 Not Found", "not found; see /\n"),
    };
    if method == "HEAD" {
        let head = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n");
        bytes.truncate(head.map_or(0, |at| at + 4));
    }
    bytes
}

/// Whether a Host header is an address or `localhost`. A name could be one that an attacker's page
/// made to point here, which would let that page read the answers.
fn is_local_name(host: Option<&str>) -> bool {
    let Some(host) = host else { return true };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn plain(status: &str, text: &str) -> Vec<u8> {
    body(status, "text/plain; charset=utf-8", text)
}

fn body(status: &str, kind: &str, text: &str) -> Vec<u8> {
    let head = [
        format!("HTTP/1.1 {status}"),
        format!("Content-Type: {kind}"),
        format!("Content-Length: {}", text.len()),
        "Content-Security-Policy: default-src 'self'".to_owned(),
        "X-Content-Type-Options: nosniff".to_owned(),
        "Cache-Control: no-store".to_owned(),
        "Connection: close".to_owned(),
    ];
    format!("{}\r\n\r\n{text}", head.join("\r\n")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::is_local_name;

    #[test]
    fn only_addresses_and_localhost_may_be_asked_for() {
        for host in ["localhost", "LOCALHOST:9900", "127.0.0.1:1", "[::1]:80", "10.0.0.7"] {
            assert!(is_local_name(Some(host)), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example:80", "", "[evil.example]:80"] {
            assert!(!is_local_name(Some(host)), "{host}");
        }
    }
}
