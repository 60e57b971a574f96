//! An aligned WAL, as SQLite sees it: offsets and sizes of the stock layout.
//!
//! 1. The file begins with a valid header of an aligned WAL from the moment the first connection uses it until the last one
//!    deletes it, whatever SQLite does: a truncation to nothing leaves block 0. So SQLite without the extension never takes it
//!    for empty.
//! 2. A header is written as the 32 bytes of one write, and only the header lies in block 0.
//! 3. Nothing is read or written outside the ranges that SQLite named: a frame header of 24 bytes is a write of 24 bytes, as in
//!    stock. The block of frame headers is rewritten as a whole only by the kernel, with the same bytes for all other frames.
//!    The header of a pair is written with the rest of its block, which has nothing else, so that nobody has to read the block.
//! 4. A WAL is paired or not from one header to the next. Who writes the header decides; all others learn it from the header,
//!    which they read again when the shared memory has other salts than they know ([`AlignedWal::follow`]).

use onefold_units::convert::{index, index64, u64_from};

use crate::code::Code;
use crate::header::{self, FrameBytes, HeaderBytes, Kind, Salts};
use crate::layout::{BLOCK_BYTES, HEADER_BYTES, Layout, PAIRS};

/// The file that holds an aligned WAL.
pub(crate) trait Medium {
    /// Fills `buffer`, with zeroes behind the end of the file. `false` if the file ended before.
    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code>;
    /// Writes all of `bytes`.
    fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code>;
    /// Cuts the file to that many bytes.
    fn truncate(&self, bytes: u64) -> Result<(), Code>;
    /// Bytes of the file.
    fn bytes(&self) -> Result<u64, Code>;
    /// Makes the file longer, with zeroes that are written: a hole, or blocks that are only set aside, would have the file system
    /// write metadata with each of the syncs that follow. If that fails the file is as long as it was.
    fn lengthen(&self, bytes: u64) -> Result<(), Code> {
        let before = self.bytes()?;
        let zeroes = vec![0; index64(bytes.saturating_sub(before))];
        let written = self.write_at(&zeroes, before);
        if written.is_err() {
            self.truncate(before)?;
        }
        written
    }
    /// Whether a WAL may be that much longer than it has to be.
    fn may_waste(&self, _bytes: u64) -> bool {
        true
    }
    /// Writes the header of a frame; `block` begins with it, and has zeroes behind it if the block has nothing else.
    fn write_header(&self, block: &[u8], at: u64) -> Result<(), Code> {
        self.write_at(block, at)
    }
}

/// What the last header of a WAL said.
#[derive(Debug, Clone, Copy)]
struct Known {
    layout: Layout,
    salts: Salts,
}

/// What a connection has written since the last header of its own.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Written {
    /// Frames.
    frames: u64,
    /// Syncs of the WAL, the two of a header and a checkpoint too.
    syncs: u64,
}

impl Written {
    /// Commits that were synced one by one.
    const fn synced_commits(self) -> u64 {
        self.syncs.saturating_sub(2)
    }

    /// Commits were synced, and had few frames.
    pub(crate) const fn is_of_small_commits(self) -> bool {
        self.frames < self.synced_commits().saturating_mul(SMALL_COMMIT_FRAMES)
    }

    /// Commits were synced, and of all but a few one frame each.
    const fn is_of_single_frames(self) -> bool {
        let commits = self.synced_commits();
        commits > 0 && self.frames <= commits + commits / COMMITS_PER_MORE
    }
}

/// Frames of a commit that is not small any more (estimated from `scripts/write_once_sqlite.py`).
const SMALL_COMMIT_FRAMES: u64 = 4;

/// Synced commits of one frame, for each frame beyond that, from which on the next WAL is paired.
///
/// A commit of one page that is synced writes a page and a block of headers: in pairs too, but with one request instead of two.
/// Each further page of a commit is a block more in pairs.
const COMMITS_PER_MORE: u64 = 8;

