//! The tables of all partitions.
//!
//! 1. A table has an entry for each block of its partition that was written and is not free again, and none else; so it
//!    has never more entries than its partition has blocks, and its image fits a slot.
//! 2. Tables change only when a transaction is durable, so every hole in them is one (volume.md, section 3, V7).
//! 3. Tables belong to transformed partitions and are searched for original blocks: the one written last comes first (V5).

use onefold_format::volume::{TableEntry, TablePlace};
use onefold_units::convert::index64;

use super::area::Areas;
use super::table::{Table, invalid, valid};
use crate::memory::Memory;

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

#[derive(Debug, Default)]
pub(super) struct Partition {
    pub(super) table: Table,
    /// Serves reads while the partition is cleaned (Han 2021, sec. III-D).
    pub(super) temporary: Option<Table>,
    /// It changed since its image was written.
    pub(super) dirty: bool,
    /// Its image on the backing.
    pub(super) place: TablePlace,
}

#[derive(Debug)]
pub(super) struct Tables {
    pub(super) list: Vec<Partition>,
    /// Partitions, the one written last first.
    recent: Vec<usize>,
    /// Tables that were searched.
    pub(super) probes: u64,
    memory: Memory,
}

impl Tables {
    pub(super) fn new(areas: &Areas) -> Self {
        let count = index64(areas.partitions().into());
        Self {
            list: (0..count).map(|_| Partition::default()).collect(),
            recent: (0..count).collect(),
            probes: 0,
            memory: Memory::default(),
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

    /// Where a block lies.
    pub(super) fn find(&mut self, lba: u32) -> Option<u32> {
        self.search(|partition| partition.table.find(lba))
    }

    /// Where a block can be read: of a partition that is cleaned as the temporary table says.
    pub(super) fn find_for_read(&mut self, lba: u32) -> Option<u32> {
        self.search(|partition| partition.temporary.as_ref().unwrap_or(&partition.table).find(lba))
    }

    /// The first block from `lba` on that lies anywhere.
    pub(super) fn next_valid(&self, lba: u32) -> Option<u32> {
        self.list.iter().filter_map(|partition| partition.table.next_valid(lba)).min()
    }

    /// Carries out a change of a block that lies at `from`. Gives where it lies then.
    pub(super) fn apply(
        &mut self,
        areas: &Areas,
        lba: u32,
        from: Option<u32>,
        change: Change,
    ) -> Option<u32> {
        if let Some(from) = from {
            let partition = &mut self.list[areas.partition_of(from)];
            partition.dirty = true;
            if let Change::Move { .. } = change {
                partition.table.remove(&valid(lba, from));
            } else {
                partition.table.invalidate(lba, from);
                // V9: in both tables, wherever the copy that is read lies.
                if let Some(temporary) = &mut partition.temporary
                    && let Some(old) = temporary.find(lba)
                {
                    temporary.invalidate(lba, old);
                }
            }
        }
        let (to, stale) = match change {
            Change::Trim => return None,
            Change::Write { to } => (to, None),
            Change::Move { to, stale } => (to, stale),
        };
        let number = areas.partition_of(to);
        let partition = &mut self.list[number];
        partition.dirty = true;
        if let Some(stale) = stale {
            partition.table.remove(&invalid(stale, to));
        }
        partition.table.insert(valid(lba, to));
        if !matches!(change, Change::Move { .. }) && self.recent.first() != Some(&number) {
            self.recent.retain(|other| *other != number);
            self.recent.insert(0, number);
        }
        Some(to)
    }

    /// Invalid entries of each partition.
    pub(super) fn invalid_counts(&self) -> Vec<u32> {
        self.list.iter().map(|partition| partition.table.invalid_count()).collect()
    }

    /// All valid entries.
    pub(super) fn valid_entries(&self) -> impl Iterator<Item = &TableEntry> + '_ {
        let all = self.list.iter().flat_map(|partition| partition.table.iter());
        all.filter(|entry| !entry.invalid)
    }

    /// Looks how much memory the tables take now.
    pub(super) fn measure(&mut self) {
        let mut now = Memory::default();
        for partition in &self.list {
            now.valid_entries += u64::from(partition.table.valid_count());
            now.invalid_entries += u64::from(partition.table.invalid_count());
            for table in
                [Some(&partition.table), partition.temporary.as_ref()].into_iter().flatten()
            {
                now.paper_bytes += table.paper_bytes();
                now.real_bytes += table.real_bytes();
            }
        }
        now.peak_paper_bytes = self.memory.peak_paper_bytes.max(now.paper_bytes);
        now.peak_real_bytes = self.memory.peak_real_bytes.max(now.real_bytes);
        self.memory = now;
    }

    pub(super) const fn memory(&self) -> Memory {
        self.memory
    }
}
