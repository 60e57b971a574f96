//! The journal block map of a zoned volume of policy `dmz`, which dm-zoned does not know (zoned.md, section 5).
//!
//! It lies behind the validity bits of a metadata set. Its first block names the zones of the journal zone set, each in a slot:
//! magic 4 | slots 4 | 0 8 | per slot: zone 4, all ones for none | stream 4 | order 8. The blocks behind it have 8 bytes for each
//! block of each slot: the block of the volume that was written there. It counts if it is valid.

use onefold_units::ZoneId;
use onefold_units::convert::{index, narrow, u64_from};
use thiserror::Error;

use crate::bytes::{Reader, Writer};
use crate::dmz::DMZ_BLOCK_BYTES;

/// First bytes of a journal block map, little-endian: "DBZJ".
const MAGIC: u32 = 0x4A5A_4244;
const HEAD_BYTES: usize = 16;
const NO_ZONE: u32 = u32::MAX;

/// Bytes of the entry of a block.
pub const DMZ_JOURNAL_ENTRY_BYTES: usize = 8;

/// Most slots: the first block has no room for more.
pub const DMZ_JOURNAL_SLOTS_MAX: u32 = 255;

/// Blocks of a journal block map of so many slots; none has none.
#[must_use]
pub fn dmz_journal_blocks(slots: u32, zone_blocks: u32) -> u32 {
    let bytes = u64::from(slots) * u64::from(zone_blocks) * u64_from(DMZ_JOURNAL_ENTRY_BYTES);
    let table = bytes.div_ceil(u64_from(DMZ_BLOCK_BYTES));
    if slots == 0 { 0 } else { narrow(1 + table) }
}

/// A zone of the journal zone set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DmzJournalSlot {
    /// Which one.
    pub zone: ZoneId,
    /// It takes journal headers and fast-commit blocks, not the log.
    pub is_hot: bool,
    /// Zones taken later have a higher one.
    pub order: u64,
}

/// The first block of a journal block map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DmzJournalHead {
    /// The zones; a slot may have none.
    pub slots: Vec<Option<DmzJournalSlot>>,
}

/// Why a block is not the first one of a journal block map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DmzJournalError {
    /// It begins otherwise.
    #[error("it begins with {found:#010x}, expected {MAGIC:#010x}")]
    Magic {
        /// The first four bytes.
        found: u32,
    },
    /// Too many slots.
    #[error("{found} slots, expected 1 to {DMZ_JOURNAL_SLOTS_MAX}")]
    Slots {
        /// How many it says.
        found: u32,
    },
    /// No such stream.
    #[error("a zone of stream {found}, expected 0 or 1")]
    Stream {
        /// What it says.
        found: u32,
    },
}

impl DmzJournalHead {
    /// The bytes of the block. Panics with more than [`DMZ_JOURNAL_SLOTS_MAX`] slots.
    #[must_use]
    pub fn encode(&self) -> Box<[u8; DMZ_BLOCK_BYTES]> {
        let mut block = Box::new([0; DMZ_BLOCK_BYTES]);
        let mut writer = Writer::new(&mut block[..]);
        writer.uint(MAGIC.into(), 4);
        writer.uint(u64_from(self.slots.len()), 4);
        writer.uint(0, 8);
        for slot in &self.slots {
            writer.uint(slot.map_or(NO_ZONE, |slot| slot.zone.raw()).into(), 4);
            writer.uint(slot.is_some_and(|slot| slot.is_hot).into(), 4);
            writer.uint(slot.map_or(0, |slot| slot.order), 8);
        }
        block
    }

    /// What the block says. Whether there are such zones is not judged.
    ///
    /// # Errors
    /// [`DmzJournalError`].
    pub fn decode(block: &[u8; DMZ_BLOCK_BYTES]) -> Result<Self, DmzJournalError> {
        let mut reader = Reader::new(block);
        let mut word = || reader.u32().unwrap_or_default();
        let (magic, count) = (word(), word());
        if magic != MAGIC {
            return Err(DmzJournalError::Magic { found: magic });
        }
        if !(1..=DMZ_JOURNAL_SLOTS_MAX).contains(&count) {
            return Err(DmzJournalError::Slots { found: count });
        }
        let mut reader = Reader::new(&block[HEAD_BYTES..]);
        let mut word = || reader.u32().unwrap_or_default();
        let mut slots = Vec::with_capacity(index(count));
        for _ in 0..count {
            let (zone, stream) = (word(), word());
            let order = u64::from(word()) | u64::from(word()) << 32;
            if stream > 1 {
                return Err(DmzJournalError::Stream { found: stream });
            }
            let slot = DmzJournalSlot { zone: ZoneId::new(zone), is_hot: stream == 1, order };
            slots.push((zone != NO_ZONE).then_some(slot));
        }
        Ok(Self { slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> DmzJournalHead {
        let slot = |zone, is_hot, order| DmzJournalSlot { zone: ZoneId::new(zone), is_hot, order };
        DmzJournalHead { slots: vec![Some(slot(0x0102, false, 7)), None, Some(slot(3, true, 9))] }
    }

    #[test]
    fn every_field_has_its_place() {
        let bytes = head().encode();
        assert_eq!(&bytes[..8], b"DBZJ\x03\0\0\0");
        assert_eq!(bytes[16..32], [2, 1, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[32..48], [255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[48..64], [3, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(DmzJournalHead::decode(&bytes), Ok(head()));
    }

    #[test]
    fn what_is_no_map_is_told() {
        let bytes = head().encode();
        let changed = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            DmzJournalHead::decode(&bytes).unwrap_err()
        };
        assert_eq!(changed(0, 0), DmzJournalError::Magic { found: 0x4A5A_4200 });
        assert_eq!(changed(4, 0), DmzJournalError::Slots { found: 0 });
        assert_eq!(changed(5, 1), DmzJournalError::Slots { found: 259 });
        assert_eq!(changed(20, 2), DmzJournalError::Stream { found: 2 });
        let full = vec![None; usize::try_from(DMZ_JOURNAL_SLOTS_MAX).unwrap()];
        assert_eq!(DmzJournalHead::decode(&DmzJournalHead { slots: full.clone() }.encode()), {
            Ok(DmzJournalHead { slots: full })
        });
    }

    #[test]
    fn blocks_follow_the_slots() {
        assert_eq!(dmz_journal_blocks(0, 16_384), 0);
        assert_eq!(dmz_journal_blocks(1, 16), 2);
        assert_eq!(dmz_journal_blocks(4, 16_384), 129);
        assert_eq!(DMZ_BLOCK_BYTES, HEAD_BYTES + 16 * index(DMZ_JOURNAL_SLOTS_MAX));
    }
}
