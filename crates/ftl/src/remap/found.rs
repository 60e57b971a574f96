//! The remap log as the medium has it.

use onefold_format::RemapEntry;

use super::groups::{LogPage, Segment};

/// The log as the medium has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundLog {
    /// By superblock.
    pub(crate) groups: Vec<FoundGroup>,
    /// Units that the checkpoint maps to another unit's slot although no entry says so: theirs was in a
    /// damaged part of the log.
    pub(super) strays: Vec<u32>,
}

/// The log of one superblock.
#[derive(Clone, Debug, Default)]
pub(crate) struct FoundGroup {
    pub(super) pages: Vec<(u64, LogPage)>,
    pub(super) segments: Vec<Segment>,
    /// All entries by number and slot, and the longest of them: for looking one up.
    pub(super) sorted: Vec<RemapEntry>,
    pub(super) longest: u16,
}

impl FoundGroup {
    pub(crate) fn entries(&self) -> impl Iterator<Item = &RemapEntry> {
        let pages = self.pages.iter().flat_map(|(_, page)| &page.entries);
        pages.chain(self.segments.iter().flat_map(|segment| &segment.entries))
    }

    /// Whether an entry with that number maps a unit to a slot.
    pub(crate) fn maps(&self, lpn: u32, slot: u32, seq: u64) -> bool {
        let key = |entry: &RemapEntry| (entry.seq.raw(), entry.slot);
        let end = self.sorted.partition_point(|entry| key(entry) <= (seq, slot));
        let first = slot.saturating_sub(u32::from(self.longest));
        let near = self.sorted[..end].iter().rev();
        near.take_while(|entry| key(entry) >= (seq, first))
            .any(|entry| entry.slot_of(lpn) == Some(slot))
    }

    pub(super) fn finish(&mut self) {
        self.pages.sort_by_key(|(written, _)| *written);
        self.segments.sort_by_key(|segment| segment.life);
        self.sorted = self.entries().copied().collect();
        self.sorted.sort_by_key(|entry| (entry.seq, entry.slot));
        self.longest = self.sorted.iter().map(|entry| entry.len).max().unwrap_or(0);
    }
}
