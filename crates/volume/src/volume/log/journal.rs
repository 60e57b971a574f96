//! Telling the journal set where journals are, and keeping it small (`crate::log::journal`).

use onefold_journal::{Class, Range, Table};
use onefold_units::{Lba, LogSegmentId};

use crate::config::JournalStreams;
use crate::layout::Layout;
use crate::log::Stream;
use crate::log::journal::{SHARE, STREAMS, lap_of, slot};
use crate::volume::Volume;

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
