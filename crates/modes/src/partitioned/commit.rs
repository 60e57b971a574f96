//! Commits: data, FLUSH, log block, FLUSH, then tables and answers (volume.md, section 3, V4).
//! Neither paper flushes the device (Sung 2022, sec. III-E; Han 2021, sec. III-C): `paper_flush`
//! shows what becomes of that.
//!
//! 1. A log block is written when the data of its transaction and all transactions before it are
//!    durable.
//! 2. One thing at a time: a commit or a checkpoint. So the log ends at its first gap.

use onefold_format::volume::BLOCK_BYTES;
use onefold_units::convert::index;
use onefold_volume::{Buffer, Frozen, IoFailed, IoKind, PaperFlush, Sent};

use super::PartitionedVolume;
use super::io::Purpose;
use super::tables::{Change, Tables};

/// What the oldest closed transaction, or the checkpoint, waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Idle,
    /// The data of the transaction is written.
    Data,
    /// It becomes durable.
    DataFlush,
    /// The log block is written.
    Log,
    /// It becomes durable.
    LogFlush,
    /// The tables change.
    Apply,
    /// Tables and catalog are written.
    Tables,
    /// They become durable.
    TablesFlush,
    /// The root is written.
    Root,
    /// It becomes durable.
    RootFlush,
}

impl PartitionedVolume {
    /// Whether a commit or a checkpoint is under way, or due.
    pub(super) fn is_writing(&self) -> bool {
        self.stage != Stage::Idle || !self.journal.closed.is_empty() || self.checkpoint.wanted
    }

    /// Begins what is due and goes on with what can go on.
    pub(super) fn step_writer(&mut self) {
        if self.frozen.is_some() {
            return;
        }
        let due = self.journal.deadline(self.options.commit_age).is_some_and(|at| at <= self.now);
        let wanted = self.journal.is_wanted() || self.checkpoint.closing;
        if due || (wanted && self.journal.has_room()) {
            self.journal.close();
        }
        if self.stage == Stage::Apply {
            self.step_apply();
        }
        if self.stage == Stage::Idle {
            self.begin();
        }
        if self.stage == Stage::Data {
            self.send_log();
        }
        if self.stage == Stage::Tables {
            self.step_tables();
        }
    }

    fn begin(&mut self) {
        let next = self.journal.closed.front();
        let full =
            next.is_some_and(|next| self.files[index(next.file)] == self.areas.file_blocks());
        let checkpoint = self.checkpoint.wanted && (next.is_none() || !self.checkpoint.closing);
        if full || checkpoint {
            // A table that leaves memory is written first.
            if !self.tables.any_leaving() {
                self.begin_checkpoint();
            }
        } else if next.is_some() {
            self.stage = Stage::Data;
        }
    }

    /// Goes on when the data of the oldest transaction was written.
    fn send_log(&mut self) {
        if self.journal.closed.front().is_some_and(|oldest| oldest.outstanding > 0) {
            return;
        }
        if self.leaves_flushes_out() {
            self.write_log();
        } else {
            self.stage = Stage::DataFlush;
            self.ask_flush();
        }
    }

    fn write_log(&mut self) {
        let Some(oldest) = self.journal.closed.front() else { return };
        let file = oldest.file;
        let at = self.areas.file_at(file, self.files[index(file)]);
        self.files[index(file)] += 1;
        let mut buffer = Buffer::new(BLOCK_BYTES);
        let transaction = oldest.transaction(self.incarnation);
        transaction.encode(&self.uuid, at, buffer.bytes_mut());
        self.stats.count(Sent::Header, 1);
        self.stage = Stage::Log;
        self.ios.ask((IoKind::Write, Purpose::Log), at, 1, buffer);
    }

    pub(super) fn log_over(&mut self, failed: bool) {
        if failed {
            self.freeze(Frozen::Writes);
        } else if self.leaves_flushes_out() {
            self.apply();
        } else {
            self.stage = Stage::LogFlush;
            self.ask_flush();
        }
    }

