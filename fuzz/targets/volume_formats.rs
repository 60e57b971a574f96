//! Records of a volume: any bytes are one or are refused, decoding takes memory in proportion to them,
//! and a record survives being written again. The first byte chooses the record, the second whether its
//! head is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_format::checksum;
use onefold_format::volume::{
    BLOCK_BYTES, BatchHeader, BlockError, BlockHead, Body, BodyBlock, Catalog, DirectoryBlock,
    PAGE_ENTRIES, Pack, Packing, Place, Root, RunBlock, RunIndexBlock, Slot, TableBlock,
    Transaction, TrimRecord, VolumeLabel, decode_page, encode_page, entry_of, label_addresses,
    pack_of, records_room, root_addresses,
};
use onefold_fuzz::memory::{Counting, live};
use onefold_fuzz::{choice, exactly};

#[global_allocator]
static MEMORY: Counting = Counting;

const UUID: [u8; 16] = *b"fuzzed by volume";
const ADDRESS: u64 = 0x0102_0304_0506;

fuzz_target!(|data: &[u8]| {
    let Some((record, rest)) = choice(data) else { return };
    let Some((sealing, rest)) = choice(rest) else { return };
    let whole = exactly::<BLOCK_BYTES>(rest);
    let block = |kind: u8| if sealing & 1 == 1 { sealed(kind, &whole) } else { whole.to_vec() };
    match record % 13 {
        0 => label(&block(1)),
        1 => root(&block(2)),
        2 => batch(&block(3)),
        3 => directory(&block(4)),
        4 => run(&block(5)),
        5 => run_index(&block(6)),
        6 => body_block(&block(7)),
        7 => body(rest),
        8 => page(&whole),
        10 => table(&block(16)),
        11 => transaction(&whole, sealing & 1 == 1),
        12 => catalog(rest),
        _ => places(u64::from_le_bytes(exactly(rest))),
    }
    // Blocks of any length, as they come.
    let _ = BlockHead::read(rest);
    let _ = BatchHeader::decode(rest, &UUID, ADDRESS);
    for slot in (0..8).filter_map(Slot::from_code) {
        let _ = entry_of(pack_of(rest), slot);
    }
});

/// The block with the head of a record of this kind (docs/spec.md, section 9.2).
fn sealed(kind: u8, content: &[u8; BLOCK_BYTES]) -> Vec<u8> {
    let generation: [u8; 8] = exactly(&content[40..48]);
    let head = [&b"OFVB\x01\x00"[..], &[kind, 0], &[0; 8], &UUID, &ADDRESS.to_le_bytes()].concat();
    let mut block = [&head[..], &generation, &content[48..]].concat();
    let sum = checksum(&block);
    block[8..12].copy_from_slice(&sum.to_le_bytes());
    block
}

/// What `decode` makes of the bytes, if it takes no more memory than they justify: a segment of 16 B
/// becomes one of 24 B, a member of 84 B one of 136 B.
fn bounded<'a, T>(
    bytes: &'a [u8],
    decode: impl FnOnce(&'a [u8]) -> Result<T, BlockError>,
) -> Option<T> {
    let before = live();
    let decoded = decode(bytes).ok();
    let taken = live() - before;
    assert!(taken <= 4 * bytes.len() + 1024, "{taken} bytes for {}", bytes.len());
    decoded
}

/// What `encode` writes into a block that held something else.
fn written(encode: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut block = vec![0xEE; BLOCK_BYTES];
    encode(&mut block);
    block
}

fn label(block: &[u8]) {
    if let Some(label) = bounded(block, |block| VolumeLabel::decode(block, ADDRESS)) {
        assert_eq!(VolumeLabel::decode(&label.encode(ADDRESS)[..], ADDRESS), Ok(label));
    }
}

fn root(block: &[u8]) {
    if let Some(root) = bounded(block, |block| Root::decode(block, &UUID, ADDRESS)) {
        let again = root.encode(&UUID, ADDRESS);
        assert_eq!(Root::decode(&again[..], &UUID, ADDRESS), Ok(root));
    }
}

