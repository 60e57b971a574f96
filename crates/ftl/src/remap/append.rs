//! Writing entries to the log.

use onefold_format::{EpochLimit, RemapEntry, SegmentHead};
use onefold_nand::Media;
use onefold_units::convert::{index, u32_from, u64_from};
use onefold_units::{Nanos, Ppn, SuperblockId};

use super::groups::{NO_SEGMENT, Segment, Segments};
use crate::FtlError;
use crate::ftl::Ftl;

impl<M: Media> Ftl<M> {
    /// Adds an entry to the group of a superblock; room for it was reserved. It is durable after
    /// [`Ftl::write_log`].
    pub(crate) fn append_entry(
        &mut self,
        superblock: SuperblockId,
        entry: RemapEntry,
    ) -> Result<(), FtlError> {
        let Some(remap) = &mut self.remap else { return Ok(()) };
        let (per_segment, run_max) = (remap.per_segment(), remap.config.run_max());
        if remap.change(superblock, |group| group.merge(&entry, run_max)) {
            return Ok(());
        }
        let is_full = remap.groups[superblock.index()].room(per_segment) == 0;
        let segment = if is_full { Some(self.take_segment()?) } else { None };
        let Some(remap) = &mut self.remap else { return Ok(()) };
        remap.change(superblock, |group| {
            group.segments.extend(segment);
            group.push(entry);
        });
        remap.global_entries += 1;
        if remap.unwritten.last() != Some(&superblock) {
            remap.unwritten.push(superblock);
        }
        Ok(())
    }

    /// Takes a free segment. Its life is a number from the allocator of epochs, which are never given
    /// out twice: no entry of an earlier use can pass for one of this.
    pub(crate) fn take_segment(&mut self) -> Result<Segment, FtlError> {
        let Some(remap) = &mut self.remap else { return Err(FtlError::NoSpace) };
        if !remap.config.scheme.is_local() {
            let life = 0;
            let entries = Vec::new();
            return Ok(Segment { id: NO_SEGMENT, life, entries, written: None, sealed: false });
        }
        let id = remap.segments.free.pop().ok_or(FtlError::NoSpace)?;
        remap.segments.uses[index(id)] += 1;
        let per_segment = index(remap.config.entries_per_segment());
        if M::STORES && self.alloc >= self.epoch_limit {
            self.reserve_epochs()?;
        }
        let life = self.alloc;
        self.alloc += 1;
        let Some(remap) = &mut self.remap else { return Err(FtlError::NoSpace) };
        let entries = remap.segments.spare.pop();
        let entries = entries.unwrap_or_else(|| Vec::with_capacity(per_segment));
        Ok(Segment { id, life, entries, written: None, sealed: false })
    }

    /// Puts what was appended on the medium; returns when NVRAM has it, if it may begin at `ready`.
    pub(crate) fn write_log(&mut self, ready: Nanos) -> Result<Nanos, FtlError> {
        let Some(remap) = &mut self.remap else { return Ok(ready) };
        let mut bytes = 0;
        while let Some(superblock) = remap.unwritten.pop() {
            let epoch = self.superblocks[superblock.index()].epoch;
            let entry_bytes = u64::from(remap.config.entry_bytes());
            let group = &mut remap.groups[superblock.index()];
            for segment in group.segments.iter_mut().rev() {
                let written = segment.written.unwrap_or(0);
                let end = u32_from(segment.entries.len());
                if segment.written == Some(end) {
                    break;
                }
                bytes += u64::from(end - written) * entry_bytes;
                if M::STORES && segment.id != NO_SEGMENT {
                    let head = SegmentHead { superblock, epoch, life: segment.life };
                    let (at, image) = encode(segment, &head);
                    let offset = self.layout.nvram.segment(segment.id) + at;
                    self.nand.media_mut().nvram_write(offset, &image)?;
                }
                segment.written = Some(end);
            }
        }
        let done = remap.port.write(ready, bytes);
        self.program_global_pages(ready);
        Ok(done)
    }

    /// Notes in NVRAM that more epochs may be in use. A power cut of the host may take headers whose
    /// slots are still there; if their epoch was given out again, an erase that is lost as well would
    /// revive them.
    pub(crate) fn reserve_epochs(&mut self) -> Result<(), FtlError> {
        const EPOCHS_AT_ONCE: u64 = 1024;
        self.epoch_limit = self.alloc + EPOCHS_AT_ONCE;
        let limit = EpochLimit { epoch: self.epoch_limit };
        self.nand.media_mut().nvram_write(self.layout.nvram.epoch_limit, &limit.encode())?;
        self.sync()
    }

    /// A unit is not mapped to `old` any more: what the log and the reference counts say about that.
    #[inline]
    pub(crate) fn end_mapping(&mut self, lpn: u32, old: Ppn) {
        if self.remap.is_some() {
            self.end_remap(lpn, old);
        }
    }

    #[inline(never)]
    fn end_remap(&mut self, lpn: u32, old: Ppn) {
        if let Some(remap) = &mut self.remap
            && remap.units.has(lpn)
        {
            let in_flash = remap.units.is_in_flash(lpn);
            remap.units.clear(lpn);
            let (superblock, _) = self.nand.geometry().split(old);
            remap.note_dead(superblock, lpn, in_flash);
        }
    }

    /// The group of an erased superblock is given up.
    pub(crate) fn drop_group(&mut self, superblock: SuperblockId) {
        let Some(remap) = &mut self.remap else { return };
        let group = remap.change(superblock, std::mem::take);
        let entries: usize = group.segments.iter().map(|segment| segment.entries.len()).sum();
        remap.global_entries = remap.global_entries.saturating_sub(u64_from(entries));
        remap.unwritten.retain(|unwritten| *unwritten != superblock);
        for page in &group.pages {
            let (log, _) = self.nand.geometry().split(page.ppn);
            remap.superblocks.live[log.index()] -= 1;
        }
        self.give_back(group.segments);
    }

    /// Segments are not needed any more, once the medium is synchronised.
    pub(crate) fn give_back(&mut self, segments: impl IntoIterator<Item = Segment>) {
        let Some(remap) = &mut self.remap else { return };
        let Segments { free, waiting, spare, .. } = &mut remap.segments;
        let list = if M::STORES { waiting } else { free };
        for Segment { id, mut entries, .. } in segments {
            if id != NO_SEGMENT {
                entries.clear();
                spare.push(entries);
                list.push(id);
            }
        }
    }
}

/// The bytes of a segment that are not on the medium yet, and where in it they begin.
fn encode(segment: &Segment, head: &SegmentHead) -> (u64, Vec<u8>) {
    let mut image = Vec::new();
    let from = segment.written.unwrap_or(0);
    let mut at = 0;
    if segment.written.is_none() {
        image.extend_from_slice(&head.encode());
    } else {
        at = u64_from(SegmentHead::BYTES + index(from) * RemapEntry::BYTES);
    }
    for entry in segment.entries.iter().skip(index(from)) {
        image.extend_from_slice(&entry.encode(segment.life));
    }
    (at, image)
}
