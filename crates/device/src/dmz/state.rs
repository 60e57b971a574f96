//! A zoned volume that is open, who waits for what of it, and the detector that looks at its writes. One lock guards it.

use std::collections::BTreeMap;
use std::ops::Range;

use onefold_journal::{Class, Confidence, Detector, Output};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Lba, Nanos, Status};
use onefold_zoned::{Done, Failure, Io, IoKind, REQUESTS_MAX, Refusal, Request, Volume, ZoneKind};

use crate::driver::{Answer, Fallible, Waiting};

/// How a request ends: with the bytes of a read.
pub(super) type Outcome = Result<Vec<u8>, Status>;

pub(super) struct State {
    pub(super) volume: Volume,
    pub(super) detector: Detector,
    pub(super) now: Nanos,
    waiting: Waiting<Outcome>,
    /// Blocks that the detector asked for, by the tag of the read.
    reads: BTreeMap<u64, Lba>,
    /// One that could not be asked for yet.
    unasked: Option<Lba>,
    /// A thread panicked with it.
    pub(super) fallen: bool,
}

impl State {
    pub(super) fn new(volume: Volume, detector: Detector) -> Self {
        Self {
            volume,
            detector,
            now: Nanos::ZERO,
            waiting: Waiting::default(),
            reads: BTreeMap::new(),
            unasked: None,
            fallen: false,
        }
    }

    /// Whether the engine takes no more requests for now.
    pub(super) fn is_full(&self) -> bool {
        self.volume.requests_under_way() >= u64_from(REQUESTS_MAX)
    }

    /// Gives a request to the volume; `answer` is told how it ends.
    pub(super) fn submit(
        &mut self,
        request: Request,
        answer: &Answer<Outcome>,
    ) -> Result<(), Refusal> {
        let tag = self.waiting.tag();
        self.volume.submit(self.now, tag, request)?;
        self.waiting.taken();
        self.waiting.expect(tag, answer);
        Ok(())
    }

    /// Answers those whose requests are over.
    pub(super) fn answer(&mut self) {
        while let Some(Done { tag, result, data }) = self.volume.poll_done() {
            if let Some(lba) = self.reads.remove(&tag) {
                let block = data.as_slice().try_into().ok().filter(|_| result.is_ok());
                self.detector.handle_read(self.now, lba, block);
            } else {
                self.waiting.end(tag, result.map(|()| data).map_err(status));
            }
        }
    }

    /// Gives the detector what it asks for, and the volume what it finds.
    pub(super) fn look(&mut self) {
        loop {
            let lba = match self.unasked.take() {
                Some(lba) => lba,
                None => match self.detector.poll_output() {
                    Some(Output::Read(lba)) => lba,
                    Some(Output::Changed) => {
                        let (journal, hot) = journal(&self.detector);
                        self.volume.set_journal(self.now, journal, hot);
                        continue;
                    }
                    None => return,
                },
            };
            let (tag, request) = (self.waiting.tag(), Request::Read { lba: lba.raw(), blocks: 1 });
            if self.volume.submit(self.now, tag, request).is_err() {
                self.unasked = Some(lba);
                return;
            }
            self.waiting.taken();
            self.reads.insert(tag, lba);
            self.answer();
        }
    }

    /// Whether a request changes a sequential zone, so that it has to get there in order.
    pub(super) fn is_sequential(&self, io: &Io) -> bool {
        let geometry = self.volume.geometry();
        let zone = geometry.zone_at(index(io.device), io.at);
        let changes = matches!(io.kind, IoKind::Write | IoKind::Reset);
        changes && zone.is_some_and(|zone| geometry.kind(zone) == ZoneKind::Sequential)
    }

    /// When something has to be done although nothing happens.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.volume.poll_timeout().into_iter().chain(self.detector.poll_timeout()).min()
    }

    /// Does what is due.
    pub(super) fn handle_timeouts(&mut self) {
        let is_due = |at: Option<Nanos>| at.is_some_and(|at| at <= self.now);
        if is_due(self.detector.poll_timeout()) {
            self.detector.handle_timeout(self.now);
        }
        if is_due(self.volume.poll_timeout()) {
            self.volume.handle_timeout(self.now);
        }
    }
}

impl Fallible for State {
    fn fall(&mut self) {
        self.fallen = true;
        self.waiting.end_all(|| Err(Status::MediaError));
    }
}

/// The blocks that the detector calls a journal, and those of them that are rewritten at any time; each in order and apart.
fn journal(detector: &Detector) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let blocks = |range: &onefold_journal::Range| range.first.raw()..range.end.raw();
    let of = |class: Class| detector.ranges().iter().filter(move |range| range.class == class);
    let mut hot: Vec<Range<u64>> = of(Class::JournalHot).map(blocks).collect();
    let log: Vec<Range<u64>> = of(Class::JournalLog).map(blocks).collect();
    let all = log.iter().chain(&hot).cloned().collect();
    // What a user gives is a whole journal, and that of ext4 begins with its header.
    let given = of(Class::JournalLog).filter(|range| range.confidence == Confidence::User);
    hot.extend(given.map(|range| range.first.raw()..range.first.raw() + 1));
    (apart(all), apart(hot))
}

/// Ranges in order, those that touch made one.
fn apart(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

pub(super) fn status(failure: Failure) -> Status {
    match failure {
        Failure::NoSpace => Status::NoSpace,
        Failure::ReadOnly => Status::Poisoned,
        Failure::Device(why) => Status::from(why),
        Failure::Damaged => Status::MediaError,
    }
}
