//! Requests: decoding and the checks that need no device.

use super::cursor::Cursor;
use super::reply::Error;
use super::wire::{self, MAX_PAYLOAD, REQUEST_BYTES, command, flag};
use super::{CloseReason, Export};

/// A checked request: its range lies in the export and its flags fit its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's name of the request.
    pub cookie: u64,
    /// What to do.
    pub command: Command,
}

/// What a request asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send data.
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes, at least 1.
        len: u32,
        /// Answer with one chunk of data, holes filled in.
        whole: bool,
    },
    /// Store the payload.
    Write {
        /// First byte.
        offset: u64,
        /// Durable before the reply.
        fua: bool,
    },
    /// Make durable what was replied to.
    Flush,
    /// Discard.
    Trim {
        /// First byte.
        offset: u64,
        /// Number of bytes, at least 1.
        len: u32,
        /// Durable before the reply.
        fua: bool,
    },
    /// Make the range read as zeroes.
    WriteZeroes {
        /// First byte.
        offset: u64,
        /// Number of bytes, at least 1.
        len: u32,
        /// Whether the range may be deallocated.
        may_unmap: bool,
        /// Durable before the reply.
        fua: bool,
    },
    /// Tell what is allocated.
    BlockStatus {
        /// First byte.
        offset: u64,
        /// Number of bytes, at least 1.
        len: u32,
        /// Answer with one extent only.
        one: bool,
    },
}

/// What a request header turned out to be.
pub(super) enum Decoded {
    /// A request, and the bytes of payload that follow it.
    Request(Request, u32),
    /// To be refused once its payload is skipped.
    Refused {
        cookie: u64,
        error: Error,
        payload: u32,
    },
    /// The client says good-bye.
    Disconnect,
    Close(CloseReason),
}

struct Header {
    flags: u16,
    kind: u16,
    cookie: u64,
    offset: u64,
    len: u32,
}

fn header(bytes: &[u8; REQUEST_BYTES]) -> Option<Header> {
    let mut cursor = Cursor::new(bytes);
    if cursor.u32()? != wire::REQUEST {
        return None;
    }
    Some(Header {
        flags: cursor.u16()?,
        kind: cursor.u16()?,
        cookie: cursor.u64()?,
        offset: cursor.u64()?,
        len: cursor.u32()?,
    })
}

/// What was agreed on in the handshake.
#[derive(Clone, Copy)]
pub(super) struct Agreed {
    pub structured: bool,
    pub allocation: bool,
}

pub(super) fn decode(bytes: &[u8; REQUEST_BYTES], export: &Export, agreed: Agreed) -> Decoded {
    let Some(header) = header(bytes) else { return Decoded::Close(CloseReason::RequestMagic) };
    if header.kind == command::DISC {
        return Decoded::Disconnect;
    }
    let payload = if header.kind == command::WRITE { header.len } else { 0 };
    if payload > MAX_PAYLOAD {
        return Decoded::Close(CloseReason::PayloadTooLong);
    }
    match check(&header, export, agreed) {
        Ok(command) => Decoded::Request(Request { cookie: header.cookie, command }, payload),
        Err(error) => Decoded::Refused { cookie: header.cookie, error, payload },
    }
}

fn check(header: &Header, export: &Export, agreed: Agreed) -> Result<Command, Error> {
    let &Header { flags, kind, offset, len, .. } = header;
    let fua = flags & flag::FUA != 0;
    allow(flags, allowed_flags(kind, agreed)?)?;
    match kind {
        command::READ => {
            if len > MAX_PAYLOAD {
                return Err(Error::Invalid);
            }
            in_range(header, export, Error::Invalid)?;
            Ok(Command::Read { offset, len, whole: flags & flag::DF != 0 })
        }
        command::WRITE => {
            writable(export)?;
            in_range(header, export, Error::NoSpace)?;
            Ok(Command::Write { offset, fua })
        }
        command::FLUSH => Ok(Command::Flush),
        command::TRIM => {
            writable(export)?;
            in_range(header, export, Error::Invalid)?;
            Ok(Command::Trim { offset, len, fua })
        }
        command::WRITE_ZEROES => {
            writable(export)?;
            in_range(header, export, Error::NoSpace)?;
            // Whole pages are a change of the map; anything else reads and rewrites a page.
            let whole_pages = (offset | u64::from(len)).is_multiple_of(onefold_units::PAGE_BYTES);
            if flags & flag::FAST_ZERO != 0 && !whole_pages {
                return Err(Error::NotSupported);
            }
            Ok(Command::WriteZeroes { offset, len, may_unmap: flags & flag::NO_HOLE == 0, fua })
        }
        _ => {
            in_range(header, export, Error::Invalid)?;
            Ok(Command::BlockStatus { offset, len, one: flags & flag::REQ_ONE != 0 })
        }
    }
}

/// The flags that may accompany a request type; an error for types that are not served.
fn allowed_flags(kind: u16, agreed: Agreed) -> Result<u16, Error> {
    match kind {
        command::READ if agreed.structured => Ok(flag::DF),
        command::READ | command::FLUSH => Ok(0),
        command::WRITE | command::TRIM => Ok(flag::FUA),
        command::WRITE_ZEROES => Ok(flag::FUA | flag::NO_HOLE | flag::FAST_ZERO),
        command::BLOCK_STATUS if agreed.allocation => Ok(flag::REQ_ONE),
        _ => Err(Error::Invalid),
    }
}

fn allow(flags: u16, allowed: u16) -> Result<(), Error> {
    if flags & !allowed == 0 { Ok(()) } else { Err(Error::Invalid) }
}

fn writable(export: &Export) -> Result<(), Error> {
    if export.read_only { Err(Error::NotPermitted) } else { Ok(()) }
}

fn in_range(header: &Header, export: &Export, beyond: Error) -> Result<(), Error> {
    if header.len == 0 {
        return Err(Error::Invalid);
    }
    match header.offset.checked_add(u64::from(header.len)) {
        Some(end) if end <= export.size => Ok(()),
        _ => Err(beyond),
    }
}
