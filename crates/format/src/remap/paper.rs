//! The layouts of the paper, for the schemes that Onefold is compared with (`mode = paper`). Source:
//! Wu 2022, Table II and sec. IV-B, as bits in remap.md section 3.
//!
//! Bit 0 is the lowest of the first byte. A word is 8 bytes that NVRAM stores at once. A container is
//! zeroed before it is used, so a word that never arrived has no torn bit; an entry is intact iff
//! all of its torn bits are set and, in A24, its checksum matches.
//!
//! ```text
//! P16  torn 1 | slot 21 | seq 42 || torn 1 | target 31 | move 1 | source 31
//! G16  torn 1 | PPN 32 | target 31 || torn 1 | source 31 | move 1 | seq low bits 31
//! A24  P16 || torn 1 | start 31 | len - 1 16 | atomic 1 | crc 15
//! P16 segment head  torn 1 | seq 42 | number 21 || torn 1 | superblock 20 | next 23 | epoch low 20
//! P16 log page head  superblock 32 | entries 16 | flags 16 | epoch 48 | crc 16
//! ```
//!
//! Ours, where the paper says nothing: A24 as a whole; both checksums run over the bits before them
//! from bit 0 up (polynomials 4599h and 1021h, start values 0 and all ones); a last segment has all
//! ones for the next one.

use onefold_units::convert::{low16, low32};
use onefold_units::{Lpn, Ppn, Seq, SuperblockId};

use super::bits::{BitReader, BitWriter};
use crate::bytes::Reader;

/// A value that a layout of the paper has no room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{field} is {value}, the paper's {layout} takes {least} to {most}; use a smaller device or \
     Onefold's own entries"
)]
pub struct PaperRangeError {
    /// Which layout.
    pub layout: &'static str,
    /// Which field of it.
    pub field: &'static str,
    /// The value.
    pub value: u64,
    /// Lowest value there is room for.
    pub least: u64,
    /// Highest value there is room for.
    pub most: u64,
}

/// One remapped unit, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16Entry {
    /// Slot in the superblock, below 2^21.
    pub slot: u32,
    /// Sequence number of the mapping, below 2^42.
    pub seq: Seq,
    /// The unit, below 2^31.
    pub target: Lpn,
    /// The unit that lost the slot, if it was moved; below 2^31.
    pub source: Option<Lpn>,
}

/// One remapped unit in a global log, 16 B: the log has entries of all superblocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct G16Entry {
    /// Where the unit is.
    pub ppn: Ppn,
    /// Sequence number of the mapping, less than 2^30 from the base of the log page.
    pub seq: Seq,
    /// The unit, below 2^31.
    pub target: Lpn,
    /// The unit that lost the slot, if it was moved; below 2^31.
    pub source: Option<Lpn>,
}

/// One remapped unit and the command it belongs to, 24 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct A24Entry {
    /// The unit.
    pub entry: P16Entry,
    /// First target of the command, below 2^31.
    pub start: Lpn,
    /// Units of the command, 1 to 65,536.
    pub len: u32,
    /// Whether the command counts only as a whole.
    pub atomic: bool,
}

/// Head of a segment of P16 or A24 entries, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16SegmentHead {
    /// Last sequence number when the segment was allocated, below 2^42.
    pub seq: Seq,
    /// Number of the segment among those of its superblock, below 2^21.
    pub number: u32,
    /// The superblock of the entries' slots, below 2^20.
    pub superblock: SuperblockId,
    /// The segment after it, below 2^23 - 1.
    pub next: Option<u32>,
    /// Low 20 bits of the superblock's epoch.
    pub epoch_low: u32,
}

/// Head of a log page of P16 entries, 16 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct P16LogPageHead {
    /// The superblock of the entries' slots.
    pub superblock: SuperblockId,
    /// Entries in the page.
    pub entries: u16,
    /// No meaning is defined.
    pub flags: u16,
    /// Epoch of the superblock, below 2^48.
    pub epoch: u64,
}

