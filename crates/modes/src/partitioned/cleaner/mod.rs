//! The cleaner of both papers, hole plugging: valid blocks from the end go into holes at the start,
//! until both pointers meet (Sung 2022, sec. III-D; Han 2021, sec. III-D). What lies behind becomes
//! a region for new data.
//!
//! 1. Everything it looks at was written before it began, and is in the tables: it waits for the
//!    transactions under way.
//! 2. A hole is taken from a durable table, so the write that made it one cannot be undone
//!    (volume.md, section 3, V7).
//! 3. A block that was overwritten meanwhile is not moved, or its copy is dropped (V9): a move is
//!    added to a transaction only while nothing newer is.
//! 4. What was emptied is a region when the moves and a checkpoint that lists it are durable, and
//!    after its TRIM.

mod free;

use std::ops::Range;

use onefold_units::convert::{float, floor_u64, index, u64_from};
use onefold_volume::{Buffer, Frozen, IoKind, Sent};

use super::PartitionedVolume;
use super::area::Areas;
use super::commit::Stage;
use super::io::Purpose;
use super::rules::{Scope, Situation};
use super::tables::Tables;

/// Blocks that are moved at once.
const DEPTH: usize = 32;

/// What a transformed block is.
#[derive(Clone, Copy, Debug)]
enum Slot {
    /// No entry: of a transaction that a power cut discarded.
    Blank,
    /// Holds an original block.
    Valid(u32),
    /// Held one: its invalid entry goes when it is filled.
    Hole(u32),
}

/// The entries of a partition by transformed block, as both papers sort them.
#[derive(Debug)]
struct Side {
    partition: usize,
    start: u32,
    slots: Vec<Slot>,
}

impl Side {
    fn new(areas: &Areas, tables: &Tables, partition: usize) -> Self {
        assert!(tables.list[partition].is_here(), "table {partition} is not in memory");
        let range = areas.partition(partition);
        let mut slots = vec![Slot::Blank; index(range.end - range.start)];
        for entry in tables.list[partition].table.iter() {
            let slot = if entry.invalid { Slot::Hole } else { Slot::Valid };
            slots[index(entry.to.raw() - range.start)] = slot(entry.lba);
        }
        Self { partition, start: range.start, slots }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Until a transaction is in the tables.
    Wait(u64),
    Move,
    /// Until the moves are durable.
    Settle(u64),
    /// Until the tables have no entries of what becomes free.
    Free,
    /// Until there were so many checkpoints.
    Checkpoint(u64),
    /// Until so many TRIMs are over.
    Trim(usize),
}

/// A block on its way into a hole.
#[derive(Clone, Copy, Debug)]
struct Move {
    lba: u32,
    from: u32,
    to: u32,
    stale: Option<u32>,
    copied: bool,
}

#[derive(Debug)]
pub(super) struct Job {
    scope: Scope,
    /// What is cleaned, ascending.
    pieces: Vec<Range<u32>>,
    phase: Phase,
    /// The next block that may be a hole.
    head: u32,
    /// No block of `pieces` from here on is valid, but for those in `moves` and below `floor`.
    tail: u32,
    /// Behind the last block that could not be read.
    floor: u32,
    /// Holes whose copy was dropped.
    returned: Vec<(u32, Option<u32>)>,
    sides: [Option<Side>; 2],
    moves: Vec<Option<Move>>,
    moved: bool,
    /// Partitions with blocks that become free, whose tables were not cleared of them.
    to_free: Vec<usize>,
}

impl Job {
    /// Tables that it looks at.
    fn tables(&self, areas: &Areas) -> Vec<usize> {
        let ends = [self.at_or_after(self.head), self.before(self.tail)];
        let moves = self.moves.iter().flatten().map(|one| one.from);
        let blocks = ends.into_iter().flatten().chain(moves);
        blocks.map(|at| areas.partition_of(at)).chain(self.to_free.last().copied()).collect()
    }

    /// Bytes of the arrays that it looks at.
    pub(super) fn bytes(&self) -> u64 {
        let slots: usize = self.sides.iter().flatten().map(|side| side.slots.capacity()).sum();
        u64_from(slots * size_of::<Slot>())
    }

    /// The first block from `at` on that is cleaned.
    fn at_or_after(&self, at: u32) -> Option<u32> {
        self.pieces.iter().find(|piece| at < piece.end).map(|piece| at.max(piece.start))
    }

