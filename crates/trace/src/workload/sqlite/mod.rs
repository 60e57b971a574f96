//! `SQLite` in WAL mode on a device without a file system, as `db_bench` fills it (Wu 2022, sec. V-C).
//!
//! It models the layout of Onefold's extension for `SQLite` (docs/write-once.md), with the WAL at the start of the device
//! and the database behind it, and the requests that reach the device under `synchronous=NORMAL`:
//!
//! - A value is a transaction of its own: `REPLACE` into a table of a key of 16 B and the value, WITHOUT ROWID, with pages of 4
//!   KiB. It changes page 1, the overflow pages of the value, and the pages of the B-tree that its cell goes to.
//! - The *aligned WAL*: block 0 is its header, then there are groups of one block with 170 frame headers and 170 pages. The
//!   pages of a transaction are one write, or two where a group ends. Nothing is synchronised at commits, so that the host
//!   writes a block of frame headers once: when it is full, or at the checkpoint.
//! - A *checkpoint* follows the first commit with `frames` frames in the WAL: a flush, each page that is in the WAL goes to the database
//!   from its last frame, in the order of the database, and a flush. Pages that are neighbours in both are one request.
//!   `checkpoint=write` writes them a second time, as `SQLite` does; `checkpoint=remap` remaps them. Then the WAL begins at its start.
//!
//! Pages are never read: `SQLite` and the host have them in memory. Left out: the index of the WAL, which is in memory, too, and
//! pages that leave the cache of `SQLite` before their commit.
//!
//! `like-sqlite-fillrandom` draws keys of `0..values` with equal probability, so that 37 % of them never come and others are
//! replaced, in the overflow pages that they have. `like-sqlite-fillseq` takes them in order.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `values` | `100k` | values that are put, and the number of possible keys |
//! | `value` | `16KiB` | size of a value |
//! | `frames` | `1000` | frames in the WAL that make a commit checkpoint |
//! | `checkpoint` | `write` | `write` or `remap` |
//! | `qd` | `32` | requests under way |
//! | `seed` | of the run | of the keys |

mod generate;
mod tree;

#[cfg(test)]
mod tests;

use std::fmt;

use onefold_units::PAGE_BYTES;

use super::WorkloadError;
use super::knobs::Knobs;
use super::spec::Pacing;
use super::values::show_size;

pub use generate::SqliteGenerator;

const KEYS: [&str; 6] = ["values", "value", "frames", "checkpoint", "qd", "seed"];

/// Frame headers of a block, and so the pages of a group of the WAL.
const GROUP: u64 = 170;
/// Most pages that a transaction changes beside those of its value: every page of a path with its siblings, several times over.
const TREE_MOST: u64 = 64;
const QUEUE_MOST: u64 = 1024;
/// What a database can take of a device: its pages have 32 bits.
const DEVICE_MOST: u64 = PAGE_BYTES << 32;
/// Bytes of a key, and of the header of a record of a key and a value of up to 1 MiB.
const KEY: u64 = 16;
const RECORD_HEADER: u64 = 5;
/// What a cell of an index B-tree with pages of 4 KiB keeps of its record, at least and at most (file format of `SQLite`, 1.6), and bytes of a
/// record in an overflow page.
const LOCAL_LEAST: u64 = 489;
const LOCAL_MOST: u64 = 1002;
const OVERFLOW: u64 = PAGE_BYTES - 4;
/// Of a cell: pointer, child, length of the record, first overflow page; and the header of a page.
const CELL: u64 = 2 + 4 + 3 + 4;
const PAGE_HEADER: u64 = 12;

/// In which order keys come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqliteFill {
    /// Each drawn among all.
    Random,
    /// Each once, ascending.
    Sequential,
}

impl SqliteFill {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Random, Self::Sequential];

    /// The word of the specification language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Random => "like-sqlite-fillrandom",
            Self::Sequential => "like-sqlite-fillseq",
        }
    }

    /// The order of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fill| fill.name() == name)
    }

    /// What it is, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Random => {
                "SQLite in WAL mode puts values at random keys; checkpoints write or remap"
            }
            Self::Sequential => {
                "SQLite in WAL mode puts values at ascending keys; checkpoints write or remap"
            }
        }
    }
}

