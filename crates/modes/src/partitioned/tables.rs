//! The tables of all partitions.
//!
//! 1. A table has an entry for each block of its partition that was written and is not free again,
//!    and none else; so it has never more entries than its partition has blocks, and its image fits
//!    a slot.
//! 2. Tables change only when a transaction is durable, so every hole in them is one (volume.md,
//!    section 3, V7).
//! 3. Tables belong to transformed partitions and are searched for original blocks: the one written
//!    last comes first (V5).

use std::collections::BTreeMap;

use onefold_format::volume::{TableEntry, TablePlace};
use onefold_units::convert::{index64, u64_from};
use onefold_volume::Memory;

use super::area::Areas;
use super::table::{Table, invalid, valid};

/// What a transaction changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The host wrote a block.
    Write {
        to: u32,
    },
    Trim,
    /// The cleaner moved a block into a hole whose entry was that of block `stale`.
    Move {
        to: u32,
        stale: Option<u32>,
    },
}

/// A step of a change in one partition.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A block does not lie there any more.
    Leave { lba: u32, from: u32, moved: bool },
    /// A block lies there now.
    Arrive { lba: u32, to: u32, moved: bool, stale: Option<u32> },
}

/// A table on its way into memory.
#[derive(Debug)]
pub(super) struct Load {
    /// Entries by first block of their piece.
    pub(super) pieces: BTreeMap<u32, Vec<TableEntry>>,
    /// Pieces that were not read yet.
    pub(super) left: usize,
    pub(super) failed: bool,
}

/// Where a table is.
#[derive(Debug, Default)]
pub(super) enum State {
    #[default]
    Here,
    /// In memory until so many pieces of it are written; it does not change meanwhile.
    Leaving(usize),
    Away,
    Loading(Load),
    /// It could not be read again.
    Damaged,
}

#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) table: Table,
    pub(super) state: State,
    /// Valid and invalid entries of a table that is away.
    counts: (u32, u32),
    /// Counts updates of all tables: the last one of this.
    pub(super) updated: u64,
    /// Holes that the last cleaning of this partition alone left.
    pub(super) holes_left: u32,
    /// Serves reads while the partition is cleaned (Han 2021, sec. III-D).
    pub(super) temporary: Option<Table>,
    /// It changed since its image was written.
    pub(super) dirty: bool,
    /// Its image that the last root names.
    pub(super) place: TablePlace,
    /// A newer one.
    pub(super) spare: Option<TablePlace>,
}

impl Partition {
    pub(super) const fn is_here(&self) -> bool {
        matches!(self.state, State::Here)
    }

    pub(super) const fn is_readable(&self) -> bool {
        matches!(self.state, State::Here | State::Leaving(_))
    }

    /// The newest image.
    pub(super) fn home(&self) -> TablePlace {
        self.spare.unwrap_or(self.place)
    }

    /// Takes the table out of memory.
    pub(super) fn leave(&mut self) {
        self.counts = (self.table.valid_count(), self.table.invalid_count());
        self.table = Table::default();
        self.state = State::Away;
    }

    /// Valid and invalid entries.
    pub(super) const fn counts(&self) -> (u32, u32) {
        if self.is_readable() {
            (self.table.valid_count(), self.table.invalid_count())
        } else {
            self.counts
        }
    }
}

/// For each table from where on was looked, and the next block with an entry that counts. Good
/// until a table changes.
#[derive(Debug, Default)]
pub(super) struct Known(Vec<Option<(u32, Option<u32>)>>);

#[derive(Debug)]
pub(super) struct Tables {
    pub(super) list: Vec<Partition>,
    /// Partitions, the one written last first.
    recent: Vec<usize>,
    /// Tables that were searched.
    pub(super) probes: u64,
    memory: Memory,
    /// Updates so far.
    updates: u64,
}

impl Tables {
    pub(super) fn new(areas: &Areas) -> Self {
        let count = index64(areas.partitions().into());
        Self {
            list: (0..count).map(|_| Partition::default()).collect(),
            recent: (0..count).collect(),
            probes: 0,
            memory: Memory::default(),
            updates: 0,
        }
    }

    fn search(&mut self, find: impl Fn(&Partition) -> Option<u32>) -> Option<u32> {
        for number in &self.recent {
            self.probes += 1;
            if let Some(at) = find(&self.list[*number]) {
                return Some(at);
            }
        }
        None
    }

    /// How many tables are searched for a block.
    pub(super) fn searches(&self, lba: u32) -> u64 {
        let holds = |number: &usize| self.list[*number].table.find(lba).is_some();
        let before = self.recent.iter().position(holds);
        u64_from(before.map_or(self.recent.len(), |before| before + 1))
    }

    /// Where a block lies.
    pub(super) fn find(&mut self, lba: u32) -> Option<u32> {
        self.search(|partition| partition.table.find(lba))
    }

