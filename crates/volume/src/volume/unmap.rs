//! Trims of the host.

use onefold_format::volume::{BatchRecords, TrimRecord, trims_max};
use onefold_units::convert::u64_from;
use onefold_units::{Lba, Location};

use crate::io::Refusal;
use crate::log::Stream;
use crate::map::page::{Entry, PAGE_ENTRIES_U64};
use crate::range::Range;
use crate::snapshots::{MemberId, Spot};
use crate::volume::Volume;

/// Most map pages that one call of [`Volume::trim`] looks at.
const TRIM_PAGES_MAX: u64 = 64;

impl Volume {
    /// Takes the first blocks of a trim, and says how many. Reported done under `tag` like a write.
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn trim(&mut self, tag: u64, range: Range) -> Result<u64, Refusal> {
        self.trim_of(MemberId::DEVICE, tag, range)
    }

    /// Takes the first blocks of a trim of a member that can be written. As [`Volume::trim`].
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn trim_of(&mut self, member: MemberId, tag: u64, range: Range) -> Result<u64, Refusal> {
        let slot = self.slot_to_change(member)?;
        self.check_range(slot, range, u64::MAX)?;
        let blocks = self.trim_part(slot, range, Some(tag))?;
        self.stats.trimmed += blocks;
        Ok(blocks)
    }

    /// Takes the first blocks of a trim, and says how many.
    pub(crate) fn trim_part(
        &mut self,
        slot: usize,
        range: Range,
        tag: Option<u64>,
    ) -> Result<u64, Refusal> {
        let page_start = range.lba.raw() / PAGE_ENTRIES_U64 * PAGE_ENTRIES_U64;
        // All of them have to be in memory at once.
        let members = self.members.slots().count();
        let pages = TRIM_PAGES_MAX.min(u64_from(self.options.map_pages / 4 / members).max(1));
        let end = (range.lba.raw() + range.blocks).min(page_start + pages * PAGE_ENTRIES_U64);
        let range = Range { blocks: end - range.lba.raw(), ..range };
        self.need_pages(slot, range)?;
        self.need_sharers(slot, range)?;
        // One batch for what has to be sent first, and one for the record itself.
        if !self.can_append(Stream::User, 1) || self.log.batches_left(Stream::User) < 2 {
            return Err(self.why_busy(Stream::User));
        }
        self.unmap(slot, range);
        self.record_trim(slot, tag, range);
        Ok(range.blocks)
    }

    /// Unmaps a range, page by page. Blocks that were not sent yet are sent before the trim.
    fn unmap(&mut self, slot: usize, range: Range) {
        for raw in range.lba.raw()..range.lba.raw() + range.blocks {
            let here = Spot { slot, lba: Lba::new(raw) };
            let old = self.map.get(here.in_map());
            if old.at == Location::UNMAPPED {
                continue;
            }
            if let Some(batch) = self.batch_of(old.at)
                && self.log.batch(batch).seq.is_none()
                && self.log.batch(batch).stream.is_user()
            {
                self.send(batch);
            }
            // Where it lies since it was sent.
            let old = self.map.set(here.in_map(), Entry::UNMAPPED);
            self.unlink(here, old.at);
        }
    }

    fn record_trim(&mut self, slot: usize, tag: Option<u64>, range: Range) {
        let open = self.log.stream(Stream::User).open;
        let full = open.is_some_and(|open| {
            let records = &self.log.batch(open).records;
            // Room is kept for a record of every block that may still come.
            records.trims.len() >= trims_max(BatchRecords::Data, usize::from(u8::MAX), 0)
        });
        if full {
            self.send_open(Stream::User);
        }
        let id = self.batch_with_room(Stream::User);
        let birth = self.members.of(slot).birth;
        let record = TrimRecord { lba: range.lba, birth, blocks: range.blocks };
        self.log.batch_mut(id).records.trims.push(record);
        if let Some(tag) = tag {
            let request = self.answers.begin(tag, false);
            self.wait_for(request, id);
        }
    }
}
