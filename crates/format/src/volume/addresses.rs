//! Where labels and roots lie on a conventional backing, in blocks of 4 KiB.
//!
//! Blocks 0 to 15 stay zero: boot sectors and partition tables of others lie there. Label copies: block
//! 16; block 16,384 (64 MiB), or the middle of a backing below 128 MiB; the last aligned block.
//! Root slots: blocks 32 to 35, and four from 16 blocks behind the second label. Labels are aligned to
//! 16 blocks (64 KiB).

/// Blocks at the start of the backing that a volume never writes but for zeroes.
pub const RESERVED_BLOCKS: u64 = 16;

/// Blocks of the smallest backing on which the copies of label and root do not overlap.
pub const BACKING_BLOCKS_MIN: u64 = 96;

const ALIGN: u64 = 16;
const SECOND_LABEL: u64 = 16_384;
const FIRST_ROOT: u64 = 32;
const ROOTS_PER_REGION: u64 = 4;

/// Addresses of the copies of the label on a backing of so many blocks, ascending. Empty below
/// [`BACKING_BLOCKS_MIN`].
#[must_use]
pub fn label_addresses(blocks: u64) -> Vec<u64> {
    if blocks < BACKING_BLOCKS_MIN {
        return Vec::new();
    }
    vec![RESERVED_BLOCKS, second_label(blocks), aligned(blocks - 1)]
}

/// Addresses of the root slots on a backing of so many blocks, ascending: four in each of two regions.
/// Empty below [`BACKING_BLOCKS_MIN`].
#[must_use]
pub fn root_addresses(blocks: u64) -> Vec<u64> {
    if blocks < BACKING_BLOCKS_MIN {
        return Vec::new();
    }
    let regions = [FIRST_ROOT, second_label(blocks) + ALIGN];
    regions.into_iter().flat_map(|first| first..first + ROOTS_PER_REGION).collect()
}

fn second_label(blocks: u64) -> u64 {
    SECOND_LABEL.min(aligned(blocks / 2))
}

const fn aligned(block: u64) -> u64 {
    block / ALIGN * ALIGN
}

#[cfg(test)]
mod tests {
    use super::{BACKING_BLOCKS_MIN, RESERVED_BLOCKS, label_addresses, root_addresses};

    #[test]
    fn golden_places() {
        // 1 GiB, 128 MiB and one block less, 1 MiB, the smallest.
        assert_eq!(label_addresses(262_144), [16, 16_384, 262_128]);
        assert_eq!(label_addresses(32_768), [16, 16_384, 32_752]);
        assert_eq!(label_addresses(32_767), [16, 16_368, 32_752]);
        assert_eq!(label_addresses(256), [16, 128, 240]);
        assert_eq!(label_addresses(BACKING_BLOCKS_MIN), [16, 48, 80]);
        assert_eq!(root_addresses(262_144), [32, 33, 34, 35, 16_400, 16_401, 16_402, 16_403]);
        assert_eq!(root_addresses(BACKING_BLOCKS_MIN), [32, 33, 34, 35, 64, 65, 66, 67]);
        // A whole aligned block before the end, whatever the size.
        assert_eq!(label_addresses(1001)[2], 992);
        assert_eq!(label_addresses(993)[2], 992);
        assert_eq!(label_addresses(992)[2], 976);
    }

    #[test]
    fn nothing_overlaps_and_all_is_on_the_backing() {
        for blocks in (0..3000).chain(32_700..32_800).chain([1 << 32, u64::MAX]) {
            let mut places = [label_addresses(blocks), root_addresses(blocks)].concat();
            assert_eq!(places.len(), if blocks < BACKING_BLOCKS_MIN { 0 } else { 11 });
            let inside = |place: &u64| (RESERVED_BLOCKS..blocks).contains(place);
            assert!(places.iter().all(inside), "{blocks} blocks: {places:?}");
            places.sort_unstable();
            assert!(places.is_sorted_by(|a, b| a < b), "{blocks} blocks: {places:?}");
        }
    }
}
