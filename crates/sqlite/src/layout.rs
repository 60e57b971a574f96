//! Where the bytes of a stock WAL lie in an aligned one.
//!
//! SQLite addresses its WAL as a header of 32 bytes and frames of 24 bytes plus a page. An aligned WAL has the header in
//! block 0 and then groups: one block of 170 frame headers, and the 170 pages of these frames. So each page of 4 KiB or more
//! starts at a multiple of 4 KiB, as it does in the database file. 170 headers of 24 bytes leave 16 bytes of a block unused.
//!
//! A *paired* WAL begins with [`PAIRS`] groups of one frame. Where each commit is one page and is synced, header and page are
//! two blocks that follow each other: one request to the drive, as in stock, and the block of headers would have been written
//! again for each commit anyway.

/// Bytes of a block, the unit that file systems share. Also the size of the WAL header's block and of a block of frame headers.
pub(crate) const BLOCK_BYTES: u64 = 4096;
/// Bytes of the WAL header.
pub(crate) const HEADER_BYTES: u64 = 32;
/// Bytes of a frame header.
pub(crate) const FRAME_HEADER_BYTES: u64 = 24;
/// Frames of a group.
pub(crate) const GROUP_FRAMES: u64 = BLOCK_BYTES / FRAME_HEADER_BYTES;

/// Groups of one frame at the start of a paired WAL: somewhat more than the 1,000 frames after which SQLite makes a checkpoint by
/// itself. What comes after them lies in groups of 170, so a paired WAL is 4 MiB longer at most.
pub(crate) const PAIRS: u64 = 1024;

/// Translation of offsets for one page size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    page_bytes: u64,
    /// Groups of one frame in the beginning.
    pairs: u64,
}

/// A range of an aligned WAL that holds consecutive bytes of the stock one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// First byte, counted from the start of the aligned WAL.
    pub at: u64,
    /// Bytes, at least 1.
    pub bytes: u64,
    /// The frame that they belong to, from 0.
    pub frame: u64,
    /// They belong to its header, not to its page.
    pub is_header: bool,
}

impl Layout {
    /// `None` unless SQLite has pages of that many bytes: a power of two from 512 to 65,536.
    #[must_use]
    pub const fn new(page_bytes: u32) -> Option<Self> {
        if page_bytes.is_power_of_two() && page_bytes >= 512 && page_bytes <= 65_536 {
            Some(Self { page_bytes: page_bytes as u64, pairs: 0 })
        } else {
            None
        }
    }

    /// The layout of a paired WAL with such pages.
    #[must_use]
    pub const fn paired(self) -> Self {
        Self { pairs: PAIRS, ..self }
    }

    /// Whether a WAL of this layout is paired.
    #[must_use]
    pub const fn is_paired(self) -> bool {
        self.pairs > 0
    }

    /// Whether nothing else lies in the block of the header of a frame.
    pub(crate) const fn is_pair(self, frame: u64) -> bool {
        frame < self.pairs
    }

    /// Bytes of a database page.
    #[must_use]
    pub const fn page_bytes(self) -> u64 {
        self.page_bytes
    }

    /// Offset of the header of a frame in the aligned WAL. Frames are counted from 0.
    #[must_use]
    pub const fn header_at(self, frame: u64) -> u64 {
        let first = self.group_first(frame);
        self.group_at(first) + FRAME_HEADER_BYTES * (frame - first)
    }

    /// Offset of the page of a frame in the aligned WAL. Frames are counted from 0.
    #[must_use]
    pub const fn page_at(self, frame: u64) -> u64 {
        let first = self.group_first(frame);
        self.group_at(first) + BLOCK_BYTES + self.page_bytes * (frame - first)
    }

    /// The first frame behind the group of a frame.
    pub(crate) const fn group_end(self, frame: u64) -> u64 {
        if self.is_pair(frame) { frame + 1 } else { self.group_first(frame) + GROUP_FRAMES }
    }

