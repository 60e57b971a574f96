//! Headers of WALs and frames, and their checksums (the SQLite file format, section 4).
//!
//! The header of an aligned WAL is that of the stock WAL with another version. SQLite checks the version after the checksum and
//! answers `SQLITE_CANTOPEN` to one that it does not know. So a SQLite without the extension refuses the database, where it
//! would take a header that it cannot read for an empty WAL, and lose what was committed.

use crate::layout::Layout;

/// First word of a WAL whose checksums read words as little-endian; the lowest bit is set if they are big-endian.
const MAGIC: u32 = 0x377f_0682;
/// Version of every WAL of SQLite.
const STOCK: u32 = 3_007_000;
/// Version of an aligned WAL: `OFW1`.
const ALIGNED: u32 = 0x4f46_5731;
/// Version of an aligned WAL that is paired: `OFW2`.
const PAIRED: u32 = 0x4f46_5732;
/// Version of an aligned WAL that SQLite has not given a header: `OFW0`.
const EMPTY: u32 = 0x4f46_5730;

/// Bytes of the header of a WAL, stock or aligned.
pub(crate) type HeaderBytes = [u8; 32];
/// Bytes of the header of a frame.
pub(crate) type FrameBytes = [u8; 24];

/// Salts of a WAL.
pub(crate) type Salts = [u8; 8];

/// What a WAL begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No valid header. SQLite takes that for an empty WAL.
    Nothing,
    /// A WAL of SQLite itself, or of a version that nobody knows; SQLite judges that.
    Foreign,
    /// An aligned WAL in which SQLite has written nothing yet.
    Empty,
    /// An aligned WAL.
    Aligned(Layout),
}

/// A running checksum of a WAL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum {
    sums: [u32; 2],
    is_big_endian: bool,
}

impl Checksum {
    /// Goes on over `bytes`, a multiple of 8 of them.
    #[must_use]
    pub(crate) fn over(mut self, bytes: &[u8]) -> Self {
        for pair in bytes.as_chunks::<8>().0 {
            let [first, second] = [word(pair, 0), word(pair, 4)].map(|word| self.in_order(word));
            self.sums[0] = self.sums[0].wrapping_add(first).wrapping_add(self.sums[1]);
            self.sums[1] = self.sums[1].wrapping_add(second).wrapping_add(self.sums[0]);
        }
        self
    }

    const fn in_order(self, word: u32) -> u32 {
        if self.is_big_endian { word } else { word.swap_bytes() }
    }

    const fn new(is_big_endian: bool) -> Self {
        Self { sums: [0, 0], is_big_endian }
    }

    fn is_at(self, bytes: &[u8], at: usize) -> bool {
        self.sums == [word(bytes, at), word(bytes, at + 4)]
    }
}

/// What the first bytes of a WAL are.
pub(crate) fn kind(header: &HeaderBytes) -> Kind {
    let magic = word(header, 0);
    let Some(layout) = Layout::new(word(header, 8)) else { return Kind::Nothing };
    if magic & !1 != MAGIC || !sum(header).is_at(header, 24) {
        return Kind::Nothing;
    }
    match word(header, 4) {
        EMPTY => Kind::Empty,
        ALIGNED => Kind::Aligned(layout),
        PAIRED => Kind::Aligned(layout.paired()),
        _ => Kind::Foreign,
    }
}

/// The header of an aligned WAL in which nothing is written yet.
pub(crate) fn empty() -> HeaderBytes {
    let mut header = [0; 32];
    header[..4].copy_from_slice(&MAGIC.to_be_bytes());
    header[8..12].copy_from_slice(&4096_u32.to_be_bytes());
    with_version(header, EMPTY)
}

/// A header of SQLite as an aligned WAL has it, paired or not.
pub(crate) fn aligned(stock: HeaderBytes, is_paired: bool) -> HeaderBytes {
    with_version(stock, if is_paired { PAIRED } else { ALIGNED })
}

/// Two numbers of SQLite that are others each time it begins to write from the start of the WAL.
pub(crate) fn salts(header: &HeaderBytes) -> Salts {
    std::array::from_fn(|byte| header[16 + byte])
}

/// The header of an aligned WAL as SQLite knows it.
pub(crate) fn stock(aligned: HeaderBytes) -> HeaderBytes {
    with_version(aligned, STOCK)
}

/// Page size that a header names.
pub(crate) fn layout(header: &HeaderBytes) -> Option<Layout> {
    Layout::new(word(header, 8))
}

/// Checksum of a stock header, with which those of the frames begin.
pub(crate) fn sum(header: &HeaderBytes) -> Checksum {
    Checksum::new(word(header, 0) & 1 == 1).over(&header[..24])
}

/// The database page of a frame, which SQLite counts from 1.
pub(crate) fn page_number(frame: &FrameBytes) -> u32 {
    word(frame, 0)
}

/// Whether a frame ends a transaction.
pub(crate) fn is_commit(frame: &FrameBytes) -> bool {
    word(frame, 4) != 0
}

/// The checksum after a frame, if it belongs to that WAL and comes next.
pub(crate) fn follow(
    header: &HeaderBytes,
    before: Checksum,
    frame: &FrameBytes,
    page: &[u8],
) -> Option<Checksum> {
    let after = before.over(&frame[..8]).over(page);
    let belongs = frame[8..16] == header[16..24] && page_number(frame) != 0;
    (belongs && after.is_at(frame, 16)).then_some(after)
}

fn with_version(mut header: HeaderBytes, version: u32) -> HeaderBytes {
    header[4..8].copy_from_slice(&version.to_be_bytes());
    let sums = sum(&header).sums;
    header[24..28].copy_from_slice(&sums[0].to_be_bytes());
    header[28..].copy_from_slice(&sums[1].to_be_bytes());
    header
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_be_bytes(*word))
}
