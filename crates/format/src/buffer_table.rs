//! What a buffer policy has learnt of the addresses of a device: magic 4 | version 2 | 0 2 | uuid 16 | units in a chunk 4
//! | bytes of the table 4 | table | crc 4.

use onefold_units::convert::{index, u64_from};

use crate::bytes::{Reader, Writer, checked_body, seal};

/// Version of the record of a buffer's table.
pub const BUFFER_TABLE_VERSION: u64 = 1;

const MAGIC: u64 = 0x5442_464F; // "OFBT"
const HEAD_BYTES: usize = 32;
const SUM_BYTES: usize = 4;

/// The table of append-only data of one device (Jeong 2021, sec. IV-A), two bits a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferTable {
    /// Identity of the device.
    pub uuid: [u8; 16],
    /// Mapping units in a chunk.
    pub chunk: u32,
    /// Chunk `i` has bits `2 (i mod 4)` (a large write came) and the next one (it was written again) of byte `i / 4`.
    pub bits: Vec<u8>,
}

impl BufferTable {
    /// Bytes of a record with a table of so many.
    #[must_use]
    pub const fn bytes(table: usize) -> usize {
        HEAD_BYTES + table + SUM_BYTES
    }

    /// The bytes of the record; `None` for a table of 4 GiB or more.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let len = u32::try_from(self.bits.len()).ok()?;
        let mut bytes = vec![0; Self::bytes(self.bits.len())];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(MAGIC, 4);
        writer.uint(BUFFER_TABLE_VERSION, 2);
        writer.uint(0, 2);
        writer.bytes(&self.uuid);
        writer.uint(self.chunk.into(), 4);
        writer.uint(len.into(), 4);
        writer.bytes(&self.bits);
        seal(&mut bytes);
        Some(bytes)
    }

    /// Reads a record of the device `uuid`. `None` if it is none of this device and version, or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8], uuid: &[u8; 16]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let known = reader.uint(4)? == MAGIC && reader.uint(2)? == BUFFER_TABLE_VERSION;
        reader.uint(2)?;
        let of_device = reader.bytes(uuid.len())? == uuid;
        let (chunk, len) = (reader.u32()?, reader.u32()?);
        let is_whole = u64_from(reader.remaining()) == u64::from(len);
        let bits = reader.bytes(index(len))?.to_vec();
        (known && of_device && is_whole).then_some(Self { uuid: *uuid, chunk, bits })
    }
}

#[cfg(test)]
mod tests {
    use super::BufferTable;

    const UUID: [u8; 16] = [7; 16];

    fn table() -> BufferTable {
        BufferTable { uuid: UUID, chunk: 256, bits: vec![0b0100_1101, 0xFF, 0] }
    }

    /// The fields are where docs/spec.md says.
    #[test]
    fn there_and_back() {
        let bytes = table().encode().unwrap();
        assert_eq!(bytes.len(), BufferTable::bytes(3));
        assert_eq!(bytes[..8], *b"OFBT\x01\x00\x00\x00");
        assert_eq!(bytes[8..24], UUID);
        assert_eq!(bytes[24..32], [0, 1, 0, 0, 3, 0, 0, 0]);
        assert_eq!(bytes[32..35], [0b0100_1101, 0xFF, 0]);
        assert_eq!(BufferTable::decode(&bytes, &UUID), Some(table()));
    }

    #[test]
    fn what_is_damaged_cut_off_or_of_another_device_is_none() {
        let bytes = table().encode().unwrap();
        assert_eq!(BufferTable::decode(&bytes, &[8; 16]), None);
        assert_eq!(BufferTable::decode(&[0; 39], &UUID), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(BufferTable::decode(&damaged, &UUID), None, "byte {at}");
            assert_eq!(BufferTable::decode(&bytes[..at], &UUID), None, "cut to {at}");
        }
        for (at, value) in [(4, 2), (28, 2), (28, 4)] {
            let mut other = bytes.clone();
            other[at] = value;
            crate::bytes::seal(&mut other);
            assert_eq!(BufferTable::decode(&other, &UUID), None, "{value} at {at}");
        }
    }
}
