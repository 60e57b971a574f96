//! L2P checkpoints: what recovery starts from instead of scanning everything (remap.md section 7).
//!
//! A checkpoint is *fuzzy*. At the cut everything staged is programmed, and the last sequence number
//! C, the next epoch and the frontiers are noted; then the map is dumped page by page while the
//! device works on. An entry dumped late may be newer than the cut. That is sound: recovery uses an
//! entry only for units that were neither written, moved nor trimmed after the cut, and the mapping
//! of those is the same at any time after it. Differs from remap.md section 7, which dumps
//! copy-on-write.

use onefold_format::{CheckpointLabel, Frontier as CutFrontier, SlotKind, SuperblockKind};
use onefold_nand::{At, Media, MediaError};
use onefold_units::convert::{index, index64, u32_from};
use onefold_units::{Cause, Nanos, Seq, SuperblockId};

use crate::FtlError;
use crate::dump::Dump;
use crate::ftl::{Ftl, background};
use crate::superblock::State;

/// Host writes per map page while a checkpoint is being dumped.
const WRITES_PER_PAGE: u64 = 16;

impl<M: Media> Ftl<M> {
    /// One host write happened: begin a checkpoint if one is due, or go on with the running one.
    #[inline]
    pub(crate) fn checkpoint_after_write(&mut self, now: Nanos) -> Result<(), FtlError> {
        self.checkpoints.written += 1;
        if self.checkpoints.dump.is_some() {
            if self.checkpoints.written.is_multiple_of(WRITES_PER_PAGE) {
                self.dump_program(now)?;
            }
            return Ok(());
        }
        if self.checkpoints.written >= self.layout.checkpoint_every {
            self.cut(now)?;
        }
        Ok(())
    }

    /// One trim happened.
    pub(crate) fn checkpoint_after_trim(&mut self, now: Nanos) -> Result<(), FtlError> {
        if self.checkpoints.dump.is_some() {
            return self.dump_program(now);
        }
        if self.trim_log.is_filling(self.map_pages()) {
            self.cut(now)?;
        }
        Ok(())
    }

    /// Begins a checkpoint, or dumps the next page of the running one.
    pub(crate) fn checkpoint_step(&mut self, now: Nanos) -> Result<(), FtlError> {
        if self.checkpoints.dump.is_some() { self.dump_program(now) } else { self.cut(now) }
    }

    /// Takes a checkpoint to the end, whatever is running: the trim log is empty afterwards.
    pub fn checkpoint_now(&mut self, now: Nanos) -> Result<(), FtlError> {
        while self.checkpoints.dump.is_some() {
            self.dump_program(now)?;
        }
        self.cut(now)?;
        while self.checkpoints.dump.is_some() {
            self.dump_program(now)?;
        }
        Ok(())
    }

    /// Notes what the checkpoint is about.
    fn cut(&mut self, now: Nanos) -> Result<(), FtlError> {
        self.program_all_staged(background(now))?;
        let open = self.frontiers.iter().filter_map(|frontier| {
            let superblock = frontier.superblock?;
            Some(CutFrontier { superblock, slots: frontier.programmed })
        });
        let label = CheckpointLabel {
            generation: self.checkpoints.label.generation + 1,
            seq: Seq::new(self.seq),
            alloc: self.alloc,
            map_pages: self.map_pages(),
            superblocks: Vec::new(),
            frontiers: open.collect(),
        };
        if self.trim_log.both_count() {
            // After a power cut during a checkpoint; nothing is trimmed until this one commits.
        } else {
            self.trim_log.switch();
        }
        self.checkpoints.written = 0;
        self.checkpoints.dump =
            Some(Dump { label, next_page: 0, superblock: None, next_program: 0 });
        Ok(())
    }

    pub(crate) fn map_pages(&self) -> u32 {
        self.layout.units.div_ceil(self.layout.entries_per_unit)
    }

    /// Programs the next map pages, as many as one program takes; commits after the last. A dump that
    /// fails for want of space goes on when there is some.
    fn dump_program(&mut self, now: Nanos) -> Result<(), FtlError> {
        let Some(mut dump) = self.checkpoints.dump.take() else { return Ok(()) };
        if dump.next_page >= dump.label.map_pages {
            return self.commit(now, dump);
        }
        let result = self.dump_pages(now, &mut dump);
        self.checkpoints.dump = Some(dump);
        result
    }

