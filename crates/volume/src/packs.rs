//! Compression: blocks are made smaller and put into packs when their batch is sent.
//!
//! Until then the blocks of a batch lie one behind the other, so a newer version can take the place of an older one. When the batch is
//! sent, each block is compressed by itself. The header of the batch leaves most of its block unused: what fits goes there, so a
//! batch of one small block is one block. Up to four of the others share a block. Then the map points to the new places.
//!
//! 1. What does not save room is stored as it is. A pack behind the header has two entries at least.
//! 2. A pack has no checksum. What comes out of it is compared with the checksum of the block: in a read, when it is moved, in a scrub,
//!    and where a recovery asks whether a batch is whole.
//! 3. Journals are not packed: their log segments are empty after a lap anyway. Nor is metadata.
//! 4. Live counts are in quarters of blocks ([`onefold_format::volume::Slot`]). An entry counts for one block at most, so what fits a
//!    volume without compression fits one with it.

use std::cell::RefCell;

use onefold_format::checksum;
use onefold_format::volume::{CleanRecord, Codec, PackEntry, Place, Slot, entry_of, pack_of};
use zstd::bulk::{Compressor, Decompressor};

use crate::limits::BLOCK;

/// Puts what is in a slot of a block of the backing into `out`, which has room for a block. Whether it was there.
#[must_use]
pub fn unpack(block: &[u8], slot: Slot, out: &mut [u8]) -> bool {
    if !slot.is_packed() {
        out.copy_from_slice(block);
        return true;
    }
    entry_of(pack_of(block), slot).is_some_and(|entry| inflate(entry, out))
}

pub(crate) fn inflate(entry: PackEntry<'_>, out: &mut [u8]) -> bool {
    let bytes = match entry.codec {
        Codec::Lz4 => lz4_flex::block::decompress_into(entry.bytes, out).ok(),
        Codec::Zstd => INFLATER.with_borrow_mut(|zstd| {
            let zstd = zstd.get_or_insert_with(|| Decompressor::new().expect("memory"));
            zstd.decompress_to_buffer(entry.bytes, out).ok()
        }),
    };
    bytes == Some(BLOCK)
}

/// A compressed block; one that is no smaller is of no use.
pub(crate) fn deflate(codec: Codec, block: &[u8]) -> Vec<u8> {
    match codec {
        Codec::Lz4 => lz4_flex::block::compress(block),
        Codec::Zstd => DEFLATER.with_borrow_mut(|zstd| {
            let zstd = zstd.get_or_insert_with(|| Compressor::new(LEVEL).expect("memory"));
            zstd.compress(block).unwrap_or_else(|_| block.to_vec())
        }),
    }
}

/// Level of Zstandard: the fastest of the usual ones.
const LEVEL: i32 = 1;

thread_local! {
    // Each thread makes its own once: they have memory of their own.
    static DEFLATER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static INFLATER: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Whether the version with this checksum is in a slot of a block of the backing.
pub(crate) fn is_in(block: &[u8], slot: Slot, crc: u32) -> bool {
    if !slot.is_packed() {
        return checksum(block) == crc;
    }
    let mut bytes = [0; BLOCK];
    unpack(block, slot, &mut bytes) && checksum(&bytes) == crc
}

/// Bytes that a moved block takes of a header with places.
pub(crate) const MOVED_BYTES: usize = CleanRecord::BYTES + Place::BYTES;
