//! Moving the content of a victim's slots, and what becomes of content that cannot be read.

use onefold_format::{SlotKind, SpareState, checksum};
use onefold_nand::{At, ERASED_SPARE, Media, MediaError};
use onefold_units::convert::index;
use onefold_units::{Cause, Ppn, SuperblockId};

use crate::FtlError;
use crate::frontier::Entry;
use crate::ftl::Ftl;
use crate::layout::{LOST, NO_OWNER};
use crate::remap::Primary;
use crate::unit::Unit;

/// A valid slot of a victim that is to be moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moving {
    pub(crate) pool: u32,
    pub(crate) victim: SuperblockId,
    pub(crate) slot: u32,
    /// Times the victim was read through before.
    pub(crate) pass: u32,
    pub(crate) cause: Cause,
}

impl<M: Media> Ftl<M> {
    /// Moves one valid slot to the collection frontier, with its sequence number. Tells why it cannot be read now, if so;
    /// it stays as it is then.
    #[inline]
    pub(crate) fn relocate(
        &mut self,
        at: At,
        frontier: u32,
        moving: Moving,
    ) -> Result<Option<MediaError>, FtlError> {
        let Moving { pool, victim, slot, pass, cause } = moving;
        let ppn = self.nand.geometry().ppn(victim, slot);
        let Some((lpn, seq)) = self.primary(pool, slot, ppn, pass) else {
            // Its successor is staged; finish() sees to it.
            return Ok(None);
        };
        let pages = self.nand.geometry().pages_per_unit();
        self.stats.reads.add(cause, pages);
        let mut scratch = std::mem::take(&mut self.scratch);
        let unit_bytes = self.nand.geometry().unit_bytes();
        let mut spare = ERASED_SPARE;
        let read = self.nand.read(at, ppn, unit_bytes, &mut scratch, &mut spare);
        let moved = match read {
            Ok(grant) => {
                let (kind, written) = judge_copy::<M>(&spare, &scratch);
                let absorbs = seq.is_some() && lpn != NO_OWNER;
                let seq = seq.unwrap_or(written);
                let at = At { ready: grant.done, ..at };
                let entry = Entry { kind, cause, pages };
                let data = if kind == SlotKind::Lost { &[][..] } else { &scratch[..] };
                let moved = self.append_here(
                    at,
                    pool,
                    frontier,
                    Unit { lpn, seq, entry, data, moves_from: Some(ppn) },
                );
                if let Some(cache) = &mut self.map_cache {
                    cache.mark_dirty(lpn / self.layout.entries_per_unit);
                }
                if absorbs && let Some(remap) = &mut self.remap {
                    remap.stats.absorbed += 1;
                }
                moved.map(|_| None)
            }
            Err(MediaError::Unreadable) => {
                self.relocate_lost(at, pool, frontier, ppn, cause, (lpn, seq)).map(|()| None)
            }
            Err(error @ MediaError::Backing { .. }) => {
                self.stats.media_failures += 1;
                Ok(Some(error))
            }
            Err(error) => Err(error.into()),
        };
        self.scratch = scratch;
        moved
    }

    /// The content of a slot is gone: a marker takes its place, so that reading the unit stays an
    /// error and never turns into older data or zeroes.
    #[cold]
    fn relocate_lost(
        &mut self,
        at: At,
        pool: u32,
        frontier: u32,
        ppn: Ppn,
        cause: Cause,
        (lpn, seq): Primary,
    ) -> Result<(), FtlError> {
        self.stats.media_failures += 1;
        let (_, slot) = self.nand.geometry().split(ppn);
        let others = if M::STORES { Vec::new() } else { self.followers(pool, slot, ppn) };
        let written = match self.nand.media_mut().read(ppn, &mut []) {
            Ok(spare) => match SpareState::decode(&spare) {
                SpareState::Programmed(record) => record.seq.raw(),
                _ => self.seq,
            },
            Err(_) => self.seq,
        };
        let pages = self.nand.geometry().pages_per_unit();
        let entry = Entry { kind: SlotKind::Lost, cause, pages };
        self.append(
            at,
            pool,
            frontier,
            Unit { lpn, seq: seq.unwrap_or(written), entry, data: &[], moves_from: Some(ppn) },
        )?;
        if !M::STORES {
            // Without bytes there is no marker to read: the map remembers it.
            let others = others.iter().map(|referrer| referrer.lpn);
            for lpn in std::iter::once(lpn).chain(others).filter(|lpn| *lpn != NO_OWNER) {
                self.unmap(lpn);
                self.map.l2p.set(index(lpn), LOST);
            }
        }
        Ok(())
    }
}

/// What a copied slot is now, and its sequence number: a copy whose checksum is wrong is lost.
fn judge_copy<M: Media>(spare: &onefold_nand::Spare, data: &[u8]) -> (SlotKind, u64) {
    if !M::STORES {
        return (SlotKind::Data, 0);
    }
    match SpareState::decode(spare) {
        SpareState::Programmed(record) => {
            let whole = record.data_crc == 0 || record.data_crc == checksum(data);
            let kind = if whole { record.kind } else { SlotKind::Lost };
            (kind, record.seq.raw())
        }
        SpareState::Erased | SpareState::Damaged => (SlotKind::Lost, 0),
    }
}