    fn dump_pages(&mut self, now: Nanos, dump: &mut Dump) -> Result<(), FtlError> {
        let at = background(now);
        let superblock = match dump.superblock {
            Some(superblock) => superblock,
            None => self.open_for_dump(at, dump)?,
        };
        let slots = self.nand.geometry().slots_per_program();
        let end = (dump.next_page + slots).min(dump.label.map_pages);
        let entries = self.layout.entries_per_unit;
        let mut data = Vec::new();
        let mut spares = Vec::new();
        for page in dump.next_page..end {
            let bytes = self.map_page(page, entries);
            let generation = dump.label.generation;
            spares.push(self.spare(superblock, SlotKind::Map, page, generation, &bytes));
            data.extend(bytes);
        }
        let filler = self.spare(superblock, SlotKind::Filler, 0, 0, &[]);
        spares.resize(index(slots), filler);
        if M::STORES {
            data.resize(index(slots) * index(self.nand.geometry().unit_bytes()), 0);
        }
        self.count_dump(end - dump.next_page, slots);
        match self.nand.program(at, superblock, dump.next_program, &spares, &data) {
            Ok(grant) => {
                self.programmed_at = self.programmed_at.max(grant.done);
                dump.next_page = end;
                dump.next_program += 1;
                if dump.next_program * slots >= self.layout.data_end {
                    dump.superblock = None;
                }
            }
            Err(MediaError::ProgramFailed) => self.restart_dump(dump, superblock),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn count_dump(&mut self, pages: u32, slots: u32) {
        let unit = self.nand.geometry().pages_per_unit();
        self.stats.programs.add(Cause::Checkpoint, unit * u64::from(pages));
        self.stats.programs.add(Cause::Padding, unit * u64::from(slots - pages));
    }

    /// A map page could not be programmed: the superblock is given up, and its pages are dumped
    /// again. Entries dumped twice do no harm.
    fn restart_dump(&mut self, dump: &mut Dump, failed: SuperblockId) {
        self.stats.media_failures += 1;
        self.superblocks[failed.index()].failing = true;
        dump.superblock = None;
        dump.next_page = 0;
    }

    fn open_for_dump(&mut self, at: At, dump: &mut Dump) -> Result<SuperblockId, FtlError> {
        // The pool with most free superblocks, lowest first: checkpoints are few.
        let pools = self.pools.iter().enumerate();
        let most = pools.max_by_key(|(at, pool)| (pool.free_count(), std::cmp::Reverse(*at)));
        let pool = u32_from(most.map_or(0, |(at, _)| at));
        self.collect_until_above_stop(at.now, pool)?;
        self.secure_reserve(pool)?;
        let superblock = self.take_free(at, pool, SuperblockKind::Checkpoint)?;
        self.superblocks[superblock.index()].state = State::Checkpoint;
        self.judge_hunger(pool);
        dump.superblock = Some(superblock);
        dump.next_program = self.layout.data_begin / self.nand.geometry().slots_per_program();
        dump.label.superblocks.push(superblock);
        Ok(superblock)
    }

    /// Commits: everything the label names is durable before the label is. Then the checkpoint
    /// before goes.
    fn commit(&mut self, now: Nanos, dump: Dump) -> Result<(), FtlError> {
        // Entries dumped late may lead to staged slots; what those replace is known nowhere else.
        self.program_all_staged(background(now))?;
        // So may entries of the remap log that collection wrote again.
        self.write_log(now)?;
        if M::STORES {
            self.sync()?;
            let copy = self.layout.nvram.labels[index64(dump.label.generation % 2)];
            let bytes = dump.label.encode();
            self.nand.media_mut().nvram_write(copy, &bytes)?;
            self.sync()?;
        }
        self.stats.checkpoints += 1;
        self.ring.covered(dump.label.seq.raw());
        let before = std::mem::replace(&mut self.checkpoints.label, dump.label);
        if self.trim_log.both_count() && self.trim_log_is_stale() {
            self.trim_log.release_all();
        } else {
            self.trim_log.release_other();
        }
        for superblock in before.superblocks {
            if self.erase(now, superblock)? {
                self.release(superblock);
            }
        }
        Ok(())
    }

    /// Whether no trim came in since the cut.
    fn trim_log_is_stale(&self) -> bool {
        self.seq == self.checkpoints.label.seq.raw()
    }
}
