//! The knobs of the log-structured merge tree: specification language and limits.

use std::fmt::{self, Write as _};

use onefold_units::convert::{float, floor_u64};

use crate::workload::knobs::gib;
use crate::workload::values::show_size;

const LOAD_GIB: f64 = 4092.7;
const RUN_GIB: f64 = 1665.0;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const PAGE: u64 = 4 * KIB;

/// What the store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LsmPhase {
    /// Puts of new keys: `lsm-load`.
    Load,
    /// Updates and gets of a loaded store: `lsm-run`.
    Run,
}

impl LsmPhase {
    /// Both phases.
    pub const ALL: [Self; 2] = [Self::Load, Self::Run];

    /// The word of the specification language.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Load => "lsm-load",
            Self::Run => "lsm-run",
        }
    }
}

/// When the device hears of deleted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discard {
    /// At once.
    Online,
    /// When enough has been deleted; until then the space is not used again.
    Delayed,
    /// Never.
    None,
}

impl Discard {
    pub(super) const WORDS: [(&'static str, Self); 3] =
        [("online", Self::Online), ("delayed", Self::Delayed), ("none", Self::None)];
}

/// Sizes of point reads: from, to and the weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GetSize {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) weight: u32,
}

const GET_SIZES: [GetSize; 3] = [
    GetSize { from: 1, to: 1, weight: 60 },
    GetSize { from: 2, to: 2, weight: 32 },
    GetSize { from: 4, to: 31, weight: 8 },
];

/// A checked `lsm-load` or `lsm-run` specification; sizes in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Lsm {
    pub(super) phase: LsmPhase,
    pub(in crate::workload) bytes: u64,
    pub(super) warmup: u64,
    pub(super) space: u64,
    pub(super) align: u64,
    pub(super) max_req: u64,
    pub(super) memtable: u64,
    pub(super) file: u64,
    pub(super) shorten: u64,
    pub(super) l0_trigger: u64,
    pub(super) l1: u64,
    pub(super) fanout: u64,
    pub(super) capacity: f64,
    pub(super) new_share: f64,
    pub(super) readahead: u64,
    pub(super) cache_age: u64,
    pub(super) absorb: f64,
    pub(super) gets: u64,
    pub(super) get_pages: Vec<GetSize>,
    pub(super) repeat: f64,
    pub(super) recent: u64,
    /// Exponent of the popularity of keys; `None`: all alike.
    pub(super) zipf: Option<f64>,
    pub(super) cascade: bool,
    pub(super) discard: Discard,
    pub(super) trim_max: u64,
    pub(super) trim_batch: u64,
    pub(super) recycles_wal: bool,
    pub(super) drops_wal_first: bool,
    pub(super) wal_burst: (u32, u32),
    pub(super) journal: u64,
    pub(super) commit_file: u64,
    pub(super) commit_flush: u64,
    pub(super) commit_compaction: u64,
    pub(super) hot_pages: u64,
    pub(super) seed: Option<u64>,
}

impl Lsm {
    /// The defaults of a phase.
    pub(in crate::workload) fn new(phase: LsmPhase) -> Self {
        let run = phase == LsmPhase::Run;
        Self {
            phase,
            bytes: gib(if run { RUN_GIB } else { LOAD_GIB }),
            warmup: if run { 200 * GIB } else { 0 },
            space: 282 * GIB,
            align: MIB,
            max_req: 512 * KIB,
            memtable: 64 * MIB,
            file: 64 * MIB,
            shorten: 299,
            l0_trigger: 4,
            l1: 256 * MIB,
            fanout: 10,
            capacity: 0.8,
            new_share: if run { 0.05 } else { 1.0 },
            readahead: 2 * MIB,
            cache_age: 2 * GIB,
            absorb: 0.45,
            gets: if run { 25_600 } else { 0 },
            get_pages: GET_SIZES.to_vec(),
            repeat: 0.03,
            recent: 256,
            zipf: None,
            cascade: false,
            discard: Discard::Online,
            trim_max: 64 * MIB,
            trim_batch: GIB,
            recycles_wal: false,
            drops_wal_first: false,
            wal_burst: (64, 511),
            journal: 32_000,
            commit_file: 4,
            commit_flush: 6,
            commit_compaction: 8,
            hot_pages: 64,
            seed: None,
        }
    }

