//! The checksums of a dmz cache: any bytes are a header or are refused, a header survives being written again and its parts
//! follow one another; bits and checksums as well. The first byte chooses, the second whether the checksum of a header or of
//! sectors is made right.
#![no_main]

use libfuzzer_sys::fuzz_target;
use onefold_format::{
    CACHE_BLOCK_BYTES, CACHE_REGION_BLOCKS, CACHE_SUMS_MAGIC, CACHE_SUMS_VERSION, CacheBits,
    CacheHeader, CacheLayout, cache_sum, decode_cache_sums, encode_cache_sums,
};
use onefold_fuzz::{choice, exactly, seal};

/// Bytes of a header, of which the last four are its checksum (docs/spec.md, section 11.3).
const HEADER_BYTES: usize = 52;
const SECTOR_BYTES: usize = 512;
/// Regions whose bits fill one sector.
const SECTOR_BITS: u64 = 8 * (SECTOR_BYTES as u64 - 4);

fuzz_target!(|data: &[u8]| {
    // As it comes: of any length.
    let _ = CacheHeader::decode(data);
    let Some((part, rest)) = choice(data) else { return };
    let Some((sealing, rest)) = choice(rest) else { return };
    match part % 4 {
        0 => header(exactly(rest), sealing),
        1 => fitting(u64::from_le_bytes(exactly(rest))),
        2 => bits(exactly(rest), sealing & 1 == 1),
        _ => sums(&exactly(rest)),
    }
});

/// No fuzzer guesses a checksum. `sealing` says what is made right: bit 0 the constants, bit 1 the size, bit 2 the checksum.
fn header(mut block: [u8; CACHE_BLOCK_BYTES], sealing: u8) {
    if sealing & 1 == 1 {
        block[..8].copy_from_slice(CACHE_SUMS_MAGIC);
        block[8..12].copy_from_slice(&CACHE_SUMS_VERSION.to_le_bytes());
        block[12..16].copy_from_slice(&(CACHE_REGION_BLOCKS as u32).to_le_bytes());
    }
    if sealing & 2 == 2 {
        let data = u64::from_le_bytes(exactly(&block[32..40])) >> 16;
        block[32..40].copy_from_slice(&data.to_le_bytes());
        block[40..48].copy_from_slice(&CacheLayout::new(data).blocks().to_le_bytes());
    }
    if sealing & 4 == 4 {
        seal(&mut block[..HEADER_BYTES]);
    }
    let Ok(header) = CacheHeader::decode(&block) else {
        // What was made right in all respects is a header; one without data is none.
        assert!(sealing & 7 != 7 || block[32..40] == [0; 8]);
        return;
    };
    assert!(header.layout.data_blocks() > 0);
    // What lies behind the checksum says nothing.
    assert_eq!(header.encode()[..HEADER_BYTES], block[..HEADER_BYTES]);
    in_order(&header.layout);
}

/// All parts lie behind one another, and there is a checksum for each block and a bit for each region.
fn in_order(layout: &CacheLayout) {
    assert_eq!(layout.data_at() + layout.data_blocks(), layout.bits_at());
    assert_eq!(layout.bits_at() + layout.bits_blocks(), layout.sums_at());
    assert_eq!(layout.sums_at() + layout.regions(), layout.copy_at());
    assert_eq!(layout.copy_at() + 1, layout.blocks());
    assert!(layout.regions() * CACHE_REGION_BLOCKS >= layout.data_blocks());
    assert!(layout.bits_blocks() * 8 * SECTOR_BITS >= layout.regions());
}

/// What fits a device of up to 256 TiB does, and one more piece does not. Pieces are no smaller than those of a zone of 1 MiB, as
/// the search for what fits takes one piece away at a time.
fn fitting(seed: u64) {
    let (blocks, piece) = (seed >> 28, 256 + (seed & 0xFFFF));
    let layout = CacheLayout::fitting(blocks, piece);
    assert_eq!(layout.data_blocks() % piece, 0);
    if layout.data_blocks() > 0 {
        assert!(layout.blocks() <= blocks);
        in_order(&layout);
    }
    assert!(CacheLayout::new(layout.data_blocks() + piece).blocks() > blocks);
}

/// A damaged sector has no dirty region; the others have those that were stored.
fn bits(mut block: [u8; CACHE_BLOCK_BYTES], sealing: bool) {
    if sealing {
        block.chunks_exact_mut(SECTOR_BYTES).for_each(seal);
    }
    let (mut bits, damaged) = CacheBits::decode(&block);
    assert!(damaged <= 8 && (damaged == 0 || !sealing));
    let again = bits.encode(0);
    let same = |one: &(&[u8], &[u8])| one.0 == one.1;
    let sectors = block.chunks(SECTOR_BYTES).zip(again.chunks(SECTOR_BYTES));
    assert_eq!(sectors.filter(|one| !same(one)).count() as u64, damaged);
    assert_eq!(CacheBits::decode(&again).1, 0);
    for region in 0..8 * SECTOR_BITS {
        let dirty = bits.is_dirty(region);
        bits.set(region, !dirty);
        assert_eq!(bits.is_dirty(region), !dirty);
        bits.set(region, dirty);
    }
    assert_eq!(bits.encode(0), again);
}

fn sums(block: &[u8; CACHE_BLOCK_BYTES]) {
    let sums = decode_cache_sums(block);
    assert_eq!(sums.len() as u64, CACHE_REGION_BLOCKS);
    assert_eq!(encode_cache_sums(&sums), block);
    // What nobody wrote has the checksum 0; one changed bit always changes a checksum.
    assert_eq!(cache_sum(&[0; CACHE_BLOCK_BYTES]), 0);
    let mut other = *block;
    other[usize::from(block[0])] ^= 1;
    assert_ne!(cache_sum(block), cache_sum(&other));
}
