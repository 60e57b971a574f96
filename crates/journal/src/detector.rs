//! The detector that stays: it reads the device when it is attached, and again when what it read was written over.
//!
//! States of the reading: *fresh* (what was read is what is there), *stale* (a block that was read has been written; a
//! reading begins [`SETTLE`] later, so that a mkfs is over), *reading*. Until a reading ends, the classes of the one before
//! hold. A write to a block of the reading under way makes its result stale at once.

use onefold_units::{Lba, Nanos, PAGE_BYTES};

use crate::class::{Class, Confidence, Origin, Range, Remark, System};
use crate::ring::Extent;
use crate::setting::Setting;
use crate::sniff::Sniffer;
use crate::survey::{Found, Survey};
use crate::table::{Span, Table};
use crate::tail::{HeaderWrite, Live};
use crate::write::Write;

/// How long after the first write to what was read the device is read again.
const SETTLE: Nanos = Nanos::new(1_000_000_000);
/// A journal whose log is empty and that was not written for so long is not in use (zoned.md, section 5).
const QUIET: Nanos = Nanos::new(60_000_000_000);
/// How often proposals that nothing confirms are looked for.
const FORGET: Nanos = Nanos::new(10_000_000_000);

/// What the driver is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Read this block of the device and pass it to [`Detector::handle_read`].
    Read(Lba),
    /// [`Detector::ranges`] has changed.
    Changed,
}

/// See the head of this file. `now` must not go back.
///
/// The driver calls [`handle_write`](Self::handle_write) for every write it has accepted and
/// [`handle_flush`](Self::handle_flush) and [`handle_trim`](Self::handle_trim) for every flush and trim, then takes outputs until there are
/// none, and calls [`handle_timeout`](Self::handle_timeout) at [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Detector {
    blocks: u64,
    setting: Setting,
    survey: Option<Survey>,
    stale: Option<Nanos>,
    found: Found,
    journals: Vec<Live>,
    sniffer: Sniffer,
    forget_at: Nanos,
    ranges: Vec<Range>,
    table: Table,
    is_changed: bool,
}

impl Detector {
    /// For a device of `blocks` blocks of 4 KiB. It begins to read.
    #[must_use]
    pub fn new(blocks: u64, setting: Setting, now: Nanos) -> Self {
        let survey = (setting == Setting::Detect).then(|| Survey::new(blocks));
        let mut detector = Self {
            blocks,
            setting,
            survey,
            stale: None,
            found: Found::default(),
            journals: Vec::new(),
            sniffer: Sniffer::default(),
            forget_at: now + FORGET,
            ranges: Vec::new(),
            table: Table::default(),
            is_changed: false,
        };
        detector.rebuild();
        detector
    }

