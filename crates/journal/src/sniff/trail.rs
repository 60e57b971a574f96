//! Rings that blocks of jbd2 and records of XFS form.

use crate::class::{Class, Confidence};
use crate::fields::be32;
use crate::jbd2::{self, Header};
use crate::ring::Extent;
use crate::xfs;

use super::{Proposal, Seen, WINDOW_BYTES};

/// Blocks that have to be seen (zoned.md, section 7).
const HITS: u32 = 64;
const TRAILS_MAX: usize = 8;
const HEADERS_MAX: usize = 4;
/// Blocks of one journal lie no farther apart: the largest that mke2fs makes by itself has 1 GiB.
const APART_MAX: u64 = 1 << 30;
/// What is written at the same time may arrive in another order.
const DISORDER_MAX: u64 = 1 << 20;
const BLOCK: u64 = 4096;

const JBD2: &str = "blocks of jbd2 are written in a ring";
const JBD2_HEADER: &str = "journal header in front of a ring of jbd2 blocks";
const XFS: &str = "records of an XFS log are written in a ring";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The sequence number of the last transaction.
    Jbd2 { sequence: u32 },
    /// The byte where position 0 of the log lies, and the lap of the last record.
    Xfs { base: u64, cycle: u32 },
}

/// Blocks that seem to belong to one journal.
#[derive(Clone, Copy, Debug)]
struct Trail {
    kind: Kind,
    low: u64,
    high: u64,
    last: u64,
    hits: u32,
    /// Traffic when `hits` began to count.
    window: u64,
    laps: u32,
    is_proposed: bool,
    seen: Seen,
}

impl Trail {
    const fn new(kind: Kind, at: u64, end: u64, seen: Seen) -> Self {
        let window = seen.traffic;
        Self {
            kind,
            low: at,
            high: end,
            last: at,
            hits: 0,
            window,
            laps: 0,
            is_proposed: false,
            seen,
        }
    }

    /// Counts a block at `at`. Says whether what it proposes has changed.
    fn hit(&mut self, at: u64, end: u64, seen: Seen) -> bool {
        let before = self.extent();
        if seen.traffic - self.window > WINDOW_BYTES {
            (self.hits, self.window) = (0, seen.traffic);
        }
        self.hits = self.hits.saturating_add(1);
        (self.low, self.high) = (self.low.min(at), self.high.max(end));
        (self.last, self.seen) = (at, seen);
        self.is_proposed |= self.hits >= HITS && self.laps > 0;
        before != self.extent()
    }

    /// What it proposes.
    fn extent(&self) -> Option<Extent> {
        self.is_proposed.then(|| Extent { at: self.low, bytes: self.high - self.low })
    }
}

#[derive(Debug, Default)]
pub(super) struct Trails {
    /// The one that was seen last is first.
    trails: Vec<Trail>,
    headers: Vec<(u64, Header)>,
}

impl Trails {
    /// Looks at what is written from byte `at` on. Says whether proposals have changed.
    #[inline]
    pub(super) fn look(&mut self, seen: Seen, at: u64, data: &[u8]) -> bool {
        match be32(data, 0) {
            jbd2::MAGIC => self.jbd2(seen, at, data),
            xfs::LOG_MAGIC => self.xfs(seen, at, data),
            _ => false,
        }
    }