    /// Where a block can be read: of a partition that is cleaned as the temporary table says.
    pub(super) fn find_for_read(&mut self, lba: u32) -> Option<u32> {
        self.search(|partition| partition.temporary.as_ref().unwrap_or(&partition.table).find(lba))
    }

    /// The first block from `lba` on that lies anywhere. `known` remembers the next one of each
    /// table, for callers that go on from there: a table of stale entries is passed once and not
    /// once for each block.
    pub(super) fn next_valid(&self, lba: u32, known: &mut Known) -> Option<u32> {
        known.0.resize(self.list.len(), None);
        let next = |(known, partition): (&mut Option<_>, &Partition)| {
            let good = known.filter(|(from, next): &(u32, Option<u32>)| {
                *from <= lba && next.is_none_or(|next| lba <= next)
            });
            let (_, next) =
                *known.insert(good.unwrap_or_else(|| (lba, partition.table.next_valid(lba))));
            next
        };
        known.0.iter_mut().zip(&self.list).filter_map(next).min()
    }

    /// The steps of a change of a block that lies at `from`, each with its partition. Gives where
    /// it lies then, too.
    pub(super) fn plan(
        areas: &Areas,
        lba: u32,
        from: Option<u32>,
        change: Change,
    ) -> (Option<u32>, [Option<(usize, Step)>; 2]) {
        let moved = matches!(change, Change::Move { .. });
        let leave = from.map(|from| (areas.partition_of(from), Step::Leave { lba, from, moved }));
        let (to, stale) = match change {
            Change::Trim => return (None, [leave, None]),
            Change::Write { to } => (to, None),
            Change::Move { to, stale } => (to, stale),
        };
        let arrive = (areas.partition_of(to), Step::Arrive { lba, to, moved, stale });
        (Some(to), [leave, Some(arrive)])
    }

    /// A table changes now. `written`: the host wrote a block to its partition.
    pub(super) fn touch(&mut self, number: usize, written: bool) {
        self.updates += 1;
        let partition = &mut self.list[number];
        partition.dirty = true;
        partition.updated = self.updates;
        if written && self.recent.first() != Some(&number) {
            self.recent.retain(|other| *other != number);
            self.recent.insert(0, number);
        }
    }

    /// Carries out a step in a table that is here.
    pub(super) fn carry_out(&mut self, number: usize, step: Step) {
        self.touch(number, matches!(step, Step::Arrive { moved: false, .. }));
        let partition = &mut self.list[number];
        match step {
            Step::Leave { lba, from, moved: true } => {
                partition.table.remove(&valid(lba, from));
            }
            Step::Leave { lba, from, moved: false } => {
                partition.table.invalidate(lba, from);
                // V9: in both tables, wherever the copy that is read lies.
                if let Some(temporary) = &mut partition.temporary
                    && let Some(old) = temporary.find(lba)
                {
                    temporary.invalidate(lba, old);
                }
            }
            Step::Arrive { lba, to, stale, .. } => {
                if let Some(stale) = stale {
                    partition.table.remove(&invalid(stale, to));
                }
                partition.table.insert(valid(lba, to));
            }
        }
    }

    /// Partitions, the one written last first.
    pub(super) fn recent(&self) -> &[usize] {
        &self.recent
    }

    pub(super) fn all_readable(&self) -> bool {
        self.list.iter().all(Partition::is_readable)
    }

    pub(super) fn is_loading(&self) -> bool {
        self.list.iter().any(|partition| matches!(partition.state, State::Loading(_)))
    }

    pub(super) fn any_leaving(&self) -> bool {
        self.list.iter().any(|partition| matches!(partition.state, State::Leaving(_)))
    }

    /// Valid and invalid entries of each partition.
    pub(super) fn counts(&self) -> Vec<(u32, u32)> {
        self.list.iter().map(Partition::counts).collect()
    }

    /// Whether a block was overwritten or trimmed and not filled since.
    pub(super) fn has_holes(&self) -> bool {
        self.list.iter().any(|partition| partition.counts().1 > 0)
    }

    /// All valid entries.
    pub(super) fn valid_entries(&self) -> impl Iterator<Item = &TableEntry> + '_ {
        let all = self.list.iter().flat_map(|partition| partition.table.iter());
        all.filter(|entry| !entry.invalid)
    }

    /// Looks how much memory the tables take now, beside so many other bytes.
    pub(super) fn measure(&mut self, beside: u64) {
        let mut now = Memory::default();
        for partition in &self.list {
            now.valid_entries += u64::from(partition.counts().0);
            now.invalid_entries += u64::from(partition.counts().1);
            for table in
                [Some(&partition.table), partition.temporary.as_ref()].into_iter().flatten()
            {
                now.paper_bytes += table.paper_bytes();
                now.real_bytes += table.real_bytes();
            }
        }
        now.peak_paper_bytes = self.memory.peak_paper_bytes.max(now.paper_bytes);
        now.peak_real_bytes = self.memory.peak_real_bytes.max(now.real_bytes + beside);
        self.memory = now;
    }

    pub(super) const fn memory(&self) -> Memory {
        self.memory
    }
}
