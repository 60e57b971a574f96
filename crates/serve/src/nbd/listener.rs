//! Sockets: binding them safely, accepting connections, starting their threads.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use thiserror::Error;

use super::registry::Peer;

/// Waiting connections that the kernel keeps.
const BACKLOG: i32 = 64;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// A Unix socket at this path.
    Unix(PathBuf),
    /// A TCP port of this address.
    Tcp(SocketAddr),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => address.fmt(f),
        }
    }
}

/// Text that names no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("found {text:?}, expected unix:PATH or ADDRESS:PORT such as 127.0.0.1:10809")]
pub struct BadEndpoint {
    /// What was found.
    pub text: String,
}

impl FromStr for Endpoint {
    type Err = BadEndpoint;

    fn from_str(text: &str) -> Result<Self, BadEndpoint> {
        let bad = || BadEndpoint { text: text.to_owned() };
        match text.strip_prefix("unix:") {
            Some("") => Err(bad()),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_| bad()),
        }
    }
}

/// Why a server cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Something is there already.
    #[error("{endpoint} is in use: {found}; {advice}")]
    InUse {
        /// Where.
        endpoint: Endpoint,
        /// What is there.
        found: &'static str,
        /// What to do.
        advice: &'static str,
    },
    /// The address can be reached from other machines.
    #[error(
        "{address} is not a loopback address, and clients are not authenticated; listen on \
         127.0.0.1 or a Unix socket, or pass --insecure-listen"
    )]
    NotLoopback {
        /// The address.
        address: SocketAddr,
    },
    /// An inherited descriptor is not a listening stream socket.
    #[error("an inherited socket is not a listening stream socket; set ListenStream= in systemd")]
    WrongSocket,
    /// The system refused.
    #[error("cannot listen on {endpoint}: {source}")]
    Io {
        /// Where.
        endpoint: Endpoint,
        /// What the system said.
        source: io::Error,
    },
}

#[derive(Debug)]
enum Socket {
    Unix(UnixListener),
    Tcp(TcpListener),
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener) => listener.as_fd(),
            Self::Tcp(listener) => listener.as_fd(),
        }
    }
}

/// A socket that accepts NBD connections. Dropping it removes the file of a Unix socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: Socket,
    /// The file to be removed at the end.
    path: Option<PathBuf>,
    endpoint: Endpoint,
}

impl Listener {
    /// Listens. A Unix socket is made with mode 0600; what is at its path already stays.
    pub(crate) fn bind(endpoint: &Endpoint, insecure: bool) -> Result<Self, ListenError> {
        match endpoint {
            Endpoint::Tcp(address) if !insecure && !address.ip().is_loopback() => {
                Err(ListenError::NotLoopback { address: *address })
            }
            Endpoint::Tcp(address) => bind_tcp(*address, endpoint),
            Endpoint::Unix(path) => bind_unix(path, endpoint),
        }
    }

    /// Takes over a socket that the service manager opened.
    fn inherit_unix(listener: UnixListener) -> Result<Self, ListenError> {
        let path = listener.local_addr().ok().and_then(|a| a.as_pathname().map(Path::to_owned));
        let endpoint = Endpoint::Unix(path.unwrap_or_default());
        Self::inherit(Socket::Unix(listener), endpoint)
    }

    /// Takes over a socket that the service manager opened.
    fn inherit_tcp(listener: TcpListener, insecure: bool) -> Result<Self, ListenError> {
        let address = listener.local_addr().map_err(|_| ListenError::WrongSocket)?;
        if !insecure && !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback { address });
        }
        Self::inherit(Socket::Tcp(listener), Endpoint::Tcp(address))
    }

    fn inherit(socket: Socket, endpoint: Endpoint) -> Result<Self, ListenError> {
        let fd = socket.as_fd();
        let stream = sockopt::socket_type(fd).is_ok_and(|kind| kind == SocketType::STREAM);
        if !stream || !sockopt::socket_acceptconn(fd).unwrap_or(false) {
            return Err(ListenError::WrongSocket);
        }
        let nonblocking = match &socket {
            Socket::Unix(listener) => listener.set_nonblocking(true),
            Socket::Tcp(listener) => listener.set_nonblocking(true),
        };
        nonblocking.map_err(|source| ListenError::Io { endpoint: endpoint.clone(), source })?;
        Ok(Self { socket, path: None, endpoint })
    }

    /// Where it listens; a TCP port 0 is replaced by the one the system chose.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Waits for a connection; `None` when `stop` fires.
    pub(crate) fn accept(&self, stop: &Stop) -> io::Result<Option<(OwnedFd, Peer)>> {
        loop {
            let mut fds = [
                PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(stop.0.as_fd(), PollFlags::IN),
            ];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if !fds[1].revents().is_empty() {
                return Ok(None);
            }
            match self.accept_now() {
                Ok(accepted) => return Ok(Some(accepted)),
                // The peer was faster in leaving than we in accepting.
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn accept_now(&self) -> io::Result<(OwnedFd, Peer)> {
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept()?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(false)?;
                watch_peer(&stream)?;
                Ok((stream.into(), Peer::Address(address.ip())))
            }
            Socket::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(false)?;
                let peer = sockopt::socket_peercred(&stream)
                    .map_or(Peer::Unknown, |c| Peer::Process(c.pid.as_raw_nonzero().get()));
                Ok((stream.into(), peer))
            }
        }
    }
}

/// Lets the kernel find out when the machine of a silent peer is gone; its connection would stay for ever.
fn watch_peer(stream: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, Duration::from_mins(1))?;
    sockopt::set_tcp_keepintvl(stream, Duration::from_secs(10))?;
    sockopt::set_tcp_keepcnt(stream, 6)?;
    Ok(())
}

