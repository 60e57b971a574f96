//! The keys of `lsm-load` and `lsm-run`, and the limits of their values.

use super::spec::{Discard, GetSize, Lsm, LsmPhase};
use crate::workload::WorkloadError;
use crate::workload::knobs::Knobs;
use crate::workload::values::{Entry, nearest};

/// Every key, in the order of the module's table.
pub(super) const KEYS: [&str; 34] = [
    "bytes",
    "warmup",
    "space",
    "align",
    "max_req",
    "memtable",
    "file",
    "shorten",
    "l0_trigger",
    "l1",
    "fanout",
    "capacity",
    "new_share",
    "readahead",
    "cache_age",
    "absorb",
    "gets",
    "get_pages",
    "repeat",
    "recent",
    "keys",
    "cascade",
    "discard",
    "trim_max",
    "trim_batch",
    "wal",
    "wal_end",
    "wal_burst",
    "journal",
    "commit_file",
    "commit_flush",
    "commit_compaction",
    "hot_pages",
    "seed",
];

/// Keys that mean something only where there are gets and updates.
const RUN_ONLY: [&str; 8] =
    ["warmup", "new_share", "gets", "get_pages", "repeat", "recent", "keys", "cascade"];

const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
const FILE: &str = "whole pages of 4KiB, 64KiB to 1GiB";
const UP_TO_GIB: &str = "whole pages of 4KiB, at least one, up to 1GiB";
const UP_TO_TIB: &str = "whole pages of 4KiB up to 1TiB";
const COMMIT: &str = "1 to 1000 pages";
const MAX_GET_PAGES: u32 = 16_384;
const MAX_WEIGHT: u32 = 1_000_000;
const MAX_SIZES: usize = 64;

impl Lsm {
    /// Reads a specification such as `lsm-load,bytes=4TiB,max_req=1MiB`.
    ///
    /// ```
    /// use onefold_trace::workload::Lsm;
    ///
    /// let load = Lsm::parse("lsm-load,space=16GiB,capacity=0.6,bytes=1GiB").unwrap();
    /// assert_eq!(Lsm::parse(&load.canonical()).unwrap(), load);
    /// assert!(load.instantiate(16 << 30, 42).unwrap().count() > 2000);
    ///
    /// let error = Lsm::parse("lsm-load,spaces=1GiB").unwrap_err();
    /// assert!(error.to_string().starts_with("unknown workload key `spaces`, did you mean"));
    /// ```
    pub fn parse(spec: &str) -> Result<Self, WorkloadError> {
        let mut words = spec.split(',').map(str::trim);
        let word = words.next().filter(|word| !word.is_empty()).ok_or(WorkloadError::Empty)?;
        let phase = LsmPhase::ALL.into_iter().find(|phase| phase.name() == word);
        let phase = phase.ok_or_else(|| WorkloadError::UnknownGenerator {
            found: word.to_owned(),
            nearest: nearest(word, &LsmPhase::ALL.map(LsmPhase::name)),
            known: "lsm-load or lsm-run".to_owned(),
        })?;
        let keys = Knobs::collect(words, &KEYS)?;
        if let Some(key) = RUN_ONLY.into_iter().find(|key| keys.find(key).is_some())
            && phase == LsmPhase::Load
        {
            return Err(WorkloadError::Needs { key, needs: "lsm-run" });
        }
        let mut lsm = Self::new(phase);
        lsm.set_place(&keys)?;
        lsm.set_tree(&keys)?;
        lsm.set_reads(&keys)?;
        lsm.set_deletes(&keys)?;
        lsm.set_logs(&keys)?;
        lsm.seed = keys.seed()?;
        lsm.refuse_too_little_space()
    }

    fn set_place(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        let up_to_8_tib = "whole pages of 4KiB, 1MiB to 8TiB";
        keys.size("bytes", &mut self.bytes, PAGE..=1 << 60, "whole pages of 4KiB up to 1EiB")?;
        keys.size("warmup", &mut self.warmup, 0..=8 * TIB, "whole pages of 4KiB up to 8TiB")?;
        keys.size("space", &mut self.space, MIB..=8 * TIB, up_to_8_tib)?;
        keys.size("align", &mut self.align, PAGE..=GIB, UP_TO_GIB)?;
        keys.size("max_req", &mut self.max_req, PAGE..=GIB, UP_TO_GIB)
    }

    fn set_tree(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        let up_to_1_tib = "whole pages of 4KiB, 64KiB to 1TiB";
        keys.size("memtable", &mut self.memtable, 16 * PAGE..=GIB, FILE)?;
        keys.size("file", &mut self.file, 16 * PAGE..=GIB, FILE)?;
        keys.count("shorten", &mut self.shorten, 0..=100_000, "0 to 100000 pages")?;
        keys.count("l0_trigger", &mut self.l0_trigger, 1..=64, "1 to 64 files")?;
        keys.size("l1", &mut self.l1, 16 * PAGE..=TIB, up_to_1_tib)?;
        keys.count("fanout", &mut self.fanout, 2..=100, "2 to 100")?;
        keys.real("capacity", &mut self.capacity, 0.01..=0.95, "a share from 0.01 to 0.95")?;
        keys.share("new_share", &mut self.new_share)
    }

