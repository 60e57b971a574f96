//! The journal set: log segments that hold nothing but the journals of file systems (Choi 2022, sec. III; zoned.md, section 5).
//!
//! A journal is written over and over from start to end, so a log segment that holds nothing else is empty by itself one *lap*
//! later, when each block of the journal was written anew. The host's write has a *class* by where it goes; the class leads to a
//! stream, and the stream to log segments of its own. That is all: what is stored, replayed and read does not depend on it.
//!
//! 1. A class is a hint. Any write may have any class, and any stream may hold any block of the host.
//! 2. A log segment of the set is no victim of the cleaner until a lap was appended since it was left. After a lap it is like any
//!    other: what is still live there was not part of the lap, goes to the `clean` stream and is counted (`journal_copied`). It
//!    must not go to the streams of journals: that a block lies in a log segment of the host says how old it is at most
//!    (`Volume::is_shared`). So the set is never more than what a lap takes and the log segments that are being filled:
//!    ceil(J(1+h)/Z)+1 for a ring of J bytes, log segments of Z and a share h of headers and padding.
//! 3. The rest of the log is what it would be without a set: where it could not hold the rest of the volume, or where the set takes
//!    more than a quarter of the log, the set is given up, and journals are data (`Volume::set_fits`).
//! 4. After an opening log segments of the set are known by their streams. They are none of the cleaner until it is said where
//!    journals are, and then a lap begins.

use onefold_format::volume::SegmentState;
use onefold_journal::{Class, Table};
use onefold_units::Lba;

use crate::config::JournalStreams;
use crate::log::Stream;
use crate::segments::Segment;

/// The set takes one part in so many of the log at most.
pub(crate) const SHARE: u32 = 4;

/// The streams of a set.
pub(crate) const STREAMS: [Stream; 2] = [Stream::JournalLog, Stream::JournalHot];

/// Where journals are, and how far their laps are.
#[derive(Debug)]
pub(crate) struct JournalSet {
    /// Whether it was ever said where journals are.
    pub(crate) told: bool,
    /// Classes of blocks of the device.
    pub(crate) table: Option<Table>,
    /// Blocks of each stream that make a lap; 0: it has nothing to protect.
    pub(crate) lap: [u64; 2],
    /// Blocks appended to each stream that count for its laps.
    pub(crate) appended: [u64; 2],
    /// Whether there is room for it, and the use of a log segment up to which that is known.
    pub(crate) fits: bool,
    pub(crate) looked_at: u64,
}

pub(crate) const fn slot(stream: Stream) -> Option<usize> {
    match stream {
        Stream::JournalLog => Some(0),
        Stream::JournalHot => Some(1),
        _ => None,
    }
}

impl JournalSet {
    /// Of a volume that was just opened (invariant 4).
    pub(crate) const fn new(streams: JournalStreams) -> Self {
        let fits = !matches!(streams, JournalStreams::Off);
        let lap = if fits { [u64::MAX; 2] } else { [0; 2] };
        Self { told: false, table: None, lap, appended: [0; 2], fits, looked_at: 0 }
    }

    pub(crate) fn class(&self, lba: Lba) -> Option<Class> {
        self.table.as_ref()?.span(lba).class
    }

    /// What a log segment is marked with when its stream leaves it.
    pub(crate) fn mark(&self, stream: Stream) -> u64 {
        slot(stream).map_or(0, |at| self.appended[at])
    }

    /// A block was appended to a log segment; the version before lies in the same one if `again`. What a ring has beside it, such
    /// as its header, is written more often than once in a lap, and counts once for each log segment.
    pub(crate) fn note(&mut self, stream: Stream, again: bool) {
        match slot(stream) {
            Some(at) if !again || stream == Stream::JournalHot => self.appended[at] += 1,
            _ => {}
        }
    }

    /// Whether less than a lap was appended since a log segment was left (invariant 2).
    pub(crate) fn protects(&self, segment: &Segment) -> bool {
        let young = |at: usize| self.appended[at] - segment.mark < self.lap[at];
        self.fits && slot(segment.stream).is_some_and(young)
    }

    /// Whether a log segment belongs to the set.
    pub(crate) fn has(&self, segment: &Segment) -> bool {
        let open = segment.state == SegmentState::Open && slot(segment.stream).is_some();
        let closed = segment.state == SegmentState::Closed && segment.live() > 0;
        open || closed && self.protects(segment)
    }
}

/// Blocks that make a lap: those of the ring, and an eighth for what is written in between and counts as well
/// (`JournalSet::note`).
pub(crate) const fn lap_of(blocks: u64) -> u64 {
    blocks + blocks / 8
}