const HEAD_BYTES: u32 = 16;
const NO_SEGMENT: u64 = (1 << 23) - 1;
const LEN_MAX: u64 = 1 << 16;
const SEQ_REACH: u64 = 1 << 30;

impl P16Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// Entries in a segment or a log page of `bytes`.
    #[must_use]
    pub const fn per_container(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 16
    }

    /// The bytes of the entry.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 entry", &mut bytes);
        fields.p16(self)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        Self::take(&mut BitReader::new(bytes))
    }

    fn take(reader: &mut BitReader<'_>) -> Option<Self> {
        take_torn(reader)?;
        let (slot, seq) = (low32(reader.take(21)?), Seq::new(reader.take(42)?));
        take_torn(reader)?;
        let target = take_lpn(reader)?;
        let moved = reader.take(1)? == 1;
        let source = Some(take_lpn(reader)?).filter(|_| moved);
        Some(Self { slot, seq, target, source })
    }
}

impl G16Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 16;

    /// Entries in a log page of `bytes`.
    #[must_use]
    pub const fn per_page(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 16
    }

    /// The bytes of the entry in a log page with the base `base`.
    pub fn encode(&self, base: Seq) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("G16 entry", &mut bytes);
        let distance = self.seq.raw().abs_diff(base.raw());
        fields.check("distance of seq from its base", distance, 0, SEQ_REACH - 1)?;
        fields.torn();
        fields.put("PPN", u64::from(self.ppn.raw()), 32)?;
        fields.put("target", u64::from(self.target.raw()), 31)?;
        fields.torn();
        fields.put("source", self.source.map_or(0, |lpn| u64::from(lpn.raw())), 31)?;
        fields.put("move flag", u64::from(self.source.is_some()), 1)?;
        fields.put("seq", self.seq.raw() % (2 * SEQ_REACH), 31)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none or it is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES], base: Seq) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        take_torn(&mut reader)?;
        let ppn = Ppn::new(low32(reader.take(32)?));
        let target = take_lpn(&mut reader)?;
        take_torn(&mut reader)?;
        let source = take_lpn(&mut reader)?;
        let source = Some(source).filter(|_| reader.take(1) == Some(1));
        let seq = nearest(base.raw(), reader.take(31)?)?;
        Some(Self { ppn, seq: Seq::new(seq), target, source })
    }
}

impl A24Entry {
    /// Bytes of an entry.
    pub const BYTES: usize = 24;

    /// Entries in a segment of `bytes`.
    #[must_use]
    pub const fn per_segment(bytes: u32) -> u32 {
        bytes.saturating_sub(HEAD_BYTES) / 24
    }

    /// The bytes of the entry.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("A24 entry", &mut bytes);
        fields.p16(&self.entry)?;
        fields.torn();
        fields.put("start", u64::from(self.start.raw()), 31)?;
        fields.check("len", u64::from(self.len), 1, LEN_MAX)?;
        fields.put("len", u64::from(self.len) - 1, 16)?;
        fields.put("atomic flag", u64::from(self.atomic), 1)?;
        fields.finish();
        let last = low16(CRC_15.of(&bytes, A24_CHECKED_BITS)) << 1 | u16::from(self.atomic);
        bytes[22..].copy_from_slice(&last.to_le_bytes());
        Ok(bytes)
    }

    /// Reads an entry; `None` if there is none, or it is torn or damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        let entry = P16Entry::take(&mut reader)?;
        take_torn(&mut reader)?;
        let start = take_lpn(&mut reader)?;
        let len = low32(reader.take(16)?) + 1;
        let atomic = reader.take(1)? == 1;
        let intact = reader.take(15)? == CRC_15.of(bytes, A24_CHECKED_BITS);
        intact.then_some(Self { entry, start, len, atomic })
    }
}

impl P16SegmentHead {
    /// Bytes of the head.
    pub const BYTES: usize = 16;

