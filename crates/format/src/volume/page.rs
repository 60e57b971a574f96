//! A page of the map, or of checksums: 1,024 integers of 4 B and nothing else.
//!
//! Page `p` of the map holds the locations of LBAs `1024 p` to `1024 p + 1023`, the page of checksums
//! beside it the CRC-32C of their data. They have no head: the directory knows their checksums.

use super::{BLOCK_BYTES, BlockError};

/// LBAs of a page.
pub const PAGE_ENTRIES: usize = 1024;

/// Writes locations or checksums into a block. Panics if it is not one block.
pub fn encode_page(words: &[u32; PAGE_ENTRIES], block: &mut [u8]) {
    assert_eq!(block.len(), BLOCK_BYTES, "bytes of a block");
    let (places, _) = block.as_chunks_mut::<4>();
    for (place, word) in places.iter_mut().zip(words) {
        *place = word.to_le_bytes();
    }
}

/// Reads locations or checksums from a block whose checksum was compared with the directory's.
///
/// # Errors
/// [`BlockError::Size`].
pub fn decode_page(block: &[u8]) -> Result<impl Iterator<Item = u32> + '_, BlockError> {
    if block.len() != BLOCK_BYTES {
        return Err(BlockError::Size { found: block.len() });
    }
    let (places, _) = block.as_chunks::<4>();
    Ok(places.iter().map(|place| u32::from_le_bytes(*place)))
}

#[cfg(test)]
mod tests {
    use super::{PAGE_ENTRIES, decode_page, encode_page};
    use crate::volume::{BLOCK_BYTES, BlockError};

    #[test]
    fn there_and_back() {
        let mut words = [0; PAGE_ENTRIES];
        words[0] = 0x0403_0201;
        words[1] = u32::MAX;
        words[1023] = 0x0807_0605;
        let mut block = [0xEE; BLOCK_BYTES];
        encode_page(&words, &mut block);
        assert_eq!(block[..10], [1, 2, 3, 4, 255, 255, 255, 255, 0, 0]);
        assert_eq!(block[4092..], [5, 6, 7, 8]);
        assert!(decode_page(&block).expect("a block").eq(words));
        let short = BlockError::Size { found: BLOCK_BYTES - 4 };
        assert_eq!(decode_page(&block[4..]).err(), Some(short));
    }
}
