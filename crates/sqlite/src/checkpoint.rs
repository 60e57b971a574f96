//! What a checkpoint may clone instead of writing it.
//!
//! At a checkpoint SQLite reads the page of a frame and writes it to the database file, page after page in their order. A write
//! is a clone if its bytes are those that SQLite has just read from a frame.
//!
//! 1. A page is cloned only inside a checkpoint, and only if the write has the very bytes of the frame.
//! 2. Nothing waits: when a write returns, the page is in the database file. SQLite ignores what `CKPT_DONE` answers and does
//!    not sync the database after a checkpoint that readers cut short, so a failure later than the write would be lost.
//! 3. Runs are cloned ahead: pages that SQLite has not written yet. They are the newest frames of these pages that the
//!    checkpoint may copy ([`Bounds::safe_frames`]), which every reader sees, from the WAL or from the database. So it does
//!    not matter if SQLite stops before it comes to them. When it comes to one, rule 1 is checked for that page as well.

use std::ops::Range;

use onefold_units::convert::{index, index64, u64_from};

use crate::header;
use crate::layout::{FRAME_HEADER_BYTES, Layout};

/// Most pages of one clone: an upper bound of the time in one system call.
const RUN_PAGES_MAX: u32 = 4096;

/// What the shared memory of the WAL says about the checkpoint that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Frames that earlier checkpoints have copied.
    pub(crate) copied_frames: u32,
    /// Frames that this checkpoint may copy: those before.
    pub(crate) safe_frames: u32,
    /// Pages of the database after the last transaction.
    pub(crate) pages: u32,
}

/// Pages of the database that lie in the WAL, in the same order and without gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Run {
    /// First page of the database, from 1 as SQLite counts them.
    pub(crate) page: u32,
    /// Frame of the first page, from 0.
    pub(crate) frame: u32,
    /// Pages of the run.
    pub(crate) pages: u32,
}

impl Run {
    fn holds(&self, page: u32, frame: u32) -> bool {
        let within = page.checked_sub(self.page).filter(|within| *within < self.pages);
        within.is_some_and(|within| self.frame + within == frame)
    }
}

/// How a write to the database file is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The bytes are written.
    Write,
    /// The page was cloned with an earlier one: nothing is left to do.
    Cloned,
    /// The runs are to be cloned, and if that fails the bytes are written. The page is the first of the first run.
    Clone(Vec<Run>),
}

/// Database pages of frames, which are counted from 0. Those of the first frames are `known`, but for zeroes; `read` fills a buffer
/// from a place of the aligned WAL.
pub(crate) fn pages_of<E>(
    layout: Layout,
    known: &[u32],
    frames: Range<u32>,
    read: impl Fn(&mut [u8], u64) -> Result<(), E>,
) -> Result<Vec<u32>, E> {
    let mut pages = Vec::new();
    let mut frame = u64::from(frames.start);
    while frame < u64::from(frames.end) {
        let end = layout.group_end(frame).min(u64::from(frames.end));
        let known = known.get(index64(frame)..index64(end));
        if let Some(known) = known.filter(|known| !known.contains(&0)) {
            pages.extend_from_slice(known);
        } else {
            let mut block = vec![0; index64((end - frame) * FRAME_HEADER_BYTES)];
            read(&mut block, layout.header_at(frame))?;
            pages.extend(block.as_chunks().0.iter().map(header::page_number));
        }
        frame = end;
    }
    Ok(pages)
}

/// A checkpoint that runs.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    layout: Layout,
    /// Page and newest frame that may be copied, in the order of pages.
    newest: Vec<(u32, u32)>,
    /// The last page that SQLite read from the WAL.
    read_frame: Option<u64>,
    read_bytes: Vec<u8>,
    /// The runs that were cloned last.
    cloned: Vec<Run>,
    /// Most runs of one clone; none if nothing is cloned.
    runs_max: usize,
}

impl Checkpoint {
    /// Begins one that clones up to `runs_max` runs at once. `page_of` tells the page of a frame; frames are counted from 0.
    /// With an error only pages that SQLite writes are cloned, one at a time.
    pub(crate) fn begin<E>(
        layout: Layout,
        bounds: Bounds,
        runs_max: usize,
        mut page_of: impl FnMut(Range<u32>) -> Result<Vec<u32>, E>,
    ) -> Self {
        let frames = bounds.copied_frames..bounds.safe_frames;
        let pages = page_of(frames.clone()).unwrap_or_default();
        let mut newest: Vec<_> =
            pages.into_iter().zip(frames).filter(|(page, _)| *page <= bounds.pages).collect();
        // Of equal pages the newest comes first, and the others go.
        newest.sort_unstable_by_key(|(page, frame)| (*page, u32::MAX - frame));
        newest.dedup_by_key(|(page, _)| *page);
        Self { newest, runs_max, ..Self::of_writes(layout) }
    }

