//! Requests of the host.
//!
//! 1. A request is taken as a whole or not at all; a trim may be taken in part.
//! 2. A write is done when all batches that its blocks went into are complete.
//!
//! Every call is there twice: for the device, and for a member (`crate::snapshots`).

use onefold_format::checksum;
use onefold_format::volume::DataRecord;
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Lba, Location};

use crate::io::Refusal;
use crate::limits::{BLOCK, CLEAN_RECORDS_MAX};
use crate::log::{BatchId, Stream};
use crate::map::page::{Entry, PAGE_ENTRIES_U64};
use crate::map::{Map, Ready};
use crate::plan::ReadPlan;
use crate::range::{REQUEST_BLOCKS_MAX, Range};
use crate::snapshots::{MemberId, Spot};
use crate::volume::Volume;

impl Volume {
    pub(crate) fn check_range(&self, slot: usize, range: Range, most: u64) -> Result<(), Refusal> {
        let end = range.lba.raw().checked_add(range.blocks);
        let inside = end.is_some_and(|end| end <= self.end_of(slot));
        if inside && range.blocks > 0 && range.blocks <= most {
            Ok(())
        } else {
            Err(Refusal::InvalidField)
        }
    }

    /// Whether the volume takes changes.
    fn check_change(&self) -> Result<(), Refusal> {
        if self.frozen.is_some() || self.checkpoint.is_closing() {
            return Err(Refusal::ReadOnly);
        }
        if let Some(why) = self.stall.why() {
            return Err(Refusal::Backing(why));
        }
        // `crate::map::counting`, invariant 1.
        if self.members.is_alone() || self.is_counted() { Ok(()) } else { Err(Refusal::Busy) }
    }

    /// The place of a member.
    fn slot_for(&self, member: MemberId) -> Result<usize, Refusal> {
        self.members.slot_of(member).ok_or(Refusal::NoMember)
    }

    /// The place of a member that takes changes.
    pub(crate) fn slot_to_change(&self, member: MemberId) -> Result<usize, Refusal> {
        let slot = self.slot_for(member)?;
        self.check_change()?;
        if self.members.of(slot).read_only { Err(Refusal::WriteProtected) } else { Ok(slot) }
    }

    /// The keys of the pages of a member's range.
    fn keys_of(slot: usize, range: Range) -> std::ops::RangeInclusive<usize> {
        let first = index64(range.lba.raw() / PAGE_ENTRIES_U64);
        let last = index64((range.lba.raw() + range.blocks - 1) / PAGE_ENTRIES_U64);
        Map::key(slot, first)..=Map::key(slot, last)
    }

    /// Pages of one request must not make room for one another: they stay until the next checkpoint counts.
    fn keep_pages(&mut self, pages: std::ops::RangeInclusive<usize>) {
        let number = self.checkpoint.committed() + 1;
        pages.for_each(|page| self.map.keep(page, number));
    }

    /// Makes room for map pages of a range that map nothing yet. Comes before [`Volume::need_pages`], because pages that
    /// others make room for may be of the range.
    fn need_new_pages(&mut self, slot: usize, range: Range) -> Result<(), Refusal> {
        let keys = Self::keys_of(slot, range);
        let new = keys.clone().filter(|key| self.map.ready(*key) == Ready::Empty).count();
        if new == 0 {
            return Ok(());
        }
        self.keep_pages(keys);
        if self.make_room(new) { Ok(()) } else { Err(Refusal::Busy) }
    }

    /// Makes sure that all map pages of a range can be looked up; asks for those that are missing.
    pub(crate) fn need_pages(&mut self, slot: usize, range: Range) -> Result<(), Refusal> {
        let keys = Self::keys_of(slot, range);
        let mut ready = Ok(());
        for key in keys.clone() {
            match self.map.ready(key) {
                Ready::Yes | Ready::Empty => {}
                // Who asks again may have better luck: some errors pass.
                Ready::Damaged if self.tells_damage(key) => return Err(Refusal::MediaError),
                Ready::Loading => ready = Err(Refusal::Busy),
                Ready::Missing | Ready::Damaged => {
                    self.load_page(key);
                    ready = Err(Refusal::Busy);
                }
            }
        }
        if ready.is_err() {
            self.keep_pages(keys);
        }
        ready
    }

    /// Most blocks of a write, at least 32: as many as fit a log segment beside the headers of short batches. The host is let on while one
    /// may be taken for it, and a write that took several would take those that the map and the cleaner need.
    #[must_use]
    pub fn write_blocks_max(&self) -> u32 {
        let batch =
            self.log.service().shortest(self.batch_memory(Stream::User).min(CLEAN_RECORDS_MAX + 1));
        let segment = self.segment_blocks();
        REQUEST_BLOCKS_MAX.min(segment - segment.div_ceil(batch))
    }

