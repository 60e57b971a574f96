//! Everything of the remap primitive, on media and on the wire: any bytes are a record or none, and a
//! record survives being written again. The first byte chooses the record, the second whether its
//! checksum is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_format::{
    CommandSlot, LogPageHead, REMAP_BLOCK_BYTES, RemapEntry, RemapReply, RemapVector, SegmentHead,
    SnapshotCommand, SnapshotTable, checksum, decode_segment, log_page_capacity, pack_log_page,
    unpack_log_page,
};
use onefold_fuzz::{choice, exactly, seal};
use onefold_units::{Lpn, Seq, SuperblockId};

const LIFE: u64 = 7;

fuzz_target!(|data: &[u8]| {
    let Some((record, rest)) = choice(data) else { return };
    let Some((sealing, rest)) = choice(rest) else { return };
    let sealing = sealing & 1 == 1;
    match record % 9 {
        0 => entry(exactly(rest), sealing),
        1 => segment(rest.to_vec(), sealing),
        2 => log_page(rest.to_vec(), sealing),
        3 => pack(rest),
        4 => command(exactly(rest), sealing),
        5 => vector(rest, sealing),
        6 => reply(rest, sealing),
        7 => snapshot_command(rest, sealing),
        _ => snapshot_table(rest, sealing),
    }
});

fn seal_entry(bytes: &mut [u8], life: u64) {
    let covered = [&life.to_le_bytes()[..], &bytes[..RemapEntry::BYTES - 4]].concat();
    bytes[RemapEntry::BYTES - 4..].copy_from_slice(&checksum(&covered).to_le_bytes());
}

fn entry(mut bytes: [u8; RemapEntry::BYTES], sealing: bool) {
    if sealing {
        seal_entry(&mut bytes, LIFE);
    }
    if let Some(entry) = RemapEntry::decode(&bytes, LIFE) {
        let again = entry.encode(LIFE);
        assert_eq!(RemapEntry::decode(&again, LIFE), Some(entry));
        assert_eq!(RemapEntry::decode(&again, LIFE + 1), None);
    }
}

fn segment(mut bytes: Vec<u8>, sealing: bool) {
    if sealing && let Some((head, entries)) = bytes.split_at_mut_checked(SegmentHead::BYTES) {
        seal(head);
        let life = u64::from_le_bytes(exactly(&head[16..24]));
        for entry in entries.chunks_exact_mut(RemapEntry::BYTES) {
            seal_entry(entry, life);
        }
    }
    if let Some((head, entries)) = decode_segment(&bytes) {
        assert_eq!(SegmentHead::decode(&head.encode()), Some(head));
        let mut again = head.encode().to_vec();
        again.extend(entries.iter().flat_map(|entry| entry.encode(head.life)));
        assert_eq!(decode_segment(&again), Some((head, entries)));
    }
}

fn log_page(mut unit: Vec<u8>, sealing: bool) {
    if sealing {
        seal(&mut unit);
    }
    if let Some((head, entries)) = unpack_log_page(&unit) {
        assert!(entries.len() <= unit.len(), "{} entries", entries.len());
        let mut again = unit.clone();
        assert_eq!(pack_log_page(&head, &entries, &mut again), entries.len());
        assert_eq!(unpack_log_page(&again), Some((head, entries)));
    }
}

/// Entries from the input, into a unit as long as the input says.
fn pack(data: &[u8]) {
    let Some((unit_bytes, rest)) = data.split_first_chunk() else { return };
    let unit_bytes = 49 + usize::from(u16::from_le_bytes(*unit_bytes)) % 5000;
    let (fields, _) = rest.as_chunks::<20>();
    let entries: Vec<RemapEntry> = fields.iter().filter_map(|bytes| any_entry(bytes)).collect();
    let head = LogPageHead { superblock: SuperblockId::new(3), epoch: u64::MAX };
    let mut unit = vec![0xEE; unit_bytes];
    let count = pack_log_page(&head, &entries, &mut unit);
    assert!(count > 0 || entries.is_empty());
    assert!(unit_bytes < 4096 || count >= entries.len().min(160));
    assert_eq!(count, log_page_capacity(&entries, unit_bytes as u32));
    assert_eq!(unpack_log_page(&unit), Some((head, entries[..count].to_vec())));
}

fn any_entry(bytes: &[u8; 20]) -> Option<RemapEntry> {
    let entry = RemapEntry {
        seq: Seq::new(u64::from_le_bytes(exactly(&bytes[..8]))),
        target: Lpn::new(u32::from_le_bytes(exactly(&bytes[8..12]))),
        slot: u32::from_le_bytes(exactly(&bytes[12..16])),
        len: u16::from_le_bytes(exactly(&bytes[16..18])),
        stride: u16::from_le_bytes(exactly(&bytes[18..])),
    };
    entry.is_valid().then_some(entry)
}

fn command(mut bytes: [u8; CommandSlot::BYTES], sealing: bool) {
    if sealing {
        seal(&mut bytes);
    }
    if let Some(slot) = CommandSlot::decode(&bytes) {
        assert_eq!(CommandSlot::decode(&slot.encode()), Some(slot));
    }
}

/// One block with its checksum made right: it covers itself as zeroes.
fn block(data: &[u8], sealing: bool) -> [u8; REMAP_BLOCK_BYTES] {
    let mut bytes = exactly::<REMAP_BLOCK_BYTES>(data);
    if sealing {
        bytes[32..36].fill(0);
        let sum = checksum(&bytes);
        bytes[32..36].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

fn vector(data: &[u8], sealing: bool) {
    let _ = RemapVector::decode(data);
    if let Ok(vector) = RemapVector::decode(&block(data, sealing)) {
        assert_eq!(RemapVector::decode(&vector.encode().unwrap()), Ok(vector));
    }
}

fn reply(data: &[u8], sealing: bool) {
    let _ = RemapReply::decode(data);
    if let Ok(reply) = RemapReply::decode(&block(data, sealing)) {
        assert_eq!(RemapReply::decode(&reply.encode().unwrap()), Ok(reply));
    }
}

fn snapshot_command(data: &[u8], sealing: bool) {
    let _ = SnapshotCommand::decode(data);
    if let Ok(command) = SnapshotCommand::decode(&block(data, sealing)) {
        assert_eq!(SnapshotCommand::decode(&command.encode()), Ok(command));
    }
}

fn snapshot_table(data: &[u8], sealing: bool) {
    let _ = SnapshotTable::decode(data);
    if let Ok(table) = SnapshotTable::decode(&block(data, sealing)) {
        assert_eq!(SnapshotTable::decode(&table.encode().unwrap()), Ok(table));
    }
}