    /// Begins one that clones nothing.
    pub(crate) const fn of_writes(layout: Layout) -> Self {
        Self {
            layout,
            newest: Vec::new(),
            read_frame: None,
            read_bytes: Vec::new(),
            cloned: Vec::new(),
            runs_max: 0,
        }
    }

    /// SQLite has read this of the WAL.
    pub(crate) fn note_read(&mut self, bytes: &[u8], offset: u64) {
        if self.runs_max == 0 {
            return;
        }
        self.read_frame = self.layout.frame_of_page(offset, u64_from(bytes.len()));
        self.read_bytes.clear();
        if self.read_frame.is_some() {
            self.read_bytes.extend_from_slice(bytes);
        }
    }

    /// How to do this write of SQLite to the database file.
    pub(crate) fn step(&self, bytes: &[u8], offset: u64) -> Step {
        let page_bytes = self.layout.page_bytes();
        let (Some(frame), true) = (self.read_frame, bytes == self.read_bytes) else {
            return Step::Write;
        };
        let page = u32::try_from(offset / page_bytes + 1);
        let (Ok(page), Ok(frame), true) =
            (page, u32::try_from(frame), offset.is_multiple_of(page_bytes))
        else {
            return Step::Write;
        };
        if self.cloned.iter().any(|run| run.holds(page, frame)) {
            return Step::Cloned;
        }
        Step::Clone(self.runs(page, frame))
    }

    /// A write was done: as these runs, or by writing. What was cloned before a write does not count any more.
    pub(crate) fn note(&mut self, cloned: Vec<Run>) {
        self.cloned = cloned;
    }

    /// The run that begins with a page, and those of the pages after it.
    fn runs(&self, page: u32, frame: u32) -> Vec<Run> {
        let Ok(mut at) = self.newest.binary_search(&(page, frame)) else {
            return vec![Run { page, frame, pages: 1 }];
        };
        let mut runs = Vec::new();
        while runs.len() < self.runs_max
            && let Some((page, frame)) = self.newest.get(at).copied()
        {
            let pages = 1 + self.following(at);
            runs.push(Run { page, frame, pages });
            at += index(pages);
        }
        runs
    }

