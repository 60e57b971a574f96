//! Records of a zoned namespace in NVRAM, 64 B each, which is what an NVRAM writes atomically.
//!
//! Zone: magic 4 | version 2 | kind 1 | condition 1 | zone 4 | resets 4 | set 4 | whole 4 | geometry 8 | 0 .. | crc 4.
//! Set of blocks: magic 4 | version 2 | kind 2 | state 1 | set 4 | erases 4 | geometry 8 | 0 .. | crc 4.
//!
//! All zeroes is a record that was never written: the zone is empty, the set is erased.

use onefold_units::ZoneId;

use crate::bytes::{Reader, Writer, checked_body, seal};

/// Bytes of each of these records.
pub const ZONE_RECORD_BYTES: usize = 64;

const MAGIC: u64 = 0x4E5A_464F; // "OFZN"
const VERSION: u64 = 1;
const KIND_ZONE: u64 = 1;
const KIND_SET: u64 = 2;
const NO_SET: u32 = u32::MAX;

/// What keeps a zone from being written, apart from its write pointer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ZoneCondition {
    /// Nothing.
    #[default]
    Writable,
    /// It was finished before its capacity was written.
    Finished,
    /// It can only be read.
    ReadOnly,
    /// Its data is lost, and it takes none.
    Offline,
}

/// What NVRAM says of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneRecord {
    /// The zone.
    pub zone: ZoneId,
    /// Its condition.
    pub condition: ZoneCondition,
    /// Resets so far. Slots of an earlier life of the zone carry a smaller number.
    pub resets: u32,
    /// The set of flash blocks that holds its data; `None` if it has none.
    pub set: Option<u32>,
    /// 4 KiB blocks from its start that are known to have reached the medium whole.
    pub whole: u32,
}

/// What can be done with a set of flash blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockSetState {
    /// It is erased.
    #[default]
    Erased,
    /// It was given to a zone and has to be erased before it is given to another.
    Used,
    /// One of its blocks failed.
    Bad,
}

/// What NVRAM says of a set of flash blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSetRecord {
    /// The set.
    pub set: u32,
    /// Its state.
    pub state: BlockSetState,
    /// Erases so far.
    pub erases: u32,
}

/// What a record in NVRAM says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NvramRecord<T> {
    /// It was never written.
    Blank,
    /// It is not what was written, or belongs elsewhere.
    Damaged,
    /// This.
    Is(T),
}

impl<T> NvramRecord<T> {
    fn read(bytes: &[u8; ZONE_RECORD_BYTES], decode: impl FnOnce(&[u8]) -> Option<T>) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Blank;
        }
        checked_body(bytes).and_then(decode).map_or(Self::Damaged, Self::Is)
    }
}

