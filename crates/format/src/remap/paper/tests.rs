//! Golden bytes, limits, and damage.

use super::entries::A24_CHECKED_BITS;
use super::fields::{BitCrc, CRC_15, CRC_16};
use super::{A24Entry, G16Entry, P16Entry, P16LogPageHead, P16SegmentHead};
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

    let segment =
        [word(&[(1, 0), (0x201, 1), (5, 43)]), word(&[(1, 0), (0x99, 1), (0x77, 21), (0x42, 44)])];
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
    assert!(text(P16Entry { seq: Seq::new(1 << 42), ..P16 }).starts_with("seq is 4398046511104,"));
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
