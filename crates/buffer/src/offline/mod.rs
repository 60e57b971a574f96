//! Bounds no policy can pass, for request streams whose future is known.
//!
//! | Function | Bounds |
//! |---|---|
//! | [`min`] | hits of every policy that admits what it misses |
//! | [`min_bypass`] | hits of every policy |
//! | [`min_w`] | pages programmed by every policy, from below |
//! | [`Distances`] | nothing: hits of LRU at every size in one pass |
//! | [`LruCurve`] | nothing: miss ratios of LRU at chosen sizes, exact or from a sample |
//!
//! The next uses of a stream ([`NextUse`], [`NextWrite`]) are computed once and serve every size.
//! All work is done on runs of neighbouring pages with the same next use, so that time and memory
//! follow the requests, not their pages. FLUSH and FUA cost nothing here: the bounds are those of a
//! buffer that survives power loss.

mod curve;
mod distances;
mod extents;
mod fenwick;
mod next;
mod replay;
mod stack;

pub use curve::{LruCurve, MissRatios, Sampling};
pub use distances::{Distances, stack_distances};
pub use next::{NextUse, NextWrite};
pub use replay::{min, min_by_request, min_bypass, min_bypass_by_request, min_w};

use onefold_units::Op;

use crate::Req;

/// One request, in pages: what [`Req`] says, as far as it matters here, in 12 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked. [`Op::Flush`] means nothing here.
    pub op: Op,
    /// Whose request it is.
    pub tenant: u8,
    /// First page.
    pub lpn: u32,
    /// Pages.
    pub n: u32,
}

/// What a request does to its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Read,
    Write,
    Trim,
}

impl Request {
    /// `None` if it does nothing to any page.
    const fn kind(self) -> Option<Use> {
        match self.op {
            _ if self.n == 0 => None,
            Op::Read => Some(Use::Read),
            Op::Write | Op::WriteZeroes => Some(Use::Write),
            Op::Trim => Some(Use::Trim),
            Op::Flush => None,
        }
    }

    /// Pages in the address space, which as in [`Req`] ends at 2^32 pages.
    fn pages(self) -> u32 {
        self.n.min((u32::MAX - self.lpn).saturating_add(1))
    }

    /// Page after the last one.
    fn end(self) -> u64 {
        u64::from(self.lpn) + u64::from(self.pages())
    }
}

/// Pages that a request touches in part count as touched.
impl From<&Req> for Request {
    fn from(r: &Req) -> Self {
        Self { op: r.op, tenant: r.tenant, lpn: r.lpn.raw(), n: r.n }
    }
}
