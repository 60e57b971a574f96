//! What of a log is live: from its tail on as far as it was written. A hint, as all here: blocks behind the tail are still
//! read back as they were written.

use onefold_units::Nanos;

use crate::jbd2;
use crate::parsed::{Journal, Tail};
use crate::xfs;

/// What is known of the tail, in bytes from the beginning of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Unknown,
    /// Nothing in the log is needed. Something may have been written to it since.
    Empty {
        written: bool,
    },
    /// From there on so many bytes may be needed.
    At {
        tail: u64,
        reach: u64,
    },
}

/// What a write to a journal header was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderWrite {
    /// The tail is in it, and nothing else has changed.
    Tail,
    /// The journal is another one now, or there is no telling.
    Other,
}

/// A journal in use.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub(crate) journal: Journal,
    pub(crate) position: Position,
    /// When the log or its header was written, or the journal was found.
    pub(crate) active: Nanos,
    /// It is not in use: its blocks are data.
    pub(crate) is_quiet: bool,
}

impl Live {
    pub(crate) fn new(journal: Journal, now: Nanos) -> Self {
        let bytes = journal.log.bytes();
        let position = match &journal.tail {
            Tail::Jbd2 { header, .. } => {
                header.tail().map_or(Position::Empty { written: false }, |tail| Position::At {
                    tail,
                    reach: bytes,
                })
            }
            Tail::Xfs => Position::Unknown,
        };
        Self { journal, position, active: now, is_quiet: false }
    }

    /// Takes over what a new reading found, if that is the same journal.
    pub(crate) fn renew(&mut self, new: &Journal) -> bool {
        let is_same = match (&self.journal.tail, &new.tail) {
            (Tail::Jbd2 { header, at }, Tail::Jbd2 { header: newer, at: newer_at }) => {
                at == newer_at && header.is_like(newer)
            }
            (Tail::Xfs, Tail::Xfs) => true,
            _ => false,
        };
        if !is_same || self.journal.owner != new.owner || self.journal.log != new.log {
            return false;
        }
        if let Tail::Jbd2 { header, .. } = &new.tail {
            self.move_tail(header.tail());
        }
        true
    }

    /// The log was written up to byte `end` of the device. Says whether that lies in it.
    pub(crate) fn written(&mut self, now: Nanos, end: u64) -> bool {
        let Some(last) = end.checked_sub(1).and_then(|last| self.journal.log.position(last)) else {
            return false;
        };
        self.active = now;
        let bytes = self.journal.log.bytes();
        match &mut self.position {
            Position::Unknown => {}
            Position::Empty { written } => *written = true,
            Position::At { tail, reach } => *reach = (*reach).max(ahead(last, *tail, bytes) + 1),
        }
        true
    }

    /// A record of XFS was written to the log: it names the tail.
    pub(crate) fn record(&mut self, data: &[u8]) {
        if self.journal.tail != Tail::Xfs {
            return;
        }
        let tail = xfs::Record::parse(data).map(|record| record.tail_position());
        if let Some(tail) = tail.filter(|tail| *tail < self.journal.log.bytes()) {
            self.move_tail(Some(tail));
        }
    }

    /// Bytes from `at` on were written over the journal header, in part or as a whole; `None` if this does not touch it.
    pub(crate) fn header_write(
        &mut self,
        now: Nanos,
        at: u64,
        bytes: u64,
        data: Option<&[u8]>,
    ) -> Option<HeaderWrite> {
        let Tail::Jbd2 { header, at: place } = &self.journal.tail else { return None };
        let (end, place) = (at.saturating_add(bytes), *place);
        if at >= place.saturating_add(header.block_bytes.into()) || end <= place {
            return None;
        }
        self.active = now;
        let skip = usize::try_from(place.checked_sub(at)?).ok()?;
        let newer = data
            .and_then(|data| data.get(skip..skip.checked_add(jbd2::HEADER_BYTES)?))
            .and_then(|bytes| jbd2::Header::parse(bytes, header.is_fast).ok())
            .filter(|newer| newer.is_like(header));
        let Some(newer) = newer else { return Some(HeaderWrite::Other) };
        let is_alone = at == place && bytes <= header.block_bytes.into();
        self.move_tail(newer.tail());
        Some(if is_alone { HeaderWrite::Tail } else { HeaderWrite::Other })
    }

    fn move_tail(&mut self, to: Option<u64>) {
        let bytes = self.journal.log.bytes();
        self.position = match (self.position, to) {
            (Position::Empty { written }, None) => Position::Empty { written },
            (_, None) => Position::Empty { written: false },
            // What was written before the tail was known may lie anywhere.
            (Position::Unknown | Position::Empty { written: true }, Some(tail)) => {
                Position::At { tail, reach: bytes }
            }
            (Position::Empty { written: false }, Some(tail)) => Position::At { tail, reach: 0 },
            (Position::At { tail: old, reach }, Some(tail)) => {
                Position::At { tail, reach: reach.saturating_sub(ahead(tail, old, bytes)) }
            }
        };
    }

    /// Byte of the device where the tail lies.
    pub(crate) fn tail(&self) -> Option<u64> {
        match self.position {
            Position::At { tail, .. } => self.journal.log.locate(tail),
            _ => None,
        }
    }

    /// Whether no recovery would read this byte of the log. `None` if it does not lie in the log.
    pub(crate) fn is_dead(&self, at: u64) -> Option<bool> {
        let position = self.journal.log.position(at)?;
        Some(match self.position {
            Position::Unknown => false,
            Position::Empty { written } => !written,
            Position::At { tail, reach } => {
                ahead(position, tail, self.journal.log.bytes()) >= reach
            }
        })
    }

    /// Whether nothing needs the log.
    pub(crate) const fn is_empty(&self) -> bool {
        matches!(self.position, Position::Empty { .. })
    }
}

/// How far position `to` lies ahead of position `from` in a ring of `bytes`.
fn ahead(to: u64, from: u64, bytes: u64) -> u64 {
    to.checked_sub(from).unwrap_or_else(|| bytes.saturating_sub(from).saturating_add(to))
}