    /// The last block before `at` that is cleaned.
    fn before(&self, at: u32) -> Option<u32> {
        let piece = self.pieces.iter().rev().find(|piece| piece.start < at)?;
        Some(at.min(piece.end) - 1)
    }

    fn slot(&mut self, (areas, tables): (&Areas, &Tables), which: usize, at: u32) -> Slot {
        let partition = areas.partition_of(at);
        if self.sides[which].as_ref().is_none_or(|side| side.partition != partition) {
            self.sides[which] = Some(Side::new(areas, tables, partition));
        }
        let side = self.sides[which].as_ref();
        side.map_or(Slot::Blank, |side| side.slots[index(at - side.start)])
    }

    /// The next hole before the tail.
    fn next_hole(&mut self, at: (&Areas, &Tables)) -> Option<(u32, Option<u32>)> {
        let tail = self.tail;
        if let Some(place) = self.returned.iter().position(|(hole, _)| *hole < tail) {
            return Some(self.returned.swap_remove(place));
        }
        while let Some(hole) = self.at_or_after(self.head).filter(|hole| *hole < tail) {
            self.head = hole;
            if !at.1.list[at.0.partition_of(hole)].is_here() {
                return None;
            }
            self.head = hole + 1;
            match self.slot(at, 0, hole) {
                Slot::Valid(_) => {}
                Slot::Blank => return Some((hole, None)),
                Slot::Hole(lba) => return Some((hole, Some(lba))),
            }
        }
        None
    }
}

impl PartitionedVolume {
    pub(super) fn step_cleaner(&mut self) {
        if self.frozen.is_some() || self.checkpoint.closing {
            return;
        }
        if self.job.is_none() && !self.checkpoint.wanted && self.checkpoint.work.is_none() {
            self.choose();
        }
        let Some(mut job) = self.job.take() else { return };
        match job.phase {
            Phase::Wait(seq) if self.journal.durable >= seq => self.begin_moves(&mut job),
            Phase::Settle(seq) if self.journal.durable >= seq => self.settle(&mut job),
            Phase::Free if self.stage == Stage::Idle => self.free(&mut job),
            Phase::Checkpoint(count) if self.stats.checkpoints >= count => self.trim(&mut job),
            Phase::Trim(0) => return self.end_job(&job),
            Phase::Move => self.step_moves(&mut job),
            Phase::Wait(_)
            | Phase::Settle(_)
            | Phase::Free
            | Phase::Checkpoint(_)
            | Phase::Trim(_) => {}
        }
        self.job = Some(job);
    }

    /// Begins to clean if the mode wants to.
    fn choose(&mut self) {
        let most = u64::from(onefold_volume::REQUEST_BLOCKS_MAX);
        let short = self.stalled.is_some() && self.regions.blocks() < most;
        let situation = Situation {
            free_blocks: self.regions.blocks(),
            free_after_cleaning: self.free_after_cleaning,
            free_wanted: floor_u64(self.options.free_share * float(self.areas.data_blocks())),
            left: self.left.pop_front(),
            wanted: self.want_cleaning || short,
            current: self.current,
            clean_share: self.options.clean_share,
            counts: &self.tables.counts(),
            holes_left: &self.tables.list.iter().map(|one| one.holes_left).collect::<Vec<_>>(),
        };
        let Some(scope) = (self.areas.rules().choose)(&situation) else { return };
        self.want_cleaning = false;
        if let Scope::Partition(number) = scope {
            // Writes go to another partition.
            self.held = self.regions.withdraw(&self.areas.partition(number));
        }
        let pieces = self.written(scope);
        self.journal.close();
        self.job = Some(Job {
            scope,
            head: pieces.first().map_or(0, |piece| piece.start),
            tail: pieces.last().map_or(0, |piece| piece.end),
            pieces,
            phase: Phase::Wait(self.journal.last()),
            floor: 0,
            returned: Vec::new(),
            sides: [None, None],
            moves: Vec::new(),
            moved: false,
            to_free: Vec::new(),
        });
    }