/// How a checkpoint brings pages into the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Checkpoint {
    #[default]
    Write,
    Remap,
}

impl Checkpoint {
    const WORDS: [(&'static str, Self); 2] = [("write", Self::Write), ("remap", Self::Remap)];

    fn name(self) -> &'static str {
        Self::WORDS[usize::from(self == Self::Remap)].0
    }
}

/// A database that is filled, independent of the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteWorkload {
    fill: SqliteFill,
    values: u64,
    value_bytes: u64,
    frames: u64,
    checkpoint: Checkpoint,
    depth: u64,
    seed: Option<u64>,
}

impl SqliteWorkload {
    /// Reads the keys.
    pub(super) fn parse<'a>(
        fill: SqliteFill,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WorkloadError> {
        let knobs = Knobs::collect(words, &KEYS)?;
        let mut found = Self {
            fill,
            values: 100_000,
            value_bytes: 16 << 10,
            frames: 1000,
            checkpoint: Checkpoint::default(),
            depth: 32,
            seed: knobs.seed()?,
        };
        knobs.count("values", &mut found.values, 1..=1 << 30, "1 to 1073741824")?;
        let sizes = PAGE_BYTES..=512 << 10;
        knobs.size("value", &mut found.value_bytes, sizes, "a multiple of 4KiB, at most 512KiB")?;
        knobs.count("frames", &mut found.frames, 1..=1_000_000, "1 to 1000000")?;
        knobs.count("qd", &mut found.depth, 1..=QUEUE_MOST, "1 to 1024")?;
        let choices = "write or remap";
        knobs.choice("checkpoint", &mut found.checkpoint, Checkpoint::WORDS, choices)?;
        Ok(found)
    }

    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<SqliteGenerator, WorkloadError> {
        let pages = self.wal_pages() + self.database_pages_most();
        let (needed, range) = (pages * PAGE_BYTES, device_bytes.min(DEVICE_MOST));
        if needed > range {
            return Err(WorkloadError::FootprintTooLarge { range, needed });
        }
        Ok(SqliteGenerator::new(self, self.seed.unwrap_or(seed)))
    }

    /// Whether checkpoints are remaps.
    pub(super) const fn has_remaps(&self) -> bool {
        matches!(self.checkpoint, Checkpoint::Remap)
    }

    /// Closed loop.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        Pacing::Closed { depth: onefold_units::convert::narrow(self.depth) }
    }

    /// Bytes of a record that its cell keeps.
    const fn local_bytes(&self) -> u64 {
        let record = RECORD_HEADER + KEY + self.value_bytes;
        let local = LOCAL_LEAST + (record - LOCAL_LEAST) % OVERFLOW;
        if local <= LOCAL_MOST { local } else { LOCAL_LEAST }
    }

    /// Overflow pages of a value.
    const fn overflow_pages(&self) -> u64 {
        (RECORD_HEADER + KEY + self.value_bytes - self.local_bytes()).div_ceil(OVERFLOW)
    }

    /// Cells of a page of the tree; a leaf counts as an inner page does.
    const fn cells_most(&self) -> u64 {
        (PAGE_BYTES - PAGE_HEADER) / (CELL + self.local_bytes())
    }

    /// Pages that the WAL takes: header, and groups for the frames of a checkpoint and of one more transaction.
    const fn wal_pages(&self) -> u64 {
        let frames = self.frames + self.overflow_pages() + TREE_MOST;
        1 + frames.div_ceil(GROUP) * (GROUP + 1)
    }

    /// Pages of the database at most: pages of the tree are half full or more, but for the path to the last one.
    const fn database_pages_most(&self) -> u64 {
        let tree = self.values.div_ceil(self.cells_most() / 2) + TREE_MOST;
        2 + self.values * self.overflow_pages() + tree
    }
}

impl fmt::Display for SqliteWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { values, frames, depth, .. } = self;
        let (name, value) = (self.fill.name(), show_size(self.value_bytes));
        let checkpoint = self.checkpoint.name();
        write!(f, "{name},values={values},value={value},frames={frames}")?;
        write!(f, ",checkpoint={checkpoint},qd={depth}")?;
        self.seed.map_or(Ok(()), |seed| write!(f, ",seed={seed}"))
    }
}
