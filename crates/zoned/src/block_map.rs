//! The journal block map: where blocks of the journal lie in the sequential zones of the journal zone set.
//!
//! In memory it goes from blocks to places, as stored the other way round ([`onefold_format::DmzJournalHead`]): zones are only
//! appended to, so a write changes one place of the table. Which entries of the table count is told by the validity bits, which
//! are the volume's.

use std::collections::{BTreeMap, BTreeSet};

use onefold_format::{
    DMZ_BLOCK_BYTES, DMZ_JOURNAL_ENTRY_BYTES, DMZ_JOURNAL_SLOTS_MAX, DmzJournalHead,
    DmzJournalSlot, dmz_journal_blocks,
};
use onefold_units::ZoneId;
use onefold_units::convert::{index, u32_from};

use crate::error::JournalFault;

/// Entries of a block of the table.
const ENTRIES: usize = DMZ_BLOCK_BYTES / DMZ_JOURNAL_ENTRY_BYTES;

/// What a zone of the set takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// The ring of a journal.
    Log,
    /// Journal headers and fast-commit blocks.
    Hot,
}

impl Stream {
    /// Stable name for results: that of the class of its blocks.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Log => "jlog",
            Self::Hot => "jhot",
        }
    }
}

/// A zone of the set.
#[derive(Clone, Debug)]
pub(crate) struct SetZone {
    pub(crate) zone: ZoneId,
    pub(crate) stream: Stream,
    slot: u32,
    order: u64,
    /// Valid blocks that writes under way take the place of.
    pub(crate) dying: u32,
}

/// Where a block lies: zone, and block from its start.
pub(crate) type Spot = (ZoneId, u32);

#[derive(Clone, Debug, Default)]
pub(crate) struct BlockMap {
    zone_blocks: u32,
    slots: u32,
    places: BTreeMap<u64, Spot>,
    /// Oldest first.
    zones: Vec<SetZone>,
    /// Blocks of the volume, by slot and block of its zone.
    table: Vec<u64>,
    /// Blocks of the map that differ from what is stored.
    dirty: BTreeSet<u32>,
    /// How many of them there are is not what is stored.
    is_reshaped: bool,
}

impl BlockMap {
    pub(crate) fn new(zone_blocks: u32) -> Self {
        Self { zone_blocks, ..Self::default() }
    }

    /// A map as it was read; no block has a place yet.
    pub(crate) fn of(zone_blocks: u32, bytes: &[u8]) -> Result<Self, JournalFault> {
        let mut map = Self::new(zone_blocks);
        let Some(first) = bytes.first_chunk() else { return Ok(map) };
        let head = DmzJournalHead::decode(first).map_err(JournalFault::Head)?;
        map.slots = u32_from(head.slots.len());
        let (found, expected) = (u32_from(bytes.len() / DMZ_BLOCK_BYTES), map.blocks());
        if found != expected {
            return Err(JournalFault::Blocks { found, expected });
        }
        let entries = bytes[DMZ_BLOCK_BYTES..].chunks_exact(DMZ_JOURNAL_ENTRY_BYTES);
        let entries = entries.filter_map(|entry| Some(u64::from_le_bytes(*entry.first_chunk()?)));
        map.table = entries.take(index(map.slots) * index(zone_blocks)).collect();
        let slots = (0..).zip(&head.slots).filter_map(|(at, slot)| Some((at, (*slot)?)));
        map.zones = slots
            .map(|(slot, DmzJournalSlot { zone, is_hot, order })| {
                let stream = if is_hot { Stream::Hot } else { Stream::Log };
                SetZone { zone, stream, slot, order, dying: 0 }
            })
            .collect();
        map.zones.sort_by_key(|zone| zone.order);
        Ok(map)
    }

    /// Blocks of 4 KiB that it takes in a metadata set.
    pub(crate) fn blocks(&self) -> u32 {
        dmz_journal_blocks(self.slots, self.zone_blocks)
    }

    /// Most slots that fit so many blocks of a metadata set.
    pub(crate) fn slots_in(zone_blocks: u32, blocks: u32) -> u32 {
        let fits = |slots: &u32| dmz_journal_blocks(*slots, zone_blocks) <= blocks;
        (1..=DMZ_JOURNAL_SLOTS_MAX).take_while(fits).last().unwrap_or(0)
    }

    /// There are at least so many slots from now on.
    pub(crate) fn reserve(&mut self, slots: u32) {
        if slots > self.slots {
            self.slots = slots;
            self.table.resize(index(slots) * index(self.zone_blocks), 0);
            self.is_reshaped = true;
            self.dirty = (0..self.blocks()).collect();
        }
    }

    /// Without zones there is no map.
    pub(crate) fn drop_if_empty(&mut self) {
        if self.zones.is_empty() && self.slots > 0 {
            *self = Self { is_reshaped: true, ..Self::new(self.zone_blocks) };
        }
    }

