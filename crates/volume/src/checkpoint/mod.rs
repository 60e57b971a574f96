//! Checkpoints: making the state of the map durable, so that log segments can be given back and recovery is short.
//!
//! A checkpoint captures the state after all batches up to number X, and writes it to the `meta` stream:
//!
//! - the *run*: every entry of the map that changed since the last checkpoint;
//! - the *swept pages*: images of some map pages. The sweep goes round over all pages, one for every
//!   [`RECORDS_PER_PAGE`] records, so that no checkpoint has to write much and no run lives long;
//! - the blocks of the directory that point to these images, and the *body*, which names all of that and describes the log
//!   segments;
//! - after a flush of everything before it, the root, which names the body; after another flush it counts.
//!
//! 1. A root points only to what was durable before it was written: batches up to X and those of the checkpoint itself.
//! 2. What the last committed root points to stays as it is: its log segments are given back after the next one counts.
//! 3. A run is dropped when the sweep has passed every page since it was made, the pages of its own checkpoint included: each
//!    page it has records of has an image that is as new or newer.
//! 4. A checkpoint one of whose batches, or of the batches before it, went to another place is begun again.

mod due;
pub(crate) mod room;
pub(crate) mod roots;
pub(crate) mod sweep;
pub(crate) mod write;

use std::collections::{BTreeSet, VecDeque};

use onefold_format::volume::{
    DirectoryEntry, DirectoryPlace, MEMBERS_MAX, Member, OpenSegment, RunRecord, SegmentEntry,
};
use onefold_units::convert::u64_from;
use onefold_units::{Location, LogSegmentId, Nanos};

use self::roots::RootCursor;
use crate::io::IoFailed;
use crate::log::Stream;
use crate::map::Map;
use crate::map::runs::{Run, Runs};
use crate::map::slices::Slice;
use crate::retries::{Failing, pause};

pub(crate) use room::IMAGE;
pub(crate) use write::extents;

/// Records of runs for which one page is swept. A record takes 16 B and a page 8 KiB, so a block of 4 KiB costs 16 B
/// for its record and 43 B for the sweep. With the 128 of volume.md, section 5.4, it is 64 B, and where the cleaner moves a third of what the
/// host writes all metadata is more than the 2.5 % of section 13.
pub(crate) const RECORDS_PER_PAGE: u64 = 192;

/// Pages that any checkpoint may sweep.
pub(crate) const SWEEP_MIN: u64 = 4;

/// Runs after which every page was swept, however few records each of them has.
pub(crate) const RUNS_MAX: u64 = 1024;

/// The same while checkpoints take more of the log than the map should.
pub(crate) const RUNS_IN_A_HURRY: u64 = 16;

/// Runs of each member that may stay because one of them cannot be read, before the volume takes no more changes.
pub(crate) const RUNS_HELD_MAX: u64 = 4 * RUNS_MAX;

/// Runs from which on closing leaves none, if it can: an opening reads their blocks beside the pages.
pub(crate) const RUNS_AT_CLOSE: usize = 2;

/// Log segments taken since the last checkpoint after which another one begins.
pub(crate) const TAKEN_MAX: u64 = 40;

/// Checkpoints in a row that may come to nothing before the next one waits: each takes some of the log.
pub(crate) const SPOILED_MAX: u32 = 8;

/// What has to be done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Pages,
    Directory,
    Run,
    Index,
    Body,
    /// The batches have to become durable.
    Sync,
    /// The zone that the root goes to is being reset.
    RootZone,
    /// The root is being written.
    Root,
    /// The root has to become durable.
    RootFlush,
}

/// A checkpoint under way.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) phase: Phase,
    /// X.
    pub(crate) seq: u64,
    pub(crate) clean: bool,
    pub(crate) pages: VecDeque<SweptPage>,
    /// Members and their blocks.
    pub(crate) directories: VecDeque<(usize, usize)>,
    /// The runs, one for each member that changed, and the one at hand.
    pub(crate) runs: Vec<NewRun>,
    pub(crate) at: usize,
    /// The places of members at X, and what the body says of each but for its directory.
    pub(crate) members: Vec<(usize, Member)>,
    pub(crate) body: Vec<u8>,
    pub(crate) body_blocks: Vec<Location>,
    /// Description of log segments at X.
    pub(crate) segments: Vec<SegmentEntry>,
    pub(crate) open: Vec<OpenSegment>,
    pub(crate) reserve: Vec<LogSegmentId>,
    pub(crate) emptied: Vec<LogSegmentId>,
    pub(crate) next_epoch: u64,
    pub(crate) swept: u64,
    /// What the root before points to and this one does not.
    pub(crate) replaced: Vec<Location>,
    /// What was written for this checkpoint.
    pub(crate) made: Vec<Location>,
    /// For a checkpoint that comes to nothing: images, directory and sweep as they were.
    pub(crate) old_images: Vec<(usize, DirectoryEntry)>,
    pub(crate) old_directory: Vec<(usize, usize, DirectoryPlace)>,
    pub(crate) before: (usize, u64),
    pub(crate) last_seq: u64,
    /// Of the newest root that was written for it.
    pub(crate) generation: u64,
    pub(crate) spoiled: bool,
}

