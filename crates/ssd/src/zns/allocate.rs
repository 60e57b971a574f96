//! Giving sets of blocks to zones and taking them back.

use onefold_format::{BlockSetState, SlotKind, ZoneCondition};
use onefold_nand::{At, Grant, Media, MediaError, Work};
use onefold_units::convert::u32_from;
use onefold_units::{Cause, ZoneId};

use super::device::{Zns, at_once, is_failed_program};
use super::{ZnsError, ZnsLayout, ZoneState};
use crate::times::join;

impl<M: Media> Zns<M> {
    /// The set of a zone; it gets one if it has none.
    pub(crate) fn take_set(&mut self, zone: ZoneId) -> Result<u32, ZnsError> {
        if let Some(set) = self.data[zone.index()].set {
            return Ok(set);
        }
        let set = self.take_erased().unwrap_or(Err(ZnsError::WriteFault { zone }))?;
        self.data[zone.index()].set = Some(set);
        self.record_zone(zone)?;
        Ok(set)
    }

    /// An erased set, marked as used (invariant 5). `None` if there is none.
    pub(crate) fn take_erased(&mut self) -> Option<Result<u32, ZnsError>> {
        let set = self.sets.next()?;
        Some(self.take(set).map(|()| set))
    }

    fn take(&mut self, set: u32) -> Result<(), ZnsError> {
        // In a file, the record of the zone that gave it back may not have survived yet (invariant 5).
        if self.given_back.contains(&set) {
            self.sync()?;
        }
        self.put_set(set, BlockSetState::Used, false)
    }

    pub(crate) fn put_set(
        &mut self,
        set: u32,
        state: BlockSetState,
        erased: bool,
    ) -> Result<(), ZnsError> {
        self.sets.put(set, state, erased);
        if !M::STORES {
            return Ok(());
        }
        let bytes = self.sets.record(set).encode(self.layout.id());
        let written = self.nand.media_mut().nvram_write(ZnsLayout::set_record_at(set), &bytes);
        written.map_err(ZnsError::Media)
    }

    /// Sets that no zone in service will need.
    #[must_use]
    pub fn spare_sets(&self) -> u32 {
        let waiting = self.table.sequential().filter(|zone| {
            let data = &self.data[zone.index()];
            data.set.is_none() && self.table.state(*zone) != ZoneState::Offline
        });
        self.sets.erased().saturating_sub(u32_from(waiting.count()))
    }

    /// Erases a set that no zone has. A failure takes it out of service.
    pub(crate) fn erase_set(&mut self, at: At, set: u32) -> Result<Grant, ZnsError> {
        if M::STORES {
            self.given_back.insert(set);
        }
        let layout = self.layout;
        let mut all = at_once(at.ready);
        for superblock in layout.superblocks(set) {
            match self.nand.erase(at, superblock) {
                Ok(grant) => all = join(all, grant),
                Err(MediaError::EraseFailed) => {
                    self.put_set(set, BlockSetState::Bad, true)?;
                    return Ok(all);
                }
                Err(error) => return Err(ZnsError::Media(error)),
            }
        }
        self.put_set(set, BlockSetState::Erased, true)?;
        Ok(all)
    }

    /// A program failed: the zone goes on in other blocks, or can only be read if there are none to spare.
    pub(crate) fn leave_failing(
        &mut self,
        at: At,
        zone: ZoneId,
        set: u32,
        pages: u32,
    ) -> Result<(), ZnsError> {
        let at = At { work: Work::Background, ..at };
        if self.spare_sets() > 0 && self.move_zone(at, zone, pages)? {
            return self.put_set(set, BlockSetState::Bad, false);
        }
        self.give_up(zone, ZoneCondition::ReadOnly)?;
        Err(ZnsError::WriteFault { zone })
    }

    /// Copies the first `pages` flash pages of a zone to an erased set and makes that the set of the zone. `false` if there
    /// is none that takes them.
    pub(crate) fn move_zone(&mut self, at: At, zone: ZoneId, pages: u32) -> Result<bool, ZnsError> {
        let Some(from) = self.data[zone.index()].set else { return Ok(false) };
        while let Some(to) = self.take_erased() {
            let to = to?;
            if self.copy_pages(at, zone, (from, to), pages)? {
                // What a record names is durable before it.
                self.sync()?;
                self.data[zone.index()].set = Some(to);
                self.record_zone(zone)?;
                self.stats.moves += 1;
                return Ok(true);
            }
            self.put_set(to, BlockSetState::Bad, false)?;
            if self.spare_sets() == 0 {
                break;
            }
        }
        Ok(false)
    }

    /// Copies flash pages from one set to another. `false` if a program failed.
    fn copy_pages(
        &mut self,
        at: At,
        zone: ZoneId,
        (from, to): (u32, u32),
        pages: u32,
    ) -> Result<bool, ZnsError> {
        for page in 0..pages {
            let blocks = self.layout.page();
            let first = page * blocks;
            let (mut bytes, mut spares) =
                (std::mem::take(&mut self.page), std::mem::take(&mut self.spares));
            let slot = self.layout.slot(from, first);
            let read = self.nand.read_slots(at, slot, blocks, &mut bytes, &mut spares);
            self.stats.reads.add(Cause::Gc, blocks.into());
            let ready = match read {
                Ok(grant) => grant.done,
                Err(MediaError::Unreadable) => {
                    // What is lost stays lost, and a read of it says so.
                    spares.clear();
                    let lost = |block| self.spare(zone, block, SlotKind::Lost, 0);
                    spares.extend((first..first + blocks).filter(|_| M::STORES).map(lost));
                    at.ready
                }
                Err(error) => return Err(ZnsError::Media(error)),
            };
            let (superblock, program) = self.layout.place(to, page);
            let at = At { ready, ..at };
            let programmed = self.nand.program(at, superblock, program, &spares, &bytes);
            (self.page, self.spares) = (bytes, spares);
            self.count_programs(Cause::Gc, blocks);
            match programmed {
                Ok(grant) => self.programmed_at = self.programmed_at.max(grant.done),
                Err(error) if is_failed_program(error) => return Ok(false),
                Err(error) => return Err(ZnsError::Media(error)),
            }
        }
        Ok(true)
    }

    /// Takes a zone out of service, for writing or altogether. The blocks of one that is offline are not used again.
    pub(crate) fn give_up(
        &mut self,
        zone: ZoneId,
        condition: ZoneCondition,
    ) -> Result<(), ZnsError> {
        let state = match condition {
            ZoneCondition::ReadOnly => ZoneState::ReadOnly,
            _ => ZoneState::Offline,
        };
        self.table.set(zone, state);
        let data = &mut self.data[zone.index()];
        data.condition = condition;
        let lost = if state == ZoneState::Offline { data.set.take() } else { None };
        self.record_zone(zone)?;
        lost.map_or(Ok(()), |set| self.put_set(set, BlockSetState::Bad, false))
    }
}
