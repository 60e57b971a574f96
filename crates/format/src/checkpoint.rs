//! What NVRAM says about checkpoints: the label of the newest one, and the synchronisation mark.

use onefold_units::{Seq, SuperblockId};

use crate::bytes::{Reader, Writer, checked_body, seal};

const MAGIC: u64 = 0x4B43_464F; // "OFCK"
const MARK_MAGIC: u64 = 0x4D53_464F; // "OFSM"
const LIMIT_MAGIC: u64 = 0x4C45_464F; // "OFEL"
const FIXED_BYTES: usize = 48;

/// Version of the checkpoint label.
pub const LABEL_VERSION: u64 = 1;

/// How far an open superblock was programmed at the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Frontier {
    /// The superblock.
    pub superblock: SuperblockId,
    /// Slots programmed by then.
    pub slots: u32,
}

onefold_units::keep!(Frontier { superblock, slots });

/// A committed checkpoint: magic 4 | version 2 | 0 2 | generation 8 | seq 8 | alloc 8 | map pages 4
/// | superblocks 4 | frontiers 4 | 0 4 | superblock ids 4 each | frontiers 8 each | crc 4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckpointLabel {
    /// Number of the checkpoint; 0 = none was taken.
    pub generation: u64,
    /// C of remap.md section 7: mapping changes up to this one are in the map pages.
    pub seq: Seq,
    /// Superblocks allocated from this epoch on came after the cut.
    pub alloc: u64,
    /// Number of map pages.
    pub map_pages: u32,
    /// Superblocks that hold the map pages, in order.
    pub superblocks: Vec<SuperblockId>,
    /// Open superblocks at the cut.
    pub frontiers: Vec<Frontier>,
}

onefold_units::keep!(CheckpointLabel { generation, seq, alloc, map_pages, superblocks, frontiers });

impl CheckpointLabel {
    /// Bytes a label can take on a device with that many superblocks and open superblocks.
    #[must_use]
    pub const fn max_bytes(superblocks: u64, frontiers: u64) -> u64 {
        // FIXED_BYTES + checksum, in u64.
        52 + superblocks * 4 + frontiers * 8
    }

    /// The bytes of the label.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let len = FIXED_BYTES + self.superblocks.len() * 4 + self.frontiers.len() * 8 + 4;
        let mut bytes = vec![0; len];
        let mut writer = Writer::new(&mut bytes);
        let count = onefold_units::convert::u64_from;
        writer.uint(MAGIC, 4);
        writer.uint(LABEL_VERSION, 2);
        writer.uint(0, 2);
        writer.uint(self.generation, 8);
        writer.uint(self.seq.raw(), 8);
        writer.uint(self.alloc, 8);
        writer.uint(u64::from(self.map_pages), 4);
        writer.uint(count(self.superblocks.len()), 4);
        writer.uint(count(self.frontiers.len()), 4);
        writer.uint(0, 4);
        for superblock in &self.superblocks {
            writer.uint(u64::from(superblock.raw()), 4);
        }
        for frontier in &self.frontiers {
            writer.uint(u64::from(frontier.superblock.raw()), 4);
            writer.uint(u64::from(frontier.slots), 4);
        }
        seal(&mut bytes);
        bytes
    }

    /// Reads a label from the start of `bytes`. `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let known = reader.uint(4)? == MAGIC && reader.uint(2)? == LABEL_VERSION;
        if !known {
            return None;
        }
        reader.uint(2)?;
        let (generation, seq, alloc) = (reader.uint(8)?, reader.uint(8)?, reader.uint(8)?);
        let map_pages = reader.u32()?;
        let (superblocks, frontiers) = (reader.uint(4)?, reader.uint(4)?);
        // The counts are checked against the bytes that are there before anything is allocated.
        let body = usize::try_from(52 + superblocks * 4 + frontiers * 8).ok()?;
        checked_body(bytes.get(..body)?)?;
        reader.uint(4)?;
        let mut label = Self {
            generation,
            seq: Seq::new(seq),
            alloc,
            map_pages,
            superblocks: Vec::new(),
            frontiers: Vec::new(),
        };
        for _ in 0..superblocks {
            label.superblocks.push(SuperblockId::new(reader.u32()?));
        }
        for _ in 0..frontiers {
            let superblock = SuperblockId::new(reader.u32()?);
            label.frontiers.push(Frontier { superblock, slots: reader.u32()? });
        }
        Some(label)
    }
}

