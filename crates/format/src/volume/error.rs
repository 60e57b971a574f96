//! Why a block cannot be used.

use std::fmt;

use super::kind::{BLOCK_BYTES, BLOCK_VERSION, BlockKind, CRC_AT};

/// Why a block cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// Not one block.
    #[error("the block has {found} bytes, expected {BLOCK_BYTES}")]
    Size {
        /// Bytes there are.
        found: usize,
    },
    /// No metadata of a volume.
    #[error("this is no metadata of a volume: the magic number at byte 0 is missing")]
    NotOurs,
    /// Made by another Onefold.
    #[error("the block has format version {found}, this Onefold reads version {BLOCK_VERSION}")]
    Version {
        /// Version found.
        found: u16,
    },
    /// Torn, overwritten or rotten.
    #[error("the block is damaged or torn: the checksum at byte {CRC_AT} is wrong")]
    Checksum,
    /// Another structure.
    #[error("the block is of kind {found} ({}), expected {}", kind_name(*found), expected.name())]
    Kind {
        /// Kind found.
        found: u8,
        /// Kind asked for.
        expected: BlockKind,
    },
    /// Of another volume, perhaps an earlier one on the same backing.
    #[error("the block belongs to another volume, {}", Hyphenated(found))]
    OtherVolume {
        /// UUID of that volume.
        found: [u8; 16],
    },
    /// Written for another place.
    #[error("block {expected} holds what was written for block {found}: a write went astray")]
    Misplaced {
        /// Place in the block.
        found: u64,
        /// Where it was read.
        expected: u64,
    },
    /// Needs something this build does not know.
    #[error("the volume needs features {unknown:#x} that this Onefold does not have")]
    Features {
        /// Unknown `incompat` bits.
        unknown: u64,
    },
    /// Intact, and yet nothing that this format allows.
    #[error("the block is intact but its content is not allowed: {0}")]
    Malformed(&'static str),
}

fn kind_name(code: u8) -> &'static str {
    BlockKind::from_code(code).map_or("unknown", BlockKind::name)
}

/// A UUID as it is usually written.
struct Hyphenated<'a>(&'a [u8; 16]);

impl fmt::Display for Hyphenated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            let hyphen = if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{hyphen}{byte:02x}")?;
        }
        Ok(())
    }
}
