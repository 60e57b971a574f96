//! Root records of file systems and partition tables, known by their magic numbers.
//!
//! File systems keep copies of them at fixed places so that one may be lost. Copies that share a page
//! are lost together, so deduplication leaves these units alone, wherever they lie and whoever writes
//! them. What has no magic number (backups of group descriptors of ext4) is not known.

/// Bytes of a block in which such records are looked for.
const BLOCK: usize = 4096;

/// Bytes that say that a block has one, and where they lie in it.
const MAGICS: [(usize, &[u8]); 10] = [
    // btrfs, and all its mirrors.
    (64, b"_BHRfS_M"),
    // F2FS, both copies.
    (1024, &0xF2F5_2010_u32.to_le_bytes()),
    // XFS, that of each allocation group.
    (0, b"XFSB"),
    // GPT: its backup ends the disk, with sectors of 512 B in the last of eight.
    (0, b"EFI PART"),
    (512, b"EFI PART"),
    (3584, b"EFI PART"),
    // ext2, ext3, ext4: the first lies 1 KiB into its disk, backups begin a block of 1, 2 or 4 KiB.
    (56, &0xEF53_u16.to_le_bytes()),
    (1080, &0xEF53_u16.to_le_bytes()),
    (2104, &0xEF53_u16.to_le_bytes()),
    (3128, &0xEF53_u16.to_le_bytes()),
];

/// Whether a unit has such a record.
pub(crate) fn has_superblock(unit: &[u8]) -> bool {
    let holds = |block: &[u8]| {
        MAGICS.iter().any(|(at, magic)| block.get(*at..at + magic.len()) == Some(*magic))
    };
    unit.chunks(BLOCK).any(holds)
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, MAGICS, has_superblock};

    #[test]
    fn superblocks_are_found_in_any_block_of_a_unit() {
        for (at, magic) in MAGICS {
            for block in [0, 3] {
                let mut unit = vec![0; 4 * BLOCK];
                assert!(!has_superblock(&unit));
                let at = block * BLOCK + at;
                unit[at..at + magic.len()].copy_from_slice(magic);
                assert!(has_superblock(&unit), "{magic:?} at {at}");
                unit[at] ^= 1;
                assert!(!has_superblock(&unit), "{magic:?} with a bit less");
            }
        }
        assert!(!has_superblock(b"XFS"));
    }
}
