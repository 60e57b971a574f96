//! Tail pages: the reverse map of a closed superblock, 12 B per slot: lpn 5 | seq 6 | kind 1, and a
//! crc in the last four bytes of each unit. Source: Wu 2022, sec. IV-C (tail metadata); layout of
//! remap.md section 3.

use onefold_units::convert::index;
use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer, checked_body, seal};
use crate::spare::SlotKind;

/// Bytes of one record.
pub const TAIL_RECORD_BYTES: u32 = 12;

/// What one slot of the superblock holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailRecord {
    /// Kind of content; `None` where the program failed.
    pub kind: Option<SlotKind>,
    /// Logical unit.
    pub lpn: Lpn,
    /// Sequence number of the write.
    pub seq: Seq,
}

/// Records that fit a unit of `unit_bytes`.
#[must_use]
pub const fn tail_records_per_unit(unit_bytes: u32) -> u32 {
    (unit_bytes - 4) / TAIL_RECORD_BYTES
}

/// Fills one tail unit; unused records are zero.
pub fn encode_tail(records: &[TailRecord], unit: &mut [u8]) {
    unit.fill(0);
    let mut writer = Writer::new(unit);
    for record in records {
        writer.uint(u64::from(record.lpn.raw()), 5);
        writer.uint(record.seq.raw(), 6);
        writer.uint(record.kind.map_or(0, SlotKind::code), 1);
    }
    seal(unit);
}

/// The first `count` records of a tail unit. `None` if it is damaged.
#[must_use]
pub fn decode_tail(unit: &[u8], count: u32) -> Option<Vec<TailRecord>> {
    let mut reader = Reader::new(checked_body(unit)?);
    let mut records = Vec::with_capacity(index(count));
    for _ in 0..count {
        let lpn = Lpn::new(u32::try_from(reader.uint(5)?).ok()?);
        let seq = Seq::new(reader.uint(6)?);
        let kind = SlotKind::from_code(reader.u8()?);
        records.push(TailRecord { kind, lpn, seq });
    }
    Some(records)
}

#[cfg(test)]
mod tests {
    use super::{TailRecord, decode_tail, encode_tail, tail_records_per_unit};
    use crate::SlotKind;
    use onefold_units::{Lpn, Seq};

    #[test]
    fn a_full_unit_there_and_back() {
        assert_eq!(tail_records_per_unit(4096), 341);
        let records: Vec<TailRecord> = (0..341)
            .map(|n| TailRecord {
                kind: (n % 7 != 0).then_some(SlotKind::Data),
                lpn: Lpn::new(n * 3),
                seq: Seq::new(u64::from(n) << 39),
            })
            .collect();
        let mut unit = vec![0; 4096];
        encode_tail(&records, &mut unit);
        assert_eq!(decode_tail(&unit, 341), Some(records));
        unit[100] ^= 1;
        assert_eq!(decode_tail(&unit, 341), None);
    }
}