    fn jbd2(&mut self, seen: Seen, at: u64, data: &[u8]) -> bool {
        if let Some(Ok(header)) =
            data.get(..jbd2::HEADER_BYTES).map(|bytes| Header::parse(bytes, false))
        {
            self.headers.retain(|(place, _)| *place != at);
            self.headers.insert(0, (at, header));
            self.headers.truncate(HEADERS_MAX);
            return false;
        }
        if !matches!(be32(data, 4), jbd2::DESCRIPTOR | jbd2::COMMIT | jbd2::REVOKE) {
            return false;
        }
        let sequence = be32(data, 8);
        let belongs = |trail: &Trail| match trail.kind {
            Kind::Jbd2 { sequence: last } => {
                sequence.wrapping_sub(last) <= 1 && trail.last.abs_diff(at) <= APART_MAX
            }
            Kind::Xfs { .. } => false,
        };
        let (kind, end) = (Kind::Jbd2 { sequence }, at.saturating_add(BLOCK));
        let trail = self.find(belongs, Trail::new(kind, at, end, seen));
        trail.kind = kind;
        if at.saturating_add(DISORDER_MAX) < trail.last {
            // Back to the start is a lap; back to the middle is no ring.
            if at <= trail.low.saturating_add(DISORDER_MAX) {
                trail.laps = trail.laps.saturating_add(1);
            } else if !trail.is_proposed {
                *trail = Trail::new(kind, at, end, seen);
            }
        }
        trail.hit(at, end, seen)
    }

    fn xfs(&mut self, seen: Seen, at: u64, data: &[u8]) -> bool {
        let Some(record) = data.get(..xfs::RECORD_HEAD).and_then(xfs::Record::parse) else {
            return false;
        };
        // A record names its own place in the log.
        let Some(base) = at.checked_sub(record.position()) else { return false };
        let belongs =
            |trail: &Trail| matches!(trail.kind, Kind::Xfs { base: of, .. } if of == base);
        let kind = Kind::Xfs { base, cycle: record.cycle };
        let end = at.saturating_add(512 + u64::from(record.len));
        let trail = self.find(belongs, Trail::new(kind, base, end, seen));
        if trail.kind != kind {
            (trail.kind, trail.laps) = (kind, trail.laps.saturating_add(1));
        }
        trail.hit(at, end, seen)
    }

    /// The trail that `belongs`, moved to the front, or `new` in the place of the oldest.
    fn find(&mut self, belongs: impl Fn(&Trail) -> bool, new: Trail) -> &mut Trail {
        if let Some(found) = self.trails.iter().position(belongs) {
            self.trails[..=found].rotate_right(1);
        } else {
            if self.trails.len() == TRAILS_MAX {
                let oldest = self.trails.iter().rposition(|trail| !trail.is_proposed);
                self.trails.remove(oldest.unwrap_or(TRAILS_MAX - 1));
            }
            self.trails.insert(0, new);
        }
        &mut self.trails[0]
    }

    pub(super) fn forget(&mut self, now: Seen) -> bool {
        let mut changed = false;
        self.trails.retain(|trail| {
            let stale = trail.seen.is_stale(now);
            changed |= stale && trail.is_proposed;
            !stale
        });
        changed
    }

    pub(super) fn proposals(&self) -> impl Iterator<Item = Proposal> + '_ {
        let of = |trail: &Trail| {
            let Some(extent) = trail.extent() else { return Vec::new() };
            let log = |extent, why| (Class::JournalLog, extent, Confidence::Medium, why);
            let header = match trail.kind {
                Kind::Xfs { .. } => return vec![log(extent, XFS)],
                Kind::Jbd2 { .. } => self.header_of(extent),
            };
            let Some((at, header)) = header else { return vec![log(extent, JBD2)] };
            // A journal in one piece, which the header measures.
            let byte = |number| at.saturating_add(header.position(number));
            let whole =
                Extent { at: byte(header.first), bytes: byte(header.end) - byte(header.first) };
            let hot = |first, end| {
                let extent = Extent { at: byte(first), bytes: byte(end) - byte(first) };
                (Class::JournalHot, extent, Confidence::Medium, JBD2_HEADER)
            };
            vec![log(whole, JBD2), hot(0, header.first), hot(header.end, header.blocks)]
        };
        self.trails.iter().flat_map(of)
    }

    /// The journal header that such a ring fits to.
    fn header_of(&self, ring: Extent) -> Option<(u64, Header)> {
        let fits = |(at, header): &&(u64, Header)| {
            *at < ring.at && ring.end() <= at.saturating_add(header.position(header.end))
        };
        self.headers.iter().find(fits).copied()
    }
}
