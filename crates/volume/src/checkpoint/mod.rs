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

use crate::log::Stream;
use crate::map::runs::{Run, Runs};
use crate::retries::Failing;

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
    Settle,
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
    pub(crate) number: u64,
    pub(crate) committed: u64,
    pub(crate) generation: u64,
    pub(crate) runs: Runs,
    pub(crate) body: Vec<Location>,
    /// The next page of the sweep, and how many it has passed.
    pub(crate) cursor: usize,
    pub(crate) swept: u64,
    /// Pages that the sweep waits for.
    pub(crate) prefetch: BTreeSet<usize>,
    /// Pages that it passed and that cannot be read: what runs have of them goes to the next run.
    pub(crate) unread: Vec<usize>,
    pub(crate) wanted: bool,
    /// Checkpoints follow one another until the sweep has passed so many pages, or until what they move is elsewhere.
    pub(crate) moves_until: u64,
    /// The live counts do not have what the run of a recovery replaced: they were made anew with it (`crate::zones`, invariant 7).
    pub(crate) exact: bool,
    pub(crate) closing: Closing,
    pub(crate) spoiled_in_a_row: u32,
    /// Times in a row that the root could not be written, and until when the next checkpoint or root waits.
    pub(crate) root_failures: u32,
    pub(crate) root_failing: Option<Failing>,
    pub(crate) waits_until: Nanos,
    /// Runs of pages that cannot be read take all the room: none comes until they can.
    pub(crate) full_of_runs: bool,
    pub(crate) sent_blocks: u64,
    pub(crate) sent_batches: u64,
    pub(crate) since: Option<Nanos>,
    pub(crate) epoch_then: u64,
    pub(crate) work: Option<Box<Work>>,
}

/// What a root says about checkpoints.
#[derive(Debug)]
pub(crate) struct Restored {
    pub(crate) generation: u64,
    pub(crate) runs: Runs,
    pub(crate) body: Vec<Location>,
}

impl Checkpoint {
    pub(crate) fn new(restored: Restored, epoch: u64) -> Self {
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
}