    /// What is no free space, ascending.
    fn written(&self, scope: Scope) -> Vec<Range<u32>> {
        let mut pieces: Vec<_> = self.areas.data().into();
        if let Scope::Partition(number) = scope {
            let all = self.areas.partition(number);
            for piece in &mut pieces {
                *piece = piece.start.max(all.start)..piece.end.min(all.end);
            }
        }
        for free in self.regions.pieces().chain(&self.held) {
            let outside = |piece: Range<u32>| {
                let (start, end) =
                    (free.start.clamp(piece.start, piece.end.max(piece.start)), free.end);
                [piece.start..start, end.max(piece.start)..piece.end]
            };
            if !free.is_empty() {
                pieces = pieces
                    .into_iter()
                    .filter(|piece| !piece.is_empty())
                    .flat_map(outside)
                    .collect();
            }
        }
        pieces.retain(|piece| !piece.is_empty());
        pieces
    }

    fn begin_moves(&mut self, job: &mut Job) {
        if let Scope::Partition(number) = job.scope
            && self.areas.rules().temporary_table
        {
            let partition = &mut self.tables.list[number];
            partition.temporary = Some(partition.table.clone());
            self.measure();
        }
        job.phase = Phase::Move;
        self.step_moves(job);
    }

    /// Tables that the job under way looks at.
    pub(super) fn job_tables(&self) -> Vec<usize> {
        self.job.as_ref().map_or_else(Vec::new, |job| job.tables(&self.areas))
    }

    /// A table that the job looks at and that is not in memory.
    fn missing_table(&self, job: &Job) -> Option<usize> {
        job.tables(&self.areas).into_iter().find(|number| !self.tables.list[*number].is_here())
    }

    /// Commits what was copied and begins more.
    fn step_moves(&mut self, job: &mut Job) {
        if let Some(number) = self.missing_table(job) {
            return self.load(number);
        }
        for number in 0..job.moves.len() {
            if let Some(one) = job.moves[number].filter(|one| one.copied) {
                if !self.is_current(one.lba, one.from) {
                    self.stats.clean_wasted += 1;
                    job.returned.push((one.to, one.stale));
                } else if self.push_move(one.lba, one.from, one.to, one.stale) {
                    job.moved = true;
                } else {
                    return;
                }
                job.moves[number] = None;
            }
        }
        while job.moves.iter().flatten().count() < DEPTH {
            let Some(one) = self.next_move(job) else { break };
            let number = job.moves.iter().position(Option::is_none).unwrap_or(job.moves.len());
            if number == job.moves.len() {
                job.moves.push(None);
            }
            job.moves[number] = Some(one);
            self.stats.clean_read += 1;
            let what = (IoKind::Read, Purpose::MoveRead(number));
            self.ios.ask(what, one.from, 1, Buffer::default());
        }
        if job.moves.iter().all(Option::is_none) && self.missing_table(job).is_none() {
            self.journal.close();
            job.phase = Phase::Settle(self.journal.last());
        }
    }

    /// The last valid block and the first hole before it.
    fn next_move(&self, job: &mut Job) -> Option<Move> {
        let at = (&self.areas, &self.tables);
        loop {
            if self.missing_table(job).is_some() {
                return None;
            }
            // What lies before the head is filled, whatever the sides still say.
            let end = job.floor.max(job.head);
            let from = job.before(job.tail).filter(|from| *from >= end)?;
            let Slot::Valid(lba) = job.slot(at, 1, from) else {
                job.tail = from;
                continue;
            };
            if !self.is_current(lba, from) {
                job.tail = from;
                continue;
            }
            let (to, stale) = {
                job.tail = from;
                let hole = job.next_hole(at);
                if hole.is_none() {
                    job.tail = from + 1;
                }
                hole?
            };
            return Some(Move { lba, from, to, stale, copied: false });
        }
    }

    pub(super) fn move_read_over(&mut self, number: usize, buffer: Buffer, failed: bool) {
        let Some(job) = &mut self.job else { return };
        let Some(one) = job.moves.get(number).copied().flatten() else { return };
        if failed {
            // It stays where it is, and so does what lies before it.
            self.stats.crc_errors += 1;
            job.floor = job.floor.max(one.from + 1);
            job.moves[number] = None;
            return;
        }
        self.stats.count(Sent::Cleaning, 1);
        self.ios.ask((IoKind::Write, Purpose::MoveWrite(number)), one.to, 1, buffer);
    }

    pub(super) fn move_write_over(&mut self, number: usize, failed: bool) {
        if failed {
            return self.freeze(Frozen::Writes);
        }
        let Some(job) = &mut self.job else { return };
        if let Some(one) = job.moves.get_mut(number).and_then(Option::as_mut) {
            one.copied = true;
        }
    }
}
