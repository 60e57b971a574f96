//! One request of a trace.

use onefold_units::PAGE_BYTES;
use onefold_units::convert::{index64, u64_from};

/// What a trace says was asked of the device. A superset of `onefold_units::Op`: recordings of
/// Onefold itself also hold its own commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TraceOp {
    /// Read bytes.
    Read,
    /// Write bytes.
    Write,
    /// Make completed writes durable.
    Flush,
    /// Discard, deallocate.
    Trim,
    /// Make the range read as zeroes.
    WriteZeroes,
    /// Map the range to the data at `aux`.
    Remap,
    /// Zone append; `aux` is the address the device chose.
    Append,
    /// Zone management; `aux` is the action.
    Zone,
}

impl TraceOp {
    /// Every operation, in the order of its OFT code.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Flush,
        Self::Trim,
        Self::WriteZeroes,
        Self::Remap,
        Self::Append,
        Self::Zone,
    ];

    /// The code stored in OFT and Parquet files.
    #[must_use]
    #[inline]
    pub const fn code(self) -> u8 {
        match self {
            Self::Read => 0,
            Self::Write => 1,
            Self::Flush => 2,
            Self::Trim => 3,
            Self::WriteZeroes => 4,
            Self::Remap => 5,
            Self::Append => 6,
            Self::Zone => 7,
        }
    }

    /// The operation of an OFT code.
    #[must_use]
    #[inline]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::Read,
            1 => Self::Write,
            2 => Self::Flush,
            3 => Self::Trim,
            4 => Self::WriteZeroes,
            5 => Self::Remap,
            6 => Self::Append,
            7 => Self::Zone,
            _ => return None,
        })
    }

    /// Whether the request moves data of the host: what page counts and sequentiality look at.
    #[must_use]
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }
}

/// Request flags, with the bits of an OFT record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// None.
    pub const NONE: Self = Self(0);
    /// Forced unit access: durable when completed.
    pub const FUA: Self = Self(1);
    /// Somebody waits for it.
    pub const SYNC: Self = Self(2);
    /// File-system metadata.
    pub const META: Self = Self(4);
    /// Read ahead of the application.
    pub const READAHEAD: Self = Self(8);
    /// Write zeroes without deallocating.
    pub const NO_UNMAP: Self = Self(16);
    /// A remap that moves: the source is unmapped.
    pub const MOVE: Self = Self(32);

    /// The flags with these bits.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Fingerprint of 4 KiB: equal content has equal digests within one trace. All zero where a write
/// covers only a part of the page.
pub type Digest = [u8; 16];

/// Nothing is known of a page.
const UNKNOWN: Digest = [0; 16];

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Arrival time in nanoseconds. From a [`crate::Reader`] in the trace's own clock; after a
    /// [`crate::Shaper`] from the first request on.
    pub t_ns: u64,
    /// First byte. A reader never changes addresses.
    pub offset: u64,
    /// Length in bytes. 0 only where the operation has none.
    pub len: u64,
    /// Time to completion in nanoseconds, where the trace knows it.
    pub lat_ns: Option<u64>,
    /// Source of a remap, address given by an append, action of a zone command; else 0.
    pub aux: u64,
    /// What was asked.
    pub op: TraceOp,
    /// Request flags.
    pub flags: Flags,
    /// Completion status; 0 is success.
    pub status: u16,
    /// Client, connection or process, modulo 65,536; tells apart requests of one instant.
    pub client: u16,
    /// Index into the device names of the trace.
    pub dev: u16,
    /// One digest per 4 KiB page a write touches, where the trace has digests.
    pub digests: Option<Box<[Digest]>>,
}

impl Record {
    /// A request with nothing known but these.
    #[must_use]
    #[inline]
    pub const fn new(t_ns: u64, op: TraceOp, offset: u64, len: u64) -> Self {
        Self {
            t_ns,
            offset,
            len,
            lat_ns: None,
            aux: 0,
            op,
            flags: Flags::NONE,
            status: 0,
            client: 0,
            dev: 0,
            digests: None,
        }
    }

    /// One past the last byte. A reader refuses requests that end past 2^64.
    #[must_use]
    #[inline]
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// The first 4 KiB page touched and the number of pages touched.
    #[must_use]
    #[inline]
    pub const fn pages(&self) -> (u64, u64) {
        if self.len == 0 {
            return (self.offset / PAGE_BYTES, 0);
        }
        let first = self.offset / PAGE_BYTES;
        (first, (self.end() - 1) / PAGE_BYTES - first + 1)
    }

    /// First byte of the data that a remap maps its range to; `None` for other operations.
    #[must_use]
    #[inline]
    pub fn source(&self) -> Option<u64> {
        (self.op == TraceOp::Remap).then_some(self.aux)
    }

    /// Puts the source of a remap where `place` says, given its first byte.
    pub fn place_source(&mut self, place: impl FnOnce(u64) -> u64) {
        if let Some(source) = self.source() {
            self.aux = place(source);
        }
    }

    /// Whether its range or, of a remap, its source ends past 2^64.
    pub(crate) fn overflows(&self) -> bool {
        let overflows = |first: u64| first.checked_add(self.len).is_none();
        overflows(self.offset) || self.source().is_some_and(overflows)
    }

