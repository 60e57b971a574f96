//! Replies to requests, simple and structured.

use onefold_units::Status;

use super::output::{Mark, Output};
use super::wire::{self, chunk};

/// Errors as the wire knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The export is read-only (EPERM).
    NotPermitted,
    /// The medium failed, or the device stopped after a failure (EIO).
    Io,
    /// The request is malformed or leaves the export (EINVAL).
    Invalid,
    /// A write leaves the export, or the device is full (ENOSPC).
    NoSpace,
    /// A fast zero would not be fast (ENOTSUP).
    NotSupported,
    /// The server is going down (ESHUTDOWN).
    Shutdown,
}

impl Error {
    /// The error number that the protocol defines.
    #[must_use]
    pub const fn code(self) -> u32 {
        match self {
            Self::NotPermitted => 1,
            Self::Io => 5,
            Self::Invalid => 22,
            Self::NoSpace => 28,
            Self::NotSupported => 95,
            Self::Shutdown => 108,
        }
    }
}

impl From<Status> for Error {
    /// Translates what a device answered. `Ok` is no error, so it counts as a fault of the device.
    fn from(status: Status) -> Self {
        match status {
            Status::InvalidField => Self::Invalid,
            Status::NoSpace => Self::NoSpace,
            Status::Ok | Status::MediaError | Status::Poisoned => Self::Io,
        }
    }
}

/// Bytes of a simple reply, and of the header of a simple reply with data.
const SIMPLE_BYTES: usize = 16;
/// Bytes of the header of a chunk.
const CHUNK_BYTES: usize = 20;

/// A simple reply's fixed part. `code` 0 means success.
pub(crate) fn simple(out: &mut Output, cookie: u64, code: u32) {
    let bytes = out.extend(SIMPLE_BYTES);
    bytes[0..4].copy_from_slice(&wire::SIMPLE_REPLY.to_be_bytes());
    bytes[4..8].copy_from_slice(&code.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
}

/// The header of a chunk whose payload of `len` bytes follows.
fn chunk_head(cookie: u64, flags: u16, kind: u16, len: u32) -> [u8; CHUNK_BYTES] {
    let mut bytes = [0; CHUNK_BYTES];
    bytes[0..4].copy_from_slice(&wire::STRUCTURED_REPLY.to_be_bytes());
    bytes[4..6].copy_from_slice(&flags.to_be_bytes());
    bytes[6..8].copy_from_slice(&kind.to_be_bytes());
    bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
    bytes[16..20].copy_from_slice(&len.to_be_bytes());
    bytes
}

fn chunk_header(out: &mut Output, cookie: u64, flags: u16, kind: u16, len: u32) {
    out.put(&chunk_head(cookie, flags, kind, len));
}

const fn done(last: bool) -> u16 {
    if last { chunk::DONE } else { 0 }
}

/// Bytes before the data of an `OFFSET_DATA` chunk.
pub(crate) const DATA_HEAD_BYTES: usize = CHUNK_BYTES + 8;
/// Bytes of an `OFFSET_HOLE` chunk.
pub(crate) const HOLE_BYTES: usize = CHUNK_BYTES + 12;

/// A run of bytes in the reply to a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    /// Whether it is the last chunk of its reply.
    pub(crate) last: bool,
}

/// Everything before the data of an `OFFSET_DATA` chunk.
pub(crate) fn data_head(run: &Run) -> [u8; DATA_HEAD_BYTES] {
    let mut bytes = [0; DATA_HEAD_BYTES];
    let head = chunk_head(run.cookie, done(run.last), chunk::OFFSET_DATA, run.len + 8);
    bytes[..CHUNK_BYTES].copy_from_slice(&head);
    bytes[CHUNK_BYTES..].copy_from_slice(&run.offset.to_be_bytes());
    bytes
}

/// An `OFFSET_HOLE` chunk.
pub(crate) fn hole_chunk(run: &Run) -> [u8; HOLE_BYTES] {
    let mut bytes = [0; HOLE_BYTES];
    let head = chunk_head(run.cookie, done(run.last), chunk::OFFSET_HOLE, 12);
    bytes[..CHUNK_BYTES].copy_from_slice(&head);
    bytes[CHUNK_BYTES..DATA_HEAD_BYTES].copy_from_slice(&run.offset.to_be_bytes());
    bytes[DATA_HEAD_BYTES..].copy_from_slice(&run.len.to_be_bytes());
    bytes
}

/// Bytes of a `BLOCK_STATUS` chunk.
pub(crate) const fn status_bytes(extents: usize) -> usize {
    CHUNK_BYTES + 4 + 8 * extents
}

/// A `BLOCK_STATUS` chunk that grows by one extent at a time.
pub(crate) struct StatusChunk<'a> {
    out: &'a mut Output,
    mark: Mark,
}

impl<'a> StatusChunk<'a> {
    pub(crate) fn new(out: &'a mut Output, cookie: u64) -> Self {
        let mark = out.mark();
        chunk_header(out, cookie, chunk::DONE, chunk::BLOCK_STATUS, 0);
        out.put(&wire::ALLOCATION_ID.to_be_bytes());
        Self { out, mark }
    }

    /// Appends an extent.
    pub(crate) fn push(&mut self, len: u32, mapped: bool) {
        self.out.put(&len.to_be_bytes());
        let state = if mapped { 0 } else { wire::STATE_HOLE_ZERO };
        self.out.put(&state.to_be_bytes());
        let chunk = self.out.since_mut(self.mark);
        // The caller bounds the number of extents far below what a length field can say.
        let len = u32::try_from(chunk.len() - CHUNK_BYTES).unwrap_or(u32::MAX);
        chunk[16..CHUNK_BYTES].copy_from_slice(&len.to_be_bytes());
    }
}

/// An error chunk without text; with the place of the error if that is known.
pub(crate) fn error_chunk(out: &mut Output, cookie: u64, error: Error, at: Option<u64>) {
    let (kind, len) = if at.is_some() { (chunk::ERROR_OFFSET, 14) } else { (chunk::ERROR, 6) };
    chunk_header(out, cookie, chunk::DONE, kind, len);
    out.put(&error.code().to_be_bytes());
    out.put(&0_u16.to_be_bytes());
    if let Some(offset) = at {
        out.put(&offset.to_be_bytes());
    }
}

/// How this connection wants its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyStyle {
    pub(super) structured: bool,
}

impl ReplyStyle {
    /// Whether structured replies were agreed on.
    #[must_use]
    pub const fn structured(self) -> bool {
        self.structured
    }

    /// Success without data. The protocol allows the short form in both styles.
    pub fn ok(self, out: &mut Output, cookie: u64) {
        simple(out, cookie, 0);
    }

    /// Failure.
    pub fn error(self, out: &mut Output, cookie: u64, error: Error) {
        if self.structured {
            error_chunk(out, cookie, error, None);
        } else {
            simple(out, cookie, error.code());
        }
    }
}