/// Synchronisation mark, 32 B: magic 4 | open log superblock 4 | epoch 8 | seq 8 | its slots 4 | crc 4.
/// Data in superblocks of older epochs is known to have reached the medium whole, and so are log
/// pages up to that of `log`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncMark {
    /// Lowest epoch whose data has to be verified after a power cut.
    pub epoch: u64,
    /// How far the remap log was synchronised.
    pub log: SyncedLog,
}

/// How far the remap log was synchronised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SyncedLog {
    /// Last sequence number given out before.
    pub seq: Seq,
    /// Low bits of the epoch of the log superblock that was open; without any, `open_slots` is 0.
    pub open_epoch: u32,
    /// Slots of it that were programmed.
    pub open_slots: u32,
}

onefold_units::keep!(SyncedLog { seq, open_epoch, open_slots });

impl SyncMark {
    /// Bytes of the mark.
    pub const BYTES: usize = 32;

    /// The bytes of the mark.
    #[must_use]
    pub fn encode(self) -> [u8; Self::BYTES] {
        let SyncedLog { seq, open_epoch, open_slots } = self.log;
        let numbers = Numbers { epoch: self.epoch, seq: seq.raw(), open_epoch, open_slots };
        numbers.encode(MARK_MAGIC)
    }

    /// Reads a mark. A missing or damaged one means that everything has to be verified.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let numbers = Numbers::decode(MARK_MAGIC, bytes).unwrap_or_default();
        let Numbers { epoch, seq, open_epoch, open_slots } = numbers;
        Self { epoch, log: SyncedLog { seq: Seq::new(seq), open_epoch, open_slots } }
    }
}

/// Epoch limit, 32 B: magic 4 | 0 4 | epoch 8 | 0 12 | crc 4. No superblock was ever opened with this
/// epoch or a later one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochLimit {
    /// Lowest epoch that is certainly unused.
    pub epoch: u64,
}

impl EpochLimit {
    /// Bytes of the limit.
    pub const BYTES: usize = 32;

    /// The bytes of the limit.
    #[must_use]
    pub fn encode(self) -> [u8; Self::BYTES] {
        Numbers { epoch: self.epoch, ..Numbers::default() }.encode(LIMIT_MAGIC)
    }

    /// Reads a limit. A missing one means that no superblock was opened yet.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        Self { epoch: Numbers::decode(LIMIT_MAGIC, bytes).map_or(0, |numbers| numbers.epoch) }
    }
}

#[derive(Default)]
struct Numbers {
    epoch: u64,
    seq: u64,
    open_epoch: u32,
    open_slots: u32,
}

impl Numbers {
    fn encode(&self, magic: u64) -> [u8; 32] {
        let mut bytes = [0; 32];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(magic, 4);
        writer.uint(self.open_epoch.into(), 4);
        writer.uint(self.epoch, 8);
        writer.uint(self.seq, 8);
        writer.uint(self.open_slots.into(), 4);
        seal(&mut bytes);
        bytes
    }

    fn decode(magic: u64, bytes: &[u8; 32]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let known = reader.uint(4)? == magic;
        let open_epoch = reader.u32()?;
        let (epoch, seq) = (reader.uint(8)?, reader.uint(8)?);
        let open_slots = reader.u32()?;
        known.then_some(Self { epoch, seq, open_epoch, open_slots })
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckpointLabel, EpochLimit, Frontier, SyncMark, SyncedLog};
    use onefold_units::{Seq, SuperblockId};

    #[test]
    fn label_there_and_back_cut_short_at_every_byte() {
        let label = CheckpointLabel {
            generation: 3,
            seq: Seq::new(1000),
            alloc: 55,
            map_pages: 12,
            superblocks: vec![SuperblockId::new(1), SuperblockId::new(9)],
            frontiers: vec![Frontier { superblock: SuperblockId::new(4), slots: 17 }],
        };
        let bytes = label.encode();
        assert_eq!(CheckpointLabel::decode(&bytes), Some(label));
        for len in 0..bytes.len() {
            assert_eq!(CheckpointLabel::decode(&bytes[..len]), None);
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert_eq!(CheckpointLabel::decode(&damaged), None, "byte {at}");
        }
    }

    #[test]
    fn mark_there_and_back() {
        let log = SyncedLog { seq: Seq::new(7), open_epoch: 80, open_slots: 3 };
        let mark = SyncMark { epoch: 81, log };
        assert_eq!(SyncMark::decode(&mark.encode()), mark);
        assert_eq!(SyncMark::decode(&[0; 32]), SyncMark::default());
        let limit = EpochLimit { epoch: 1 << 40 };
        assert_eq!(EpochLimit::decode(&limit.encode()), limit);
        assert_eq!(EpochLimit::decode(&mark.encode()), EpochLimit { epoch: 0 });
    }
}