/// The sockets that the service manager opened for this process (`sd_listen_fds(3)`).
pub(crate) fn inherited(insecure: bool) -> Result<Vec<Listener>, ListenError> {
    let mut passed = listenfd::ListenFd::from_env();
    (0..passed.len()).map(|index| inherit(&mut passed, index, insecure)).collect()
}

fn inherit(
    passed: &mut listenfd::ListenFd,
    index: usize,
    insecure: bool,
) -> Result<Listener, ListenError> {
    // Each of the two refuses what is not a listening stream socket of its family.
    if let Ok(Some(listener)) = passed.take_tcp_listener(index) {
        return Listener::inherit_tcp(listener, insecure);
    }
    match passed.take_unix_listener(index) {
        Ok(Some(listener)) => Listener::inherit_unix(listener),
        _ => Err(ListenError::WrongSocket),
    }
}

fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionAborted | ConnectionReset | Interrupted)
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = rustix::fs::unlink(path);
        }
    }
}

fn bind_tcp(address: SocketAddr, endpoint: &Endpoint) -> Result<Listener, ListenError> {
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse {
            endpoint: endpoint.clone(),
            found: "another program listens there",
            advice: "stop it or choose another port",
        },
        _ => ListenError::Io { endpoint: endpoint.clone(), source },
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let endpoint = Endpoint::Tcp(listener.local_addr().map_err(failed)?);
    Ok(Listener { socket: Socket::Tcp(listener), path: None, endpoint })
}

fn bind_unix(path: &Path, endpoint: &Endpoint) -> Result<Listener, ListenError> {
    let failed =
        |source: Errno| ListenError::Io { endpoint: endpoint.clone(), source: source.into() };
    let address = rustix::net::SocketAddrUnix::new(path).map_err(failed)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed)?;
    // On Linux the file gets the mode that the socket has when it is bound, so that there is no
    // moment at which others may connect.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR).map_err(failed)?;
    let bound = match rustix::net::bind(&socket, &address) {
        Err(Errno::ADDRINUSE) if is_left_over(path) => {
            // Nobody listens, and nobody can again: a socket file outlives its killed server.
            rustix::fs::unlink(path).map_err(failed)?;
            rustix::net::bind(&socket, &address)
        }
        bound => bound,
    };
    match bound {
        Ok(()) => {}
        Err(Errno::ADDRINUSE) => return Err(in_use(path, endpoint)),
        Err(error) => return Err(failed(error)),
    }
    rustix::net::listen(&socket, BACKLOG).map_err(failed)?;
    let socket = Socket::Unix(UnixListener::from(socket));
    Ok(Listener { socket, path: Some(path.to_owned()), endpoint: endpoint.clone() })
}

/// Whether a path is a socket that no process listens on.
fn is_left_over(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path)
        .is_ok_and(|meta| std::os::unix::fs::FileTypeExt::is_socket(&meta.file_type()));
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && UnixStream::connect(path).err().is_some_and(refused)
}

/// Tells a live socket from another file. Neither is touched.
fn in_use(path: &Path, endpoint: &Endpoint) -> ListenError {
    let (found, advice) = match UnixStream::connect(path) {
        Ok(_) => ("a server answers there", "stop it or choose another path"),
        Err(_) => ("a file is there", "choose another path"),
    };
    ListenError::InUse { endpoint: endpoint.clone(), found, advice }
}

/// Ends the waiting of listeners.
#[derive(Debug)]
pub(crate) struct Stop(OwnedFd);

impl Stop {
    pub(crate) fn new() -> io::Result<Arc<Self>> {
        Ok(Arc::new(Self(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    pub(crate) fn fire(&self) {
        // Nobody takes the value out, so that every listener sees it, now and later.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket, sockopt};

    use super::{Endpoint, ListenError, Listener, Stop};

    /// CVE-2025-40080: a socket that is no stream.
    #[test]
    fn inherited_sockets_that_are_no_listening_streams_are_refused() {
        for (kind, listening, good) in [
            (SocketType::STREAM, true, true),
            (SocketType::STREAM, false, false),
            (SocketType::SEQPACKET, true, false),
            (SocketType::DGRAM, false, false),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let socket = socket(AddressFamily::UNIX, kind, None).unwrap();
            let address = SocketAddrUnix::new(dir.path().join("socket")).unwrap();
            bind(&socket, &address).unwrap();
            if listening {
                listen(&socket, 1).unwrap();
            }
            let result = Listener::inherit_unix(UnixListener::from(socket));
            assert_eq!(result.is_ok(), good, "{kind:?}");
            assert!(good || matches!(result, Err(ListenError::WrongSocket)));
        }
    }

    /// A client whose machine is gone says nothing any more, and its connection stayed for ever.
    #[test]
    fn silent_peers_over_tcp_are_asked_whether_they_are_there() {
        let listener = Listener::bind(&"127.0.0.1:0".parse().unwrap(), false).unwrap();
        let Endpoint::Tcp(address) = *listener.endpoint() else { panic!("not TCP") };
        let _client = std::net::TcpStream::connect(address).unwrap();
        let (socket, _) = listener.accept(&Stop::new().unwrap()).unwrap().unwrap();
        assert!(sockopt::socket_keepalive(&socket).unwrap());
    }

    #[test]
    fn endpoints_are_read_and_written_alike() {
        for text in ["unix:/run/disk.sock", "127.0.0.1:10809", "[::1]:0"] {
            assert_eq!(text.parse::<Endpoint>().map(|e| e.to_string()), Ok(text.to_owned()));
        }
        for text in ["", "unix:", "/run/disk.sock", "localhost", "127.0.0.1", "1.2.3.4:99999"] {
            assert!(text.parse::<Endpoint>().is_err(), "{text}");
        }
    }
}
