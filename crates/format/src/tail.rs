//! Tail pages: the reverse map of a closed superblock, packed. Recovery reads those of all superblocks
//! that were programmed since the checkpoint, so what they take is what it waits for.
//!
//! Head of a unit, 24 B: records 2 | codes 1 | bits of kind, lpn and seq, 1 each | lowest kind 1 |
//! 0 1 | lowest lpn 8 | lowest seq 8. Then each record takes these bits, lowest first: its distances
//! from the lowest values of the unit. The last four bytes are the checksum of all before them.
//!
//! Bit 0 of the codes is for lpns, bit 1 for seqs: if it is set, 65,535 less the number of the record in
//! the unit was added to the value. What grows by one from record to record, as seqs of one frontier
//! do and lpns of a sequential write, takes no bits then. A unit takes the codes that are shorter.
//!
//! Wu 2022, section IV-E, has the same in its tail metadata and gives a record no size. Here it takes
//! 12 B at most.

use onefold_units::convert::{u32_from, u64_from};
use onefold_units::{Lpn, Seq};

use crate::bytes::{Reader, Writer, checked_body, seal};
use crate::remap::bits::{BitReader, BitWriter, width};
use crate::spare::{SEQ_MAX, SlotKind};

/// Bytes that a record takes at most, on average over a unit.
pub const TAIL_RECORD_BYTES: u32 = 12;

const HEAD_BYTES: usize = 24;
const FRAME_BYTES: u32 = 28; // head and checksum

/// Records of a unit at most: their numbers are subtracted from it.
const RECORDS_MAX: u64 = 65_535;

/// What one slot of the superblock holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TailRecord {
    /// Kind of content; `None` where the program failed.
    pub kind: Option<SlotKind>,
    /// Logical unit.
    pub lpn: Lpn,
    /// Sequence number of the write.
    pub seq: Seq,
}

onefold_units::keep!(TailRecord { kind, lpn, seq });

impl TailRecord {
    /// The record `nth` places later, where lpns and seqs grow by `step`.
    fn after(&self, step: u32, nth: u32) -> Self {
        let (lpn, seq) =
            (self.lpn.raw() + nth * step, self.seq.raw() + u64::from(nth) * u64::from(step));
        Self { lpn: Lpn::new(lpn), seq: Seq::new(seq), ..*self }
    }
}

/// Records that fit a unit of `unit_bytes`, of 4 KiB or more, whatever they say.
#[must_use]
pub const fn tail_records_per_unit(unit_bytes: u32) -> u32 {
    (unit_bytes - 4) / TAIL_RECORD_BYTES
}

/// Fills one tail unit with as many of `records`, from the front, as fit, and returns how many.
///
/// Panics if the unit is shorter than 28 bytes.
pub fn encode_tail(records: &[TailRecord], unit: &mut [u8]) -> usize {
    let mut spans = Spans::default();
    let fits = |record: &&TailRecord| spans.add(record, u32_from(unit.len()));
    let count = records.iter().take_while(fits).count();
    let frame = spans.frame();
    unit.fill(0);
    let (start, body) = unit.split_at_mut(HEAD_BYTES);
    frame.write(count, &mut Writer::new(start));
    let mut writer = BitWriter::new(body);
    for (at, record) in (0..).zip(&records[..count]) {
        for (field, value) in frame.values(record, at).into_iter().enumerate() {
            writer.put(value - frame.low[field], frame.bits[field]);
        }
    }
    writer.finish();
    seal(unit);
    count
}

/// The records of a tail unit. `None` if it is damaged.
#[must_use]
pub fn decode_tail(unit: &[u8]) -> Option<Vec<TailRecord>> {
    let unit_bytes = u32::try_from(unit.len()).ok()?;
    let (start, body) = checked_body(unit)?.split_at_checked(HEAD_BYTES)?;
    let (count, frame) = Frame::read(&mut Reader::new(start))?;
    // Checked against the bytes that are there before anything is allocated.
    if !fits(u64::from(count), frame.bits, unit_bytes) {
        return None;
    }
    let mut reader = BitReader::new(body);
    let mut records = Vec::with_capacity(usize::from(count));
    for at in 0..u64::from(count) {
        records.push(frame.take(at, &mut reader)?);
    }
    Some(records)
}