    /// The bytes of the head.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 segment head", &mut bytes);
        fields.torn();
        fields.put("seq", self.seq.raw(), 42)?;
        fields.put("number", u64::from(self.number), 21)?;
        fields.torn();
        fields.put("superblock", u64::from(self.superblock.raw()), 20)?;
        if let Some(next) = self.next {
            fields.check("next segment", u64::from(next), 0, NO_SEGMENT - 1)?;
        }
        fields.put("next segment", self.next.map_or(NO_SEGMENT, u64::from), 23)?;
        fields.put("low bits of the epoch", u64::from(self.epoch_low), 20)?;
        fields.finish();
        Ok(bytes)
    }

    /// Reads a head; `None` if the segment is free or the head is torn.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = BitReader::new(bytes);
        take_torn(&mut reader)?;
        let (seq, number) = (Seq::new(reader.take(42)?), low32(reader.take(21)?));
        take_torn(&mut reader)?;
        let superblock = SuperblockId::new(low32(reader.take(20)?));
        let next = Some(reader.take(23)?).filter(|next| *next != NO_SEGMENT).map(low32);
        let epoch_low = low32(reader.take(20)?);
        Some(Self { seq, number, superblock, next, epoch_low })
    }
}

impl P16LogPageHead {
    /// Bytes of the head.
    pub const BYTES: usize = 16;

    /// The bytes of the head.
    pub fn encode(&self) -> Result<[u8; Self::BYTES], PaperRangeError> {
        let mut bytes = [0; Self::BYTES];
        let mut fields = FieldWriter::new("P16 log page head", &mut bytes);
        fields.put("superblock", u64::from(self.superblock.raw()), 32)?;
        fields.put("entries", u64::from(self.entries), 16)?;
        fields.put("flags", u64::from(self.flags), 16)?;
        fields.put("epoch", self.epoch, 48)?;
        fields.finish();
        let sum = low16(CRC_16.of(&bytes, PAGE_CHECKED_BITS));
        bytes[14..].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Reads a head; `None` if there is none or it is damaged.
    #[must_use]
    pub fn decode(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let superblock = SuperblockId::new(reader.u32()?);
        let (entries, flags) = (reader.u16()?, reader.u16()?);
        let epoch = reader.uint(6)?;
        let intact = reader.uint(2)? == CRC_16.of(bytes, PAGE_CHECKED_BITS);
        intact.then_some(Self { superblock, entries, flags, epoch })
    }
}

/// Writes the fields of one layout and refuses what they have no room for.
struct FieldWriter<'a> {
    layout: &'static str,
    bits: BitWriter<'a>,
}

impl<'a> FieldWriter<'a> {
    const fn new(layout: &'static str, bytes: &'a mut [u8]) -> Self {
        Self { layout, bits: BitWriter::new(bytes) }
    }

    fn torn(&mut self) {
        self.bits.put(1, 1);
    }

    fn put(&mut self, field: &'static str, value: u64, bits: u32) -> Result<(), PaperRangeError> {
        self.check(field, value, 0, (1 << bits) - 1)?;
        self.bits.put(value, bits);
        Ok(())
    }

    fn check(
        &self,
        field: &'static str,
        value: u64,
        least: u64,
        most: u64,
    ) -> Result<(), PaperRangeError> {
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(PaperRangeError { layout: self.layout, field, value, least, most })
    }

    fn p16(&mut self, entry: &P16Entry) -> Result<(), PaperRangeError> {
        self.torn();
        self.put("slot", u64::from(entry.slot), 21)?;
        self.put("seq", entry.seq.raw(), 42)?;
        self.torn();
        self.put("target", u64::from(entry.target.raw()), 31)?;
        self.put("move flag", u64::from(entry.source.is_some()), 1)?;
        self.put("source", entry.source.map_or(0, |lpn| u64::from(lpn.raw())), 31)
    }

    fn finish(self) {
        self.bits.finish();
    }
}

fn take_torn(reader: &mut BitReader<'_>) -> Option<()> {
    (reader.take(1)? == 1).then_some(())
}

fn take_lpn(reader: &mut BitReader<'_>) -> Option<Lpn> {
    reader.take(31).map(low32).map(Lpn::new)
}

