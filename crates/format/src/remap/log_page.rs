//! A page of the remap log on flash: one mapping unit with entries of one superblock, packed.
//!
//! Head, 44 B: magic 4 | version 1 | slot code and bits of stride 1 | entries 2 | superblock 4 | lowest
//! len 2 | lowest stride - 1 2 | epoch 8 | lowest seq 8 | lowest target 4 | lowest slot 4 | bits of
//! seq, target, slot and len, 1 each. Then each entry takes these bits, lowest first, and those of
//! its stride: its distances from the lowest values of the page. The last four bytes of the unit are
//! the checksum of all before them. What is about strides was zero before there were any.
//!
//! In slot code 1 the slot is the distance from the slot of the entry before (the first one has 0),
//! which is shorter where entries are sorted by slot: the test below packs 558 instead of 506 into
//! 4 KiB. A page takes the code that is shorter.
//!
//! Source: frame of reference of Goldstein, Ramakrishnan, Shaft, "Compressing Relations and
//! Indexes", 1998. Differs from Wu 2022, sec. IV-C, where an entry takes 16 B of a page.

use onefold_units::convert::{u32_from, u64_from};
use onefold_units::{Lpn, Seq, SuperblockId};

use super::RemapEntry;
use super::bits::{BitReader, BitWriter, width};
use crate::bytes::{Reader, Writer, checked_body, seal};

const MAGIC: u64 = 0x4C52_464F; // "OFRL"
const VERSION: u64 = 1;
const HEAD_BYTES: usize = 44;
const FRAME_BYTES: u32 = 48; // head and checksum

/// Whose entries a log page holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPageHead {
    /// The superblock of the entries' slots.
    pub superblock: SuperblockId,
    /// Epoch of that superblock: entries of an earlier one are void.
    pub epoch: u64,
}

/// Fills a unit with as many of `entries`, from the front, as fit, and returns how many: at least 202
/// of any kind in 4 KiB. The order is kept; sorted by slot they take less.
///
/// Panics if an entry is not valid or the unit is shorter than 49 bytes.
pub fn pack_log_page(head: &LogPageHead, entries: &[RemapEntry], unit: &mut [u8]) -> usize {
    let (count, frame) = fit(entries, u32_from(unit.len()));
    assert!(count > 0 || entries.is_empty(), "{} bytes hold no remap entry", unit.len());
    unit.fill(0);
    let (start, body) = unit.split_at_mut(HEAD_BYTES);
    frame.write(head, count, &mut Writer::new(start));
    let mut writer = BitWriter::new(body);
    let mut before = frame.low[SLOT];
    for entry in &entries[..count] {
        assert!(entry.is_valid(), "{entry:?} is no remap entry");
        frame.put(entry, before, &mut writer);
        before = u64::from(entry.slot);
    }
    writer.finish();
    seal(unit);
    count
}

/// How many of `entries` [`pack_log_page`] would pack into a unit of `unit_bytes`.
#[must_use]
pub fn log_page_capacity(entries: &[RemapEntry], unit_bytes: u32) -> usize {
    fit(entries, unit_bytes).0
}

/// The head and the entries of a log page. `None` if it is none, or damaged.
#[must_use]
pub fn unpack_log_page(unit: &[u8]) -> Option<(LogPageHead, Vec<RemapEntry>)> {
    let unit_bytes = u32::try_from(unit.len()).ok()?;
    let (start, body) = checked_body(unit)?.split_at_checked(HEAD_BYTES)?;
    let (head, count, frame) = Frame::read(&mut Reader::new(start))?;
    // The count is checked against the bytes that are there before anything is allocated.
    if !fits(u64::from(count), frame.entry_bits(), unit_bytes) {
        return None;
    }
    let mut reader = BitReader::new(body);
    let mut before = frame.low[SLOT];
    let mut entries = Vec::with_capacity(usize::from(count));
    for _ in 0..count {
        let entry = frame.take(before, &mut reader)?;
        before = u64::from(entry.slot);
        entries.push(entry);
    }
    Some((head, entries))
}

