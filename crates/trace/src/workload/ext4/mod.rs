//! ext4 with one file that a pattern writes: what the file system asks of its device in `data=ordered` and `data=journal`
//! (Choi 2022, sec. V; zoned.md, sections 9 and 10).
//!
//! A pattern makes the requests of an application to the file; the file system adds what they cost, as a journal of jbd2 does:
//!
//! - *Ordered*: data goes to its place at once, the blocks of metadata that it changes join the running transaction.
//!   *Journal*: data joins it, too.
//! - A transaction is *committed* after `commit` pages were written, by a flush of the application, or when it has a quarter of
//!   the journal (jbd2's limit): descriptor blocks with the tags of 254 blocks each, the blocks, a flush, and the commit
//!   block, forced. They go round in the journal, one after the other.
//! - It is *checkpointed* when the journal has no room for another one, or six commits later (write-back after 30 s, a commit
//!   each 5 s): blocks that no newer transaction has are written to their places; then a flush, and
//!   the journal's superblock, forced.
//! - Metadata is the inode; a `fill=false` file is sparse at first, and each page that is written for the first time changes a
//!   block bitmap, a group descriptor block, and a leaf of the extent tree, of which there is one for each 220 pages written (a
//!   leaf has room for 340 extents, and one that is split is half full).
//!
//! Neighbouring blocks are one request of up to 512 KiB, as the block layer merges them. Left out: the page cache's own
//! choice of what to write back, reads of metadata, fast commits. Times are those of the pattern.
//!
//! On the device: metadata in the first 32 MiB, then the file, which goes on behind the journal where it meets it.
//!
//! # Keys
//!
//! | key | default | meaning |
//! |---|---|---|
//! | `io` | `randwrite` | the application: `randwrite`, `write` or `randrw` |
//! | `file` | `640MiB` | size of the file; `range` is within it |
//! | `fill` | `true` | the file is written once in order first, in 512 KiB; `false`: it is sparse |
//! | `journal`, `journal_at` | `64MiB`, `1792MiB` | size and place of the journal |
//! | `commit` | `4096` | pages written between commits |
//! | `order` | `joined` | in which blocks go to their places: `joined`, as they joined the transaction (jbd2 makes room); `address` (write-back was there before) |
//!
//! and those of the pattern, where `requests`, `bytes` and `drive_writes` count what the application asks for.

mod generate;
mod journal;

#[cfg(test)]
mod tests;

use std::fmt;

use onefold_units::PAGE_BYTES;

use super::Pattern;
use super::WorkloadError;
use super::keys::Keys;
use super::spec::{Pacing, PatternWorkload};
use super::values::{Entry, nearest, show_size};

pub use generate::Ext4Generator;

const OWN: [&str; 7] = ["io", "file", "fill", "journal", "journal_at", "commit", "order"];
/// Its own keys, and those of a pattern that mean something here.
const KEYS: [&str; 22] = [
    "io",
    "file",
    "fill",
    "journal",
    "journal_at",
    "commit",
    "order",
    "bs",
    "align",
    "range",
    "dist",
    "scatter",
    "qd",
    "rate",
    "arrival",
    "requests",
    "bytes",
    "drive_writes",
    "read_share",
    "flush_every",
    "seed",
    "fua_share",
];

/// Metadata lies before it.
const DATA_START: u64 = 32 << 20;
/// mke2fs makes no smaller journal.
const JOURNAL_MIN: u64 = 4 << 20;
const JOURNAL_DEFAULT: u64 = 64 << 20;
/// Where mke2fs put it on the device of zoned.md, section 9.
const JOURNAL_AT_DEFAULT: u64 = 1792 << 20;
const FILE_DEFAULT: u64 = 640 << 20;
/// Largest file and journal: their blocks have 32 bits.
const SIZE_MAX: u64 = 1 << 43;
const COMMIT_DEFAULT: u64 = 4096;

/// In which order blocks of a transaction go to their places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Order {
    /// As they joined it.
    #[default]
    Joined,
    /// By address.
    Address,
}

impl Order {
    const ALL: [Self; 2] = [Self::Joined, Self::Address];

    const fn name(self) -> &'static str {
        match self {
            Self::Joined => "joined",
            Self::Address => "address",
        }
    }
}

/// What goes through the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ext4Mode {
    /// Metadata.
    Ordered,
    /// Data and metadata.
    Journal,
}

impl Ext4Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ordered, Self::Journal];

    /// The word of the specification language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "like-ext4-ordered",
            Self::Journal => "like-ext4-journal",
        }
    }

    /// The mode of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// What it is, in one line.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::Ordered => "a file on ext4, data=ordered: metadata goes through the journal",
            Self::Journal => {
                "a file on ext4, data=journal: everything goes through the journal first"
            }
        }
    }
}