    /// Pages behind that of a place whose newest frames lie behind its frame in the same group.
    fn following(&self, at: usize) -> u32 {
        let (page, frame) = self.newest[at];
        let adjacent = |(ahead, found): &(&(u32, u32), u32)| {
            let expected = (page.saturating_add(*found), frame.saturating_add(*found));
            **ahead == expected
                && self.layout.page_at(u64::from(expected.1))
                    == self.layout.page_at(u64::from(frame))
                        + u64::from(*found) * self.layout.page_bytes()
        };
        let ahead = self.newest[at + 1..].iter().zip(1..RUN_PAGES_MAX);
        u32::try_from(ahead.take_while(adjacent).count()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: usize = 4096;

    /// Begins a checkpoint of frames that hold these pages.
    fn begin(bounds: Bounds, pages: &[u32]) -> Checkpoint {
        begin_ahead(bounds, pages, 1)
    }

    fn begin_ahead(bounds: Bounds, pages: &[u32], runs_max: usize) -> Checkpoint {
        let layout = Layout::new(4096).unwrap();
        let page_of = |frames: Range<u32>| {
            Ok::<_, ()>(pages[frames.start as usize..frames.end as usize].to_vec())
        };
        Checkpoint::begin(layout, bounds, runs_max, page_of)
    }

    fn all(pages: &[u32]) -> Bounds {
        Bounds { copied_frames: 0, safe_frames: u32::try_from(pages.len()).unwrap(), pages: 1000 }
    }

    /// SQLite copies a page: it reads the frame and writes the database.
    fn copy(checkpoint: &mut Checkpoint, page: u32, frame: u32) -> Step {
        let bytes = [frame.to_le_bytes()[0]; PAGE];
        checkpoint.note_read(&bytes, 32 + u64::from(frame) * 4120 + 24);
        checkpoint.step(&bytes, u64::from(page - 1) * 4096)
    }

    fn run(page: u32, frame: u32, pages: u32) -> Step {
        Step::Clone(vec![Run { page, frame, pages }])
    }

    #[test]
    fn runs_ahead_are_cloned_with_the_first() {
        let pages = [5, 6, 20, 9, 8, 20, 30];
        let mut checkpoint = begin_ahead(all(&pages), &pages, 4);
        let runs = [(5, 0, 2), (8, 4, 1), (9, 3, 1), (20, 5, 1)];
        let runs: Vec<Run> =
            runs.into_iter().map(|(page, frame, pages)| Run { page, frame, pages }).collect();
        assert_eq!(copy(&mut checkpoint, 5, 0), Step::Clone(runs.clone()));
        checkpoint.note(runs);
        for (page, frame) in [(6, 1), (8, 4), (9, 3), (20, 5)] {
            assert_eq!(copy(&mut checkpoint, page, frame), Step::Cloned);
        }
        // An older frame of a page that came ahead, and the page after the last run.
        assert_eq!(copy(&mut checkpoint, 20, 2), run(20, 2, 1));
        assert_eq!(copy(&mut checkpoint, 30, 6), run(30, 6, 1));
    }

    #[test]
    fn a_run_is_cloned_at_its_first_page() {
        let pages = [5, 6, 7, 9, 8];
        let mut checkpoint = begin(all(&pages), &pages);
        assert_eq!(copy(&mut checkpoint, 5, 0), run(5, 0, 3));
        checkpoint.note(vec![Run { page: 5, frame: 0, pages: 3 }]);
        assert_eq!(copy(&mut checkpoint, 6, 1), Step::Cloned);
        assert_eq!(copy(&mut checkpoint, 7, 2), Step::Cloned);
        assert_eq!(copy(&mut checkpoint, 8, 4), run(8, 4, 1));
        // After a failed clone nothing of it counts.
        checkpoint.note(Vec::new());
        assert_eq!(copy(&mut checkpoint, 6, 1), run(6, 1, 2));
    }

    #[test]
    fn only_the_newest_frames_that_may_be_copied_are_taken_ahead() {
        // Page 6 was written again, page 8 is not safe yet, frame 0 was copied before.
        let pages = [4, 5, 6, 7, 6, 8];
        let bounds = Bounds { copied_frames: 1, safe_frames: 5, pages: 1000 };
        let mut checkpoint = begin(bounds, &pages);
        assert_eq!(copy(&mut checkpoint, 5, 1), run(5, 1, 1));
        assert_eq!(copy(&mut checkpoint, 7, 3), run(7, 3, 1));
        let mut checkpoint = begin(Bounds { pages: 5, ..bounds }, &[1, 5, 6, 7, 8]);
        assert_eq!(copy(&mut checkpoint, 5, 1), run(5, 1, 1));
        // Without bounds there is nothing to look ahead at.
        let mut checkpoint = begin(Bounds { safe_frames: 0, copied_frames: 0, pages: 0 }, &pages);
        assert_eq!(copy(&mut checkpoint, 5, 1), run(5, 1, 1));
    }

    #[test]
    fn a_run_ends_with_its_group() {
        let pages: Vec<u32> = (1..=400).collect();
        let mut checkpoint = begin(all(&pages), &pages);
        assert_eq!(copy(&mut checkpoint, 1, 0), run(1, 0, 170));
        assert_eq!(copy(&mut checkpoint, 170, 169), run(170, 169, 1));
        assert_eq!(copy(&mut checkpoint, 171, 170), run(171, 170, 170));
        assert_eq!(copy(&mut checkpoint, 341, 340), run(341, 340, 60));
    }

    #[test]
    fn other_bytes_than_those_read_are_written() {
        let pages = [5, 6];
        let mut checkpoint = begin(all(&pages), &pages);
        assert_eq!(checkpoint.step(&[0; PAGE], 0), Step::Write);
        checkpoint.note_read(&[3; PAGE], 32 + 24);
        assert_eq!(checkpoint.step(&[4; PAGE], 4 * 4096), Step::Write);
        assert_eq!(checkpoint.step(&[3; PAGE - 1], 4 * 4096), Step::Write);
        assert_eq!(checkpoint.step(&[3; PAGE], 4 * 4096 + 512), Step::Write);
        assert_eq!(checkpoint.step(&[3; PAGE], 4 * 4096), run(5, 0, 2));
        // Half a page, and a range that is no page.
        checkpoint.note_read(&[3; 512], 32 + 24);
        assert_eq!(checkpoint.step(&[3; 512], 4 * 4096), Step::Write);
        checkpoint.note_read(&[3; PAGE], 32);
        assert_eq!(checkpoint.step(&[3; PAGE], 4 * 4096), Step::Write);
        // A page that came with a run, but from another frame.
        checkpoint.note(vec![Run { page: 5, frame: 0, pages: 2 }]);
        checkpoint.note_read(&[3; PAGE], 32 + 5 * 4120 + 24);
        assert_eq!(checkpoint.step(&[3; PAGE], 5 * 4096), run(6, 5, 1));
    }
}