/// The longest run from the front that fits, and its frame. An entry more never takes fewer bits, so
/// the first one that does not fit ends the page.
fn fit(entries: &[RemapEntry], unit_bytes: u32) -> (usize, Frame) {
    let mut spans = Spans::default();
    let mut longest = Frame::default();
    for (at, entry) in entries.iter().enumerate() {
        spans.add(entry);
        let frame = spans.frame();
        if !fits(u64_from(at) + 1, frame.entry_bits(), unit_bytes) {
            return (at, longest);
        }
        longest = frame;
    }
    (entries.len(), longest)
}

/// Whether `count` entries of `bits` fit. One that takes less than a byte counts as a byte: that is no
/// limit to entries that differ, and bounds what a page of equal ones unpacks to.
fn fits(count: u64, bits: u32, unit_bytes: u32) -> bool {
    let room = u64::from(unit_bytes.saturating_sub(FRAME_BYTES)) * 8;
    u16::try_from(count).is_ok() && count * u64::from(bits.max(8)) <= room
}

/// The fields of an entry in their order on the page.
fn fields(entry: &RemapEntry) -> [u64; FIELDS] {
    let (target, slot) = (u64::from(entry.target.raw()), u64::from(entry.slot));
    let stride = u64::from(entry.stride) - 1;
    [entry.seq.raw(), target, slot, u64::from(entry.len), stride]
}

const FIELDS: usize = 5;
const SLOT: usize = 2;
/// Bits of sequence number, target, slot and length, where they are in the head.
const WIDE: usize = 4;
const STRIDE: usize = 4;

/// The values that some entries take.
#[derive(Default)]
struct Spans {
    any: bool,
    low: [u64; FIELDS],
    high: [u64; FIELDS],
    last_slot: u64,
    /// The largest step from one slot to the next; all ones after a step back.
    step: u64,
}

impl Spans {
    fn add(&mut self, entry: &RemapEntry) {
        let values = fields(entry);
        if !self.any {
            *self = Self { any: true, low: values, high: values, last_slot: values[SLOT], step: 0 };
        }
        for (value, (low, high)) in values.iter().zip(self.low.iter_mut().zip(&mut self.high)) {
            *low = (*low).min(*value);
            *high = (*high).max(*value);
        }
        let step = values[SLOT].checked_sub(self.last_slot).unwrap_or(u64::MAX);
        self.step = self.step.max(step);
        self.last_slot = values[SLOT];
    }

    fn frame(&self) -> Frame {
        let mut bits = [0; FIELDS];
        for (bits, (low, high)) in bits.iter_mut().zip(self.low.iter().zip(&self.high)) {
            *bits = width(high - low);
        }
        let steps = width(self.step) < bits[SLOT];
        bits[SLOT] = bits[SLOT].min(width(self.step));

        Frame { low: self.low, bits, steps }
    }
}

/// How the entries of one page are written.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    low: [u64; FIELDS],
    bits: [u32; FIELDS],
    /// Slot code 1: a slot is the distance from the one before.
    steps: bool,
}

impl Frame {
    fn entry_bits(&self) -> u32 {
        self.bits.iter().sum()
    }

    /// What the fields of an entry are distances from.
    fn origin(&self, slot_before: u64) -> [u64; FIELDS] {
        let mut origin = self.low;
        if self.steps {
            origin[SLOT] = slot_before;
        }
        origin
    }

    fn put(&self, entry: &RemapEntry, slot_before: u64, writer: &mut BitWriter<'_>) {
        let values = fields(entry).into_iter().zip(self.origin(slot_before));
        for ((value, origin), bits) in values.zip(self.bits) {
            writer.put(value - origin, bits);
        }
    }

    fn take(&self, slot_before: u64, reader: &mut BitReader<'_>) -> Option<RemapEntry> {
        let mut values = self.origin(slot_before);
        for (value, bits) in values.iter_mut().zip(self.bits) {
            *value = value.checked_add(reader.take(bits)?)?;
        }
        let [seq, target, slot, len, stride] = values;
        let entry = RemapEntry {
            seq: Seq::new(seq),
            target: Lpn::new(u32::try_from(target).ok()?),
            slot: u32::try_from(slot).ok()?,
            len: u16::try_from(len).ok()?,
            stride: u16::try_from(stride).ok()?.checked_add(1)?,
        };
        entry.is_valid().then_some(entry)
    }