fn batch(block: &[u8]) {
    let peek = BatchHeader::peek(block, &UUID, ADDRESS);
    if let Some(batch) = bounded(block, |block| BatchHeader::decode(block, &UUID, ADDRESS)) {
        let records = batch.records.as_records();
        let peek = peek.unwrap();
        assert_eq!((peek.header, peek.kind), (batch.header, records.kind()));
        assert_eq!(usize::from(peek.data_blocks), records.len());
        assert_eq!(usize::from(peek.trims), batch.trims.len());
        assert_eq!(peek.blocks(), batch.blocks());
        // A pack of nothing takes the place of the one that there was, if records leave room for it.
        let empty = Pack::new(0);
        let (places, stored) = (&batch.places[..], batch.stored);
        let inside = places.iter().any(|place| place.offset == 0).then_some(&empty);
        let taken = batch.trims.len() * TrimRecord::BYTES + places.len() * Place::BYTES;
        let room = records_room(records.kind(), records.len(), batch.moved.len());
        if inside.is_some_and(|pack| taken + pack.len() > room) {
            return;
        }
        let packing = (!places.is_empty()).then_some(Packing { places, stored, inside });
        let again = written(|block| {
            let records = (&records, &batch.moved[..]);
            batch.header.encode(&UUID, ADDRESS, records, &batch.trims, packing, block);
        });
        assert_eq!(BatchHeader::decode(&again, &UUID, ADDRESS), Ok(batch));
    }
}

fn directory(block: &[u8]) {
    if let Some(directory) = bounded(block, |block| DirectoryBlock::decode(block, &UUID, ADDRESS)) {
        let again = written(|block| directory.encode(&UUID, ADDRESS, block));
        assert_eq!(DirectoryBlock::decode(&again, &UUID, ADDRESS), Ok(directory));
    }
}

fn run(block: &[u8]) {
    if let Some(run) = bounded(block, |block| RunBlock::decode(block, &UUID, ADDRESS)) {
        let again = written(|block| run.encode(&UUID, ADDRESS, block));
        assert_eq!(RunBlock::decode(&again, &UUID, ADDRESS), Ok(run));
    }
}

fn run_index(block: &[u8]) {
    if let Some(index) = bounded(block, |block| RunIndexBlock::decode(block, &UUID, ADDRESS)) {
        let again = written(|block| index.encode(&UUID, ADDRESS, block));
        assert_eq!(RunIndexBlock::decode(&again, &UUID, ADDRESS), Ok(index));
    }
}

fn body_block(block: &[u8]) {
    if let Some(piece) = bounded(block, |block| BodyBlock::decode(block, &UUID, ADDRESS)) {
        let again = written(|block| piece.encode(&UUID, ADDRESS, block));
        assert_eq!(BodyBlock::decode(&again, &UUID, ADDRESS), Ok(piece));
    }
}

fn body(bytes: &[u8]) {
    if let Some(body) = bounded(bytes, Body::decode) {
        assert_eq!(Body::decode(&body.encode()), Ok(body));
    }
}

fn page(bytes: &[u8]) {
    let words: Vec<u32> = decode_page(bytes).unwrap().collect();
    let words: [u32; PAGE_ENTRIES] = words.try_into().unwrap();
    assert_eq!(written(|block| encode_page(&words, block)), bytes);
}

fn table(block: &[u8]) {
    if let Some(table) = bounded(block, |block| TableBlock::decode(block, &UUID, ADDRESS)) {
        let again = written(|block| table.encode(&UUID, ADDRESS, block));
        assert_eq!(TableBlock::decode(&again, &UUID, ADDRESS), Ok(table));
    }
}

/// Begin and Commit are made right, if wanted (docs/spec.md, section 9.10).
fn transaction(content: &[u8; BLOCK_BYTES], sealing: bool) {
    const PLACE: u32 = 0x0102_0304;
    let mut block = content.to_vec();
    if sealing {
        block[..6].copy_from_slice(b"OFVT\x01\x00");
        block[8..24].copy_from_slice(&UUID);
        block[4088..4092].copy_from_slice(&PLACE.to_le_bytes());
        block[4092..].fill(0);
        let sum = checksum(&block);
        block[4092..].copy_from_slice(&sum.to_le_bytes());
    }
    if let Some(one) = bounded(&block, |block| Transaction::decode(block, &UUID, PLACE)) {
        let again = written(|block| one.encode(&UUID, PLACE, block));
        assert_eq!(Transaction::decode(&again, &UUID, PLACE), Ok(one));
    }
}

fn catalog(bytes: &[u8]) {
    if let Some(catalog) = bounded(bytes, Catalog::decode) {
        assert_eq!(Catalog::decode(&catalog.encode()), Ok(catalog));
    }
}

/// Labels and roots lie apart from each other on a backing of any size.
fn places(blocks: u64) {
    let mut places = [label_addresses(blocks), root_addresses(blocks)].concat();
    places.sort_unstable();
    assert!(places.is_sorted_by(|a, b| a < b), "{places:?}");
    assert!(places.iter().all(|place| (16..blocks).contains(place)), "{places:?}");
}
