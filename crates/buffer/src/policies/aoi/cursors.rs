//! Where writes to a chunk ended: what tells a continuation without asking the FTL.

use onefold_units::convert::{index, u64_from};

use super::lat::Piece;

const CURSORS: u32 = 4096;

/// The page after the latest write to a chunk. Chunks that are 4096 apart share a cursor, so memory
/// does not grow with the device.
#[derive(Clone, Debug)]
pub(super) struct Cursors(Box<[u32]>);

onefold_units::keep!(Cursors(ends));

impl Cursors {
    /// Cursors at page 0.
    pub(super) fn new() -> Self {
        Self(vec![0; index(CURSORS)].into_boxed_slice())
    }

    /// Memory of all cursors.
    pub(super) fn bytes() -> u64 {
        u64::from(CURSORS) * u64_from(size_of::<u32>())
    }

    fn at(&mut self, chunk: u32) -> &mut u32 {
        &mut self.0[index(chunk % CURSORS)]
    }

    /// Whether a write goes on where the latest one in its chunk ended. It may write the last pages
    /// of that one again, up to half of its own: a log rewrites the page that it had not filled.
    pub(super) fn continues(&mut self, piece: &Piece) -> bool {
        let again = self.at(piece.chunk).checked_sub(piece.first);
        again.is_some_and(|again| u64::from(again) * 2 <= u64::from(piece.n))
    }

    /// Sets the cursor of a chunk.
    pub(super) fn set(&mut self, chunk: u32, page: u32) {
        *self.at(chunk) = page;
    }
}
