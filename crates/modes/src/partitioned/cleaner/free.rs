//! The end of cleaning: what the cleaner emptied becomes a region for new data.

use std::ops::Range;

use onefold_units::convert::u64_from;
use onefold_volume::{Buffer, IoKind, Trim};

use super::{Job, Phase};
use crate::partitioned::PartitionedVolume;
use crate::partitioned::commit::Stage;
use crate::partitioned::io::Purpose;
use crate::partitioned::rules::Scope;

impl PartitionedVolume {
    /// The moves are durable: what they left becomes free.
    pub(super) fn settle(&mut self, job: &mut Job) {
        let end = job.tail.max(job.floor);
        for piece in &mut job.pieces {
            piece.start = piece.start.max(end).min(piece.end);
        }
        job.pieces.retain(|piece| !piece.is_empty());
        self.measure_with(job.bytes());
        job.sides = [None, None];
        (job.head, job.tail) = (0, 0);
        for (number, partition) in self.tables.list.iter_mut().enumerate() {
            partition.temporary = None;
            let range = self.areas.partition(number);
            let touches = |piece: &Range<u32>| piece.start < range.end && range.start < piece.end;
            if job.pieces.iter().any(touches) {
                job.to_free.push(number);
            }
        }
        job.phase = Phase::Free;
        if self.stage == Stage::Idle {
            self.free(job);
        }
    }

    /// Drops the entries of what becomes free, which counts after the next checkpoint.
    pub(super) fn free(&mut self, job: &mut Job) {
        while let Some(number) = job.to_free.last().copied() {
            let partition = &mut self.tables.list[number];
            if !partition.is_here() {
                return self.load(number);
            }
            let before = partition.table.invalid_count();
            partition
                .table
                .retain_invalid(|at| !job.pieces.iter().any(|piece| piece.contains(&at)));
            partition.dirty |= partition.table.invalid_count() != before;
            job.to_free.pop();
        }
        self.measure();
        self.held.extend(job.pieces.iter().cloned());
        if job.moved || !job.pieces.is_empty() {
            self.checkpoint.wanted = true;
            job.phase = Phase::Checkpoint(self.stats.checkpoints + 1);
        } else {
            job.phase = Phase::Trim(0);
        }
    }

    pub(super) fn trim(&mut self, job: &mut Job) {
        let pieces = if self.options.trim == Trim::Never { &[] } else { &job.pieces[..] };
        for piece in pieces {
            let blocks = piece.end - piece.start;
            self.stats.trim_sent += u64::from(blocks);
            self.ios.ask((IoKind::Trim, Purpose::Trim), piece.start, blocks, Buffer::default());
        }
        job.phase = Phase::Trim(pieces.len());
    }

    pub(in super::super) fn trim_over(&mut self) {
        if let Some(Job { phase: Phase::Trim(left), .. }) = &mut self.job {
            *left -= 1;
        }
    }

    pub(super) fn end_job(&mut self, job: &Job) {
        for piece in std::mem::take(&mut self.held) {
            self.regions.add(piece);
        }
        self.free_after_cleaning = self.regions.blocks();
        self.stats.cleaned_segments += match job.scope {
            Scope::All => u64_from(self.tables.list.len()),
            Scope::Partition(number) => {
                let partition = &mut self.tables.list[number];
                partition.holes_left = partition.counts().1;
                1
            }
        };
    }
}