    /// The 4 KiB pages a write touches, in order, each with the id of its new content: contents of
    /// one trace are equal where their ids are. `None` where the trace does not tell, or the write
    /// covers only a part of the page. Nothing for other operations.
    pub fn contents(&self) -> impl Iterator<Item = (u64, Option<u128>)> {
        let (first, pages) = self.pages();
        let pages = if self.op == TraceOp::Write { pages } else { 0 };
        // A shift off the page grid leaves digests that describe other pages.
        let digests = self.digests.as_deref().filter(|all| u64_from(all.len()) == pages);
        (first..first + pages).zip(0..).map(move |(page, at)| {
            let digest = digests.and_then(|all| all.get(at)).filter(|digest| **digest != UNKNOWN);
            let whole =
                self.offset <= page * PAGE_BYTES && self.end() - page * PAGE_BYTES >= PAGE_BYTES;
            (page, digest.filter(|_| whole).map(|digest| u128::from_le_bytes(*digest)))
        })
    }

    /// `len` bytes of the request from byte `from` of it on, at offset `to` instead. Digests go
    /// along where the page grid does.
    pub(crate) fn piece(&self, from: u64, len: u64, to: u64) -> Self {
        let at = self.offset + from;
        let mut piece = Self { offset: to, len, digests: None, ..*self };
        piece.place_source(|source| source.saturating_add(from));
        if at % PAGE_BYTES == to % PAGE_BYTES {
            piece.digests = self.digests_of(at, piece.pages().1);
            // Pages that are cut in two.
            if let Some(digests) = &mut piece.digests {
                if let Some(head) = digests.first_mut().filter(|_| !to.is_multiple_of(PAGE_BYTES)) {
                    *head = UNKNOWN;
                }
                let cut = !piece.offset.saturating_add(len).is_multiple_of(PAGE_BYTES);
                if let Some(tail) = digests.last_mut().filter(|_| cut) {
                    *tail = UNKNOWN;
                }
            }
        }
        piece
    }

    /// The digests of so many pages from the one of byte `at` on.
    fn digests_of(&self, at: u64, pages: u64) -> Option<Box<[Digest]>> {
        let skip = index64(at / PAGE_BYTES - self.pages().0);
        let digests = self.digests.as_deref()?.get(skip..skip.checked_add(index64(pages))?)?;
        Some(digests.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{PAGE_BYTES, Record, TraceOp};

    /// A write of pages 10 to 13 with the contents 1 to 4, the third unknown.
    fn write() -> Record {
        let mut record = Record::new(0, TraceOp::Write, 10 * PAGE_BYTES, 4 * PAGE_BYTES);
        record.digests = Some([1_u128, 2, 0, 4].iter().map(|id| id.to_le_bytes()).collect());
        record
    }

    fn contents(record: &Record) -> Vec<(u64, Option<u128>)> {
        record.contents().collect()
    }

    #[test]
    fn contents_are_those_of_whole_pages() {
        let mut record = write();
        assert_eq!(contents(&record), [(10, Some(1)), (11, Some(2)), (12, None), (13, Some(4))]);
        // Shifted off the grid: the digests are those of other pages.
        record.offset += 512;
        assert!(contents(&record).iter().all(|(_, content)| content.is_none()));
        // Shortened at both ends.
        record.len -= 1024;
        assert_eq!(contents(&record), [(10, None), (11, Some(2)), (12, None), (13, None)]);
        record.op = TraceOp::Trim;
        assert_eq!(contents(&record), []);
        record.digests = None;
        record.op = TraceOp::Write;
        assert_eq!(contents(&record).len(), 4);
    }

    #[test]
    fn pieces_of_a_remap_keep_their_distance_to_the_source() {
        let mut remap = Record::new(0, TraceOp::Remap, 8 * PAGE_BYTES, 4 * PAGE_BYTES);
        remap.aux = 100 * PAGE_BYTES;
        let piece = remap.piece(PAGE_BYTES, 2 * PAGE_BYTES, PAGE_BYTES);
        assert_eq!((piece.offset, piece.len), (PAGE_BYTES, 2 * PAGE_BYTES));
        assert_eq!(piece.source(), Some(101 * PAGE_BYTES));
        assert_eq!(write().piece(PAGE_BYTES, PAGE_BYTES, 0).aux, 0);
    }

    #[test]
    fn pieces_keep_their_contents() {
        let record = write();
        let piece = |from, len, to| contents(&record.piece(from, len, to));
        let page = PAGE_BYTES;
        assert_eq!(piece(page, 3 * page, 0), [(0, Some(2)), (1, None), (2, Some(4))]);
        assert_eq!(piece(0, 2 * page - 512, 0), [(0, Some(1)), (1, None)]);
        assert_eq!(piece(512, 2 * page - 512, page + 512), [(1, None), (2, Some(2))]);
        assert_eq!(piece(512, 2 * page, 0), [(0, None), (1, None)], "off the grid");
        assert_eq!(record.piece(0, 4 * page, 10 * page), record);
    }
}