impl ZoneRecord {
    /// The bytes of the record on a device whose geometry has the checksum `geometry`.
    #[must_use]
    pub fn encode(&self, geometry: u64) -> [u8; ZONE_RECORD_BYTES] {
        let mut bytes = [0; ZONE_RECORD_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(MAGIC, 4);
        writer.uint(VERSION, 2);
        writer.uint(KIND_ZONE, 1);
        writer.uint(self.condition.code(), 1);
        writer.uint(self.zone.raw().into(), 4);
        writer.uint(self.resets.into(), 4);
        writer.uint(self.set.unwrap_or(NO_SET).into(), 4);
        writer.uint(self.whole.into(), 4);
        writer.uint(geometry, 8);
        seal(&mut bytes);
        bytes
    }

    /// Reads the record of `zone`. That of another zone or geometry is damage.
    #[must_use]
    pub fn decode(
        bytes: &[u8; ZONE_RECORD_BYTES],
        zone: ZoneId,
        geometry: u64,
    ) -> NvramRecord<Self> {
        NvramRecord::read(bytes, |body| {
            let mut reader = Reader::new(body);
            let code = header(&mut reader, KIND_ZONE)?;
            let found = Self {
                condition: ZoneCondition::from_code(code)?,
                zone: ZoneId::new(reader.u32()?),
                resets: reader.u32()?,
                set: Some(reader.u32()?).filter(|set| *set != NO_SET),
                whole: reader.u32()?,
            };
            (found.zone == zone && reader.uint(8)? == geometry).then_some(found)
        })
    }
}

impl BlockSetRecord {
    /// The bytes of the record on a device whose geometry has the checksum `geometry`.
    #[must_use]
    pub fn encode(&self, geometry: u64) -> [u8; ZONE_RECORD_BYTES] {
        let mut bytes = [0; ZONE_RECORD_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(MAGIC, 4);
        writer.uint(VERSION, 2);
        writer.uint(KIND_SET, 1);
        writer.uint(self.state.code(), 1);
        writer.uint(self.set.into(), 4);
        writer.uint(self.erases.into(), 4);
        writer.uint(geometry, 8);
        seal(&mut bytes);
        bytes
    }

    /// Reads the record of `set`. That of another set or geometry is damage.
    #[must_use]
    pub fn decode(bytes: &[u8; ZONE_RECORD_BYTES], set: u32, geometry: u64) -> NvramRecord<Self> {
        NvramRecord::read(bytes, |body| {
            let mut reader = Reader::new(body);
            let code = header(&mut reader, KIND_SET)?;
            let found = Self {
                state: BlockSetState::from_code(code)?,
                set: reader.u32()?,
                erases: reader.u32()?,
            };
            (found.set == set && reader.uint(8)? == geometry).then_some(found)
        })
    }
}

/// Reads what both kinds begin with, and gives the byte behind it.
fn header(reader: &mut Reader<'_>, kind: u64) -> Option<u8> {
    let known = reader.uint(4)? == MAGIC && reader.uint(2)? == VERSION && reader.uint(1)? == kind;
    let code = reader.u8()?;
    known.then_some(code)
}

impl ZoneCondition {
    const fn code(self) -> u64 {
        match self {
            Self::Writable => 0,
            Self::Finished => 1,
            Self::ReadOnly => 2,
            Self::Offline => 3,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Writable),
            1 => Some(Self::Finished),
            2 => Some(Self::ReadOnly),
            3 => Some(Self::Offline),
            _ => None,
        }
    }
}

impl BlockSetState {
    const fn code(self) -> u64 {
        match self {
            Self::Erased => 0,
            Self::Used => 1,
            Self::Bad => 2,
        }
    }

    const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Erased),
            1 => Some(Self::Used),
            2 => Some(Self::Bad),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockSetRecord, BlockSetState, NvramRecord, ZoneCondition, ZoneRecord};
    use onefold_units::ZoneId;

    #[test]
    fn zones_there_and_back_and_not_from_elsewhere() {
        let zone = ZoneId::new(5);
        let record = ZoneRecord {
            zone,
            condition: ZoneCondition::Finished,
            resets: 3,
            set: None,
            whole: 64,
        };
        let bytes = record.encode(0x1234);
        assert_eq!(
            bytes[..34],
            *b"OFZN\x01\0\x01\x01\x05\0\0\0\x03\0\0\0\xFF\xFF\xFF\xFF\x40\0\0\0\x34\x12\0\0\0\0\0\0\0\0"
        );
        assert_eq!(ZoneRecord::decode(&bytes, zone, 0x1234), NvramRecord::Is(record));
        assert_eq!(ZoneRecord::decode(&bytes, ZoneId::new(6), 0x1234), NvramRecord::Damaged);
        assert_eq!(ZoneRecord::decode(&bytes, zone, 0x1235), NvramRecord::Damaged);
        assert_eq!(ZoneRecord::decode(&[0; 64], zone, 0x1234), NvramRecord::Blank);
        assert_eq!(BlockSetRecord::decode(&bytes, 5, 0x1234), NvramRecord::Damaged);
    }

    #[test]
    fn sets_there_and_back_and_never_torn() {
        let record = BlockSetRecord { set: 7, state: BlockSetState::Used, erases: 9 };
        let bytes = record.encode(1);
        assert_eq!(bytes[..16], *b"OFZN\x01\0\x02\x01\x07\0\0\0\x09\0\0\0");
        assert_eq!(BlockSetRecord::decode(&bytes, 7, 1), NvramRecord::Is(record));
        for bit in 0..64 * 8 {
            let mut torn = bytes;
            torn[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockSetRecord::decode(&torn, 7, 1), NvramRecord::Damaged, "bit {bit}");
        }
    }
}