/// A file on ext4, independent of the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Ext4Workload {
    mode: Ext4Mode,
    io: PatternWorkload,
    file_bytes: u64,
    fill: bool,
    journal_bytes: u64,
    journal_at: u64,
    commit_pages: u64,
    order: Order,
}

impl Ext4Workload {
    /// Reads the keys.
    pub(super) fn parse<'a>(
        mode: Ext4Mode,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<Self, WorkloadError> {
        let words: Vec<&str> = words.collect();
        let keys = Keys::collect(words.iter().copied(), &KEYS)?;
        let is_own = |word: &&str| {
            let name = word.split_once('=').map_or(*word, |(name, _)| name);
            OWN.contains(&name.trim())
        };
        let of_pattern = words.iter().copied().filter(|word| !is_own(word));
        let io = PatternWorkload::parse(pattern(&keys)?, of_pattern)?;
        let size = |key, default| keys.find(key).map_or(Ok(default), |entry| pages(&entry));
        let workload = Self {
            mode,
            io,
            file_bytes: size("file", FILE_DEFAULT)?,
            fill: keys.find("fill").map_or(Ok(true), |entry| entry.boolean())?,
            journal_bytes: size("journal", JOURNAL_DEFAULT)?,
            journal_at: size("journal_at", JOURNAL_AT_DEFAULT)?,
            commit_pages: keys
                .find("commit")
                .map_or(Ok(COMMIT_DEFAULT), |entry| entry.positive())?,
            order: order(&keys)?,
        };
        let limits = [
            ("journal", workload.journal_bytes >= JOURNAL_MIN, "4MiB to 8TiB"),
            (
                "journal_at",
                workload.journal_at >= DATA_START,
                "32MiB, where metadata ends, to 8TiB",
            ),
        ];
        for (key, holds, limits) in limits {
            if let Some(entry) = keys.find(key).filter(|_| !holds) {
                return Err(entry.out_of(limits));
            }
        }
        Ok(workload)
    }

    /// Fits the workload to a device of `device_bytes` bytes. `seed` is used unless the
    /// specification has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<Ext4Generator, WorkloadError> {
        let needed = self.end_bytes();
        if needed > device_bytes {
            return Err(WorkloadError::FootprintTooLarge { range: device_bytes, needed });
        }
        Ok(Ext4Generator::new(self, self.io.instantiate(self.file_bytes, seed)?))
    }

    /// First byte after file and journal.
    fn end_bytes(&self) -> u64 {
        let file_end = self.device_byte(self.file_bytes.saturating_sub(1)) + 1;
        file_end.max(self.journal_at + self.journal_bytes)
    }

    /// Where a byte of the file lies.
    const fn device_byte(&self, at: u64) -> u64 {
        let at = DATA_START + at;
        if at < self.journal_at { at } else { at + self.journal_bytes }
    }

    /// Closed loop with its depth, or open loop.
    #[must_use]
    pub const fn pacing(&self) -> Pacing {
        self.io.pacing()
    }
}

fn pattern(keys: &Keys<'_>) -> Result<Pattern, WorkloadError> {
    let Some(entry) = keys.find("io") else { return Ok(Pattern::RandWrite) };
    let known = [Pattern::RandWrite, Pattern::Write, Pattern::RandRw];
    known.into_iter().find(|pattern| pattern.name() == entry.value).ok_or_else(|| {
        WorkloadError::UnknownChoice {
            key: entry.key,
            value: entry.value.to_owned(),
            nearest: nearest(entry.value, &known.map(Pattern::name)),
            choices: "randwrite, write or randrw",
        }
    })
}

fn order(keys: &Keys<'_>) -> Result<Order, WorkloadError> {
    let Some(entry) = keys.find("order") else { return Ok(Order::default()) };
    Order::ALL.into_iter().find(|order| order.name() == entry.value).ok_or_else(|| {
        WorkloadError::UnknownChoice {
            key: entry.key,
            value: entry.value.to_owned(),
            nearest: nearest(entry.value, &Order::ALL.map(Order::name)),
            choices: "joined or address",
        }
    })
}

/// A size of whole pages.
fn pages(entry: &Entry<'_>) -> Result<u64, WorkloadError> {
    let bytes = entry.size(entry.value)?;
    let fits = bytes > 0 && bytes <= SIZE_MAX && bytes.is_multiple_of(PAGE_BYTES);
    if fits { Ok(bytes) } else { Err(entry.out_of("a multiple of 4KiB, at most 8TiB")) }
}

impl fmt::Display for Ext4Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, journal) = (show_size(self.file_bytes), show_size(self.journal_bytes));
        let (at, commit) = (show_size(self.journal_at), self.commit_pages);
        write!(f, "{},file={file},fill={},journal={journal}", self.mode.name(), self.fill)?;
        // The pattern begins with its name.
        write!(f, ",journal_at={at},commit={commit},order={},io={}", self.order.name(), self.io)
    }
}
