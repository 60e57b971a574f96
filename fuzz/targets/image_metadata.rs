//! Everything else on media: any bytes are a record or none, and a record survives being written
//! again. The first byte chooses the record, the second whether its checksum is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_format::{
    CheckpointLabel, HeadState, SpareState, SyncMark, TRIM_RECORD_BYTES, TrimRecord, decode_tail,
    encode_tail,
};
use onefold_fuzz::{choice, exactly, seal};
use onefold_units::SuperblockId;

fuzz_target!(|data: &[u8]| {
    let Some((record, rest)) = choice(data) else { return };
    let Some((sealing, rest)) = choice(rest) else { return };
    let sealing = sealing & 1 == 1;
    match record % 6 {
        0 => head(rest, sealing),
        1 => spare(rest, sealing),
        2 => tail(rest, sealing),
        3 => trim(rest, sealing),
        4 => checkpoint(rest, sealing),
        _ => sync_mark(rest, sealing),
    }
});

fn fixed<const N: usize>(data: &[u8], sealing: bool) -> [u8; N] {
    let mut bytes = exactly::<N>(data);
    if sealing {
        seal(&mut bytes);
    }
    bytes
}

fn head(data: &[u8], sealing: bool) {
    let bytes = fixed::<64>(data, sealing);
    // The places of superblock and geometry in the header (docs/spec.md), so that they match.
    let superblock = SuperblockId::new(u32::from_le_bytes(exactly(&bytes[8..12])));
    let geometry = u64::from_le_bytes(exactly(&bytes[32..40]));
    if let HeadState::Opened(record) = HeadState::decode(&bytes, superblock, geometry) {
        let again = HeadState::decode(&record.encode(), superblock, geometry);
        assert_eq!(again, HeadState::Opened(record));
    }
}

fn spare(data: &[u8], sealing: bool) {
    let bytes = fixed::<24>(data, sealing);
    if let SpareState::Programmed(record) = SpareState::decode(&bytes) {
        assert_eq!(SpareState::decode(&record.encode()), SpareState::Programmed(record));
    }
}

fn tail(data: &[u8], sealing: bool) {
    let mut unit = fixed::<4096>(data, sealing);
    if let Some(records) = decode_tail(&unit) {
        let count = encode_tail(&records, &mut unit);
        assert_eq!(decode_tail(&unit).as_deref(), Some(&records[..count]));
    }
    let _ = decode_tail(data);
}

fn trim(data: &[u8], sealing: bool) {
    let bytes = fixed::<TRIM_RECORD_BYTES>(data, sealing);
    if let Some(record) = TrimRecord::decode(&bytes) {
        assert_eq!(TrimRecord::decode(&record.encode()), Some(record));
    }
}

fn checkpoint(data: &[u8], sealing: bool) {
    let mut bytes = data.to_vec();
    if sealing && data.len() >= 44 {
        // The label's length follows from its two counts.
        let count = |at: usize| u64::from(u32::from_le_bytes(exactly(&data[at..at + 4])) % 64);
        let superblocks = count(36);
        let frontiers = count(40);
        bytes[36..40].copy_from_slice(&exactly::<4>(&superblocks.to_le_bytes()));
        bytes[40..44].copy_from_slice(&exactly::<4>(&frontiers.to_le_bytes()));
        bytes.resize(52 + (superblocks * 4 + frontiers * 8) as usize, 0);
        seal(&mut bytes);
    }
    if let Some(label) = CheckpointLabel::decode(&bytes) {
        assert_eq!(CheckpointLabel::decode(&label.encode()), Some(label));
    }
}

fn sync_mark(data: &[u8], sealing: bool) {
    let mark = SyncMark::decode(&fixed(data, sealing));
    assert_eq!(SyncMark::decode(&mark.encode()), mark);
}
