//! OFT: the bytes, and what a kill leaves.

use onefold_trace::oft::{BLOCK_RECORDS, Encoder, FLAG_DIGESTS, Header};
use onefold_trace::{
    BinaryProblem, Flags, Format, FormatSpec, ReadError, Record, TraceOp, read_all,
};

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn spec() -> FormatSpec {
    FormatSpec::new(Format::Oft)
}

fn file(records: usize) -> (Vec<Record>, Vec<u8>, Encoder) {
    let mut encoder = Encoder::new(Header::unknown());
    let mut file = encoder.header().to_vec();
    let records: Vec<Record> =
        (0..records as u64).map(|n| Record::new(n, TraceOp::Write, n * 4_096, 4_096)).collect();
    for record in &records {
        encoder.push(record, &mut file);
    }
    (records, file, encoder)
}

#[test]
fn golden_bytes() {
    let header = Header {
        flags: FLAG_DIGESTS,
        epoch_unix_ns: 0x0102_0304_0506_0708,
        device_bytes: 1 << 30,
        device_uuid: *b"0123456789abcdef",
        lba_bytes: 4_096,
    };
    let mut encoder = Encoder::new(header);
    let mut bytes = encoder.header().to_vec();
    let mut record = Record::new(0x11, TraceOp::Write, 0x2000, 0x1800);
    record.flags = Flags::FUA.with(Flags::SYNC);
    (record.status, record.client, record.dev, record.aux) = (3, 4, 5, 6);
    record.digests = Some(Box::new([[0xAA; 16], [0; 16]]));
    encoder.add_dropped(9);
    encoder.push(&record, &mut bytes);
    encoder.finish(&mut bytes);
    let hex = hex(&bytes);
    let parts = [
        // Header: magic, version, lengths, flags; epoch; size; UUID; LBA, zero, CRC.
        "4f465452414345000100400030000100",
        "08070605040302010000004000000000",
        "30313233343536373839616263646566",
        "001000000000000000000000",
    ];
    assert!(hex.starts_with(&parts.concat()), "{hex}");
    // Block of one record: magic, kind 1, count 1, 48 bytes, first time, dropped.
    let block = "4f4654420100010030000000110000000000000009000000000000";
    assert_eq!(&hex[128..128 + block.len()], block);
    // The record.
    let body = [
        "1100000000000000",
        "ffffffffffffffff",
        "0020000000000000",
        "0018000000000000",
        "0600000000000000",
        "01030300040005",
        "00",
    ]
    .concat();
    assert_eq!(&hex[192..192 + 96], body);
    // Its digests, kind 2, then the end, kind 3.
    assert_eq!(&hex[288..288 + 24], "4f4654420200020020000000");
    assert_eq!(&hex[352..352 + 64], "aa".repeat(16) + &"00".repeat(16));
    assert_eq!(&hex[416..416 + 24], "4f4654420300000000000000");
    assert_eq!(hex.len(), 416 + 64);
    // The checksums: of everything before, and of header and payload.
    assert_eq!(&bytes[60..64], &crc32c::crc32c(&bytes[..60]).to_le_bytes());
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[64..92]), &bytes[96..144]);
    assert_eq!(&bytes[92..96], &crc.to_le_bytes());
    let (records, summary) = read_all(spec(), &bytes).unwrap();
    assert_eq!(records, [record]);
    assert_eq!((summary.dropped_records, summary.device_bytes), (9, Some(1 << 30)));
    assert_eq!(summary.epoch_base_ns, Some(0x0102_0304_0506_0708));
}

#[test]
fn a_full_block_is_written_at_once() {
    let (_, before, encoder) = file(BLOCK_RECORDS - 1);
    assert_eq!((before.len(), encoder.pending()), (64, BLOCK_RECORDS - 1));
    let (_, after, encoder) = file(BLOCK_RECORDS);
    assert_eq!((after.len(), encoder.pending()), (64 + 32 + 65_520, 0));
}

#[test]
fn a_kill_costs_only_the_torn_block() {
    let (records, mut whole, mut encoder) = file(2 * BLOCK_RECORDS + 7);
    let blocks = whole.len();
    encoder.flush(&mut whole);
    let (read, summary) = read_all(spec(), &whole).unwrap();
    assert_eq!(read, records);
    assert!(summary.warnings[0].contains("no end mark"), "{summary:?}");
    for cut in [blocks + 1, blocks + 31, blocks + 32, whole.len() - 1] {
        let (read, summary) = read_all(spec(), &whole[..cut]).unwrap();
        assert_eq!(read, records[..2 * BLOCK_RECORDS], "cut at {cut}");
        assert!(summary.warnings[0].contains("torn"), "{summary:?}");
    }
    // Torn in content, not in length; and followed by zeroes of an extended file.
    let last = whole.len() - 1;
    whole[last] ^= 1;
    assert_eq!(read_all(spec(), &whole).unwrap().0.len(), 2 * BLOCK_RECORDS);
    whole.truncate(blocks);
    whole.extend_from_slice(&[0; 5_000]);
    assert_eq!(read_all(spec(), &whole).unwrap().0.len(), 2 * BLOCK_RECORDS);
}

#[test]
fn damage_before_the_end_is_an_error() {
    let (_, mut whole, mut encoder) = file(3 * BLOCK_RECORDS);
    encoder.finish(&mut whole);
    for at in [64, 64 + 20, 64 + 32 + 100, 64 + 28] {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        let error = read_all(spec(), &damaged).unwrap_err();
        assert!(matches!(error, ReadError::Record { byte: 64, record: 1, .. }), "{at}: {error}");
    }
    let mut damaged = whole.clone();
    damaged[8] = 2;
    let body = crc32c::crc32c(&damaged[..60]).to_le_bytes();
    damaged[60..64].copy_from_slice(&body);
    let error = read_all(spec(), &damaged).unwrap_err();
    let problem = BinaryProblem::Version { found: 2, expected: 1 };
    assert!(matches!(error, ReadError::Record { problem: p, .. } if p == problem), "{error}");
    assert!(matches!(read_all(spec(), &whole[..63]), Err(ReadError::Truncated { missing: 1, .. })));
}

/// A remap has a range and a source that end below 2^64, of as many bytes; the source is named if that is what is wrong.
#[test]
fn a_remap_that_cannot_be_is_an_error() {
    let read = |offset, source, len| {
        let mut record = Record::new(0, TraceOp::Remap, offset, len);
        (record.aux, record.flags) = (source, Flags::MOVE);
        let mut encoder = Encoder::new(Header::unknown());
        let mut bytes = encoder.header().to_vec();
        encoder.push(&record, &mut bytes);
        encoder.finish(&mut bytes);
        read_all(spec(), &bytes).map(|(records, _)| (records, record))
    };
    let (found, pushed) = read(4096, 1 << 40, 8192).unwrap();
    assert_eq!(found, [pushed]);
    assert_eq!(found[0].source(), Some(1 << 40));
    for (offset, source, len, named) in
        [(4096, u64::MAX - 4095, 8192, u64::MAX - 4095), (u64::MAX, 0, 2, u64::MAX), (8, 9, 0, 9)]
    {
        let error = read(offset, source, len).unwrap_err();
        let ReadError::Record { problem, .. } = error else { panic!("{error}") };
        assert_eq!(problem, BinaryProblem::Range { offset: named, len });
    }
}
