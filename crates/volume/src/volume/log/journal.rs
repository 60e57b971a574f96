//! Telling the journal set where journals are, and keeping it small (`crate::log::journal`).

use onefold_journal::{Class, Range, Table};
use onefold_units::{Lba, LogSegmentId};

use crate::config::JournalStreams;
use crate::log::Stream;
use crate::log::journal::STREAMS;
use crate::volume::Volume;

impl Volume {
    /// Says which blocks of the device hold journals, or nothing if `ranges` are none. What is no journal any more is ordinary
    /// data from now on, wherever it lies.
    pub fn set_journal(&mut self, ranges: &[Range]) {
        let table = (!ranges.is_empty()).then(|| Table::new(ranges));
        if self.journal.knows(table.as_ref()) {
            return;
        }
        if self.journal.has_journal() {
            // What was protected for the journal before is so no more.
            self.stats.journal_demotions += u64::from(self.journal_segments() > 0);
        }
        if self.journal.tell(table) {
            self.leave_set();
        }
    }

    /// Log segments of the journal set.
    #[must_use]
    pub fn journal_segments(&self) -> u32 {
        self.journal.count(&self.segments)
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
        if self.journal.is_outdated(self.segments.next_epoch()) {
            self.fit_set();
        }
        self.journal.is_kept().then_some(stream)
    }

    /// Gives the set up where there is no room for it, or takes it up again (invariant 3). Whether it was given up now.
    pub(crate) fn fit_set(&mut self) -> bool {
        let log = &self.log;
        let is_idle = |stream| log.stream(stream).segment.is_none();
        let given_up = self.journal.fit(&self.segments, &self.layout, is_idle);
        if given_up {
            self.stats.journal_demotions += 1;
            self.leave_set();
        }
        given_up
    }

    /// Makes ordinary log segments of all that the set has, because there is nothing else left to clean. Whether it had any.
    pub(crate) fn give_up_set(&mut self) -> bool {
        let some = self.journal.give_up(&self.segments);
        if some {
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