/// Counts the units that records take which are packed one after the other.
#[derive(Clone, Debug, Default)]
pub struct TailMeter {
    unit_bytes: u32,
    full: u32,
    spans: Spans,
}

onefold_units::keep!(TailMeter { unit_bytes, full, spans });

impl TailMeter {
    /// No records yet, for units of `unit_bytes`.
    #[must_use]
    pub fn new(unit_bytes: u32) -> Self {
        Self { unit_bytes, full: 0, spans: Spans::default() }
    }

    /// Counts one more record.
    pub fn add(&mut self, record: &TailRecord) {
        if !self.spans.add(record, self.unit_bytes) {
            self.full += 1;
            self.spans = Spans::default();
            self.spans.add(record, self.unit_bytes);
        }
    }

    /// Counts `count` records after `first`, itself included: lpns and seqs grow by `step` from each to
    /// the next. Takes time for each unit, not for each record.
    pub fn add_run(&mut self, first: &TailRecord, step: u32, count: u32) {
        let mut done = 0;
        while done < count {
            let record = first.after(step, done);
            // The more records, the more bits: those that fit come first.
            let (mut fits, mut most) = (0, count - done);
            while fits < most {
                let tried = most - (most - fits) / 2;
                if self.spans.with_run(&record, step, tried, self.unit_bytes).is_some() {
                    fits = tried;
                } else {
                    most = tried - 1;
                }
            }
            match self.spans.with_run(&record, step, fits.max(1), self.unit_bytes) {
                Some(spans) => self.spans = spans,
                None => self.add(&record),
            }
            done += fits.max(1);
        }
    }

    /// Units that the records counted so far take.
    #[must_use]
    pub fn units(&self) -> u32 {
        self.full + u32::from(self.spans.count > 0)
    }
}

/// Whether `count` records fit. One that takes less than a bit counts as a bit.
fn fits(count: u64, bits: [u32; 3], unit_bytes: u32) -> bool {
    let each = u64::from(bits.iter().sum::<u32>()).max(1);
    count <= RECORDS_MAX && count * each <= u64::from(unit_bytes.saturating_sub(FRAME_BYTES)) * 8
}

/// The values that some records take: kind, lpn and seq as they are, and both less their number.
#[derive(Clone, Copy, Debug, Default)]
struct Spans {
    count: u64,
    low: [u64; 5],
    high: [u64; 5],
}

onefold_units::keep!(Spans { count, low, high });

impl Spans {
    /// Takes one more record, if it fits a unit with the others.
    fn add(&mut self, record: &TailRecord, unit_bytes: u32) -> bool {
        let mut after = *self;
        after.widen(record);
        let takes = fits(after.count, after.frame().bits, unit_bytes);
        if takes {
            *self = after;
        }
        takes
    }

    /// Those with one more record.
    fn widen(&mut self, record: &TailRecord) {
        let (lpn, seq) = (u64::from(record.lpn.raw()), record.seq.raw());
        let kind = record.kind.map_or(0, SlotKind::code);
        let trend = RECORDS_MAX.saturating_sub(self.count);
        let values = [kind, lpn, seq, lpn + trend, seq.saturating_add(trend)];
        if self.count == 0 {
            (self.low, self.high) = (values, values);
        }
        for (value, (low, high)) in values.iter().zip(self.low.iter_mut().zip(&mut self.high)) {
            *low = (*low).min(*value);
            *high = (*high).max(*value);
        }
        self.count += 1;
    }