/// Bytes by which a file grows where commits are small and synced. Each sync that makes a file longer has the file system write its
/// journal, three to four blocks on ext4; so only one in 32 or 64 does.
const GROWTH_BYTES: u64 = 256 << 10;

/// The view of one connection on an aligned WAL.
#[derive(Debug, Default)]
pub(crate) struct AlignedWal {
    /// Known once a header was read or written.
    known: Option<Known>,
    /// Since this connection has last written a header.
    written: Written,
    /// The file was that long, or longer.
    file_bytes: u64,
    /// Database page of each frame since the header, 0 where another connection wrote it. While this connection does not write,
    /// these are committed frames, which nobody writes again before there is another header.
    pages: Vec<u32>,
}

impl AlignedWal {
    /// Makes an empty aligned WAL of whatever the file is.
    pub(crate) fn create(medium: &dyn Medium) -> Result<(), Code> {
        let mut block = vec![0; index64(BLOCK_BYTES)];
        block[..32].copy_from_slice(&header::empty());
        medium.write_at(&block, 0)?;
        medium.truncate(BLOCK_BYTES)
    }

    pub(crate) fn layout(&self) -> Option<Layout> {
        self.known.map(|known| known.layout)
    }

    /// What this connection has written since the last header of its own.
    pub(crate) const fn written(&self) -> Written {
        self.written
    }

    /// This connection ends to write, and so many frames are committed: others may write behind them.
    pub(crate) fn end_writing(&mut self, committed: u32) {
        self.pages.truncate(index(committed));
    }

    /// This connection has synced the WAL.
    pub(crate) const fn note_sync(&mut self) {
        self.written.syncs += 1;
    }

    /// Database pages of the first frames, as far as this connection has written them; 0 for those of others.
    pub(crate) fn pages(&self) -> &[u32] {
        &self.pages
    }

    /// The shared memory has these salts, under a lock that keeps others from writing a header. With others than those of the
    /// header that is known there may be a new one.
    pub(crate) fn follow(&mut self, salts: Salts) {
        self.known.take_if(|known| known.salts != salts);
    }

    /// Reads as SQLite does: `false` if the WAL ends before, with zeroes for the rest.
    pub(crate) fn read(
        &mut self,
        medium: &dyn Medium,
        buffer: &mut [u8],
        offset: u64,
    ) -> Result<bool, Code> {
        let in_header = index64(HEADER_BYTES.saturating_sub(offset)).min(buffer.len());
        let (head, rest) = buffer.split_at_mut(in_header);
        if !head.is_empty() || self.known.is_none() {
            let Some(header) = self.header(medium)? else {
                head.fill(0);
                rest.fill(0);
                return Ok(false);
            };
            let from = index64(offset.min(HEADER_BYTES));
            head.copy_from_slice(&header[from..from + in_header]);
        }
        let Some(layout) = self.layout() else { return Ok(rest.is_empty()) };
        let (mut is_whole, mut left) = (true, rest);
        for piece in layout.pieces(offset + u64_from(in_header), u64_from(left.len())) {
            let (now, after) = left.split_at_mut(index64(piece.bytes));
            is_whole &= medium.read_at(now, piece.at)?;
            left = after;
        }
        Ok(is_whole)
    }

    /// Writes as SQLite does. A write to the WAL header is all of it.
    pub(crate) fn write(
        &mut self,
        medium: &dyn Medium,
        bytes: &[u8],
        offset: u64,
    ) -> Result<(), Code> {
        let (mut left, mut offset) = (bytes, offset);
        if offset < HEADER_BYTES {
            let header: HeaderBytes = match bytes.first_chunk() {
                Some(header) if offset == 0 => *header,
                _ => return Err(Code::WRITE),
            };
            self.write_wal_header(medium, header)?;
            (left, offset) = (&bytes[32..], HEADER_BYTES);
        }
        if self.known.is_none() {
            self.header(medium)?;
        }
        let layout = self.layout().ok_or(Code::WRITE)?;
        for piece in layout.pieces(offset, u64_from(left.len())) {
            let (now, after) = left.split_at(index64(piece.bytes));
            match <&FrameBytes>::try_from(now) {
                Ok(header) if piece.is_header => {
                    self.make_room(medium, layout.page_at(piece.frame) + layout.page_bytes());
                    self.note_frame(index64(piece.frame), header::page_number(header));
                    if layout.is_pair(piece.frame) {
                        let mut block = [0; index64(BLOCK_BYTES)];
                        block[..now.len()].copy_from_slice(now);
                        medium.write_header(&block, piece.at)?;
                    } else {
                        medium.write_header(now, piece.at)?;
                    }
                }
                _ => medium.write_at(now, piece.at)?,
            }
            left = after;
        }
        Ok(())
    }