    fn write(&self, head: &LogPageHead, count: usize, writer: &mut Writer<'_>) {
        let [seq, target, slot, len, stride] = self.low;
        writer.uint(MAGIC, 4);
        writer.uint(VERSION, 1);
        writer.uint(u64::from(self.steps) | u64::from(self.bits[STRIDE]) << 1, 1);
        writer.uint(u64_from(count), 2);
        writer.uint(u64::from(head.superblock.raw()), 4);
        writer.uint(len, 2);
        writer.uint(stride, 2);
        writer.uint(head.epoch, 8);
        writer.uint(seq, 8);
        writer.uint(target, 4);
        writer.uint(slot, 4);
        for bits in &self.bits[..WIDE] {
            writer.uint(u64::from(*bits), 1);
        }
    }

    fn read(reader: &mut Reader<'_>) -> Option<(LogPageHead, u16, Self)> {
        let known = reader.uint(4)? == MAGIC && reader.uint(1)? == VERSION;
        let code = reader.u8()?;
        let (steps, stride_bits) = (code & 1 == 1, u32::from(code >> 1));
        if stride_bits > 16 {
            return None;
        }
        let count = reader.u16()?;
        let superblock = SuperblockId::new(reader.u32()?);
        let (len, stride) = (reader.uint(2)?, reader.uint(2)?);
        let epoch = reader.uint(8)?;
        let low = [reader.uint(8)?, reader.uint(4)?, reader.uint(4)?, len, stride];
        let mut bits = [0; FIELDS];
        bits[STRIDE] = stride_bits;
        for bits in &mut bits[..WIDE] {
            *bits = u32::from(reader.u8()?);
            if *bits > 64 {
                return None;
            }
        }
        known.then_some((LogPageHead { superblock, epoch }, count, Self { low, bits, steps }))
    }
}

#[cfg(test)]
mod tests {
    use super::{LogPageHead, log_page_capacity, pack_log_page, unpack_log_page};
    use crate::RemapEntry;
    use onefold_units::{Lpn, Rng, Seq, SuperblockId};
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    const HEAD: LogPageHead =
        LogPageHead { superblock: SuperblockId::new(0x0403_0201), epoch: 0x1234 };

    fn entry(seq: u64, target: u32, slot: u32, len: u16) -> RemapEntry {
        RemapEntry { seq: Seq::new(seq), target: Lpn::new(target), slot, len, stride: 1 }
    }

    fn below(rng: &mut Rng, limit: u64) -> u32 {
        u32::try_from(rng.below(limit)).unwrap()
    }

    /// Units of a 1 TiB device, slots of a 512 MiB superblock, and a window of sequence numbers.
    fn scattered(count: usize) -> Vec<RemapEntry> {
        let mut rng = Rng::new(4);
        let seq = |rng: &mut Rng| (1 << 40) + rng.below(1 << 24);
        (0..count)
            .map(|_| {
                let seq = seq(&mut rng);
                entry(seq, below(&mut rng, 1 << 28), below(&mut rng, 1 << 17), 1)
            })
            .collect()
    }

    fn packed(entries: &[RemapEntry]) -> (usize, Vec<u8>) {
        let mut unit = vec![0xEE; 4096];
        let count = pack_log_page(&HEAD, entries, &mut unit);
        assert_eq!(count, log_page_capacity(entries, 4096));
        assert_eq!(unpack_log_page(&unit), Some((HEAD, entries[..count].to_vec())));
        (count, unit)
    }

