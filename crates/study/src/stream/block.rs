//! A block of requests, and what the FTL knew when each of them came.

use onefold_buffer::{FtlView, Req};
use onefold_units::convert::index;
use onefold_units::{Lpn, Nanos, Op};

use super::MappedEntries;

/// A request in entries of the buffer: 12 bytes, for runs over hundreds of millions of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PackedReq {
    pub(crate) lpn: u32,
    pub(crate) n: u32,
    pub(crate) op: Op,
    pub(crate) fua: bool,
    pub(crate) tenant: u8,
}

impl PackedReq {
    /// Entries read or written: trims and flushes move no data.
    pub(crate) const fn traffic(&self) -> u32 {
        if matches!(self.op, Op::Read | Op::Write) { self.n } else { 0 }
    }

    #[inline]
    fn req(&self) -> Req {
        let (head, tail, t) = (0, 0, Nanos::ZERO);
        let lpn = Lpn::new(self.lpn);
        Req { op: self.op, fua: self.fua, tenant: self.tenant, lpn, n: self.n, head, tail, t }
    }
}

/// Requests in order, with the state of the map before each write.
#[derive(Debug, Default)]
pub(crate) struct Block {
    requests: Vec<PackedReq>,
    /// The bits of one write after those of the other, each in words of its own.
    mapped: Vec<u64>,
}

impl Block {
    pub(crate) fn with_capacity(requests: usize) -> Self {
        Self { requests: Vec::with_capacity(requests), mapped: Vec::new() }
    }

    /// Appends a request; `map`, if somebody wants to see it, is the state before it and becomes the
    /// state after it.
    pub(crate) fn push(&mut self, request: PackedReq, map: Option<&mut MappedEntries>) {
        if let Some(map) = map {
            match request.op {
                Op::Write => {
                    map.copy(request.lpn, request.n, &mut self.mapped);
                    map.set(request.lpn, request.n, true);
                }
                Op::Trim | Op::WriteZeroes => map.set(request.lpn, request.n, false),
                Op::Read | Op::Flush => {}
            }
        }
        self.requests.push(request);
    }

    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    pub(crate) fn requests(&self) -> &[PackedReq] {
        &self.requests
    }

    /// Calls `each` with every request and with what the FTL knew: about the pages of a write, which is
    /// all that policies ask for.
    #[inline]
    pub(crate) fn replay(&self, mut each: impl FnMut(&Req, &dyn FtlView)) {
        let mut at = 0;
        for packed in &self.requests {
            let req = packed.req();
            if packed.op == Op::Write && !self.mapped.is_empty() {
                let end = at + index(packed.n.div_ceil(64));
                let view = WriteView { first: packed.lpn, words: &self.mapped[at..end] };
                at = end;
                each(&req, &view);
            } else {
                each(&req, &Unknown);
            }
        }
    }
}

/// Nothing is known to be mapped.
struct Unknown;

impl FtlView for Unknown {
    fn mapped(&self, _: Lpn) -> bool {
        false
    }
}

/// The entries of one write that were mapped before it.
struct WriteView<'a> {
    first: u32,
    words: &'a [u64],
}

impl FtlView for WriteView<'_> {
    fn mapped(&self, lpn: Lpn) -> bool {
        self.mapped_count(lpn, 1) == 1
    }

    fn mapped_count(&self, first: Lpn, n: u32) -> u32 {
        let Some(from) = first.raw().checked_sub(self.first) else { return 0 };
        let (from, end) = (u64::from(from), u64::from(from) + u64::from(n));
        let words = self.words.iter().zip(0_u64..);
        let ones = words.map(|(word, at)| (word & mask(at * 64, from, end)).count_ones());
        ones.sum()
    }
}

/// The bits of `[from, end)` in the word that starts at bit `start`.
fn mask(start: u64, from: u64, end: u64) -> u64 {
    let below = |bit: u64| match bit.saturating_sub(start) {
        64.. => u64::MAX,
        bits => (1 << bits) - 1,
    };
    below(end) & !below(from)
}

/// Requests of a block: some hundred kilobytes, so that it stays in the cache of a core while all
/// policies run over it.
pub(crate) const BLOCK: usize = 1 << 15;

/// Words of map state after which a block is closed early: half a megabyte.
const MAPPED_MOST: usize = 1 << 16;

impl Block {
    /// Whether no further request should go in.
    pub(crate) fn is_full(&self) -> bool {
        self.requests.len() >= BLOCK || self.mapped.len() >= MAPPED_MOST
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, MappedEntries, PackedReq};
    use onefold_units::{Lpn, Op};

    fn request(op: Op, lpn: u32, n: u32) -> PackedReq {
        PackedReq { lpn, n, op, fua: false, tenant: 0 }
    }

    #[test]
    fn writes_see_the_map_before_them() {
        assert_eq!(size_of::<PackedReq>(), 12);
        let mut map = MappedEntries::new(1000);
        let mut block = Block::default();
        for (op, lpn, n) in [
            (Op::Write, 60, 100),
            (Op::Read, 60, 1),
            (Op::Write, 0, 200),
            (Op::Trim, 70, 5),
            (Op::Flush, 0, 0),
            (Op::Write, 64, 10),
        ] {
            block.push(request(op, lpn, n), Some(&mut map));
        }
        let mut seen = Vec::new();
        block.replay(|req, view| {
            if req.op == Op::Write {
                seen.push(view.mapped_count(req.lpn, req.n));
                let one_by_one =
                    (0..req.n).filter(|at| view.mapped(req.lpn.checked_add(*at).unwrap()));
                assert_eq!(seen.last().copied(), u32::try_from(one_by_one.count()).ok());
            }
        });
        assert_eq!(seen, [0, 100, 6]);
        block.replay(|req, view| {
            if req.n == 200 {
                assert!(!view.mapped(Lpn::new(59)) && view.mapped(Lpn::new(60)));
                assert!(view.mapped(Lpn::new(159)) && !view.mapped(Lpn::new(160)));
                assert_eq!(view.mapped_count(Lpn::new(50), 20), 10);
            }
        });
    }
}