    /// Takes a write of at most [`Volume::write_blocks_max`] blocks. It is reported done under `tag` when a read after a
    /// restart of the volume would find it, short of a power cut; with `fua` even then. `data` is absent only where
    /// blocks carry no bytes.
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn write(
        &mut self,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal> {
        self.write_to(MemberId::DEVICE, tag, range, data, fua)
    }

    /// Takes a write to a member that can be written. As [`Volume::write`].
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn write_to(
        &mut self,
        member: MemberId,
        tag: u64,
        range: Range,
        data: Option<&[u8]>,
        fua: bool,
    ) -> Result<(), Refusal> {
        let slot = self.slot_to_change(member)?;
        self.check_range(slot, range, self.write_blocks_max().into())?;
        self.need_new_pages(slot, range)?;
        self.need_pages(slot, range)?;
        self.need_sharers(slot, range)?;
        self.need_space(slot, range)?;
        let blocks = onefold_units::convert::narrow(range.blocks);
        let stream = self.stream_of(Spot { slot, lba: range.lba }, blocks);
        if !self.can_append(stream, blocks) || !self.cleaner_keeps_pace() {
            return Err(self.why_busy(stream));
        }
        let request = self.answers.begin(tag, fua);
        let mut last = None;
        for at in 0..blocks {
            let lba = Lba::new(range.lba.raw() + u64::from(at));
            let data = data.map(|data| &data[index(at) * BLOCK..index(at + 1) * BLOCK]);
            let batch = self.put(stream, Spot { slot, lba }, data);
            if last != Some(batch) {
                self.wait_for(request, batch);
                last = Some(batch);
            }
        }
        self.stats.written += range.blocks;
        self.cleaner_owes(blocks);
        Ok(())
    }

    /// A request waits for a batch, once.
    pub(crate) fn wait_for(&mut self, request: u32, batch: BatchId) {
        let waiters = &mut self.log.batch_mut(batch).waiters;
        if !waiters.contains(&request) {
            waiters.push(request);
            self.answers.wait(request);
        }
    }

    /// Where a write goes, by its first block.
    fn stream_of(&mut self, here: Spot, blocks: u32) -> Stream {
        if here.slot == 0
            && let Some(stream) = self.stream_of_class(here.lba)
        {
            return stream;
        }
        let hot = self.options.hot_cold && self.heat.touch(Map::place(here.lba).0, blocks);
        if hot { Stream::Hot } else { Stream::User }
    }

    /// Why a stream takes nothing now. Where log segments are short, a checkpoint that makes some available begins: those that
    /// are free count only when a root lists them.
    pub(crate) fn why_busy(&mut self, stream: Stream) -> Refusal {
        let is_short = self.takeable(stream) == 0;
        if is_short && self.fit_set() {
            return Refusal::Busy;
        }
        if self.segments.free_count() <= self.kept_from(stream)
            && !self.can_free()
            && !self.give_up_set()
            && !self.has_errors()
        {
            return Refusal::NoSpace;
        }
        if is_short {
            self.stall.note_short(self.now);
            self.stats.clean_stalls += 1;
            let gains = self.segments.empty_count() > 0 || self.segments.can_list_more();
            if !self.checkpoint.is_running() && (gains || self.gains_by_moving_meta()) {
                self.checkpoint.want();
            }
        }
        Refusal::Busy
    }

    /// Puts a block into a batch of the stream, or over an older version of it that was not sent yet.
    fn put(&mut self, stream: Stream, here: Spot, data: Option<&[u8]>) -> BatchId {
        let crc = data.map_or(0, checksum);
        let old = self.map.get(here.in_map());
        if let Some(batch) = self.batch_of(old.at)
            && self.log.batch(batch).seq.is_none()
            && self.log.batch(batch).stream.is_user()
        {
            self.replace(batch, here, Entry { at: old.at, crc }, data);
            return batch;
        }
        let id = self.batch_with_room(stream);
        let batch = self.log.batch_mut(id);
        let (at, slot) = (batch.next_location(), index(batch.records.blocks()));
        let birth = self.members.of(here.slot).birth;
        batch.records.data.push(DataRecord { lba: here.lba, birth, crc });
        if let Some(data) = data {
            batch.block_mut(slot).copy_from_slice(data);
        }
        let segment = batch.segment;
        let old = self.map.set(here.in_map(), Entry { at, crc });
        self.gain(at);
        if stream.is_journal() {
            let again = old.at.is_block() && self.layout.segment_of(old.at) == segment;
            self.journal.note(stream, again);
        }
        self.unlink(here, old.at);
        self.send_full(id);
        id
    }

    /// Replaces a block of a batch that was not sent yet.
    fn replace(&mut self, id: BatchId, here: Spot, entry: Entry, data: Option<&[u8]>) {
        let batch = self.log.batch_mut(id);
        let slot = batch.index_of(entry.at);
        batch.records.data[slot].crc = entry.crc;
        if let Some(data) = data {
            batch.block_mut(slot).copy_from_slice(data);
        }
        self.map.set(here.in_map(), entry);
        self.stats.absorbed += 1;
    }

    /// Makes everything durable that was reported done before; reported under `tag`.
    ///
    /// # Errors
    /// The volume is read-only.
    pub fn flush(&mut self, tag: u64) -> Result<(), Refusal> {
        self.check_change()?;
        self.stats.flushes += 1;
        self.send_user();
        self.flush_at(tag, self.log.seq());
        Ok(())
    }

    /// Looks up a read of at most [`REQUEST_BLOCKS_MAX`] blocks. What is in memory or maps nothing is put into `buffer`
    /// at once; `plan` says what is to be read from the backing. If there is any, [`Volume::end_read`] has to follow.
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn read(
        &mut self,
        range: Range,
        buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal> {
        self.read_from(MemberId::DEVICE, range, buffer, plan)
    }

    /// Looks up a read of a member. As [`Volume::read`].
    ///
    /// # Errors
    /// Nothing was done then.
    pub fn read_from(
        &mut self,
        member: MemberId,
        range: Range,
        mut buffer: Option<&mut [u8]>,
        plan: &mut ReadPlan,
    ) -> Result<(), Refusal> {
        let slot = self.slot_for(member)?;
        self.check_range(slot, range, REQUEST_BLOCKS_MAX.into())?;
        self.need_pages(slot, range).map_err(|refusal| self.refuse(refusal))?;
        plan.clear();
        for block in 0..onefold_units::convert::narrow(range.blocks) {
            let lba = Lba::new(range.lba.raw() + u64::from(block));
            let entry = self.map.get(Spot { slot, lba }.in_map());
            let into = buffer
                .as_deref_mut()
                .map(|all| &mut all[index(block) * BLOCK..index(block + 1) * BLOCK]);
            if entry.at == Location::LOST {
                plan.clear();
                return Err(Refusal::MediaError);
            }
            if !entry.at.is_block() {
                if let Some(into) = into {
                    into.fill(0);
                }
                continue;
            }
            let batch = self.batch_of(entry.at).map(|id| self.log.batch(id));
            let at = batch.map_or(Some(entry.at), |batch| batch.source_of(entry.at));
            if let Some(at) = at {
                let (at, slot) = self.layout.split(at);
                plan.push(block, at, self.layout.stride());
                if slot.is_packed() {
                    plan.packed.push((block, slot));
                }
                if self.options.verify {
                    plan.sums.push(entry.crc);
                }
            } else if let (Some(batch), Some(into)) = (batch, into) {
                batch.copy_block(batch.index_of(entry.at), into);
                // What the cleaner read may have been damaged there.
                let is_copy = batch.stream == Stream::Clean;
                if self.options.verify && is_copy && checksum(into) != entry.crc {
                    plan.clear();
                    self.stats.crc_errors += 1;
                    return Err(Refusal::MediaError);
                }
            }
        }
        for run in &plan.runs {
            self.segments.pin(self.layout.segment_of(run.at));
        }
        self.stats.read += range.blocks;
        self.stats.read_runs += u64_from(plan.runs.len());
        Ok(())
    }

    /// Whether the first block of a range is mapped, and how many blocks from there on are alike.
    ///
    /// # Errors
    /// As for reads.
    pub fn mapped(&mut self, range: Range) -> Result<(bool, u64), Refusal> {
        self.mapped_of(MemberId::DEVICE, range)
    }

    /// Whether the first block of a range of a member is mapped. As [`Volume::mapped`].
    ///
    /// # Errors
    /// As for reads.
    pub fn mapped_of(&mut self, member: MemberId, range: Range) -> Result<(bool, u64), Refusal> {
        let slot = self.slot_for(member)?;
        self.check_range(slot, range, u64::MAX)?;
        self.alike(slot, range).map_err(|refusal| self.refuse(refusal))
    }

    /// As [`Volume::mapped`], of any blocks of the map.
    pub(crate) fn alike(&mut self, slot: usize, range: Range) -> Result<(bool, u64), Refusal> {
        let page_end = (range.lba.raw() / PAGE_ENTRIES_U64 + 1) * PAGE_ENTRIES_U64;
        let end = (range.lba.raw() + range.blocks).min(page_end);
        self.need_pages(slot, Range { blocks: end - range.lba.raw(), ..range })?;
        let first = Map::lba_of(slot, Lba::new(0)).raw();
        let mut is_mapped = |lba| self.map.get(Lba::new(first + lba)).at != Location::UNMAPPED;
        let first = is_mapped(range.lba.raw());
        let alike =
            (range.lba.raw()..end).take_while(|lba| is_mapped(*lba) == first).map(|_| 1).sum();
        Ok((first, alike))
    }

    /// Ends a read that had runs: their log segments may be given back from now on.
    pub fn end_read(&mut self, plan: &ReadPlan) {
        for run in &plan.runs {
            self.segments.unpin(self.layout.segment_of(run.at));
        }
    }

    /// Notes blocks whose checksum was wrong.
    pub fn count_crc_errors(&mut self, blocks: u64) {
        self.stats.crc_errors += blocks;
    }
}
