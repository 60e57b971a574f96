//! A small NBD client: one request at a time, simple replies. It is the way to the mailbox of a served
//! device, and what tests talk to a server with.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use onefold_device::MailboxBlock;
use onefold_device::mailbox::Mailbox;
use thiserror::Error;

use super::listener::Endpoint;
use super::parse::wire::{self, answer, command, flag, handshake, info, option};
use super::parse::{CONTROL_SUFFIX, MAX_PAYLOAD};

/// Longest wait for an answer of the handshake: who says nothing is no NBD server.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Longest wait for a reply: the server may be writing a lot to a slow disk.
const REPLY: Duration = Duration::from_mins(5);
/// Longest answer to an option that is taken, in bytes.
const ANSWER_MAX: u32 = 16 << 10;
/// Slots of the mailbox.
const SLOTS: u64 = 256;

/// Why a client cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server speaks something else.
    #[error("there is no NBD server: {found}")]
    Foreign {
        /// What was found.
        found: &'static str,
    },
    /// The server has no export of that name.
    #[error("the NBD server has no export `{name}`: {text}")]
    Export {
        /// The name asked for.
        name: String,
        /// What the server said.
        text: String,
    },
    /// A request failed.
    #[error("the NBD server answered with error {errno}")]
    Request {
        /// Error number of the protocol.
        errno: u32,
    },
}

trait Stream: Read + Write + Send {
    fn set_timeout(&self, time: Duration) -> io::Result<()>;
}

