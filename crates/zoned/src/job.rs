//! A reclaim under way: how far it is, and what it has written (`crate::copy` carries it out).

use std::ops::Range;

use onefold_units::{Nanos, ZoneId};

use crate::stats::{Action, Sent};

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The next piece can be copied.
    Ready,
    /// A request to a device is under way.
    Busy,
    /// It rests so that the host gets its share.
    Resting(Nanos),
    /// Everything is copied.
    Copied,
    /// The map was changed; this flush has to end.
    Flushing(u64),
}

/// Blocks that a reclaim wrote to its target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Of what it moves, the journal's apart.
    pub(crate) copied: u64,
    pub(crate) journal: u64,
    pub(crate) zeroes: u64,
}

/// A reclaim under way.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) action: Action,
    /// The locked data zone of the chunk.
    pub(crate) data: ZoneId,
    pub(crate) source: ZoneId,
    pub(crate) target: ZoneId,
    /// Where to look for valid blocks next, and where to end.
    at: u32,
    end: u32,
    /// What is left of the run being copied.
    run: Range<u32>,
    /// Blocks of the piece under way, of what cause.
    piece: (u32, Sent),
    written: Written,
    /// Percentage of time that may be spent copying.
    pub(crate) throttle: u32,
    since: Nanos,
    /// Nobody ends it.
    pub(crate) forced: bool,
    stage: Stage,
}

impl Job {
    pub(crate) fn new(
        action: Action,
        data: ZoneId,
        source: ZoneId,
        target: ZoneId,
        end: u32,
    ) -> Self {
        Self {
            action,
            data,
            source,
            target,
            at: 0,
            end,
            run: 0..0,
            piece: (0, Sent::ZeroFill),
            written: Written::default(),
            throttle: 100,
            since: Nanos::ZERO,
            forced: false,
            stage: Stage::Ready,
        }
    }

    /// A data zone without valid blocks.
    pub(crate) fn empty(data: ZoneId) -> Self {
        let mut job = Self::new(Action::Empty, data, data, data, 0);
        job.stage = Stage::Copied;
        job
    }

    pub(crate) const fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether a piece is under way, or rests.
    pub(crate) const fn is_copying(&self) -> bool {
        matches!(self.stage, Stage::Busy | Stage::Resting(_))
    }

    /// Whether its map was changed, so that only the flush has to end.
    pub(crate) const fn is_committed(&self) -> bool {
        matches!(self.stage, Stage::Flushing(_))
    }

    pub(crate) const fn resumes_at(&self) -> Option<Nanos> {
        match self.stage {
            Stage::Resting(until) => Some(until),
            _ => None,
        }
    }

    /// What blocks that it copies are counted as.
    pub(crate) const fn cause(&self) -> Sent {
        match self.action {
            Action::Buf => Sent::Buf,
            Action::SeqData => Sent::SeqData,
            Action::Empty | Action::RndData => Sent::RndData,
        }
    }

    pub(crate) const fn written(&self) -> Written {
        self.written
    }

    /// What is left of the run being copied; empty between two runs.
    pub(crate) fn run(&self) -> Range<u32> {
        self.run.clone()
    }

    /// Where the next run of valid blocks may be.
    pub(crate) const fn ahead(&self) -> Range<u32> {
        self.at..self.end
    }

    /// The next run of valid blocks was found, or that there is none.
    pub(crate) fn found(&mut self, run: Option<Range<u32>>) {
        match run {
            Some(run) => {
                self.at = run.end;
                self.run = run;
            }
            None => self.stage = Stage::Copied,
        }
    }

    /// So many blocks of the run are being read.
    pub(crate) const fn reads(&mut self, blocks: u32, now: Nanos) {
        self.piece = (blocks, self.cause());
        self.since = now;
        self.stage = Stage::Busy;
    }

    /// What was read: first block, blocks, and what they are counted as.
    pub(crate) const fn piece(&self) -> (u32, u32, Sent) {
        (self.run.start, self.piece.0, self.piece.1)
    }

    /// A piece is being written, of which so many blocks are the journal's.
    pub(crate) fn writes(&mut self, blocks: u32, cause: Sent, journal: u64) {
        self.piece = (blocks, cause);
        self.stage = Stage::Busy;
        let written = &mut self.written;
        let is_zeroes = cause == Sent::ZeroFill;
        let count = if is_zeroes { &mut written.zeroes } else { &mut written.copied };
        *count += u64::from(blocks) - journal;
        written.journal += journal;
    }

    /// A piece is written. dm-kcopyd bounds the share of time that it copies in; the block layer writes zeroes without it.
    pub(crate) fn piece_over(&mut self, now: Nanos) {
        let (blocks, cause) = self.piece;
        if cause == Sent::ZeroFill {
            self.stage = Stage::Ready;
            return;
        }
        self.run.start += blocks;
        let busy = now.saturating_sub(self.since).get();
        let rest = busy * u64::from(100 - self.throttle) / u64::from(self.throttle.max(1));
        self.stage = if rest == 0 { Stage::Ready } else { Stage::Resting(now + Nanos::new(rest)) };
    }

    /// The map was changed; this flush makes it durable.
    pub(crate) const fn committed(&mut self, flush: u64) {
        self.stage = Stage::Flushing(flush);
    }
}