    /// Those with `count` more records, if they fit a unit. All values of a run are on a line: the first
    /// and the last say how far they reach.
    fn with_run(&self, first: &TailRecord, step: u32, count: u32, unit_bytes: u32) -> Option<Self> {
        let mut after = *self;
        after.widen(first);
        if count > 1 {
            after.count += u64::from(count) - 2;
            after.widen(&first.after(step, count - 1));
        }
        fits(after.count, after.frame().bits, unit_bytes).then_some(after)
    }

    fn frame(&self) -> Frame {
        let bits = |of: usize| width(self.high[of] - self.low[of]);
        let (lpn, seq) = (bits(3) < bits(1), bits(4) < bits(2));
        let (lpn_at, seq_at) = (if lpn { 3 } else { 1 }, if seq { 4 } else { 2 });
        Frame {
            trends: [false, lpn, seq],
            bits: [bits(0), bits(lpn_at), bits(seq_at)],
            low: [self.low[0], self.low[lpn_at], self.low[seq_at]],
        }
    }
}

/// What the head of a unit says about its records, by field: kind, lpn and seq.
struct Frame {
    /// The number of the record was subtracted.
    trends: [bool; 3],
    bits: [u32; 3],
    low: [u64; 3],
}

impl Frame {
    /// What is added to a field of the record with this number.
    fn added(&self, field: usize, at: u64) -> u64 {
        if self.trends[field] { RECORDS_MAX - at } else { 0 }
    }

    fn values(&self, record: &TailRecord, at: u64) -> [u64; 3] {
        let kind = record.kind.map_or(0, SlotKind::code);
        let lpn = u64::from(record.lpn.raw()) + self.added(1, at);
        [kind, lpn, record.seq.raw() + self.added(2, at)]
    }

    fn take(&self, at: u64, reader: &mut BitReader<'_>) -> Option<TailRecord> {
        let mut values = [0_u64; 3];
        for (field, value) in values.iter_mut().enumerate() {
            let distance = reader.take(self.bits[field])?;
            let shifted = self.low[field].checked_add(distance)?;
            *value = shifted.checked_sub(self.added(field, at))?;
        }
        let [kind, lpn, seq] = values;
        let kind = SlotKind::from_code(u8::try_from(kind).ok()?);
        // Only damage says more than the spare area of a slot can.
        if seq > SEQ_MAX {
            return None;
        }
        Some(TailRecord { kind, lpn: Lpn::new(u32::try_from(lpn).ok()?), seq: Seq::new(seq) })
    }

    fn write(&self, count: usize, writer: &mut Writer<'_>) {
        let [kind, lpn, seq] = self.low;
        writer.uint(u64_from(count), 2);
        writer.uint(u64::from(self.trends[1]) | u64::from(self.trends[2]) << 1, 1);
        for bits in self.bits {
            writer.uint(u64::from(bits), 1);
        }
        writer.uint(kind, 1);
        writer.uint(0, 1);
        writer.uint(lpn, 8);
        writer.uint(seq, 8);
    }

    fn read(reader: &mut Reader<'_>) -> Option<(u16, Self)> {
        let (count, codes) = (reader.u16()?, reader.u8()?);
        let mut bits = [0; 3];
        for bits in &mut bits {
            *bits = u32::from(reader.u8()?);
        }
        let kind = u64::from(reader.u8()?);
        reader.u8()?;
        let low = [kind, reader.uint(8)?, reader.uint(8)?];
        // No number gets so high that what is added to it overflows.
        let valid =
            codes < 4 && bits.iter().all(|bits| *bits < 62) && low.iter().all(|low| *low < 1 << 62);
        let trends = [false, codes & 1 != 0, codes & 2 != 0];
        valid.then_some((count, Self { trends, bits, low }))
    }
}

#[cfg(test)]
mod tests {
    use super::{TailMeter, TailRecord, decode_tail, encode_tail, tail_records_per_unit};
    use crate::spare::{SEQ_MAX, SlotKind};
    use onefold_units::{Lpn, Rng, Seq};