    /// The zones, oldest first.
    pub(crate) fn zones(&self) -> &[SetZone] {
        &self.zones
    }

    pub(crate) fn zone_mut(&mut self, zone: ZoneId) -> Option<&mut SetZone> {
        self.zones.iter_mut().find(|one| one.zone == zone)
    }

    /// A zone joins the set. There has to be room.
    pub(crate) fn open(&mut self, zone: ZoneId, stream: Stream) {
        let is_free = |slot: &u32| self.zones.iter().all(|one| one.slot != *slot);
        let slot = (0..self.slots).find(is_free).expect("a free slot");
        let order = self.zones.last().map_or(0, |last| last.order.wrapping_add(1));
        self.zones.push(SetZone { zone, stream, slot, order, dying: 0 });
        self.dirty.insert(0);
    }

    /// A zone without valid blocks leaves the set.
    pub(crate) fn close(&mut self, zone: ZoneId) {
        self.zones.retain(|one| one.zone != zone);
        self.dirty.insert(0);
    }

    fn slot_of(&self, zone: ZoneId) -> Option<u32> {
        self.zones.iter().find(|one| one.zone == zone).map(|one| one.slot)
    }

    fn entry_at(&self, (zone, at): Spot) -> Option<usize> {
        Some(index(self.slot_of(zone)?) * index(self.zone_blocks) + index(at))
    }

    /// The block of the volume that was written there.
    pub(crate) fn block_at(&self, spot: Spot) -> Option<u64> {
        self.table.get(self.entry_at(spot)?).copied()
    }

    pub(crate) fn place(&self, lba: u64) -> Option<Spot> {
        self.places.get(&lba).copied()
    }

    /// The first block from `lba` on that has a place.
    pub(crate) fn next(&self, lba: u64) -> Option<u64> {
        self.places.range(lba..).next().map(|(lba, _)| *lba)
    }

    /// Where a block lies, and how many from it on, at most `blocks`, follow it there, or lie nowhere as it does.
    pub(crate) fn run(&self, lba: u64, blocks: u32) -> (Option<Spot>, u32) {
        let first = self.place(lba);
        let follows = |after: &u32| {
            let place = self.place(lba + u64::from(*after));
            place == first.map(|(zone, at)| (zone, at + after))
        };
        let len = (1..blocks).take_while(follows).last().map_or(1, |last| last + 1);
        (first, len)
    }

    /// A block lies there from now on. Gives where it lay.
    pub(crate) fn put(&mut self, lba: u64, spot: Spot) -> Option<Spot> {
        let at = self.entry_at(spot).expect("a zone of the set");
        self.table[at] = lba;
        self.dirty.insert(1 + u32_from(at / ENTRIES));
        self.places.insert(lba, spot)
    }

    /// A block that was found in the table. `false` if it has a place already.
    pub(crate) fn found(&mut self, lba: u64, spot: Spot) -> bool {
        self.places.insert(lba, spot).is_none()
    }

    /// A block lies in the set no more. Gives where it lay.
    pub(crate) fn take(&mut self, lba: u64) -> Option<Spot> {
        self.places.remove(&lba)
    }

    /// Blocks that lie in the set.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Every block has to be written.
    pub(crate) fn touch_all(&mut self) {
        self.dirty = (0..self.blocks()).collect();
    }

    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty() || self.is_reshaped
    }

    /// Blocks that have to be written, with their bytes as they are now, and whether there are other ones than stored; from now
    /// on all count as written.
    pub(crate) fn take_dirty(&mut self) -> (Vec<(u32, Vec<u8>)>, bool) {
        let dirty = std::mem::take(&mut self.dirty);
        let blocks = dirty.into_iter().filter(|block| *block < self.blocks());
        let blocks = blocks.map(|block| (block, self.block(block))).collect();
        (blocks, std::mem::take(&mut self.is_reshaped))
    }

    /// Bytes of a block of the map.
    fn block(&self, block: u32) -> Vec<u8> {
        if block == 0 {
            let mut slots = vec![None; index(self.slots)];
            for SetZone { zone, stream, slot, order, .. } in &self.zones {
                let (is_hot, zone, order) = (*stream == Stream::Hot, *zone, *order);
                slots[index(*slot)] = Some(DmzJournalSlot { zone, is_hot, order });
            }
            return DmzJournalHead { slots }.encode().to_vec();
        }
        let first = index(block - 1) * ENTRIES;
        let entries = self.table[first..].iter().take(ENTRIES);
        let mut bytes: Vec<u8> = entries.flat_map(|lba| lba.to_le_bytes()).collect();
        bytes.resize(DMZ_BLOCK_BYTES, 0);
        bytes
    }
}
