//! The large-append table (LAT): what is known about the writes to each chunk of addresses.

use onefold_units::convert::{index, index64, narrow};

use crate::{Learnt, Req, Setup};

const LARGE: u8 = 0b01;
const REWRITTEN: u8 = 0b10;
const ALL: u8 = LARGE | REWRITTEN;

const CHUNKS_PER_BYTE: u64 = 4;

/// The two bits of a chunk, initially 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChunkBits {
    /// L, the paper's LRB: a large write that was no update.
    pub(super) large: bool,
    /// W, the paper's WRB: data of the chunk was written again.
    pub(super) rewritten: bool,
}

impl ChunkBits {
    /// L and not W.
    #[inline]
    pub(super) const fn is_append_only(self) -> bool {
        self.large && !self.rewritten
    }
}

/// The pages of one request in one chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) chunk: u32,
    /// First page.
    pub(super) first: u32,
    /// Pages, at least 1.
    pub(super) n: u32,
    /// Whether the request has pages in the next chunk.
    pub(super) goes_on: bool,
}

impl Piece {
    /// The last page.
    #[inline]
    pub(super) const fn last(&self) -> u32 {
        self.first + (self.n - 1)
    }

    /// The page after the last one.
    #[inline]
    pub(super) const fn next(&self) -> u32 {
        self.first.saturating_add(self.n)
    }
}

/// Two bits per chunk (Jeong 2021, sec. IV-A), packed: 256 MiB for 4 TiB in chunks of 4 KiB. An
/// image keeps it over a stop ([`Lat::learnt`]); what is lost at a power cut is harmless: it only guides the buffer.
///
/// Pages past the end of the device are in chunks whose bits stay 0.
#[derive(Clone, Debug)]
pub(super) struct Lat {
    packed: Box<[u8]>,
    /// Chunk = page >> shift.
    shift: u32,
    device_entries: u64,
}

onefold_units::keep!(Lat { packed } but { shift, device_entries });

impl Lat {
    /// A table of zeroes.
    pub(super) fn new(setup: &Setup) -> Self {
        let packed = vec![0; index64(Self::bytes(setup))].into_boxed_slice();
        Self { packed, shift: shift(setup), device_entries: setup.device_entries }
    }

    /// The table as it is kept while the device is off.
    pub(super) fn learnt(&self) -> Learnt<'_> {
        Learnt { chunk: 1 << self.shift, bits: &self.packed }
    }

    /// Goes on from a table of the same chunks.
    pub(super) fn learn(&mut self, learnt: Learnt<'_>) -> bool {
        let fits = learnt.chunk == 1 << self.shift && learnt.bits.len() == self.packed.len();
        if fits {
            self.packed.copy_from_slice(learnt.bits);
        }
        fits
    }

    /// Memory of the table: equation 1 of the paper.
    pub(super) fn bytes(setup: &Setup) -> u64 {
        setup.device_entries.div_ceil(1 << shift(setup)).div_ceil(CHUNKS_PER_BYTE)
    }

    /// The chunk of a page.
    #[inline]
    pub(super) const fn chunk(&self, key: u32) -> u32 {
        key >> self.shift
    }

    /// Whether a piece begins its chunk.
    pub(super) const fn is_head(&self, piece: &Piece) -> bool {
        piece.first == piece.chunk << self.shift
    }

    /// Whether a piece ends its chunk, of which the last one of the device may be short.
    pub(super) fn is_tail(&self, piece: &Piece) -> bool {
        let last = u64::from(piece.last());
        last + 1 == self.device_entries || self.chunk(piece.last().wrapping_add(1)) != piece.chunk
    }

    /// The pages of a request, chunk by chunk.
    #[inline]
    pub(super) fn pieces(&self, r: &Req) -> impl Iterator<Item = Piece> + use<> {
        let (shift, mut first, mut left) = (self.shift, r.lpn.raw(), r.count());
        let size = 1 << shift;
        std::iter::from_fn(move || {
            if left == 0 {
                return None;
            }
            let n = left.min(size - (first & (size - 1)));
            left -= n;
            let piece = Piece { chunk: first >> shift, first, n, goes_on: left > 0 };
            first = first.wrapping_add(n);
            Some(piece)
        })
    }

    /// The bits of a chunk.
    #[inline]
    pub(super) fn get(&self, chunk: u32) -> ChunkBits {
        let bits = self.packed.get(index(chunk / 4)).map_or(0, |byte| byte >> place(chunk));
        ChunkBits { large: bits & LARGE != 0, rewritten: bits & REWRITTEN != 0 }
    }

    /// Sets L.
    #[inline]
    pub(super) fn set_large(&mut self, chunk: u32) {
        self.change(chunk, 0, LARGE);
    }

    /// Sets W.
    #[inline]
    pub(super) fn set_rewritten(&mut self, chunk: u32) {
        self.change(chunk, 0, REWRITTEN);
    }

    /// L = 1, W = 0.
    pub(super) fn restart(&mut self, chunk: u32) {
        self.change(chunk, ALL, LARGE);
    }

    #[inline]
    fn change(&mut self, chunk: u32, clear: u8, set: u8) {
        if let Some(byte) = self.packed.get_mut(index(chunk / 4)) {
            *byte = *byte & !(clear << place(chunk)) | set << place(chunk);
        }
    }

    /// Clears the bits of all chunks that hold a page of `r`, or of those of which it names every
    /// page. A whole-device TRIM fills the table with zeroes, four chunks at a time.
    pub(super) fn clear(&mut self, r: &Req, whole_chunks: bool) {
        let size = 1_u64 << self.shift;
        let first = u64::from(r.lpn.raw());
        let end = (first + u64::from(r.count())).min(self.device_entries);
        let chunks = if !whole_chunks {
            first / size..end.div_ceil(size)
        } else if end == self.device_entries {
            first.div_ceil(size)..end.div_ceil(size)
        } else {
            first.div_ceil(size)..end / size
        };
        if chunks.start >= chunks.end {
            return;
        }
        let bytes = chunks.start.div_ceil(CHUNKS_PER_BYTE)..chunks.end / CHUNKS_PER_BYTE;
        if bytes.start >= bytes.end {
            return chunks.for_each(|chunk| self.change(narrow(chunk), ALL, 0));
        }
        self.packed[index64(bytes.start)..index64(bytes.end)].fill(0);
        let head = chunks.start..bytes.start * CHUNKS_PER_BYTE;
        let tail = bytes.end * CHUNKS_PER_BYTE..chunks.end;
        head.chain(tail).for_each(|chunk| self.change(narrow(chunk), ALL, 0));
    }
}

/// Log2 of the pages in a chunk.
fn shift(setup: &Setup) -> u32 {
    let chunk = setup.parameters.value("chunk").bytes();
    (chunk / u64::from(setup.shape.entry_bytes())).max(1).trailing_zeros()
}

/// Where the bits of a chunk are in their byte.
const fn place(chunk: u32) -> u32 {
    chunk % 4 * 2
}
