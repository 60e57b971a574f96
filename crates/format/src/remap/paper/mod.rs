//! The layouts of the paper, for the schemes that Onefold is compared with (`mode = paper`). Source:
//! Wu 2022, Table II and sec. IV-B, as bits in remap.md section 3.
//!
//! Bit 0 is the lowest of the first byte. A word is 8 bytes that NVRAM stores at once. A container is
//! zeroed before it is used, so a word that never arrived has no torn bit; an entry is intact iff
//! all of its torn bits are set and, in A24, its checksum matches.
//!
//! ```text
//! P16  torn 1 | slot 21 | seq 42 || torn 1 | target 31 | move 1 | source 31
//! G16  torn 1 | PPN 32 | target 31 || torn 1 | source 31 | move 1 | seq low bits 31
//! A24  P16 || torn 1 | start 31 | len - 1 16 | atomic 1 | crc 15
//! P16 segment head  torn 1 | seq 42 | number 21 || torn 1 | superblock 20 | next 23 | epoch low 20
//! P16 log page head  superblock 32 | entries 16 | flags 16 | epoch 48 | crc 16
//! ```
//!
//! Ours, where the paper says nothing: A24 as a whole; both checksums run over the bits before them
//! from bit 0 up (polynomials 4599h and 1021h, start values 0 and all ones); a last segment has all
//! ones for the next one.

mod entries;
mod fields;
mod heads;
#[cfg(test)]
mod tests;

pub use entries::{A24Entry, G16Entry, P16Entry};
pub use heads::{P16LogPageHead, P16SegmentHead};

/// A value that a layout of the paper has no room for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{field} is {value}, the paper's {layout} takes {least} to {most}; use a smaller device or \
     Onefold's own entries"
)]
pub struct PaperRangeError {
    /// Which layout.
    pub layout: &'static str,
    /// Which field of it.
    pub field: &'static str,
    /// The value.
    pub value: u64,
    /// Lowest value there is room for.
    pub least: u64,
    /// Highest value there is room for.
    pub most: u64,
}

/// Bytes of the head of every container.
const HEAD_BYTES: u32 = 16;