    fn set_reads(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        keys.size("readahead", &mut self.readahead, PAGE..=GIB, UP_TO_GIB)?;
        keys.size("cache_age", &mut self.cache_age, 0..=TIB, UP_TO_TIB)?;
        keys.share("absorb", &mut self.absorb)?;
        keys.count("gets", &mut self.gets, 0..=1_000_000_000, "at most 1G per memtable")?;
        if let Some(entry) = keys.find("get_pages") {
            self.get_pages = get_sizes(entry)?;
        }
        keys.share("repeat", &mut self.repeat)?;
        keys.count("recent", &mut self.recent, 1..=1_000_000, "1 to 1000000 gets")?;
        if let Some(entry) = keys.find("keys") {
            let expected = "uniform, or zipf:THETA with an exponent from 0 to 10";
            let theta = || popularity(entry.value).ok_or_else(|| entry.malformed(expected));
            self.zipf = if entry.value == "uniform" { None } else { Some(theta()?) };
        }
        let words = [("off", false), ("on", true)];
        keys.choice("cascade", &mut self.cascade, words, "on or off")
    }

    fn set_deletes(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        let discards = "online, delayed or none";
        keys.choice("discard", &mut self.discard, Discard::WORDS, discards)?;
        keys.size("trim_max", &mut self.trim_max, PAGE..=GIB, UP_TO_GIB)?;
        keys.size("trim_batch", &mut self.trim_batch, PAGE..=TIB, UP_TO_TIB)
    }

    fn set_logs(&mut self, keys: &Knobs<'_>) -> Result<(), WorkloadError> {
        let wal = [("delete", false), ("recycle", true)];
        keys.choice("wal", &mut self.recycles_wal, wal, "delete or recycle")?;
        let ends = [("flushed", false), ("full", true)];
        keys.choice("wal_end", &mut self.drops_wal_first, ends, "flushed or full")?;
        if let Some(entry) = keys.find("wal_burst") {
            let expected = "a range of pages such as 64-511";
            self.wal_burst = pages(entry.value).ok_or_else(|| entry.malformed(expected))?;
        }
        keys.count("journal", &mut self.journal, 1000..=1_000_000, "1000 to 1000000 pages")?;
        keys.count("commit_file", &mut self.commit_file, 1..=1000, COMMIT)?;
        keys.count("commit_flush", &mut self.commit_flush, 1..=1000, COMMIT)?;
        keys.count("commit_compaction", &mut self.commit_compaction, 1..=1000, COMMIT)?;
        keys.count("hot_pages", &mut self.hot_pages, 1..=1_000_000, "1 to 1000000 pages")
    }

    /// Beyond the capacity there has to be room for what the levels above the last hold a second
    /// time, for the outputs of a merge beside its inputs, for the log, for what waits to be
    /// trimmed, and for the ends of extents.
    fn refuse_too_little_space(self) -> Result<Self, WorkloadError> {
        if self.align > self.file.min(self.memtable) {
            return Err(WorkloadError::AlignTooLarge { align: self.align });
        }
        let full = self.full_at();
        let level_0 = self.l0_trigger * self.memtable;
        let merge = ((self.fanout + 2) * self.file).max(level_0 + self.l1.min(full));
        let mut upper = level_0;
        let mut limit = self.l1;
        while limit <= full + merge {
            upper += limit + self.file;
            limit *= self.fanout;
        }
        let waiting = if self.discard == Discard::Delayed { self.trim_batch + merge } else { 0 };
        // Files are at least half full on average.
        let ends = full / self.file * self.align;
        let more = upper + merge + waiting + ends + 2 * self.memtable;
        let needed = self.reserved() + full + more;
        if needed <= self.space {
            Ok(self)
        } else {
            Err(WorkloadError::SpaceTooSmall { space: self.space, needed })
        }
    }
}

/// Sizes of gets such as `1:60/2:32/4-31:8`.
fn get_sizes(entry: Entry<'_>) -> Result<Vec<GetSize>, WorkloadError> {
    let expected = "pages with whole weights such as 1:60/2:32/4-31:8";
    let size = |part: &str| {
        let (range, weight) = part.split_once(':')?;
        let (from, to) = pages(range)?;
        let weight: u32 = weight.trim().parse().ok()?;
        (1..=MAX_WEIGHT).contains(&weight).then_some(GetSize { from, to, weight })
    };
    let sizes: Option<Vec<_>> = entry.value.split('/').map(size).collect();
    sizes.filter(|sizes| sizes.len() <= MAX_SIZES).ok_or_else(|| entry.malformed(expected))
}

/// The exponent of `zipf:0.99`.
fn popularity(text: &str) -> Option<f64> {
    let theta = onefold_units::numbers::real(text.strip_prefix("zipf:")?)?;
    (0.0..=10.0).contains(&theta).then_some(theta)
}

/// A number of pages or a range of them.
fn pages(text: &str) -> Option<(u32, u32)> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let (from, to): (u32, u32) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (1 <= from && from <= to && to <= MAX_GET_PAGES).then_some((from, to))
}