/// A page whose image is written: the keys that it is the image of. The first one has what the image is made of, unless nothing
/// is mapped.
pub(crate) type SweptPage = Vec<usize>;

/// A run that is being written.
#[derive(Debug)]
pub(crate) struct NewRun {
    pub(crate) run: Run,
    /// The member that changed.
    pub(crate) slot: usize,
    pub(crate) records: Vec<RunRecord>,
    /// Records that are written, and entries of the index.
    pub(crate) written: usize,
    pub(crate) index_written: usize,
}

/// Closing takes two checkpoints if many map pages have to be written: recovery reads all that comes with the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    No,
    /// The next checkpoint may be the last but one.
    Begins,
    /// The next one is the last.
    Ends,
}

/// The state of checkpoints.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Checkpoints begun and committed since the volume was opened.
    number: u64,
    committed: u64,
    generation: u64,
    runs: Runs,
    body: Vec<Location>,
    /// The next page of the sweep, and how many it has passed.
    cursor: usize,
    swept: u64,
    /// Pages that the sweep waits for.
    prefetch: BTreeSet<usize>,
    /// Pages that it passed and that cannot be read: what runs have of them goes to the next run.
    unread: Vec<usize>,
    wanted: bool,
    /// Checkpoints follow one another until the sweep has passed so many pages, or until what they move is elsewhere.
    moves_until: u64,
    /// The live counts do not have what the run of a recovery replaced: they were made anew with it (`crate::zones`, invariant 7).
    exact: bool,
    closing: Closing,
    spoiled_in_a_row: u32,
    /// Times in a row that the root could not be written, and until when the next checkpoint or root waits.
    root_failures: u32,
    root_failing: Option<Failing>,
    waits_until: Nanos,
    /// Runs of pages that cannot be read take all the room: none comes until they can.
    full_of_runs: bool,
    sent_blocks: u64,
    sent_batches: u64,
    since: Option<Nanos>,
    epoch_then: u64,
    work: Option<Box<Work>>,
    /// What recovery found behind the last root, by member; the next checkpoint writes it as runs.
    recovered: Vec<(usize, Vec<RunRecord>)>,
    /// Where the next root goes.
    roots: RootCursor,
}

/// What a root says about checkpoints.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) generation: u64,
    pub(crate) runs: Runs,
    pub(crate) body: Vec<Location>,
}

impl Checkpoint {
    pub(crate) fn new(restored: Restored, epoch: u64, roots: RootCursor) -> Self {
        let Restored { generation, runs, body } = restored;
        Self {
            number: 0,
            committed: 0,
            generation,
            runs,
            body,
            cursor: 0,
            swept: 0,
            prefetch: BTreeSet::new(),
            unread: Vec::new(),
            wanted: false,
            moves_until: 0,
            exact: false,
            closing: Closing::No,
            spoiled_in_a_row: 0,
            root_failures: 0,
            root_failing: None,
            waits_until: Nanos::ZERO,
            full_of_runs: false,
            sent_blocks: 0,
            sent_batches: 0,
            since: None,
            epoch_then: epoch,
            work: None,
            recovered: Vec::new(),
            roots,
        }
    }

    pub(crate) const fn runs(&self) -> &Runs {
        &self.runs
    }

    /// That of the newest root.
    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// How its root fails, if it does.
    pub(crate) const fn root_failing(&self) -> Option<Failing> {
        self.root_failing
    }

    /// The last checkpoint that counts.
    pub(crate) const fn committed(&self) -> u64 {
        self.committed
    }

    /// No run that there is or that the next checkpoint writes has this number or a higher one.
    pub(crate) fn runs_end(&self) -> u64 {
        self.runs.next_number + u64_from(MEMBERS_MAX)
    }