    /// What the driver has to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        if let Some(lba) = self.survey.as_mut().and_then(Survey::ask) {
            return Some(Output::Read(lba));
        }
        std::mem::take(&mut self.is_changed).then_some(Output::Changed)
    }

    /// What a block holds that was asked for; `None` if it cannot be read.
    pub fn handle_read(&mut self, now: Nanos, lba: Lba, bytes: Option<&[u8; 4096]>) {
        let Some(survey) = &mut self.survey else { return };
        survey.supply(lba, bytes);
        if survey.is_done() {
            let found = self.survey.take().and_then(Survey::finish);
            self.adopt(now, found.unwrap_or_default());
        }
    }

    /// A write of the host. Its cost is two searches in small tables, and a look at the first bytes of its blocks.
    pub fn handle_write(&mut self, now: Nanos, write: &Write<'_>) {
        if self.setting != Setting::Detect || write.bytes == 0 {
            return;
        }
        let (first, end) = blocks_of(write.at, write.bytes);
        if self.is_watched(first, end) {
            self.watched_write(now, write);
        }
        match self.table.span(first).class {
            Some(Class::JournalLog) if self.log_write(now, write) => {}
            Some(Class::JournalHot | Class::MetaHot) => {}
            _ => {
                if self.sniffer.write(now, write) {
                    self.rebuild();
                }
            }
        }
    }

    /// The host trims bytes: what they held is gone, as a mkfs has it that begins with a discard.
    pub fn handle_trim(&mut self, now: Nanos, at: u64, bytes: u64) {
        let (first, end) = blocks_of(at, bytes);
        if self.setting == Setting::Detect && bytes > 0 && self.is_watched(first, end) {
            self.stale = self.stale.or(Some(now));
        }
    }

    /// The host flushes, which tells a journal where there is no FUA.
    pub fn handle_flush(&mut self, now: Nanos) {
        if self.setting == Setting::Detect && self.sniffer.flush(now) {
            self.rebuild();
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Nanos> {
        if self.setting != Setting::Detect {
            return None;
        }
        let reading = self.stale.filter(|_| self.survey.is_none()).map(|since| since + SETTLE);
        let idle = self.journals.iter().filter(|live| live.is_empty() && !live.is_quiet);
        let quiet = idle.map(|live| live.active + QUIET).min();
        reading.into_iter().chain(quiet).chain([self.forget_at]).min()
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Nanos) {
        if self.setting != Setting::Detect {
            return;
        }
        if self.survey.is_none() && self.stale.is_some_and(|since| now >= since + SETTLE) {
            self.stale = None;
            self.survey = Some(Survey::new(self.blocks));
        }
        let mut changed = false;
        for live in &mut self.journals {
            let quiet = live.is_empty() && now >= live.active + QUIET;
            changed |= quiet && !live.is_quiet;
            live.is_quiet |= quiet;
        }
        if now >= self.forget_at {
            self.forget_at = now + FORGET;
            changed |= self.sniffer.forget(now);
        }
        if changed {
            self.rebuild();
        }
    }

    /// The class of a block, and how far it goes.
    #[must_use]
    #[inline]
    pub fn span(&self, lba: Lba) -> Span {
        self.table.span(lba)
    }

    /// All ranges with their reasons; they may overlap. [`Detector::span`] says which one counts.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// What was found and gives no range.
    #[must_use]
    pub fn remarks(&self) -> &[Remark] {
        &self.found.remarks
    }

    /// Blocks where the tails of logs lie, as far as they are known. They move without [`Output::Changed`].
    pub fn tails(&self) -> impl Iterator<Item = Lba> + '_ {
        self.journals.iter().filter_map(|live| Some(Lba::new(live.tail()? / PAGE_BYTES)))
    }

    /// Whether a block holds nothing but what lies behind the tail of a log, which the next lap overwrites. A hint: it is
    /// still read as it was written.
    #[must_use]
    pub fn is_behind_tail(&self, lba: Lba) -> bool {
        let at = lba.raw().saturating_mul(PAGE_BYTES);
        let dead = |live: &Live, at| live.is_dead(at) == Some(true);
        self.journals
            .iter()
            .any(|live| dead(live, at) && dead(live, at.saturating_add(PAGE_BYTES - 1)))
    }

    fn is_watched(&self, first: Lba, end: Lba) -> bool {
        let watched = &self.found.read_from;
        let next = watched.partition_point(|block| *block < first.raw());
        watched.get(next).is_some_and(|block| *block < end.raw())
            || self.survey.as_ref().is_some_and(|survey| survey.has_seen(first, end))
    }

    /// A block was written that a reading depends on. A journal header is written all the time, and says itself what changed.
    fn watched_write(&mut self, now: Nanos, write: &Write<'_>) {
        let mut is_tail = false;
        for live in &mut self.journals {
            if let Some(kind) = live.header_write(now, write.at, write.bytes, write.data) {
                is_tail |= kind == HeaderWrite::Tail;
            }
        }
        if !is_tail || self.survey.is_some() {
            self.stale = self.stale.or(Some(now));
        }
        self.wake();
    }

    /// A journal that is used again is one again.
    fn wake(&mut self) {
        let mut changed = false;
        for live in self.journals.iter_mut().filter(|live| live.is_quiet && !live.is_empty()) {
            live.is_quiet = false;
            changed = true;
        }
        if changed {
            self.rebuild();
        }
    }

    /// Whether the write is one to a log that was read.
    fn log_write(&mut self, now: Nanos, write: &Write<'_>) -> bool {
        let end = write.at.saturating_add(write.bytes);
        for live in &mut self.journals {
            if live.written(now, end) {
                if let Some(data) = write.data {
                    live.record(data);
                }
                return true;
            }
        }
        false
    }

    fn adopt(&mut self, now: Nanos, mut found: Found) {
        let mut known = std::mem::take(&mut self.journals);
        for journal in std::mem::take(&mut found.journals) {
            let same = known.iter_mut().position(|live| live.renew(&journal));
            let live = same.map_or_else(|| Live::new(journal, now), |at| known.swap_remove(at));
            self.journals.push(live);
        }
        self.found = found;
        self.rebuild();
    }

    /// Puts together what holds now.
    fn rebuild(&mut self) {
        let ranges = match &self.setting {
            Setting::Off => Vec::new(),
            Setting::Ranges(given) => self.given(given),
            Setting::Detect => {
                let is_quiet = |range: &Range| {
                    let owner = (range.origin.system, range.origin.at);
                    range.class != Class::MetaHot
                        && self
                            .journals
                            .iter()
                            .any(|live| live.is_quiet && live.journal.owner == owner)
                };
                let read = self.found.ranges.iter().filter(|range| !is_quiet(range)).copied();
                read.chain(self.sniffer.ranges(self.blocks)).collect()
            }
        };
        if ranges != self.ranges {
            self.table = Table::new(&ranges);
            self.ranges = ranges;
            self.is_changed = true;
        }
    }

    fn given(&self, given: &[(u64, u64)]) -> Vec<Range> {
        let range = |(first, end): &(u64, u64)| {
            let extent = Extent { at: *first, bytes: end.checked_sub(*first)? };
            let origin = Origin { system: System::User, at: *first, why: "you gave this range" };
            Range::around(extent, self.blocks, Class::JournalLog, Confidence::User, origin)
        };
        given.iter().filter_map(range).collect()
    }
}

/// The blocks that hold bytes, of which there is at least one: the first, and the first one behind.
fn blocks_of(at: u64, bytes: u64) -> (Lba, Lba) {
    let last = at.saturating_add(bytes.saturating_sub(1)) / PAGE_BYTES;
    (Lba::new(at / PAGE_BYTES), Lba::new(last.saturating_add(1)))
}
