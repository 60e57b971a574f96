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
use onefold_journal::{Class, Range, Table};
use onefold_units::{Lba, LogSegmentId};

use crate::layout::Layout;
use crate::log::Stream;
use crate::segments::Segment;
use crate::volume::Volume;

/// The set takes one part in so many of the log at most.
const SHARE: u32 = 4;

/// The streams of a set.
const STREAMS: [Stream; 2] = [Stream::JournalLog, Stream::JournalHot];

/// Whether journals have log segments of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalStreams {
    /// They are data.
    #[default]
    Off,
    /// Ring, header and fast-commit area go to the same ones.
    Together,
    /// Header and fast-commit area, which are rewritten at any time, do not go to those of the ring.
    Apart,
}

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
        Self { told: false, table: None, lap, appended: [0; 2], fits, looked_at: 0 }
    }

    fn class(&self, lba: Lba) -> Option<Class> {
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
    fn has(&self, segment: &Segment) -> bool {
        let open = segment.state == SegmentState::Open && slot(segment.stream).is_some();
        let closed = segment.state == SegmentState::Closed && segment.live() > 0;
        open || closed && self.protects(segment)
    }
}

/// Blocks that make a lap: those of the ring, and an eighth for what is written in between and counts as well
/// (`JournalSet::note`).
const fn lap_of(blocks: u64) -> u64 {
    blocks + blocks / 8
}

impl Volume {
    /// Says which blocks of the device hold journals, or nothing if `ranges` are none. What is no journal any more is ordinary
    /// data from now on, wherever it lies.
    pub fn set_journal(&mut self, ranges: &[Range]) {
        let table = (!ranges.is_empty()).then(|| Table::new(ranges));
        if table == self.journal.table && self.journal.told {
            return;
        }
        let blocks = |class| {
            let all = table.iter().flat_map(Table::iter).filter(|(.., of)| *of == class);
            all.map(|(first, end, _)| end.raw() - first.raw()).sum::<u64>()
        };
        let (log, hot) = (blocks(Class::JournalLog), blocks(Class::JournalHot));
        let lap = match self.options.journal {
            JournalStreams::Off => [0, 0],
            JournalStreams::Together => [lap_of(log + hot), 0],
            JournalStreams::Apart => [lap_of(log), hot],
        };
        if self.journal.table.is_some() {
            // What was protected for the journal before is so no more.
            self.stats.journal_demotions += u64::from(self.journal_segments() > 0);
            let longest = lap.iter().chain(&self.journal.lap).copied().max().unwrap_or(0);
            self.journal.appended.iter_mut().for_each(|appended| *appended += longest);
        }
        (self.journal.told, self.journal.table, self.journal.lap) = (true, table, lap);
        self.journal.fits = true;
        if lap == [0, 0] {
            self.leave_set();
        }
    }

    /// Log segments of the journal set.
    #[must_use]
    pub fn journal_segments(&self) -> u32 {
        let set = self.segments.iter().filter(|(_, segment)| self.journal.has(segment));
        onefold_units::convert::u32_from(set.count())
    }

    /// The stream of a write of the device that begins at a block, if its class says so.
    pub(crate) fn stream_of_class(&mut self, lba: Lba) -> Option<Stream> {
        let class = self.journal.class(lba)?;
        let stream = match (class, self.options.journal) {
            (Class::MetaHot, _) => return self.options.hot_cold.then_some(Stream::Hot),
            (_, JournalStreams::Off) => return None,
            (Class::JournalHot, JournalStreams::Apart) => Stream::JournalHot,
            (Class::JournalLog | Class::JournalHot, _) => Stream::JournalLog,
        };
        // It changes when log segments are taken.
        if self.journal.looked_at != self.segments.next_epoch() {
            self.journal.looked_at = self.segments.next_epoch();
            self.fit_set();
        }
        self.journal.fits.then_some(stream)
    }

    /// Gives the set up where there is no room for it, or takes it up again (invariant 3). Whether it was given up now.
    pub(crate) fn fit_set(&mut self) -> bool {
        if self.journal.table.is_none() || self.options.journal == JournalStreams::Off {
            return false;
        }
        let fitted = std::mem::replace(&mut self.journal.fits, true);
        self.journal.fits = self.set_fits();
        let given_up = fitted && !self.journal.fits;
        if given_up {
            self.stats.journal_demotions += 1;
            self.leave_set();
        }
        given_up
    }

    /// Invariant 3. Streams of the set without a log segment are about to take one.
    fn set_fits(&self) -> bool {
        let (mut set, mut live) = (0, 0);
        for (_, segment) in self.segments.iter().filter(|(_, segment)| self.journal.has(segment)) {
            set += 1;
            live += u64::from(segment.live());
        }
        let used = STREAMS
            .iter()
            .filter(|stream| slot(**stream).is_some_and(|at| self.journal.lap[at] > 0));
        let idle = used.filter(|stream| self.log.stream(**stream).segment.is_none()).count();
        let set = set + onefold_units::convert::u32_from(idle);
        let rest = self.layout.usable_segments().saturating_sub(set + Layout::kept());
        let room = u64::from(rest) * u64::from(self.layout.packed());
        set * SHARE <= self.layout.usable_segments() && self.segments.live_total() - live <= room
    }

    /// Makes ordinary log segments of all that the set has, because there is nothing else left to clean. Whether it had any.
    pub(crate) fn give_up_set(&mut self) -> bool {
        let some = self.journal_segments() > 0;
        if some {
            self.journal.fits = false;
            self.stats.journal_demotions += 1;
            self.leave_set();
        }
        some
    }

    /// The streams of the set leave their log segments, which are ordinary ones from then on.
    fn leave_set(&mut self) {
        if self.frozen.is_none() && !self.checkpoint.is_closing() {
            for stream in STREAMS {
                self.leave_segment(stream);
            }
        }
    }

    /// A stream leaves a log segment that takes no more.
    pub(crate) fn close_segment(&mut self, stream: Stream, segment: LogSegmentId) {
        let mark = self.journal.mark(stream);
        self.segments.close(segment, mark);
    }
}