    /// The frame whose page is exactly this range of the stock WAL.
    #[must_use]
    pub const fn frame_of_page(self, offset: u64, bytes: u64) -> Option<u64> {
        let Some(first) = offset.checked_sub(HEADER_BYTES + FRAME_HEADER_BYTES) else {
            return None;
        };
        if bytes == self.page_bytes && first.is_multiple_of(self.frame_bytes()) {
            Some(first / self.frame_bytes())
        } else {
            None
        }
    }

    /// The pieces of `bytes` bytes of the stock WAL, in their order. `offset` lies behind the WAL header.
    pub fn pieces(self, offset: u64, bytes: u64) -> impl Iterator<Item = Piece> {
        let mut done = 0;
        std::iter::from_fn(move || {
            let left = bytes.checked_sub(done).filter(|left| *left > 0)?;
            let piece = self.piece(offset.checked_add(done)?.checked_sub(HEADER_BYTES)?);
            let piece = Piece { bytes: piece.bytes.min(left), ..piece };
            done += piece.bytes;
            Some(piece)
        })
    }

    /// What lies together from a byte on, which is counted from the end of the WAL header.
    const fn piece(self, offset: u64) -> Piece {
        let (frame, within) = (offset / self.frame_bytes(), offset % self.frame_bytes());
        if within < FRAME_HEADER_BYTES {
            let (at, bytes) = (self.header_at(frame) + within, FRAME_HEADER_BYTES - within);
            Piece { at, bytes, frame, is_header: true }
        } else {
            let within = within - FRAME_HEADER_BYTES;
            let (at, bytes) = (self.page_at(frame) + within, self.page_bytes - within);
            Piece { at, bytes, frame, is_header: false }
        }
    }

    /// Frames that are whole in an aligned WAL of that many bytes.
    #[must_use]
    pub const fn frames(self, aligned_bytes: u64) -> u64 {
        let rest = aligned_bytes.saturating_sub(BLOCK_BYTES);
        let Some(rest) = rest.checked_sub(self.pairs * self.pair_bytes()) else {
            return rest / self.pair_bytes();
        };
        let pages = (rest % self.group_bytes()).saturating_sub(BLOCK_BYTES) / self.page_bytes;
        self.pairs + rest / self.group_bytes() * GROUP_FRAMES + pages
    }

    /// Bytes of a stock WAL of that many frames.
    #[must_use]
    pub const fn stock_bytes(self, frames: u64) -> u64 {
        HEADER_BYTES + frames * self.frame_bytes()
    }

    /// Bytes of the shortest aligned WAL that holds the first `stock_bytes` bytes of the stock one.
    #[must_use]
    pub const fn aligned_bytes(self, stock_bytes: u64) -> u64 {
        let rest = stock_bytes.saturating_sub(HEADER_BYTES);
        if rest == 0 {
            return BLOCK_BYTES;
        }
        let last = self.piece(rest - 1).at + 1;
        // Pages of a frame lie behind its header, but not those of the frame before.
        match (rest / self.frame_bytes()).checked_sub(1) {
            Some(before) if self.page_at(before) + self.page_bytes > last => {
                self.page_at(before) + self.page_bytes
            }
            _ => last,
        }
    }

    const fn frame_bytes(self) -> u64 {
        FRAME_HEADER_BYTES + self.page_bytes
    }

    const fn group_bytes(self) -> u64 {
        BLOCK_BYTES + GROUP_FRAMES * self.page_bytes
    }

    const fn pair_bytes(self) -> u64 {
        BLOCK_BYTES + self.page_bytes
    }

    /// The first frame of the group of a frame.
    const fn group_first(self, frame: u64) -> u64 {
        match frame.checked_sub(self.pairs) {
            None => frame,
            Some(behind) => frame - behind % GROUP_FRAMES,
        }
    }

