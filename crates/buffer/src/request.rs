//! What goes into a policy.

use onefold_units::{Lpn, Nanos, Op};

/// One host request, in entries of the buffer (one entry = one mapping unit of the FTL).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Req {
    /// What is asked. [`Op::WriteZeroes`] is a write; a caller that deallocates sends
    /// [`Op::Trim`].
    pub op: Op,
    /// Whether a write has to be in flash before it completes.
    pub fua: bool,
    /// Whose request it is; statistics are kept per tenant, decisions never depend on it.
    pub tenant: u8,
    /// First entry.
    pub lpn: Lpn,
    /// Entries touched; 0 for a flush.
    pub n: u32,
    /// Sectors of 512 B at the start of the first entry that the request does not touch.
    pub head: u8,
    /// Sectors of 512 B at the end of the last entry that the request does not touch.
    pub tail: u8,
    /// Arrival.
    pub t: Nanos,
}

impl Req {
    /// A request for `n` whole entries of tenant 0 at time 0.
    #[must_use]
    pub const fn new(op: Op, lpn: Lpn, n: u32) -> Self {
        Self { op, fua: false, tenant: 0, lpn, n, head: 0, tail: 0, t: Nanos::ZERO }
    }

    /// The request as if it touched whole entries only (`partial = page`): how traces are counted.
    #[must_use]
    pub const fn whole_entries(self) -> Self {
        Self { head: 0, tail: 0, ..self }
    }

    /// The request without the entries that it only cuts. `None` if no other is left.
    pub(crate) fn whole_only(&self) -> Option<Self> {
        let cut_head = u32::from(self.head != 0);
        let cut_tail = u32::from(self.tail != 0);
        let n = self.n.saturating_sub(cut_head + cut_tail);
        let lpn = self.lpn.checked_add(cut_head)?;
        (n > 0).then_some(Self { lpn, n, head: 0, tail: 0, ..*self })
    }

    /// Whether it touches its first or last entry only in part.
    #[inline]
    pub(crate) const fn is_cut(&self) -> bool {
        self.head | self.tail != 0
    }

    /// Entries inside the address space of 2^32 entries.
    #[inline]
    pub(crate) fn count(&self) -> u32 {
        match self.lpn.raw().checked_add(self.n) {
            Some(_) => self.n,
            None => (u32::MAX - self.lpn.raw()).saturating_add(1),
        }
    }

    /// Their bare indices.
    #[inline]
    pub(crate) fn keys(&self) -> impl Iterator<Item = u32> + use<> {
        let first = self.lpn.raw();
        (0..self.count()).map(move |at| first + at)
    }
}

/// Why a page is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
}