    #[test]
    fn golden_page() {
        let entries = [entry(0x101, 0x2010, 0x37, 1), entry(0x100, 0x2000, 0x30, 2)];
        let (count, unit) = packed(&entries);
        assert_eq!(count, 2);
        let head = [
            &b"OFRL\x01\x00\x02\x00\x01\x02\x03\x04\x01\x00\x00\x00\x34\x12\0\0\0\0\0\0"[..],
            &[0, 1, 0, 0, 0, 0, 0, 0, 0, 0x20, 0, 0, 0x30, 0, 0, 0, 1, 5, 3, 1],
        ];
        assert_eq!(unit[..44], head.concat());
        // Lowest bits first: seq 1, target 10000b, slot 111b, len 0; then 0, 00000b, 000b, 1.
        assert_eq!(unit[44..47], [0b1110_0001, 0b0000_0001, 0b0000_1000]);
        assert!(unit[47..4092].iter().all(|byte| *byte == 0));

        // Sorted by slot, the step of 7 takes 3 bits as the distance does: the code stays.
        let (_, unit) = packed(&[entries[1], entries[0]]);
        assert_eq!(unit[5], 0);
        // Two steps of 7 take 3 bits, the distance of 14 takes 4.
        let (_, unit) = packed(&[entries[1], entries[0], entry(0x101, 0x2000, 0x3E, 1)]);
        assert_eq!((unit[5], unit[42]), (1, 3));
    }

    #[test]
    fn golden_page_of_strides() {
        let run = |target, slot, stride| RemapEntry { stride, ..entry(9, target, slot, 2) };
        let (_, unit) = packed(&[run(0x40, 8, 17), run(0x41, 8, 20), run(0x40, 9, 17)]);
        // Slots by distance, two bits of stride above 16; of target and slot one each.
        assert_eq!(
            (unit[5], &unit[12..16], &unit[40..44]),
            (4, &[2, 0, 16, 0][..], &[0, 1, 1, 0][..])
        );
        // Target, slot, stride: 0, 0, 00b; 1, 0, 11b; 0, 1, 00b.
        assert_eq!(unit[44..46], [0b1101_0000, 0b0000_0010]);
        // One stride for all takes no bits.
        let (_, unit) = packed(&[run(0x40, 8, 17), run(0x41, 8, 17)]);
        assert_eq!((unit[5], &unit[14..16]), (0, &[16, 0][..]));
    }

    /// remap.md section 14: at most 9 bytes for an entry of one page.
    #[test]
    fn a_scattered_entry_takes_at_most_nine_bytes() {
        let entries = scattered(20_000);
        let (count, unit) = packed(&entries);
        assert!(4096.0 / f64::from(u32::try_from(count).unwrap()) <= 9.0, "{count} entries");
        assert_eq!(unit[43], 0, "bits of a length that is always 1");

        let mut two = entries.clone();
        two[1].len = 2;
        assert_eq!(packed(&two).1[43], 1, "bits of a length that is 1 or 2");
    }

    #[test]
    fn sorted_by_slot_they_take_less() {
        let mut entries = scattered(20_000);
        let (unsorted, _) = packed(&entries);
        entries.sort_by_key(|entry| entry.slot);
        let (sorted, unit) = packed(&entries);
        assert_eq!(unit[5], 1, "slot code");
        assert_eq!((unsorted, sorted), (469, 558));
    }

    #[test]
    fn the_widest_entries_fill_a_page_with_202() {
        let wide = [entry(1, 0, 0, 1), entry(u64::MAX, u32::MAX - 1, u32::MAX - 1, 1)];
        let long = RemapEntry { stride: u16::MAX, ..entry(u64::MAX, 0, 0, u16::MAX) };
        let entries: Vec<RemapEntry> = wide.into_iter().chain([long]).cycle().take(300).collect();
        assert_eq!(packed(&entries).0, 202);
    }

    #[test]
    fn equal_entries_take_a_byte_each() {
        assert_eq!(packed(&vec![entry(1, 2, 3, 4); 70_000]).0, 4048);
        let mut unit = vec![0; 1 << 20];
        assert_eq!(pack_log_page(&HEAD, &vec![entry(1, 2, 3, 4); 70_000], &mut unit), 65_535);
        assert_eq!(unpack_log_page(&unit).unwrap().1.len(), 65_535);
    }