    /// Writes the header of the WAL, and decides on pairs.
    fn write_wal_header(&mut self, medium: &dyn Medium, stock: HeaderBytes) -> Result<(), Code> {
        let mut layout = header::layout(&stock).ok_or(Code::WRITE)?;
        let salts = header::salts(&stock);
        self.header(medium)?;
        // After a transaction that was rolled back SQLite writes the same header again, which others may know.
        let is_paired = match self.known.filter(|known| known.salts == salts) {
            Some(known) => known.layout.is_paired(),
            None => {
                std::mem::take(&mut self.written).is_of_single_frames()
                    && layout.page_bytes() >= BLOCK_BYTES
                    && medium.may_waste(PAIRS * BLOCK_BYTES)
            }
        };
        if is_paired {
            layout = layout.paired();
        }
        medium.write_at(&header::aligned(stock, is_paired), 0)?;
        self.learn(Known { layout, salts });
        Ok(())
    }

    /// Makes the file longer than it has to be, if that pays. What there is no room for is written as it comes, and fails then.
    fn make_room(&mut self, medium: &dyn Medium, end: u64) {
        if end <= self.file_bytes || !self.written.is_of_small_commits() {
            return;
        }
        self.file_bytes = medium.bytes().unwrap_or(end);
        let bytes = end.next_multiple_of(GROWTH_BYTES);
        if end > self.file_bytes && medium.lengthen(bytes).is_ok() {
            self.file_bytes = bytes;
        }
    }

    fn note_frame(&mut self, frame: usize, page: u32) {
        self.written.frames += 1;
        if self.pages.len() <= frame {
            self.pages.resize(frame + 1, 0);
        }
        self.pages[frame] = page;
    }

    fn learn(&mut self, now: Known) {
        if self.known.is_none_or(|known| known.salts != now.salts) {
            self.pages.clear();
        }
        self.known = Some(now);
    }

    /// Cuts the WAL to that many bytes of the stock layout, never longer than it is.
    pub(crate) fn truncate(&mut self, medium: &dyn Medium, bytes: u64) -> Result<(), Code> {
        self.file_bytes = 0;
        if bytes < HEADER_BYTES {
            self.known = None;
            return Self::create(medium);
        }
        if self.header(medium)?.is_none() {
            return Ok(());
        }
        let aligned = self.layout().map_or(BLOCK_BYTES, |layout| layout.aligned_bytes(bytes));
        if aligned < medium.bytes()? { medium.truncate(aligned) } else { Ok(()) }
    }

    /// Bytes of the stock layout: the header and every frame that is whole.
    pub(crate) fn bytes(&mut self, medium: &dyn Medium) -> Result<u64, Code> {
        if self.header(medium)?.is_none() {
            return Ok(0);
        }
        let aligned = medium.bytes()?;
        Ok(self.layout().map_or(0, |layout| layout.stock_bytes(layout.frames(aligned))))
    }

