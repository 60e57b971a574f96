//! Requests in pages: what the generators of the buffer study speak.

use onefold_units::Op;
use onefold_units::convert::narrow;

use super::Request;

/// Size of a page in bytes.
pub const PAGE_BYTES: u32 = 4096;
/// Requests converted at a time.
const BATCH: usize = 64;

/// A request in whole pages of 4 KiB: 12 bytes, for runs over hundreds of millions of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// First page.
    pub lpn: u32,
    /// Pages touched.
    pub n: u32,
    /// What to do.
    pub op: Op,
    /// Whose request it is: the number of the source it came from, 0 for a lone one.
    pub tenant: u8,
}

impl PageRequest {
    /// Something to fill a batch with before its first use.
    pub const EMPTY: Self = Self { lpn: 0, n: 0, op: Op::Flush, tenant: 0 };

    /// Pages read or written: trims move no data.
    #[must_use]
    #[inline]
    pub const fn traffic_pages(&self) -> u32 {
        if matches!(self.op, Op::Read | Op::Write) { self.n } else { 0 }
    }

    /// The same request in bytes. Sources keep a request below 4 GiB.
    #[must_use]
    #[inline]
    pub fn request(&self) -> Request {
        Request {
            op: self.op,
            fua: false,
            len: self.n * PAGE_BYTES,
            offset: u64::from(self.lpn) * u64::from(PAGE_BYTES),
            at: None,
            remap: None,
            depth: None,
        }
    }
}

/// Something that produces requests in pages of an address space that starts at 0.
pub trait PageSource {
    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end.
    fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize;

    /// The same, but stops where the warm-up ends; fewer than asked means that it did. A source
    /// without a warm-up returns 0. [`fill_pages`](Self::fill_pages) does not stop there.
    fn fill_warm_up(&mut self, _out: &mut [PageRequest]) -> usize {
        0
    }

    /// First page that is above every request.
    fn end_pages(&self) -> u32;
}

/// Produces requests in bytes from a source that thinks in pages.
pub(super) fn fill_requests<S: PageSource>(source: &mut S, out: &mut [Request]) -> usize {
    let mut filled = 0;
    let mut batch = [PageRequest::EMPTY; BATCH];
    for chunk in out.chunks_mut(BATCH) {
        let got = source.fill_pages(&mut batch[..chunk.len()]);
        for (request, page) in chunk.iter_mut().zip(&batch[..got]) {
            *request = page.request();
        }
        filled += got;
        if got < chunk.len() {
            break;
        }
    }
    filled
}

/// Whole pages of a size that is a multiple of a page and below 16 TiB.
pub(super) fn pages_of(bytes: u64) -> u32 {
    narrow(bytes / u64::from(PAGE_BYTES))
}