    /// Where the group with that first frame lies.
    const fn group_at(self, first: u64) -> u64 {
        match first.checked_sub(self.pairs) {
            None => BLOCK_BYTES + first * self.pair_bytes(),
            Some(behind) => {
                let groups = behind / GROUP_FRAMES * self.group_bytes();
                BLOCK_BYTES + self.pairs * self.pair_bytes() + groups
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536];

    /// All of them, the paired ones too.
    fn layouts() -> impl Iterator<Item = Layout> {
        PAGES.into_iter().filter_map(Layout::new).flat_map(|layout| [layout, layout.paired()])
    }

    #[test]
    fn only_page_sizes_of_sqlite_have_a_layout() {
        let refused = [0, 256, 513, 4095, 131_072, u32::MAX];
        assert!(refused.into_iter().all(|bytes| Layout::new(bytes).is_none()));
        assert_eq!(layouts().count(), 2 * PAGES.len());
    }

    #[test]
    fn a_pair_is_a_block_with_a_header_and_the_page_behind_it() {
        for layout in PAGES.into_iter().filter_map(Layout::new).map(Layout::paired) {
            let mut at = BLOCK_BYTES;
            for frame in 0..PAIRS {
                assert_eq!(
                    (layout.header_at(frame), layout.page_at(frame)),
                    (at, at + BLOCK_BYTES)
                );
                assert_eq!((layout.is_pair(frame), layout.group_end(frame)), (true, frame + 1));
                at += BLOCK_BYTES + layout.page_bytes();
            }
            assert!(!layout.is_pair(PAIRS));
            assert_eq!(layout.group_end(PAIRS), PAIRS + GROUP_FRAMES);
            assert_eq!(layout.header_at(PAIRS + 1), at + FRAME_HEADER_BYTES);
            let group = layout.page_at(PAIRS + GROUP_FRAMES) - layout.page_at(PAIRS);
            assert_eq!(group, BLOCK_BYTES + GROUP_FRAMES * layout.page_bytes());
        }
    }

    #[test]
    fn pages_start_at_blocks_and_headers_fill_one() {
        for layout in layouts().filter(|layout| layout.page_bytes() >= BLOCK_BYTES) {
            for frame in [0, 1, 169, 170, 171, 339, 340, 100_000] {
                assert_eq!(layout.page_at(frame) % BLOCK_BYTES, 0);
                let within = layout.header_at(frame) % BLOCK_BYTES;
                assert!(within + FRAME_HEADER_BYTES <= BLOCK_BYTES);
            }
        }
    }

    /// The bytes of the stock WAL lie apart, in the ranges that pieces of any cut name.
    #[test]
    fn every_byte_has_its_own_place() {
        for layout in layouts().filter(|layout| layout.page_bytes() <= 4096) {
            let end = layout.stock_bytes(layout.pairs + 2 * GROUP_FRAMES + 3);
            let mut owner = vec![0_u64; usize::try_from(layout.aligned_bytes(end)).unwrap()];
            let (mut offset, mut step) = (HEADER_BYTES, 1);
            while offset < end {
                let bytes = step.min(end - offset);
                let mut at = offset;
                for piece in layout.pieces(offset, bytes) {
                    for place in piece.at..piece.at + piece.bytes {
                        assert!(place >= BLOCK_BYTES);
                        let owner = &mut owner[usize::try_from(place).unwrap()];
                        assert_eq!(*owner, 0, "{layout:?}: {place} belongs to {owner} and {at}");
                        *owner = at;
                        at += 1;
                    }
                }
                assert_eq!(at, offset + bytes);
                offset += bytes;
                step = step * 7 % 9001;
            }
        }
    }

    #[test]
    fn sizes_go_both_ways() {
        for layout in layouts() {
            for frames in [0, 1, 2, 169, 170, 171, 340, 341, 1023, 1024, 1025, 1194, 1195, 12_345] {
                let aligned = layout.aligned_bytes(layout.stock_bytes(frames));
                assert_eq!(layout.frames(aligned), frames);
                assert_eq!(
                    layout.frames(aligned - u64::from(frames > 0)),
                    frames.saturating_sub(1)
                );
                // A part of the next frame keeps the frames before.
                assert_eq!(
                    layout.frames(layout.aligned_bytes(layout.stock_bytes(frames) + 5)),
                    frames
                );
            }
        }
    }
}