    /// All runs, those that are being written as well.
    pub(crate) fn runs_mut(&mut self) -> impl Iterator<Item = &mut Run> {
        let new = self.work.iter_mut().flat_map(|work| &mut work.runs).map(|new| &mut new.run);
        self.runs.list.iter_mut().chain(new)
    }

    /// Whether no run under way has what recovery found.
    pub(crate) fn writes_counted(&self) -> bool {
        let new = self.work.iter().flat_map(|work| &work.runs);
        new.map(|new| &new.run).all(|run| run.counted)
    }

    /// Everything that the last root points to, but for images of pages and directories.
    pub(crate) fn places(&self) -> impl Iterator<Item = Location> + '_ {
        let runs = self.runs.list.iter().flat_map(|run| run.blocks.iter().copied());
        runs.chain(self.body.iter().copied())
    }

    /// The last checkpoint was asked for: nothing changes any more.
    pub(crate) const fn is_closing(&self) -> bool {
        !matches!(self.closing, Closing::No)
    }

    /// A checkpoint is needed soon.
    pub(crate) const fn want(&mut self) {
        self.wanted = true;
    }

    pub(crate) const fn is_running(&self) -> bool {
        self.work.is_some()
    }

    /// Whether one is wanted, and none was begun.
    pub(crate) const fn is_forgotten(&self) -> bool {
        self.wanted && self.work.is_none()
    }

    /// A batch went to another place. What the host wrote after X does not matter.
    pub(crate) fn note_moved(&mut self, stream: Stream, seq: u64) {
        let matters = |work: &Work| stream == Stream::Meta || seq <= work.seq;
        if self.work.as_deref().is_some_and(matters) {
            self.spoil();
        }
    }

    /// Invariant 4.
    pub(crate) fn spoil(&mut self) {
        if let Some(work) = &mut self.work
            && !matches!(work.phase, Phase::RootZone | Phase::Root | Phase::RootFlush)
        {
            work.spoiled = true;
        }
    }

    pub(crate) const fn sent_blocks(&self) -> u64 {
        self.sent_blocks
    }

    /// Notes a batch. Those of checkpoints themselves change nothing.
    pub(crate) fn note_sent(&mut self, blocks: u32, now: Nanos) {
        self.sent_blocks += u64::from(blocks);
        self.sent_batches += 1;
        self.since = self.since.or(Some(now));
    }

    /// The last checkpoint was asked for: nothing changes any more from now on.
    pub(crate) const fn close(&mut self) {
        self.closing = Closing::Begins;
        self.wanted = true;
    }

    pub(crate) const fn closing(&self) -> Closing {
        self.closing
    }

    /// The checkpoint that begins is the last but one.
    pub(crate) const fn close_next(&mut self) {
        self.closing = Closing::Ends;
    }

    /// Whether one is under way or wanted.
    pub(crate) const fn is_settling(&self) -> bool {
        self.work.is_some() || self.wanted
    }

    /// What recovery found behind the last root, by member.
    pub(crate) fn recovered(&self) -> &[(usize, Vec<RunRecord>)] {
        &self.recovered
    }

    /// The same, for a run of the checkpoint that begins.
    pub(crate) fn take_recovered(&mut self) -> Vec<(usize, Vec<RunRecord>)> {
        std::mem::take(&mut self.recovered)
    }

    /// Recovery found this.
    pub(crate) fn set_recovered(&mut self, recovered: Vec<(usize, Vec<RunRecord>)>) {
        self.recovered = recovered;
    }

    /// What recovery found is in no run after all.
    pub(crate) fn recover_again(&mut self, slot: usize, records: Vec<RunRecord>) {
        self.recovered.push((slot, records));
    }

    /// Where the next root goes.
    pub(crate) const fn roots(&self) -> RootCursor {
        self.roots
    }

    pub(crate) const fn set_roots(&mut self, roots: RootCursor) {
        self.roots = roots;
    }

    /// The live counts have what the run of a recovery replaced (`crate::zones`, invariant 7).
    pub(crate) const fn is_exact(&self) -> bool {
        self.exact
    }

    pub(crate) const fn set_exact(&mut self) {
        self.exact = true;
    }

    /// Blocks of the last body.
    pub(crate) const fn body_len(&self) -> usize {
        self.body.len()
    }

    /// A checkpoint begins. Gives its number, and where the sweep is.
    pub(crate) const fn begin(&mut self) -> (u64, (usize, u64)) {
        self.number += 1;
        self.wanted = false;
        (self.number, (self.cursor, self.swept))
    }

    /// It is known what it writes; `epoch` is the next use of a log segment.
    pub(crate) fn start(&mut self, work: Work, epoch: u64) {
        self.work = Some(Box::new(work));
        (self.sent_blocks, self.sent_batches, self.since) = (0, 0, None);
        self.epoch_then = epoch;
    }

    /// Takes out what is under way, to go on with it.
    pub(crate) const fn take(&mut self) -> Option<Box<Work>> {
        self.work.take()
    }

    /// Puts it back, to wait.
    pub(crate) fn put(&mut self, work: Box<Work>) {
        self.work = Some(work);
    }

    /// What is done next of the checkpoint under way.
    pub(crate) fn phase(&self) -> Option<Phase> {
        self.work.as_ref().map(|work| work.phase)
    }

    /// This is done next. Whether one is under way.
    pub(crate) fn go_to(&mut self, phase: Phase) -> bool {
        if let Some(work) = &mut self.work {
            work.phase = phase;
        }
        self.work.is_some()
    }

    /// Whether the next one or its root has to wait, after some that came to nothing.
    pub(crate) fn waits(&self, now: Nanos) -> bool {
        self.waits_until > now
    }

    /// Whether the last one came to nothing.
    pub(crate) const fn was_spoiled(&self) -> bool {
        self.spoiled_in_a_row > 0
    }

    /// The generation of the next root. A slot that fails is one of eight: the next one is tried, in turns, so that no more than two are written in
    /// vain.
    pub(crate) fn next_generation(&self) -> u64 {
        self.generation + 1 + u64::from(self.root_failures % 2)
    }

    /// The root was written.
    pub(crate) const fn root_written(&mut self) {
        (self.root_failures, self.root_failing) = (0, None);
    }

    /// The root could not be written: that is tried again after a pause.
    pub(crate) fn root_failed(&mut self, why: IoFailed, now: Nanos) {
        self.root_failing.get_or_insert(Failing { since: now, why }).why = why;
        self.root_failures += 1;
        self.waits_until = now + pause(self.root_failures);
    }

    /// The checkpoint under way counts, with these runs: those that are not needed any more are dropped. Gives the blocks that the last root named and
    /// this one does not.
    pub(crate) fn commit_runs(
        &mut self,
        new: Vec<NewRun>,
        is_needed: impl Fn(&Run) -> bool,
    ) -> Vec<Location> {
        let mut runs = std::mem::take(&mut self.runs.list);
        self.runs.next_number += u64_from(new.len());
        runs.extend(new.into_iter().map(|new| new.run));
        assert!(
            runs.is_sorted_by_key(|run| run.swept),
            "`crate::map::runs`, invariant 5: {runs:?}"
        );
        let mut replaced = Vec::new();
        runs.retain(|run| {
            let keep = is_needed(run);
            if !keep {
                replaced.extend(&run.blocks);
            }
            keep
        });
        self.runs.list = runs;
        replaced
    }

    /// Its root has this generation and names this body. Gives the blocks of the last one.
    pub(crate) fn commit(&mut self, generation: u64, body: Vec<Location>) -> Vec<Location> {
        self.generation = generation;
        self.committed = self.number;
        self.spoiled_in_a_row = 0;
        std::mem::replace(&mut self.body, body)
    }

    /// The checkpoint under way came to nothing: the next one begins where the sweep was `before`.
    pub(crate) fn undo(&mut self, before: (usize, u64), now: Nanos) {
        (self.cursor, self.swept) = before;
        // Pages that it passed unread had put these off. The run that comes next must not be dropped before them (`crate::map::runs`, invariant 5).
        for run in &mut self.runs.list {
            run.swept = run.swept.min(before.1);
        }
        self.wanted = true;
        self.spoiled_in_a_row += 1;
        let more = self.spoiled_in_a_row.saturating_sub(SPOILED_MAX);
        if more > 0 {
            self.waits_until = now + pause(more);
        }
    }

    /// The blocks of runs that may have records of pages, which ascend.
    pub(crate) fn slices_of(&self, keys: &[usize]) -> Vec<Slice> {
        let mut slices: Vec<Slice> = Vec::new();
        let (mut members, mut pages) = (0, Vec::new());
        for run in &self.runs().list {
            if run.members != members {
                members = run.members;
                let places = keys.iter().map(|key| Map::of_key(*key));
                pages = places
                    .filter(|(slot, _)| members >> slot & 1 == 1)
                    .map(|(_, page)| page)
                    .collect();
                pages.sort_unstable();
            }
            slices.extend(Slice::of_run(run, &pages));
        }
        slices
    }
}
