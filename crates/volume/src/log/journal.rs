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
//!    more than a quarter of the log, the set is given up, and journals are data ([`JournalSet::fits`]).
//! 4. After an opening log segments of the set are known by their streams. They are none of the cleaner until it is said where
//!    journals are, and then a lap begins.

use onefold_format::volume::SegmentState;
use onefold_journal::{Class, Table};
use onefold_units::Lba;
use onefold_units::convert::u32_from;

use crate::config::JournalStreams;
use crate::layout::Layout;
use crate::log::Stream;
use crate::segments::{Segment, Segments};

/// The set takes one part in so many of the log at most.
const SHARE: u32 = 4;

/// The streams of a set.
pub(crate) const STREAMS: [Stream; 2] = [Stream::JournalLog, Stream::JournalHot];

/// Where journals are, and how far their laps are.
#[derive(Debug)]
pub(crate) struct JournalSet {
    /// Whether it was ever said where journals are.
    told: bool,
    /// Classes of blocks of the device.
    table: Option<Table>,
    /// Blocks of each stream that make a lap; 0: it has nothing to protect.
    lap: [u64; 2],
    /// Blocks appended to each stream that count for its laps.
    appended: [u64; 2],
    /// How many streams have log segments of their own.
    streams: JournalStreams,
    /// Whether there is room for it, and the use of a log segment up to which that is known.
    fits: bool,
    looked_at: u64,
}

const fn slot(stream: Stream) -> Option<usize> {
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
        Self { told: false, table: None, lap, appended: [0; 2], streams, fits, looked_at: 0 }
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

    /// Whether these ranges are those that it was told of last; none were, or no journal.
    pub(crate) fn knows(&self, table: Option<&Table>) -> bool {
        self.told && self.table.as_ref() == table
    }

    /// Whether it knows of a journal.
    pub(crate) const fn has_journal(&self) -> bool {
        self.table.is_some()
    }

    /// What journals there are from now on; what was protected for those before is so no more. Whether the set has nothing to protect now.
    pub(crate) fn tell(&mut self, table: Option<Table>) -> bool {
        let blocks = |class| {
            let all = table.iter().flat_map(Table::iter).filter(|(.., of)| *of == class);
            all.map(|(first, end, _)| end.raw() - first.raw()).sum::<u64>()
        };
        let (log, hot) = (blocks(Class::JournalLog), blocks(Class::JournalHot));
        let lap = match self.streams {
            JournalStreams::Off => [0, 0],
            JournalStreams::Together => [lap_of(log + hot), 0],
            JournalStreams::Apart => [lap_of(log), hot],
        };
        if self.table.is_some() {
            let longest = lap.iter().chain(&self.lap).copied().max().unwrap_or(0);
            self.appended.iter_mut().for_each(|appended| *appended += longest);
        }
        (self.told, self.table, self.lap, self.fits) = (true, table, lap, true);
        lap == [0, 0]
    }

    /// Log segments of the set.
    pub(crate) fn count(&self, segments: &Segments) -> u32 {
        u32_from(segments.iter().filter(|(_, segment)| self.has(segment)).count())
    }

    /// Whether it was not yet looked at since log segments were taken last: whether there is room for it changes then. Said once.
    pub(crate) const fn is_outdated(&mut self, next_epoch: u64) -> bool {
        std::mem::replace(&mut self.looked_at, next_epoch) != next_epoch
    }

    /// Whether journals have log segments of their own now.
    pub(crate) const fn is_kept(&self) -> bool {
        self.fits
    }

    /// Takes the set up where there is room for it, and gives it up where there is none (invariant 3); `idle` says of which streams none is being
    /// filled. Whether it was given up now.
    pub(crate) fn fit(
        &mut self,
        segments: &Segments,
        layout: &Layout,
        is_idle: impl Fn(Stream) -> bool,
    ) -> bool {
        if self.table.is_none() || self.streams == JournalStreams::Off {
            return false;
        }
        let fitted = std::mem::replace(&mut self.fits, true);
        self.fits = self.fits(segments, layout, is_idle);
        fitted && !self.fits
    }

    /// Invariant 3. Streams of the set without a log segment are about to take one.
    fn fits(&self, segments: &Segments, layout: &Layout, is_idle: impl Fn(Stream) -> bool) -> bool {
        let (mut set, mut live) = (0, 0);
        for (_, segment) in segments.iter().filter(|(_, segment)| self.has(segment)) {
            set += 1;
            live += u64::from(segment.live());
        }
        let used = STREAMS.iter().filter(|of| slot(**of).is_some_and(|at| self.lap[at] > 0));
        let set = set + u32_from(used.filter(|stream| is_idle(**stream)).count());
        let rest = layout.usable_segments().saturating_sub(set + Layout::kept());
        let room = u64::from(rest) * u64::from(layout.packed());
        set * SHARE <= layout.usable_segments() && segments.live_total() - live <= room
    }

    /// All that it has are ordinary log segments from now on. Whether it had any.
    pub(crate) fn give_up(&mut self, segments: &Segments) -> bool {
        let some = self.count(segments) > 0;
        self.fits &= !some;
        some
    }
}

/// Blocks that make a lap: those of the ring, and an eighth for what is written in between and counts as well
/// (`JournalSet::note`).
const fn lap_of(blocks: u64) -> u64 {
    blocks + blocks / 8
}
