//! Pieces of a device that belong together in an order: a journal, which file systems may store in fragments.

use crate::blocks::{Stop, expect};

/// Most pieces that a journal may have. What is in more is so mixed with other data that a place of its own is no gain.
pub(crate) const PIECES_MAX: usize = 512;

/// Bytes of the device in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Extent {
    /// First byte.
    pub at: u64,
    /// Length in bytes, not 0.
    pub bytes: u64,
}

impl Extent {
    /// First byte behind it.
    #[must_use]
    pub const fn end(self) -> u64 {
        self.at.saturating_add(self.bytes)
    }
}

/// Extents in the order of the journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ring {
    pieces: Vec<Extent>,
    bytes: u64,
}

impl Ring {
    /// Adds what comes next.
    pub(crate) fn push(&mut self, next: Extent) -> Result<(), Stop> {
        if next.bytes == 0 {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(next.bytes);
        if let Some(last) = self.pieces.last_mut().filter(|last| last.end() == next.at) {
            last.bytes = last.bytes.saturating_add(next.bytes);
        } else {
            expect(self.pieces.len() < PIECES_MAX, "its journal is in too many pieces")?;
            self.pieces.push(next);
        }
        Ok(())
    }

    pub(crate) fn of(extent: Extent) -> Self {
        Self { pieces: vec![extent], bytes: extent.bytes }
    }

    pub(crate) fn pieces(&self) -> &[Extent] {
        &self.pieces
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether no byte of the device is in it twice.
    pub(crate) fn is_disjoint(&self) -> bool {
        let mut sorted = self.pieces.clone();
        sorted.sort_unstable();
        sorted.is_sorted_by(|a, b| a.end() <= b.at)
    }

    /// The part from position `from` to position `to`.
    pub(crate) fn part(&self, from: u64, to: u64) -> Self {
        let mut part = Self::default();
        let mut position = 0_u64;
        for piece in &self.pieces {
            let end = position.saturating_add(piece.bytes);
            let (first, last) = (from.max(position), to.min(end));
            if first < last {
                let at = piece.at.saturating_add(first - position);
                part.pieces.push(Extent { at, bytes: last - first });
                part.bytes = part.bytes.saturating_add(last - first);
            }
            position = end;
        }
        part
    }

    /// Where on the device a position lies.
    pub(crate) fn locate(&self, position: u64) -> Option<u64> {
        let mut skipped = 0_u64;
        for piece in &self.pieces {
            let inside = position.checked_sub(skipped)?;
            if inside < piece.bytes {
                return piece.at.checked_add(inside);
            }
            skipped = skipped.saturating_add(piece.bytes);
        }
        None
    }

    /// The position of a byte of the device.
    pub(crate) fn position(&self, at: u64) -> Option<u64> {
        let mut skipped = 0_u64;
        for piece in &self.pieces {
            if (piece.at..piece.end()).contains(&at) {
                return skipped.checked_add(at - piece.at);
            }
            skipped = skipped.saturating_add(piece.bytes);
        }
        None
    }
}
