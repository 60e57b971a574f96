//! The HTTP side.

use std::io::Cursor;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use tiny_http::{Header, Method, Request, Response, Server};

use super::{Source, json, text};
use crate::ServeError;
use crate::nbd::{self, ListenError};

/// The running endpoint.
pub(crate) struct Endpoint {
    server: Arc<Server>,
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
        if !insecure && !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback { address }.into());
        }
        let failed = |source: std::io::Error| {
            let endpoint = nbd::Endpoint::Tcp(address);
            match source.kind() {
                std::io::ErrorKind::AddrInUse => ListenError::InUse {
                    endpoint,
                    found: "another program listens there",
                    advice: "stop it or choose another port",
                },
                _ => ListenError::Io { endpoint, source },
            }
        };
        let listener = TcpListener::bind(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let server = Server::from_listener(listener, None)
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let server = Arc::new(server);
        let shared = Arc::clone(&server);
        let thread = std::thread::Builder::new()
            .name("metrics".into())
            .spawn(move || serve(&shared, source.as_ref()))
            .map_err(|source| ServeError::Io { action: "start a thread", source })?;
        Ok(Self { server, thread: Some(thread), address })
    }

    /// Where it listens, with the port that the system chose.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(server: &Server, source: &dyn Source) {
    while let Ok(request) = server.recv() {
        let response = answer(&request, source);
        // A client that left needs no answer.
        let _ = request.respond(response);
    }
}

fn answer(request: &Request, source: &dyn Source) -> Response<Cursor<Vec<u8>>> {
    if !is_local_name(host(request)) {
        return plain(403, "the Host header names no address of this server\n");
    }
    if !matches!(request.method(), Method::Get | Method::Head) {
        return plain(405, "only GET and HEAD are served\n");
    }
    let path = request.url().split(['?', '#']).next().unwrap_or_default();
    match path {
        "/metrics" => body(200, text::CONTENT_TYPE, text::encode(&source.snapshot())),
        "/api/v1/stats" => body(200, "application/json", json::encode(&source.snapshot())),
        "/healthz" => plain(200, "ok\n"),
        "/" => plain(200, "/metrics\n/api/v1/stats\n/healthz\n"),
        _ => plain(404, "not found; see /\n"),
    }
}

fn host(request: &Request) -> Option<&str> {
    let headers = request.headers().iter();
    headers.into_iter().find(|header| header.field.equiv("Host")).map(|h| h.value.as_str())
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

fn plain(status: u16, text: &str) -> Response<Cursor<Vec<u8>>> {
    body(status, "text/plain; charset=utf-8", text.to_owned())
}

fn body(status: u16, kind: &str, text: String) -> Response<Cursor<Vec<u8>>> {
    let mut response = Response::from_string(text).with_status_code(status);
    let headers = [
        ("Content-Type", kind),
        ("Content-Security-Policy", "default-src 'self'"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
    ];
    for (name, value) in headers {
        if let Ok(header) = Header::from_bytes(name, value) {
            response.add_header(header);
        }
    }
    response
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