    /// Metadata pages and journal, in front of the files.
    pub(super) fn reserved(&self) -> u64 {
        ((self.hot_pages + self.journal) * PAGE).next_multiple_of(self.align)
    }

    /// Bytes of files at which the store counts as full and puts become updates.
    pub(super) fn full_at(&self) -> u64 {
        floor_u64(float(self.space.saturating_sub(self.reserved())) * self.capacity)
    }

    /// The phase.
    #[must_use]
    pub const fn phase(&self) -> LsmPhase {
        self.phase
    }

    /// Bytes read and written after the warm-up.
    #[must_use]
    pub const fn traffic_bytes(&self) -> u64 {
        self.bytes
    }

    /// The size of device the store is made for, in bytes.
    #[must_use]
    pub const fn natural_bytes(&self) -> u64 {
        self.space
    }

    /// The specification with every default written out; it parses to an equal workload.
    #[must_use]
    pub fn canonical(&self) -> String {
        self.to_string()
    }
}

/// Nothing but the phase decides which keys apply: a load has no gets.
impl fmt::Display for Lsm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let run = self.phase == LsmPhase::Run;
        f.write_str(self.phase.name())?;
        let mut size = |key: &str, bytes: u64| write!(f, ",{key}={}", show_size(bytes));
        size("bytes", self.bytes)?;
        if run {
            size("warmup", self.warmup)?;
        }
        size("space", self.space)?;
        size("align", self.align)?;
        size("max_req", self.max_req)?;
        size("memtable", self.memtable)?;
        size("file", self.file)?;
        size("l1", self.l1)?;
        size("readahead", self.readahead)?;
        size("cache_age", self.cache_age)?;
        size("trim_max", self.trim_max)?;
        size("trim_batch", self.trim_batch)?;
        write!(f, ",shorten={},l0_trigger={}", self.shorten, self.l0_trigger)?;
        write!(f, ",fanout={},capacity={}", self.fanout, self.capacity)?;
        write!(f, ",absorb={}", self.absorb)?;
        if run {
            self.write_gets(f)?;
        }
        let discard = Discard::WORDS.iter().find(|(_, kind)| *kind == self.discard);
        write!(f, ",discard={}", discard.map_or("online", |(word, _)| word))?;
        write!(f, ",wal={}", if self.recycles_wal { "recycle" } else { "delete" })?;
        write!(f, ",wal_end={}", if self.drops_wal_first { "full" } else { "flushed" })?;
        write!(f, ",wal_burst={}-{}", self.wal_burst.0, self.wal_burst.1)?;
        write!(f, ",journal={},hot_pages={}", self.journal, self.hot_pages)?;
        write!(f, ",commit_file={},commit_flush={}", self.commit_file, self.commit_flush)?;
        write!(f, ",commit_compaction={}", self.commit_compaction)?;
        match self.seed {
            Some(seed) => write!(f, ",seed={seed}"),
            None => Ok(()),
        }
    }
}

impl Lsm {
    fn write_gets(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, ",new_share={},gets={},get_pages=", self.new_share, self.gets)?;
        for (at, size) in self.get_pages.iter().enumerate() {
            if at > 0 {
                f.write_char('/')?;
            }
            write!(f, "{}-{}:{}", size.from, size.to, size.weight)?;
        }
        write!(f, ",repeat={},recent={}", self.repeat, self.recent)?;
        match self.zipf {
            Some(theta) => write!(f, ",keys=zipf:{theta}")?,
            None => f.write_str(",keys=uniform")?,
        }
        write!(f, ",cascade={}", if self.cascade { "on" } else { "off" })
    }
}
