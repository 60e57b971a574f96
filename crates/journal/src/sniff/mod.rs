//! Journals that no FS header leads to, because LVM, LUKS or RAID hides it: told by what is written, and how.
//!
//! Memory is a few hundred bytes, whatever the traffic is.

mod circular;
mod trail;

use onefold_units::{Nanos, PAGE_BYTES};

use crate::class::{Class, Confidence, Origin, Range, System};
use crate::ring::Extent;
use crate::write::Write;
use circular::Circles;
use trail::Trails;

/// A proposal goes when it was not confirmed for this long, and for this much traffic.
const STALE: Nanos = Nanos::new(60_000_000_000);
/// Traffic in which a trail has to show itself (zoned.md, section 7).
pub(crate) const WINDOW_BYTES: u64 = 1 << 30;

/// When something was seen last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Seen {
    /// Bytes written to the device before.
    pub(crate) traffic: u64,
    pub(crate) time: Nanos,
}

impl Seen {
    fn is_stale(self, now: Self) -> bool {
        now.traffic.saturating_sub(self.traffic) > WINDOW_BYTES
            && now.time.saturating_sub(self.time) > STALE
    }
}

/// What was noticed in writes to blocks that have no class.
#[derive(Debug, Default)]
pub(crate) struct Sniffer {
    trails: Trails,
    circles: Circles,
    traffic: u64,
}

impl Sniffer {
    /// Looks at a write. Says whether [`ranges`](Self::ranges) has changed.
    pub(crate) fn write(&mut self, now: Nanos, write: &Write<'_>) -> bool {
        self.traffic = self.traffic.saturating_add(write.bytes);
        let seen = Seen { traffic: self.traffic, time: now };
        let mut changed = self.circles.write(seen, write);
        let Some(data) = write.data else { return changed };
        // What a journal writes begins with its magic, at the start of a request or of a block.
        changed |= self.trails.look(seen, write.at, data);
        let mut skip = PAGE_BYTES - write.at % PAGE_BYTES;
        while let Some(rest) = usize::try_from(skip).ok().and_then(|skip| data.get(skip..)) {
            if rest.is_empty() {
                break;
            }
            changed |= self.trails.look(seen, write.at.saturating_add(skip), rest);
            skip += PAGE_BYTES;
        }
        changed
    }

    /// The host flushes. Says whether [`ranges`](Self::ranges) has changed.
    pub(crate) fn flush(&mut self, now: Nanos) -> bool {
        self.circles.flush(Seen { traffic: self.traffic, time: now })
    }

    /// Forgets what was not confirmed for long. Says whether [`ranges`](Self::ranges) has changed.
    pub(crate) fn forget(&mut self, now: Nanos) -> bool {
        let seen = Seen { traffic: self.traffic, time: now };
        let trails = self.trails.forget(seen);
        self.circles.forget(seen) || trails
    }

    /// What it proposes for a device of so many blocks.
    pub(crate) fn ranges(&self, blocks: u64) -> Vec<Range> {
        let range = |(class, extent, confidence, why): Proposal| {
            let origin = Origin { system: System::Unknown, at: extent.at, why };
            Range::around(extent, blocks, class, confidence, origin)
        };
        self.trails.proposals().chain(self.circles.proposals()).filter_map(range).collect()
    }
}

/// A range and why.
type Proposal = (Class, Extent, Confidence, &'static str);