    #[test]
    fn no_entries_no_room_no_page() {
        assert_eq!(packed(&[]).0, 0);
        assert_eq!(log_page_capacity(&[entry(1, 2, 3, 4)], 48), 0);
        assert_eq!(unpack_log_page(&[]), None);
        assert_eq!(unpack_log_page(&[0xFF; 4096]), None);
        assert_eq!(unpack_log_page(&[0; 4096]), None);
    }

    #[test]
    fn damage_is_noticed_and_a_false_head_is_refused() {
        let (_, unit) = packed(&scattered(1000));
        for at in 0..unit.len() {
            let mut damaged = unit.clone();
            damaged[at] ^= 1;
            assert_eq!(unpack_log_page(&damaged), None, "byte {at}");
        }
        let lying = |unit: &[u8], at: usize, value: u8| {
            let mut unit = unit.to_vec();
            unit[at] = value;
            crate::bytes::seal(&mut unit);
            unpack_log_page(&unit).map(|(_, entries)| entries.len())
        };
        // Magic, version, bits of stride, entries, lowest length and target, bits.
        let lies = [(0, 0), (4, 2), (5, 34), (7, 0xFF), (12, 0), (35, 0xFF), (40, 65), (43, 255)];
        for (at, value) in lies {
            assert_eq!(lying(&unit, at, value), None, "byte {at}");
        }
        // Equal entries take no bits, so that only the rule of a byte each bounds their number.
        let (_, equal) = packed(&vec![entry(1, 2, 3, 4); 5000]);
        assert_eq!(lying(&equal, 6, 0xD0), Some(4048));
        assert_eq!(lying(&equal, 6, 0xD1), None);
        // A field wider than any number, where there is room for it.
        assert_eq!(lying(&packed(&scattered(2)).1, 40, 200), None);
    }

    fn any_entry() -> impl Strategy<Value = RemapEntry> {
        let bits = (0..64_u32, 0..32_u32, 0..32_u32, 0..16_u32, 0..17_u32);
        (any::<(u64, u32, u32, u16, u16)>(), bits).prop_map(|(values, bits)| {
            let len = (values.3 >> bits.3).max(1);
            let wide = values.4.checked_shr(bits.4).unwrap_or(0).max(1);
            let stride = if len == 1 { 1 } else { wide };
            let span = u32::from(len - 1) * u32::from(stride) + 1;
            let target = (values.1 >> bits.1).min(u32::MAX - span);
            let slot = (values.2 >> bits.2).min(u32::MAX - u32::from(len));
            RemapEntry { stride, ..entry((values.0 >> bits.0).max(1), target, slot, len) }
        })
    }

    proptest! {
        #[test]
        fn any_entries_there_and_back(
            mut entries in proptest::collection::vec(any_entry(), 1..400),
            sort in any::<bool>(),
            unit_bytes in prop_oneof![49_u32..600, Just(4096)],
        ) {
            if sort {
                entries.sort_by_key(|entry| entry.slot);
            }
            let mut unit = vec![0xEE; usize::try_from(unit_bytes).unwrap()];
            let count = pack_log_page(&HEAD, &entries, &mut unit);
            prop_assert!(count >= 1);
            prop_assert!(unit_bytes < 4096 || count >= entries.len().min(160));
            prop_assert_eq!(count, log_page_capacity(&entries, unit_bytes));
            prop_assert_eq!(unpack_log_page(&unit), Some((HEAD, entries[..count].to_vec())));
        }

        #[test]
        fn any_bytes_under_a_true_checksum_unpack_or_not(
            mut unit in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            if let Some(magic) = unit.get_mut(..6) {
                magic.copy_from_slice(b"OFRL\x01\x01");
            }
            if unit.len() >= 4 {
                crate::bytes::seal(&mut unit);
            }
            if let Some((head, entries)) = unpack_log_page(&unit) {
                let mut again = unit.clone();
                prop_assert_eq!(pack_log_page(&head, &entries, &mut again), entries.len());
                prop_assert_eq!(unpack_log_page(&again), Some((head, entries)));
            }
        }
    }
}