    pub(super) fn flush_over(&mut self, failed: bool) {
        if failed {
            self.freeze(Frozen::Flush);
        }
        if self.frozen.is_some() {
            return;
        }
        match self.stage {
            Stage::DataFlush => self.write_log(),
            Stage::LogFlush => self.apply(),
            Stage::TablesFlush => self.write_root(),
            Stage::RootFlush => self.end_checkpoint(),
            Stage::Idle | Stage::Data | Stage::Log | Stage::Apply | Stage::Tables | Stage::Root => {
            }
        }
    }

    /// The oldest transaction is durable: the tables change.
    fn apply(&mut self) {
        let Some(oldest) = self.journal.closed.front() else { return };
        for (lba, change) in oldest.changes.clone() {
            let Some(overlaid) = self.journal.overlay.get_mut(&lba) else { continue };
            let (now, steps) = Tables::plan(&self.areas, lba, overlaid.base, change);
            overlaid.base = now;
            for (number, step) in steps.into_iter().flatten() {
                self.ops.entry(number).or_default().push(step);
            }
        }
        self.stage = Stage::Apply;
        self.step_apply();
    }

    /// Changes the tables that are here, then those that are read meanwhile. Answers those who
    /// waited.
    fn step_apply(&mut self) {
        let tables = &self.tables;
        let here = |number: &usize, _: &mut Vec<_>| tables.list[*number].is_here();
        let ready: Vec<_> = self.ops.extract_if(.., here).collect();
        for (number, steps) in ready {
            for step in steps {
                self.tables.carry_out(number, step);
            }
        }
        if let Some(number) = self.ops.keys().next().copied() {
            return self.load(number);
        }
        self.stage = Stage::Idle;
        // The changes are in the tables and still in the overlay: so much memory it takes.
        self.measure();
        let Some(oldest) = self.journal.closed.pop_front() else { return };
        for (lba, _) in &oldest.changes {
            if self.journal.overlay.get(lba).is_some_and(|last| last.seq == oldest.seq)
                && let Some(overlaid) = self.journal.overlay.remove(lba)
            {
                self.tell_searches(*lba, overlaid.now);
            }
        }
        self.journal.durable = oldest.seq;
        self.stats.batches += 1;
        self.report_durable();
    }

    fn report_durable(&mut self) {
        let durable = self.journal.durable;
        let over = self.journal.waiters.extract_if(.., |(seq, _)| *seq <= durable);
        let tags: Vec<_> = over.map(|(_, tag)| tag).collect();
        for tag in tags {
            self.answer(tag);
        }
    }

    /// Whether the layer sends no flush of its own, as in the papers.
    pub(super) fn leaves_flushes_out(&self) -> bool {
        self.options.paper_flush != PaperFlush::None
    }

    /// Tells the host that what it asked for is durable; where the layer does not flush by itself, when
    /// the backing was flushed.
    pub(super) fn answer(&mut self, tag: u64) {
        if self.options.paper_flush == PaperFlush::Own {
            self.stats.flushes_sent += 1;
            self.ios.ask((IoKind::Flush, Purpose::HostFlush(tag)), 0, 0, Buffer::default());
        } else {
            self.report(tag, Ok(()));
        }
    }

    pub(super) fn host_flush_over(&mut self, tag: u64, failed: bool) {
        if failed {
            self.freeze(Frozen::Flush);
        }
        self.report(tag, if failed { Err(IoFailed::Error) } else { Ok(()) });
    }

    /// Adds a move of the cleaner to the open transaction. `false` if there is no room now.
    pub(super) fn push_move(&mut self, lba: u32, from: u32, to: u32, stale: Option<u32>) -> bool {
        if !self.journal.has_room() {
            return false;
        }
        if self.journal.open.changes.is_empty() {
            self.journal.open.file = self.areas.rules().file_of(self.current);
        }
        self.journal.push(self.now, lba, Some(from), Change::Move { to, stale });
        true
    }
}