    fn record(kind: SlotKind, lpn: u32, seq: u64) -> TailRecord {
        TailRecord { kind: Some(kind), lpn: Lpn::new(lpn), seq: Seq::new(seq) }
    }

    /// Packs all records; returns the units, and checks that they come back and are counted.
    fn pack(records: &[TailRecord]) -> usize {
        let mut meter = TailMeter::new(4096);
        for record in records {
            meter.add(record);
        }
        let mut unit = vec![0; 4096];
        let (mut rest, mut found, mut units) = (records, Vec::new(), 0);
        while !rest.is_empty() {
            let count = encode_tail(rest, &mut unit);
            assert!(count >= rest.len().min(341));
            found.extend(decode_tail(&unit).expect("just written"));
            rest = &rest[count..];
            units += 1;
        }
        assert_eq!(found, records);
        assert_eq!(meter.units(), u32::try_from(units).expect("few"));
        units
    }

    #[test]
    fn whatever_records_say_a_unit_takes_341() {
        assert_eq!(tail_records_per_unit(4096), 341);
        let records: Vec<TailRecord> = (0..341_u32)
            .map(|n| TailRecord {
                kind: (n % 7 != 0).then_some(if n % 2 == 0 {
                    SlotKind::Log
                } else {
                    SlotKind::Data
                }),
                lpn: Lpn::new(if n % 2 == 0 { u32::MAX } else { 0 }),
                seq: Seq::new(if n % 3 == 0 { SEQ_MAX } else { 0 }),
            })
            .collect();
        assert_eq!(pack(&records), 1);
        let mut unit = vec![0; 4096];
        encode_tail(&records, &mut unit);
        unit[100] ^= 1;
        assert_eq!(decode_tail(&unit), None);
        assert_eq!(decode_tail(&unit[..20]), None);
        encode_tail(&[], &mut unit);
        assert_eq!(decode_tail(&unit), Some(Vec::new()));
        encode_tail(&[record(SlotKind::Data, 0, SEQ_MAX + 1)], &mut unit);
        assert_eq!(decode_tail(&unit), None);
    }

    #[test]
    fn runs_are_counted_like_their_records() {
        let mut rng = Rng::new(4);
        for _ in 0..200 {
            let (mut single, mut runs) = (TailMeter::new(4096), TailMeter::new(4096));
            for _ in 0..8 {
                let (lpn, seq) = (rng.below(1 << 31), rng.below(1 << 40));
                let first = record(SlotKind::Data, onefold_units::convert::low32(lpn), seq);
                let step = [1, 2, 16, 100][onefold_units::convert::index64(rng.below(4))];
                let count = onefold_units::convert::low32(rng.below(80_000));
                runs.add_run(&first, step, count);
                for nth in 0..count {
                    single.add(&first.after(step, nth));
                }
                assert_eq!(format!("{single:?}"), format!("{runs:?}"), "{first:?} {step} {count}");
            }
        }
    }

    #[test]
    fn what_follows_on_takes_next_to_nothing() {
        // Random lpns of 28 bits, one seq after the other: 28 bits each.
        let mut rng = Rng::new(1);
        let mut lpn = || onefold_units::convert::low32(rng.below(1 << 28));
        let random: Vec<_> =
            (0..10_000).map(|n| record(SlotKind::Data, lpn(), 7 << 32 | n)).collect();
        assert_eq!(pack(&random), 9);
        // A sequential write.
        let ascending = |n: u32| record(SlotKind::Data, 1 << 20 | n, u64::from(n) + 5);
        assert_eq!(pack(&(0..10_000).map(ascending).collect::<Vec<_>>()), 1);
        // Collected slots keep old seqs.
        let copies: Vec<_> =
            (0..10_000).map(|n| record(SlotKind::Data, lpn(), n * 7_777_777 % (1 << 30))).collect();
        assert_eq!(pack(&copies), 18);
    }
}