/// The number nearest to `base` that ends in the 31 bits `low`.
fn nearest(base: u64, low: u64) -> Option<u64> {
    let above = low.wrapping_sub(base) % (2 * SEQ_REACH);
    if above < SEQ_REACH {
        base.checked_add(above)
    } else {
        base.checked_sub(2 * SEQ_REACH - above)
    }
}

/// A checksum over bits that fill no bytes.
struct BitCrc {
    width: u32,
    polynomial: u64,
    initial: u64,
}

const A24_CHECKED_BITS: usize = 177;
const PAGE_CHECKED_BITS: usize = 112;
const CRC_15: BitCrc = BitCrc { width: 15, polynomial: 0x4599, initial: 0 };
const CRC_16: BitCrc = BitCrc { width: 16, polynomial: 0x1021, initial: 0xFFFF };

impl BitCrc {
    /// Over the first `bits` of `bytes`, from bit 0 up.
    fn of(&self, bytes: &[u8], bits: usize) -> u64 {
        let mut sum = self.initial;
        for at in 0..bits {
            let bit = u64::from(bytes[at / 8] >> (at % 8) & 1);
            let carry = sum >> (self.width - 1) & 1;
            sum = sum << 1 & ((1 << self.width) - 1);
            if carry != bit {
                sum ^= self.polynomial;
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::{
        A24_CHECKED_BITS, A24Entry, BitCrc, CRC_15, CRC_16, G16Entry, P16Entry, P16LogPageHead,
        P16SegmentHead,
    };
    use onefold_units::{Lpn, Ppn, Seq, SuperblockId};
    use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

    const P16: P16Entry = P16Entry {
        slot: 5,
        seq: Seq::new(0x201),
        target: Lpn::new(0x3333),
        source: Some(Lpn::new(0x5555)),
    };
    const A24: A24Entry = A24Entry { entry: P16, start: Lpn::new(0x30), len: 0x1234, atomic: true };
    const SEGMENT: P16SegmentHead = P16SegmentHead {
        seq: Seq::new(0x201),
        number: 5,
        superblock: SuperblockId::new(0x99),
        next: Some(0x77),
        epoch_low: 0x42,
    };
    const PAGE: P16LogPageHead = P16LogPageHead {
        superblock: SuperblockId::new(0x0403_0201),
        entries: 255,
        flags: 0x0605,
        epoch: 0x0C0B_0A09_0807,
    };

    /// A word from its fields, each at its first bit.
    fn word(fields: &[(u64, u32)]) -> [u8; 8] {
        fields.iter().map(|(value, at)| value << at).sum::<u64>().to_le_bytes()
    }

    /// The numbers of the bits are those of remap.md section 3.
    #[test]
    fn golden_bytes() {
        let first = word(&[(1, 0), (5, 1), (0x201, 22)]);
        let second = word(&[(1, 0), (0x3333, 1), (1, 32), (0x5555, 33)]);
        let p16 = [first, second].concat();
        assert_eq!(P16.encode().unwrap()[..], p16);
        let copy = P16Entry { source: None, ..P16 };
        assert_eq!(copy.encode().unwrap()[8..], word(&[(1, 0), (0x3333, 1)]));

        let third = word(&[(1, 0), (0x30, 1), (0x1233, 32), (1, 48), (0, 49)]);
        let a24 = A24.encode().unwrap();
        assert_eq!(a24[..16], p16);
        assert_eq!(a24[16..22], third[..6]);
        assert_eq!(u16::from_le_bytes([a24[22], a24[23]]), 1 | 0x3117 << 1);

        let base = Seq::new(0x1_0000_0000);
        let g16 = G16Entry {
            ppn: Ppn::new(0xCC00_0011),
            seq: Seq::new(0xFFFF_FFFE),
            target: Lpn::new(0x3333),
            source: Some(Lpn::new(0x5555)),
        };
        let bytes = [
            word(&[(1, 0), (0xCC00_0011, 1), (0x3333, 33)]),
            word(&[(1, 0), (0x5555, 1), (1, 32), (0x7FFF_FFFE, 33)]),
        ];
        assert_eq!(g16.encode(base).unwrap()[..], bytes.concat());

        let segment = [
            word(&[(1, 0), (0x201, 1), (5, 43)]),
            word(&[(1, 0), (0x99, 1), (0x77, 21), (0x42, 44)]),
        ];
        assert_eq!(SEGMENT.encode().unwrap()[..], segment.concat());
        let last = P16SegmentHead { next: None, ..SEGMENT }.encode().unwrap();
        assert_eq!(last[8..], word(&[(1, 0), (0x99, 1), (0x7F_FFFF, 21), (0x42, 44)]));

        let page = PAGE.encode().unwrap();
        let body = [1, 2, 3, 4, 0xFF, 0, 5, 6, 7, 8, 9, 0xA, 0xB, 0xC];
        assert_eq!(page[..14], body);
        assert_eq!(u16::from_le_bytes([page[14], page[15]]), 0x15EF);
    }

    #[test]
    fn entries_per_container_are_those_of_the_paper() {
        assert_eq!((P16Entry::per_container(1024), A24Entry::per_segment(1024)), (63, 42));
        assert_eq!((P16Entry::per_container(4096), G16Entry::per_page(4096)), (255, 255));
    }

    /// Check values of the catalogue of parametrised CRC algorithms, whose bits run from the top of
    /// each byte down.
    #[test]
    fn checksums_are_the_published_ones() {
        let digits = b"123456789".map(u8::reverse_bits);
        let check = |crc: &BitCrc| crc.of(&digits, 72);
        assert_eq!((check(&CRC_15), check(&CRC_16)), (0x059E, 0x29B1));
    }

    #[test]
    fn what_has_no_room_is_refused_by_name() {
        let text = |entry: P16Entry| entry.encode().unwrap_err().to_string();
        let wide = Some(Lpn::new(1 << 31));
        assert_eq!(
            text(P16Entry { slot: 1 << 21, ..P16 }),
            "slot is 2097152, the paper's P16 entry takes 0 to 2097151; use a smaller device or \
             Onefold's own entries"
        );
        assert!(
            text(P16Entry { seq: Seq::new(1 << 42), ..P16 }).starts_with("seq is 4398046511104,")
        );
        assert!(text(P16Entry { target: Lpn::new(1 << 31), ..P16 }).starts_with("target is"));
        assert!(text(P16Entry { source: wide, ..P16 }).starts_with("source is"));
        for len in [0, 65_537] {
            let error = A24Entry { len, ..A24 }.encode().unwrap_err();
            assert_eq!((error.field, error.least, error.most), ("len", 1, 65_536));
        }
        let next = Some(0x7F_FFFF);
        assert_eq!(P16SegmentHead { next, ..SEGMENT }.encode().unwrap_err().most, 0x7F_FFFE);
        assert_eq!(P16LogPageHead { epoch: 1 << 48, ..PAGE }.encode().unwrap_err().field, "epoch");
    }

    #[test]
    fn a_sequence_number_is_the_one_nearest_to_the_base() {
        let entry = |seq| G16Entry { ppn: Ppn::new(0), seq, target: Lpn::new(0), source: None };
        let reach = (1 << 30) - 1;
        for base in [0, 5, (1 << 31) - 1, 1 << 31, 3 << 40, u64::MAX] {
            for seq in [base.checked_sub(reach), Some(base), base.checked_add(reach)] {
                let Some(seq) = seq.map(Seq::new) else { continue };
                let bytes = entry(seq).encode(Seq::new(base)).unwrap();
                assert_eq!(G16Entry::decode(&bytes, Seq::new(base)), Some(entry(seq)));
            }
        }
        let error = entry(Seq::new(1 << 30)).encode(Seq::new(0)).unwrap_err();
        assert_eq!((error.value, error.most), (1 << 30, reach));
        // Bits that would name a number below zero.
        let bytes = entry(Seq::new(reach + 4)).encode(Seq::new(9)).unwrap();
        assert_eq!(G16Entry::decode(&bytes, Seq::new(0)), None);
    }

    #[test]
    fn no_bit_of_a_checked_layout_can_flip() {
        let (a24, page) = (A24.encode().unwrap(), PAGE.encode().unwrap());
        for bit in 0..192 {
            let mut damaged = a24;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(A24Entry::decode(&damaged), None, "bit {bit}");
        }
        for bit in 0..128 {
            let mut damaged = page;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(P16LogPageHead::decode(&damaged), None, "bit {bit}");
        }
        assert_eq!(P16LogPageHead::decode(&[0; 16]), None);
        // Each torn bit counts, even if the checksum was taken without it.
        for word in 0..3 {
            let mut torn = a24;
            torn[word * 8] &= !1;
            let sum = u16::try_from(CRC_15.of(&torn, A24_CHECKED_BITS)).unwrap();
            torn[22..].copy_from_slice(&(sum << 1 | 1).to_le_bytes());
            assert_eq!(A24Entry::decode(&torn), None, "word {word}");
        }
    }

    fn any_p16() -> impl Strategy<Value = P16Entry> {
        let source = proptest::option::of(0..1_u32 << 31);
        (0..1_u32 << 21, 0..1_u64 << 42, 0..1_u32 << 31, source).prop_map(
            |(slot, seq, target, source)| P16Entry {
                slot,
                seq: Seq::new(seq),
                target: Lpn::new(target),
                source: source.map(Lpn::new),
            },
        )
    }

    /// What is left of `bytes` in a zeroed place if the store of word `missing` never arrived.
    fn without<const N: usize>(mut bytes: [u8; N], missing: usize) -> [u8; N] {
        bytes[missing * 8..][..8].fill(0);
        bytes
    }

    proptest! {
        #[test]
        fn entries_there_and_back_and_no_store_missing(
            entry in any_p16(),
            (start, len, atomic) in (0..1_u32 << 31, 1..=65_536_u32, any::<bool>()),
            (ppn, base) in any::<(u32, u64)>(),
        ) {
            let bytes = entry.encode().unwrap();
            prop_assert_eq!(P16Entry::decode(&bytes), Some(entry));
            let a24 = A24Entry { entry, start: Lpn::new(start), len, atomic };
            let long = a24.encode().unwrap();
            prop_assert_eq!(A24Entry::decode(&long), Some(a24));
            let seq = Seq::new(base ^ (u64::from(start) >> 1));
            let (target, source) = (entry.target, entry.source);
            let g16 = G16Entry { ppn: Ppn::new(ppn), seq, target, source };
            let base = Seq::new(base);
            let global = g16.encode(base).unwrap();
            prop_assert_eq!(G16Entry::decode(&global, base), Some(g16));
            for missing in 0..2 {
                prop_assert!(P16Entry::decode(&without(bytes, missing)).is_none());
                prop_assert!(G16Entry::decode(&without(global, missing), base).is_none());
            }
            for missing in 0..3 {
                prop_assert!(A24Entry::decode(&without(long, missing)).is_none());
            }
        }

        #[test]
        fn heads_there_and_back_and_no_store_missing(
            (seq, number, superblock) in (0..1_u64 << 42, 0..1_u32 << 21, 0..1_u32 << 20),
            (next, epoch) in (proptest::option::of(0..(1_u32 << 23) - 1), 0..1_u64 << 48),
            (entries, flags) in any::<(u16, u16)>(),
        ) {
            let (seq, superblock) = (Seq::new(seq), SuperblockId::new(superblock));
            let epoch_low = u32::try_from(epoch & 0xF_FFFF).unwrap();
            let head = P16SegmentHead { seq, number, superblock, next, epoch_low };
            let bytes = head.encode().unwrap();
            prop_assert_eq!(P16SegmentHead::decode(&bytes), Some(head));
            for missing in 0..2 {
                prop_assert!(P16SegmentHead::decode(&without(bytes, missing)).is_none());
            }
            let page = P16LogPageHead { superblock, entries, flags, epoch };
            prop_assert_eq!(P16LogPageHead::decode(&page.encode().unwrap()), Some(page));
        }
    }
}
