//! An aligned WAL, as SQLite sees it: offsets and sizes of the stock layout.
//!
//! 1. The file begins with a valid header of an aligned WAL from the moment the first connection uses it until the last one
//!    deletes it, whatever SQLite does: a truncation to nothing leaves block 0. So SQLite without the extension never takes it
//!    for empty.
//! 2. A header is written as the 32 bytes of one write, and only the header lies in block 0.
//! 3. Nothing is read or written outside the ranges that SQLite named: a frame header of 24 bytes is a write of 24 bytes, as in
//!    stock. The block of frame headers is rewritten as a whole only by the kernel, with the same bytes for all other frames.

use onefold_units::convert::{index64, u64_from};

use crate::code::Code;
use crate::header::{self, HeaderBytes, Kind};
use crate::layout::{BLOCK_BYTES, HEADER_BYTES, Layout};

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
}

/// The view of one connection on an aligned WAL.
#[derive(Debug, Default)]
pub(crate) struct AlignedWal {
    /// Known once a header was read or written. Page sizes do not change while a database is in WAL mode.
    layout: Option<Layout>,
}

impl AlignedWal {
    /// Makes an empty aligned WAL of whatever the file is.
    pub(crate) fn create(medium: &dyn Medium) -> Result<(), Code> {
        let mut block = vec![0; index64(BLOCK_BYTES)];
        block[..32].copy_from_slice(&header::empty());
        medium.write_at(&block, 0)?;
        medium.truncate(BLOCK_BYTES)
    }

    pub(crate) const fn layout(&self) -> Option<Layout> {
        self.layout
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
        if !head.is_empty() || self.layout.is_none() {
            let Some(header) = self.header(medium)? else {
                head.fill(0);
                rest.fill(0);
                return Ok(false);
            };
            let from = index64(offset.min(HEADER_BYTES));
            head.copy_from_slice(&header[from..from + in_header]);
        }
        let Some(layout) = self.layout else { return Ok(rest.is_empty()) };
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
            let layout = header::layout(&header).ok_or(Code::WRITE)?;
            medium.write_at(&header::aligned(header), 0)?;
            self.layout = Some(layout);
            (left, offset) = (&bytes[32..], HEADER_BYTES);
        }
        if self.layout.is_none() {
            self.header(medium)?;
        }
        let layout = self.layout.ok_or(Code::WRITE)?;
        for piece in layout.pieces(offset, u64_from(left.len())) {
            let (now, after) = left.split_at(index64(piece.bytes));
            medium.write_at(now, piece.at)?;
            left = after;
        }
        Ok(())
    }

    /// Cuts the WAL to that many bytes of the stock layout, never longer than it is.
    pub(crate) fn truncate(&mut self, medium: &dyn Medium, bytes: u64) -> Result<(), Code> {
        if bytes < HEADER_BYTES {
            self.layout = None;
            return Self::create(medium);
        }
        if self.header(medium)?.is_none() {
            return Ok(());
        }
        let aligned = self.layout.map_or(BLOCK_BYTES, |layout| layout.aligned_bytes(bytes));
        if aligned < medium.bytes()? { medium.truncate(aligned) } else { Ok(()) }
    }

    /// Bytes of the stock layout: the header and every frame that is whole.
    pub(crate) fn bytes(&mut self, medium: &dyn Medium) -> Result<u64, Code> {
        if self.header(medium)?.is_none() {
            return Ok(0);
        }
        let aligned = medium.bytes()?;
        Ok(self.layout.map_or(0, |layout| layout.stock_bytes(layout.frames(aligned))))
    }

    /// The header as SQLite knows it, if SQLite has written one. Keeps the page size.
    fn header(&mut self, medium: &dyn Medium) -> Result<Option<HeaderBytes>, Code> {
        let mut header = [0; 32];
        medium.read_at(&mut header, 0)?;
        self.layout = match header::kind(&header) {
            Kind::Aligned(layout) => Some(layout),
            Kind::Nothing | Kind::Empty | Kind::Foreign => None,
        };
        Ok(self.layout.map(|_| header::stock(header)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use onefold_units::Rng;

    use super::*;

    /// A file in memory.
    #[derive(Default)]
    struct Memory(RefCell<Vec<u8>>);

    impl Medium for Memory {
        fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code> {
            let bytes = self.0.borrow();
            let from = bytes.get(index64(at)..).unwrap_or_default();
            let count = from.len().min(buffer.len());
            buffer.fill(0);
            buffer[..count].copy_from_slice(&from[..count]);
            Ok(count == buffer.len())
        }

        fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code> {
            let mut file = self.0.borrow_mut();
            let end = index64(at) + bytes.len();
            if file.len() < end {
                file.resize(end, 0);
            }
            file[index64(at)..end].copy_from_slice(bytes);
            Ok(())
        }

        fn truncate(&self, bytes: u64) -> Result<(), Code> {
            self.0.borrow_mut().resize(index64(bytes), 0);
            Ok(())
        }

        fn bytes(&self) -> Result<u64, Code> {
            Ok(u64_from(self.0.borrow().len()))
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
        let start = *medium.0.borrow().first_chunk().unwrap();
        matches!(header::kind(&start), Kind::Aligned(_) | Kind::Empty)
    }

    #[test]
    fn it_reads_as_the_stock_wal_does() {
        for (seed, page_bytes) in (0..).zip([512_u32, 1024, 4096, 16_384, 65_536]) {
            let mut random = Rng::new(seed);
            let (aligned, stock) = (Memory::default(), Memory::default());
            AlignedWal::create(&aligned).unwrap();
            let (mut writer, mut reader) = (AlignedWal::default(), AlignedWal::default());
            writer.write(&aligned, &header(page_bytes), 0).unwrap();
            stock.write_at(&header(page_bytes), 0).unwrap();
            let frame_bytes = u64::from(page_bytes) + 24;
            for _ in 0..600 {
                let frame = 32 + random.below(400) * frame_bytes;
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