    /// The header as SQLite knows it, if SQLite has written one. Keeps what it says.
    fn header(&mut self, medium: &dyn Medium) -> Result<Option<HeaderBytes>, Code> {
        let mut header = [0; 32];
        medium.read_at(&mut header, 0)?;
        match header::kind(&header) {
            Kind::Aligned(layout) => self.learn(Known { layout, salts: header::salts(&header) }),
            Kind::Nothing | Kind::Empty | Kind::Foreign => self.known = None,
        }
        Ok(self.known.map(|_| header::stock(header)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use onefold_units::Rng;

    use super::*;

    /// A file in memory.
    #[derive(Default)]
    struct Memory {
        bytes: RefCell<Vec<u8>>,
        limit: Option<u64>,
    }

    impl Medium for Memory {
        fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code> {
            let bytes = self.bytes.borrow();
            let from = bytes.get(index64(at)..).unwrap_or_default();
            let count = from.len().min(buffer.len());
            buffer.fill(0);
            buffer[..count].copy_from_slice(&from[..count]);
            Ok(count == buffer.len())
        }

        fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code> {
            let mut file = self.bytes.borrow_mut();
            let end = index64(at) + bytes.len();
            if file.len() < end {
                // As much as there is room for is written.
                file.resize(end.min(self.limit.map_or(end, index64)), 0);
            }
            if file.len() < end {
                return Err(Code::FULL);
            }
            file[index64(at)..end].copy_from_slice(bytes);
            Ok(())
        }

        fn truncate(&self, bytes: u64) -> Result<(), Code> {
            self.bytes.borrow_mut().resize(index64(bytes), 0);
            Ok(())
        }

        fn bytes(&self) -> Result<u64, Code> {
            Ok(u64_from(self.bytes.borrow().len()))
        }
    }

    /// A header as SQLite writes it.
    fn header(page_bytes: u32) -> HeaderBytes {
        let mut header = [0; 32];
        header[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
        header[8..12].copy_from_slice(&page_bytes.to_be_bytes());
        header[12..24].copy_from_slice(b"count + salt");
        header::stock(header)
    }

    fn is_refused_by_stock(medium: &Memory) -> bool {
        let start = *medium.bytes.borrow().first_chunk().unwrap();
        matches!(header::kind(&start), Kind::Aligned(_) | Kind::Empty)
    }

    #[test]
    fn it_reads_as_the_stock_wal_does() {
        let sizes = [512_u32, 1024, 4096, 16_384, 65_536];
        let all = sizes.into_iter().flat_map(|bytes| [(bytes, false), (bytes, true)]);
        for (seed, (page_bytes, is_paired)) in (0..).zip(all) {
            let mut random = Rng::new(seed);
            let (aligned, stock) = (Memory::default(), Memory::default());
            AlignedWal::create(&aligned).unwrap();
            let (mut writer, mut reader) = (AlignedWal::default(), AlignedWal::default());
            writer.written = if is_paired { SINGLE } else { Written::default() };
            writer.write(&aligned, &header(page_bytes), 0).unwrap();
            let is_block = page_bytes >= 4096;
            assert_eq!(writer.layout().map(Layout::is_paired), Some(is_paired && is_block));
            stock.write_at(&header(page_bytes), 0).unwrap();
            let frame_bytes = u64::from(page_bytes) + 24;
            for _ in 0..600 {
                let frame = 32 + (random.below(400) + random.below(2) * 1000) * frame_bytes;
                let offset = frame + [0, 24, random.below(frame_bytes)][index64(random.below(3))];
                let bytes = [24, page_bytes.into(), frame_bytes, 1 + random.below(3 * frame_bytes)];
                let mut data = vec![0; index64(bytes[index64(random.below(4))])];
                if random.below(3) > 0 {
                    data.fill_with(|| random.next_u64().to_le_bytes()[0]);
                    writer.write(&aligned, &data, offset).unwrap();
                    stock.write_at(&data, offset).unwrap();
                } else {
                    let mut expected = data.clone();
                    stock.read_at(&mut expected, offset).unwrap();
                    reader.read(&aligned, &mut data, offset).unwrap();
                    assert!(data == expected, "{page_bytes}: {offset}, {} bytes", data.len());
                }
                assert!(is_refused_by_stock(&aligned));
            }
        }
    }

    const SINGLE: Written = Written { frames: 90, syncs: 82 };

    #[test]
    fn pairs_are_for_commits_of_one_frame_that_are_synced() {
        let is_paired = |frames, syncs| Written { frames, syncs }.is_of_single_frames();
        assert!(is_paired(90, 82) && is_paired(1000, 1002) && is_paired(1, 3));
        assert!(!is_paired(91, 82) && !is_paired(1000, 2) && !is_paired(0, 2) && !is_paired(0, 0));
    }

    /// The bytes of a frame that is a commit of its own.
    fn frame(page: u32) -> Vec<u8> {
        let mut frame = vec![page.to_le_bytes()[0]; 24 + 4096];
        frame[..4].copy_from_slice(&page.to_be_bytes());
        frame
    }

    /// The salts of the shared memory say that there is another header, which has another layout.
    #[test]
    fn others_follow_a_writer_that_pairs() {
        let medium = Memory::default();
        AlignedWal::create(&medium).unwrap();
        let (mut writer, mut reader) = (AlignedWal::default(), AlignedWal::default());
        let mut salted = header(4096);
        for round in 0..4_u8 {
            salted[16] = round;
            salted = header::stock(salted);
            writer.written = if round % 2 == 1 { SINGLE } else { Written::default() };
            writer.write(&medium, &salted, 0).unwrap();
            assert_eq!(writer.layout().map(Layout::is_paired), Some(round % 2 == 1));
            for n in 0..9 {
                writer
                    .write(&medium, &frame(10 * u32::from(round) + n), 32 + 4120 * u64::from(n))
                    .unwrap();
            }
            reader.follow(header::salts(&salted));
            for n in 0..9_u8 {
                let mut page = [0; 4096];
                reader.read(&medium, &mut page, 32 + 4120 * u64::from(n) + 24).unwrap();
                assert_eq!(page, [10 * round + n; 4096], "round {round}");
            }
        }
    }

    /// A header that is written again, after a rollback, must be what others know.
    #[test]
    fn a_header_with_the_same_salts_keeps_its_layout() {
        let medium = Memory::default();
        AlignedWal::create(&medium).unwrap();
        let mut writer = AlignedWal::default();
        writer.write(&medium, &header(4096), 0).unwrap();
        for mut other in [writer, AlignedWal::default()] {
            other.written = SINGLE;
            other.write(&medium, &header(4096), 0).unwrap();
            assert_eq!(other.layout(), Layout::new(4096));
        }
    }

    /// Where commits are synced the file grows ahead of them; with large ones, or none, it is as long as it has to be.
    #[test]
    fn a_file_grows_ahead_of_small_commits() {
        for (written, ahead) in [(SINGLE, true), (Written { frames: 320, syncs: 82 }, false)] {
            let medium = Memory::default();
            AlignedWal::create(&medium).unwrap();
            let mut writer = AlignedWal::default();
            writer.write(&medium, &header(4096), 0).unwrap();
            writer.written = written;
            let mut lengths = std::collections::BTreeSet::new();
            for n in 0..100 {
                writer.write(&medium, &frame(n + 1), 32 + 4120 * u64::from(n)).unwrap();
                lengths.insert(medium.bytes().unwrap());
                let mut page = [0; 4096];
                writer.read(&medium, &mut page, 32 + 4120 * u64::from(n) + 24).unwrap();
                assert_eq!(page[0], (n + 1).to_le_bytes()[0]);
            }
            assert_eq!(lengths.len(), if ahead { 2 } else { 100 });
            // What lies behind the frames is none.
            let standard = crate::recover::standard_wal(&medium.bytes.borrow());
            assert_eq!(standard.map(|wal| wal.len()), Some(32));
            writer.truncate(&medium, 32 + 4120).unwrap();
            writer.write(&medium, &frame(9), 32 + 4120).unwrap();
            assert!(medium.bytes().unwrap() == if ahead { GROWTH_BYTES } else { 4 * 4096 });
        }
    }

    /// Without room for more the file is as long as the frames need.
    #[test]
    fn a_file_that_cannot_grow_ahead_grows_as_it_must() {
        let medium = Memory { limit: Some(40 * 4096), ..Memory::default() };
        AlignedWal::create(&medium).unwrap();
        let mut writer = AlignedWal::default();
        writer.write(&medium, &header(4096), 0).unwrap();
        writer.written = SINGLE;
        for n in 0..38 {
            assert_eq!(writer.write(&medium, &frame(n + 1), 32 + 4120 * u64::from(n)), Ok(()));
            assert_eq!(medium.bytes(), Ok(4096 * (3 + u64::from(n))));
        }
        assert_eq!(writer.write(&medium, &frame(1), 32 + 4120 * 38), Err(Code::FULL));
    }

    #[test]
    fn pages_of_frames_are_those_that_are_committed() {
        let medium = Memory::default();
        AlignedWal::create(&medium).unwrap();
        let mut writer = AlignedWal::default();
        writer.write(&medium, &header(4096), 0).unwrap();
        for n in [0, 1, 4] {
            writer.write(&medium, &frame(50 + n), 32 + 4120 * u64::from(n)).unwrap();
        }
        assert_eq!(writer.pages(), [50, 51, 0, 0, 54]);
        writer.end_writing(3);
        assert_eq!(writer.pages(), [50, 51, 0]);
        let mut salted = header(4096);
        salted[16] = 1;
        writer.write(&medium, &header::stock(salted), 0).unwrap();
        assert!(writer.pages().is_empty());
    }

    #[test]
    fn an_empty_wal_keeps_its_block() {
        let medium = Memory::default();
        let mut wal = AlignedWal::default();
        AlignedWal::create(&medium).unwrap();
        assert_eq!((wal.bytes(&medium), medium.bytes()), (Ok(0), Ok(4096)));
        assert!(is_refused_by_stock(&medium));
        let mut buffer = [1; 32];
        assert_eq!((wal.read(&medium, &mut buffer, 0), buffer), (Ok(false), [0; 32]));
        wal.write(&medium, &header(4096), 0).unwrap();
        wal.write(&medium, &vec![9; 5 * 4120], 32).unwrap();
        assert_eq!(wal.bytes(&medium), Ok(32 + 5 * 4120));
        assert_eq!((wal.read(&medium, &mut buffer, 0), buffer), (Ok(true), header(4096)));
        wal.truncate(&medium, 32 + 3 * 4120).unwrap();
        assert_eq!((wal.bytes(&medium), medium.bytes()), (Ok(32 + 3 * 4120), Ok(5 * 4096)));
        wal.truncate(&medium, 32 + 9 * 4120).unwrap();
        assert_eq!(medium.bytes(), Ok(5 * 4096));
        wal.truncate(&medium, 0).unwrap();
        assert_eq!((wal.bytes(&medium), medium.bytes()), (Ok(0), Ok(4096)));
        assert!(is_refused_by_stock(&medium));
    }

    /// What another connection has written with another page size meanwhile counts.
    #[test]
    fn a_marker_tells_no_page_size() {
        let medium = Memory::default();
        AlignedWal::create(&medium).unwrap();
        let (mut reader, mut writer) = (AlignedWal::default(), AlignedWal::default());
        assert_eq!(reader.bytes(&medium), Ok(0));
        writer.write(&medium, &header(16_384), 0).unwrap();
        writer.write(&medium, &vec![7; 2 * 16_408], 32).unwrap();
        let mut page = vec![0; 16_384];
        assert_eq!(reader.read(&medium, &mut page, 32 + 16_408 + 24), Ok(true));
        assert!(page == [7; 16_384]);
    }

    #[test]
    fn half_a_header_is_refused() {
        let medium = Memory::default();
        let mut wal = AlignedWal::default();
        assert_eq!(wal.write(&medium, &[0; 16], 0), Err(Code::WRITE));
        assert_eq!(wal.write(&medium, &[0; 32], 0), Err(Code::WRITE));
        assert_eq!(wal.write(&medium, &[0; 24], 32), Err(Code::WRITE));
        assert_eq!(medium.bytes(), Ok(0));
    }
}