impl Stream for UnixStream {
    fn set_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Stream for TcpStream {
    fn set_timeout(&self, time: Duration) -> io::Result<()> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// A connection to one export of a server.
pub struct Client {
    stream: Box<dyn Stream>,
    size: u64,
    cookie: u64,
    slot: u64,
}

impl Client {
    /// Connects to the device of a server.
    ///
    /// # Errors
    /// Nobody answers, or not as an NBD server does.
    pub fn device(endpoint: &Endpoint) -> Result<Self, ClientError> {
        Self::connect(endpoint, "")
    }

    /// Connects to the control export of a server.
    ///
    /// # Errors
    /// As [`Client::device`]; the server may have none.
    pub fn control(endpoint: &Endpoint) -> Result<Self, ClientError> {
        Self::connect(endpoint, CONTROL_SUFFIX)
    }

    /// Connects to the export called `name`.
    ///
    /// # Errors
    /// As [`Client::device`]; the server may have none of that name.
    pub fn connect(endpoint: &Endpoint, name: &str) -> Result<Self, ClientError> {
        let stream: Box<dyn Stream> = match endpoint {
            Endpoint::Unix(path) => Box::new(UnixStream::connect(path)?),
            Endpoint::Tcp(address) => Box::new(TcpStream::connect_timeout(address, HANDSHAKE)?),
        };
        stream.set_timeout(HANDSHAKE)?;
        // Clients of one machine begin at different slots of the mailbox.
        let slot = u64::from(std::process::id());
        let mut client = Self { stream, size: 0, cookie: 0, slot };
        client.greet().map_err(as_foreign)?;
        client.go(name)?;
        client.stream.set_timeout(REPLY)?;
        Ok(client)
    }

    /// Size of the export in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Fills `buf` from `offset`.
    ///
    /// # Errors
    /// The server refused, or the connection failed.
    pub fn read(&mut self, offset: u64, buf: &mut [u8]) -> Result<(), ClientError> {
        self.ask(0, command::READ, offset, buf.len(), &[])?;
        Ok(self.stream.read_exact(buf)?)
    }

    /// Stores `data` at `offset`; with `fua` it is durable then.
    ///
    /// # Errors
    /// The server refused, or the connection failed.
    pub fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<(), ClientError> {
        let flags = if fua { flag::FUA } else { 0 };
        self.ask(flags, command::WRITE, offset, data.len(), data)
    }

    /// Makes everything durable that was answered.
    ///
    /// # Errors
    /// The server refused, or the connection failed.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.ask(0, command::FLUSH, 0, 0, &[])
    }

    fn greet(&mut self) -> Result<(), ClientError> {
        let greeting = (self.number::<8>()?, self.number::<8>()?);
        if greeting != (wire::GREETING, wire::OPTION) {
            return Err(ClientError::Foreign { found: "something else answers" });
        }
        let flags = self.number::<2>()?;
        if flags & u64::from(handshake::FIXED_NEWSTYLE) == 0 {
            return Err(ClientError::Foreign { found: "it speaks an old version of the protocol" });
        }
        let mine = u32::from(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES);
        Ok(self.stream.write_all(&mine.to_be_bytes())?)
    }

    /// Option GO, and its answers.
    fn go(&mut self, name: &str) -> Result<(), ClientError> {
        let mut data = short(name.len())?.to_be_bytes().to_vec();
        data.extend(name.as_bytes());
        data.extend(0_u16.to_be_bytes());
        let mut bytes = wire::OPTION.to_be_bytes().to_vec();
        bytes.extend(option::GO.to_be_bytes());
        bytes.extend(short(data.len())?.to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes)?;
        loop {
            let (kind, data) = self.answer()?;
            match kind {
                answer::ACK => return Ok(()),
                answer::INFO => self.note(&data),
                _ => {
                    let text = String::from_utf8_lossy(&data).into_owned();
                    return Err(ClientError::Export { name: name.to_owned(), text });
                }
            }
        }
    }

    fn answer(&mut self) -> Result<(u32, Vec<u8>), ClientError> {
        let magic = self.number::<8>()?;
        let (_, kind, len) = (self.word()?, self.word()?, self.word()?);
        if magic != wire::OPTION_REPLY || len > ANSWER_MAX {
            return Err(ClientError::Foreign { found: "its answer to an option makes no sense" });
        }
        let mut data = vec![0; onefold_units::convert::index(len)];
        self.stream.read_exact(&mut data)?;
        Ok((kind, data))
    }

    /// Takes the size from an answer about the export.
    fn note(&mut self, data: &[u8]) {
        if let Some((kind, rest)) = data.split_first_chunk()
            && u16::from_be_bytes(*kind) == info::EXPORT
            && let Some(size) = rest.first_chunk()
        {
            self.size = u64::from_be_bytes(*size);
        }
    }

    /// Sends a request and takes the head of its reply.
    fn ask(
        &mut self,
        flags: u16,
        kind: u16,
        offset: u64,
        len: usize,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        self.cookie += 1;
        let mut bytes = Vec::with_capacity(wire::REQUEST_BYTES + payload.len());
        bytes.extend(wire::REQUEST.to_be_bytes());
        bytes.extend(flags.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend(self.cookie.to_be_bytes());
        bytes.extend(offset.to_be_bytes());
        bytes.extend(short(len)?.to_be_bytes());
        bytes.extend(payload);
        self.stream.write_all(&bytes)?;
        let (magic, errno, cookie) = (self.word()?, self.word()?, self.number::<8>()?);
        if magic != wire::SIMPLE_REPLY || cookie != self.cookie {
            return Err(ClientError::Foreign { found: "its reply to a request makes no sense" });
        }
        if errno == 0 { Ok(()) } else { Err(ClientError::Request { errno }) }
    }

    /// A big-endian number of `N` bytes, at most 8.
    fn number<const N: usize>(&mut self) -> Result<u64, ClientError> {
        let mut bytes = [0; N];
        self.stream.read_exact(&mut bytes)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn word(&mut self) -> Result<u32, ClientError> {
        self.number::<4>().map(onefold_units::convert::low32)
    }
}

/// A length that one request or option may have.
fn short(len: usize) -> Result<u32, ClientError> {
    let fits = u32::try_from(len).ok().filter(|len| *len <= MAX_PAYLOAD);
    fits.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "longer than 32 MiB").into())
}

/// Silence, or a good-bye, in answer to a connection.
fn as_foreign(error: ClientError) -> ClientError {
    match error {
        ClientError::Io(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::UnexpectedEof
            ) =>
        {
            ClientError::Foreign { found: "who listens there sends no greeting" }
        }
        error => error,
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut bytes = wire::REQUEST.to_be_bytes().to_vec();
        bytes.extend([0, 0]);
        bytes.extend(command::DISC.to_be_bytes());
        bytes.resize(wire::REQUEST_BYTES, 0);
        // The server may be gone already.
        let _ = self.stream.write_all(&bytes);
    }
}

/// Through a control export. Each command takes the next slot.
impl Mailbox for Client {
    fn exchange(&mut self, block: &MailboxBlock) -> io::Result<MailboxBlock> {
        self.slot = (self.slot + 1) % SLOTS;
        let offset = self.slot * 4096;
        match self.write(offset, block, false) {
            // If it was refused, the slot says why.
            Ok(()) | Err(ClientError::Request { errno: EIO | EINVAL | ENOSPC }) => {}
            Err(error) => return Err(as_io(error)),
        }
        let mut reply = [0; 4096];
        self.read(offset, &mut reply).map_err(as_io)?;
        Ok(reply)
    }
}

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;

fn as_io(error: ClientError) -> io::Error {
    match error {
        ClientError::Io(error) => error,
        ClientError::Request { errno: 1 } => {
            io::Error::new(ErrorKind::PermissionDenied, "the device is served read-only")
        }
        other => io::Error::other(other.to_string()),
    }
}
