//! A record of the trim log, 32 B: seq 8 | lpn 4 | count 4 | 0 12 | crc 4.
//!
//! Half of an aligned 64 B block, which NVRAM writes whole: the rest of a record that a power cut tore
//! could complete another one with the same sequence number, given out again after recovery.
//!
//! Records are never erased: one counts iff its checksum is right and its sequence number is above
//! that of the committed checkpoint.

use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer, checked_body, seal};

/// Bytes of one record.
pub const TRIM_RECORD_BYTES: usize = 32;

/// The units `lpn..lpn + count` were unmapped at `seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimRecord {
    /// Sequence number of the command.
    pub seq: Seq,
    /// First unit.
    pub lpn: Lpn,
    /// Number of units.
    pub count: u32,
}

impl TrimRecord {
    /// The bytes of the record.
    #[must_use]
    pub fn encode(&self) -> [u8; TRIM_RECORD_BYTES] {
        let mut bytes = [0; TRIM_RECORD_BYTES];
        let mut writer = Writer::new(&mut bytes);
        writer.uint(self.seq.raw(), 8);
        writer.uint(u64::from(self.lpn.raw()), 4);
        writer.uint(u64::from(self.count), 4);
        seal(&mut bytes);
        bytes
    }

    /// Reads a record; `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; TRIM_RECORD_BYTES]) -> Option<Self> {
        let mut reader = Reader::new(checked_body(bytes)?);
        let seq = Seq::new(reader.uint(8)?);
        let (lpn, count) = (Lpn::new(reader.u32()?), reader.u32()?);
        // All zeroes passes the checksum of zeroes; sequence numbers start at 1.
        (seq.raw() > 0 && count > 0).then_some(Self { seq, lpn, count })
    }
}

#[cfg(test)]
mod tests {
    use super::TrimRecord;
    use onefold_units::{Lpn, Seq};

    /// Half of a record outlived a power cut and was completed by a later one: see the module.
    #[test]
    fn no_record_straddles_two_blocks() {
        assert_eq!(64 % super::TRIM_RECORD_BYTES, 0);
    }

    #[test]
    fn there_and_back_and_zeroes_are_no_record() {
        let record = TrimRecord { seq: Seq::new(9), lpn: Lpn::new(4), count: 2 };
        let mut bytes = record.encode();
        assert_eq!(bytes[..16], [9, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0]);
        assert_eq!(TrimRecord::decode(&bytes), Some(record));
        bytes[8] ^= 1;
        assert_eq!(TrimRecord::decode(&bytes), None);
        assert_eq!(TrimRecord::decode(&[0; 32]), None);
    }
}
