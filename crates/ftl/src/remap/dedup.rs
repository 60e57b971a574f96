//! Deduplicated writes: a page whose content is stored already is remapped to it (remap.md
//! section 11; Wu 2022, section V-B).
//!
//! The index of fingerprints is a hint and volatile: what it finds was stored when it was entered, and
//! it is told when that moves or goes.

use onefold_format::RemapEntry;
use onefold_nand::{At, Grant, Media};
use onefold_units::convert::index;
use onefold_units::{Cause, Lpn, Ppn, Seq};

use super::room::For;
use crate::FtlError;
use crate::fingerprints::{Fingerprint, Origin};
use crate::ftl::Ftl;
use crate::read::is_intact;

/// What a deduplicated write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deduplicated {
    /// It was programmed: the content is new, or could not be shared.
    Written,
    /// It maps to a slot with that content now.
    Shared,
}

impl<M: Media> Ftl<M> {
    /// Writes one unit with a known content, as [`Ftl::write`] does, or remaps it to a slot that holds
    /// it. With `verify` a hit counts only if the bytes are equal.
    ///
    /// # Errors
    /// As [`Ftl::write`].
    #[expect(clippy::too_many_arguments, reason = "a write and its content")]
    pub fn write_content(
        &mut self,
        at: At,
        lpn: Lpn,
        pages: u64,
        stream: u32,
        data: &[u8],
        content: Fingerprint,
        verify: bool,
    ) -> Result<(Grant, Deduplicated), FtlError> {
        if let Some(grant) = self.share_content(at, lpn.raw(), data, content, verify)? {
            return Ok((grant, Deduplicated::Shared));
        }
        let grant = self.write(at, lpn, pages, stream, data)?;
        if let (Some(ppn), Some(contents)) = (self.map.stored(lpn.raw()), &mut self.contents) {
            contents.enter_written(content, ppn);
        }
        Ok((grant, Deduplicated::Written))
    }

    /// Remaps a unit to a slot with a content. `None` if there is none, or it cannot be shared.
    fn share_content(
        &mut self,
        at: At,
        lpn: u32,
        data: &[u8],
        content: Fingerprint,
        verify: bool,
    ) -> Result<Option<Grant>, FtlError> {
        const ATTEMPTS: u32 = 4;
        for _ in 0..ATTEMPTS {
            let held = self.map.stored(lpn);
            let contents = self.contents.as_mut();
            let Some((found, origin)) =
                contents.and_then(|contents| contents.source_for(lpn, held, content))
            else {
                return Ok(None);
            };
            if !self.may_share(found) {
                return Ok(None);
            }
            // A unit that waits for its page is programmed first. The slot that was found may be the one
            // that it replaces, and then it is gone.
            if self.map.stored(lpn).is_some_and(|slot| self.find_staged(slot).is_some()) {
                self.program_all_staged(at)?;
                continue;
            }
            let needs = [(self.nand.geometry().split(found).0, 1)];
            let moved = self.relocations();
            let at = At { ready: self.translate(at, lpn, true)?, ..at };
            if !self.reserve_log(at.now, &needs, For::Host)? {
                return Ok(None);
            }
            // Either may have collected the slot.
            if self.relocations() == moved {
                let shared = self.share_slot(at, lpn, found, data, verify)?;
                if shared.is_some() {
                    self.note_shared(content, origin);
                }
                return Ok(shared);
            }
        }
        Ok(None)
    }

    /// A write shares the page of a source.
    fn note_shared(&mut self, content: Fingerprint, origin: Origin) {
        if let Some(contents) = &mut self.contents {
            contents.served(content);
        }
        let pages = self.nand.geometry().pages_per_unit();
        match origin {
            Origin::Read => self.stats.saved.copy_read += pages,
            Origin::Write => self.stats.saved.copy_write += pages,
        }
    }

    /// The host asked to read units, well or not: [`DedupScope::Reads`](crate::DedupScope) does not
    /// take what is written there next for a copy.
    pub fn note_host_read(&mut self, first: Lpn, count: u32) {
        if let Some(contents) = &mut self.contents {
            for lpn in first.raw()..first.raw().saturating_add(count) {
                contents.note_read(lpn, self.map.stored(lpn));
            }
        }
    }

    /// The host read `content`, which a unit holds.
    pub fn note_content(&mut self, lpn: Lpn, content: Fingerprint) {
        if let (Some(slot), Some(contents)) = (self.map.stored(lpn.raw()), &mut self.contents) {
            contents.enter_read(content, slot);
        }
    }

    fn may_share(&self, slot: Ppn) -> bool {
        let Some(remap) = &self.remap else { return false };
        let max = remap.config.max_refs;
        // A slot that is not programmed yet cannot be relied on.
        (max == 0 || remap.refs.get(slot) < max) && self.find_staged(slot).is_none()
    }

    fn share_slot(
        &mut self,
        at: At,
        lpn: u32,
        slot: Ppn,
        data: &[u8],
        verify: bool,
    ) -> Result<Option<Grant>, FtlError> {
        let mut ready = at.ready;
        if verify {
            let (equal, done) = self.holds_bytes(at, slot, data);
            if !equal {
                return Ok(None);
            }
            ready = done;
        }
        if !self.moving.is_empty() {
            self.moving.remove(&lpn);
        }
        if self.map.stored(lpn) == Some(slot) {
            // The same content again.
            return Ok(Some(Grant { done: ready, delay: onefold_nand::Delay::None }));
        }
        self.seq += 1;
        let (superblock, slot) = self.nand.geometry().split(slot);
        let entry = RemapEntry::single(Seq::new(self.seq), Lpn::new(lpn), slot);
        let done = self.share_run(ready, superblock, entry)?;
        if let Some(remap) = &mut self.remap {
            remap.stats.deduplicated += 1;
        }
        self.checkpoint_after_write(at.now)?;
        Ok(Some(Grant { done, delay: onefold_nand::Delay::None }))
    }

    /// Whether a slot holds these bytes; without bytes it does. Also when that is known.
    fn holds_bytes(&mut self, at: At, slot: Ppn, data: &[u8]) -> (bool, onefold_units::Nanos) {
        let unit_bytes = self.nand.geometry().unit_bytes();
        let mut stored = vec![0; if M::STORES { index(unit_bytes) } else { 0 }];
        self.count_read(Cause::User, self.nand.geometry().pages_per_unit());
        let mut spare = onefold_nand::ERASED_SPARE;
        match self.nand.read(at, slot, unit_bytes, &mut stored, &mut spare) {
            // Its bytes may be right and its spare area damaged: a read would fail then.
            Ok(grant) if M::STORES => {
                let intact = is_intact(&spare, &[], self.epoch_of(slot));
                (intact && stored == data, grant.done)
            }
            Ok(grant) => (true, grant.done),
            // What cannot be compared counts as different.
            Err(_) => (false, at.ready),
        }
    }
}
