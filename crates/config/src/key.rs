//! The one table of configuration keys. Parsing, errors, the reference and the JSON Schema all
//! come from here.

use onefold_ftl::RemapScheme;
use onefold_ssd::Writeback;

use crate::quantity::Measure;
use crate::raw::Raw;
use crate::value::{Kind, Value};

/// One key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// Section and name, such as `ftl.victim`.
    pub(crate) path: &'static str,
    /// What it accepts.
    pub(crate) kind: Kind,
    /// Default, written as for `--set`; empty = none.
    pub(crate) default: &'static str,
    /// What it means.
    pub(crate) meaning: &'static str,
}

impl Key {
    /// The default as a value.
    pub(crate) fn default_value(&self) -> Value {
        // Programmer error: a test parses every default.
        self.kind.parse(&Raw::bare(self.default)).expect("defaults of the key table are valid")
    }

    /// Section and name within it; top-level keys have the section "".
    pub(crate) fn split(&self) -> (&'static str, &'static str) {
        self.path.split_once('.').unwrap_or(("", self.path))
    }
}

const fn key(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default, meaning }
}

const fn count(min: u64, max: u64) -> Kind {
    Kind::Count { min, max }
}

const fn real(min: f64, max: f64) -> Kind {
    Kind::Real { min, max }
}

const fn words(words: &'static [&'static str]) -> Kind {
    Kind::Choice { words, planned: &[] }
}

/// One hour; longer is a slip.
const LONGEST: u64 = 3_600_000_000_000;
const TIMES: Kind = Kind::Times { max: LONGEST };
const TIME: Kind = Kind::Quantity { measure: Measure::Time, min: 0, max: LONGEST };
/// 1 PB/s.
const RATE: Kind = Kind::Quantity { measure: Measure::Rate, min: 0, max: 1_000_000_000_000_000 };
const PAGE_SIZE: Kind = Kind::PowerOfTwo { min: 4096, max: 65_536 };
const fn size(min: u64, max: u64) -> Kind {
    Kind::Quantity { measure: Measure::Size, min, max }
}
/// A tenant may start a year late.
const START: Kind = Kind::Quantity { measure: Measure::Time, min: 0, max: 365 * 24 * LONGEST };

/// Keys whose new value displaces the other's: transfers have a rate or a time, a run has a
/// workload or a trace.
pub(crate) const EXCLUSIVE: [(&str, &str); 2] =
    [("timing.channel", "timing.transfer"), ("workload", "trace")];

/// Sections that a device can be opened with other values of: nothing on its medium depends on them.
pub const CHANGEABLE: [&str; 2] = ["timing", "buffer"];

/// Every key outside `[[tenant]]`, in the order of the canonical form.
pub(crate) const KEYS: &[Key] = &[
    key("name", Kind::Text, "", "Name in results. Default: the preset, or the name of the file."),
    key(
        "workload",
        Kind::Text,
        "",
        "Generated workload, such as \"randwrite,bs=4KiB,qd=32,requests=1M\".",
    ),
    key("trace", Kind::Text, "", "Trace file to replay, relative to the configuration file."),
    key("geometry.channels", count(1, 1024), "8", "Channels of the controller."),
    key("geometry.ways", count(1, 1024), "2", "Dies per channel."),
    key("geometry.planes", count(1, 64), "1", "Planes per die."),
    key("geometry.blocks", count(1, 1 << 24), "256", "Blocks per plane."),
    key("geometry.pages", count(1, 1 << 20), "256", "Flash pages per block."),
    key("geometry.page", PAGE_SIZE, "4KiB", "Size of a flash page."),
    key(
        "geometry.superblock",
        words(&["device", "die"]),
        "die",
        "What is erased together. device: the same block of every die; die: blocks of one die, with one write frontier per die.",
    ),
    key(
        "capacity.logical",
        Kind::Capacity,
        "0.875",
        "Capacity the host sees, as a fraction of the raw capacity or as a size. Rounded down to a mapping unit.",
    ),
    key(
        "capacity.snapshots",
        size(0, 1 << 50),
        "0",
        "Logical capacity for snapshots, which the host does not see. It takes flash as capacity.logical does.",
    ),
    key(
        "namespace.type",
        words(&["block", "zoned"]),
        "block",
        "block: any page can be written; zoned: zones are written from start to end and reset as a whole (NVMe ZNS), simulator only. Keys of [ftl] and [dedup] mean nothing there, and buffer.size is a write cache.",
    ),
    key(
        "namespace.zone_size",
        Kind::PowerOfTwo { min: 65_536, max: 1 << 40 },
        "64MiB",
        "Addresses of a zone. As many zones as capacity.logical holds; flash for at least one more has to be left.",
    ),
    key(
        "namespace.zone_capacity",
        size(0, 1 << 40),
        "0",
        "What can be written of a zone, in whole flash pages. 0: all of it.",
    ),
    key("namespace.zone_dies", count(0, 1 << 20), "0", "Dies that a zone stripes over. 0: all."),
    key("namespace.max_open", count(0, 1 << 31), "0", "Open zones at most. 0: no limit."),
    key(
        "namespace.max_active",
        count(0, 1 << 31),
        "0",
        "Open and closed zones at most. 0: no limit.",
    ),
    key("namespace.max_append", size(0, 1 << 40), "0", "Longest zone append. 0: as a write."),
    key("namespace.read_across", Kind::Flag, "false", "A read may go on in the next zone."),
    key(
        "timing.read",
        TIMES,
        "40us",
        "Array read of a flash page (tR), one time or one per page type.",
    ),
    key(
        "timing.program",
        TIMES,
        "200us",
        "Program of a flash page (tPROG), one time or one per page type.",
    ),
    key("timing.erase", TIME, "2ms", "Erase of a block (tBERS)."),
    key(
        "timing.channel",
        RATE,
        "400MB/s",
        "Rate of a channel. 0: transfers take no time. Displaces timing.transfer.",
    ),
    key(
        "timing.transfer",
        TIME,
        "0",
        "Time a whole flash page takes on its channel, for sources that state a time and no rate. 0: use timing.channel, which it displaces otherwise.",
    ),
    key(
        "timing.link",
        RATE,
        "4GB/s",
        "Rate of the host link, each direction. 0: transfers take no time.",
    ),
    key("timing.command", TIME, "0", "Controller time per command; commands queue for it."),
    key(
        "timing.command_page",
        TIME,
        "0",
        "Controller time per 4 KiB of a command; pages queue for it.",
    ),
    key(
        "timing.firmware_read",
        TIME,
        "0",
        "Latency added to each read without occupying anything.",
    ),
    key(
        "timing.firmware_write",
        TIME,
        "0",
        "Latency added to each write without occupying anything.",
    ),
    key("timing.dram_page", TIME, "1us", "DRAM time per 4 KiB served by the buffer."),
    key(
        "timing.table_lookup",
        TIME,
        "100ns",
        "DRAM time per look-up in a table of the buffer policy, such as the large-append table.",
    ),
    key("timing.nvram_read", TIME, "50ns", "Reading 64 B of NVRAM."),
    key("timing.nvram_write", TIME, "500ns", "Writing 64 B of NVRAM."),
    key(
        "timing.cache_read",
        Kind::Flag,
        "false",
        "A die starts its next array read while the page before waits for the channel.",
    ),
    key(
        "timing.cache_program",
        Kind::Flag,
        "false",
        "A die takes the data of its next program while the one before runs.",
    ),
    key(
        "timing.plane_parallel",
        Kind::Flag,
        "false",
        "Planes of a die work independently, as with multi-plane commands.",
    ),
    key(
        "timing.read_priority",
        TIME,
        "0",
        "Work of its die that a host read may overtake (queued programs, erases, GC). 0: first come, first served.",
    ),
    key(
        "ftl.indirection",
        PAGE_SIZE,
        "4KiB",
        "Mapping unit. A smaller write reads and rewrites the unit.",
    ),
    key(
        "ftl.map_cache",
        Kind::MapCache { min: 16_384 },
        "all",
        "DRAM for the map. all: the whole map; a size: demand-paged.",
    ),
    key(
        "ftl.victim",
        words(&["greedy", "cost-benefit", "fifo", "d-choices", "random"]),
        "greedy",
        "How GC chooses a victim superblock.",
    ),
    key("ftl.d", count(1, 1024), "10", "Candidates drawn by victim = \"d-choices\"."),
    key(
        "ftl.gc_start",
        real(0.0, 0.9),
        "0.05",
        "Free share of a pool of superblocks at which GC starts.",
    ),
    key(
        "ftl.gc_stop",
        real(0.0, 0.9),
        "0.01",
        "Free share at which a host write waits for GC. At most ftl.gc_start, and lowered along with it.",
    ),
    key(
        "ftl.gc_pacing",
        Kind::Flag,
        "true",
        "Spread GC over the host writes that its space will serve.",
    ),
    key(
        "ftl.gc_idle",
        Kind::Flag,
        "false",
        "Run GC in idle time, too; WAF then depends on when requests come, not only on their order.",
    ),
    key("ftl.separate_gc", Kind::Flag, "true", "GC writes to superblocks of its own."),
    key("ftl.streams", count(1, 128), "1", "Host write streams (placement ids)."),
    key(
        "ftl.metadata",
        words(&["pages", "oob"]),
        "oob",
        "pages: each superblock spends head and tail pages on its header and reverse map; oob: they cost no pages.",
    ),
    key(
        "ftl.checkpoint",
        real(0.0, 100.0),
        "0.0",
        "Drive writes between two checkpoints of the map. 0: only if the trim log is full, and at shutdown.",
    ),
    key(
        "ftl.trim_log",
        size(4096, 1 << 30),
        "64MiB",
        "NVRAM for the trim log; a full one costs a checkpoint.",
    ),
    key(
        "ftl.wear_threshold",
        count(0, 1_000_000),
        "0",
        "Difference of erase counts at which cold data is moved. 0: never.",
    ),
    key("ftl.endurance", count(0, 10_000_000), "0", "Erases a superblock survives. 0: no limit."),
    key(
        "ftl.remap",
        words(&RemapScheme::NAMES),
        "none",
        "How mappings made by remaps are kept consistent. none: remaps are copies; lh: logs per superblock in NVRAM and on flash; ln: in NVRAM only; gf, gn, opt: models for comparison, simulator only.",
    ),
    key(
        "ftl.remap_mode",
        words(&["default", "paper"]),
        "default",
        "paper: one 16 B log entry per page and no absorption, as in Wu 2022; simulator only.",
    ),
    key(
        "ftl.remap_log",
        size(1024, 1 << 40),
        "2MiB",
        "NVRAM for the remap log (flash for remap = \"gf\").",
    ),
    key(
        "ftl.remap_segment",
        size(64, 65_536),
        "1KiB",
        "Segment of the remap log in NVRAM: what a superblock takes at a time.",
    ),
    key(
        "ftl.remap_refs",
        count(0, 1 << 31),
        "0",
        "Mapping units that may share a slot; further remaps of it are copies. 0: any number; the paper has 15.",
    ),
    key(
        "ftl.remap_compaction",
        words(&["below95", "never"]),
        "below95",
        "below95: a full global log (gf, gn) is rewritten if less than 95 % of it is live; never: it stays full.",
    ),
    key(
        "dedup.fingerprints",
        count(0, 1 << 31),
        "0",
        "Contents that deduplication inside the device remembers, about 27 B each and 4 B per mapping unit of flash. 0: no deduplication. It needs ftl.remap.",
    ),
    key(
        "dedup.hash",
        words(&["none", "blake3", "sha256", "xxh3"]),
        "blake3",
        "Hash of deduplication. blake3, sha256: equal hashes are equal contents; xxh3: a hit is verified by reading the page; none: contents are not looked at.",
    ),
    key("dedup.hash_time", TIME, "32us", "Time to hash 4 KiB; Wu 2022 has 32 us."),
    key(
        "dedup.hash_units",
        count(0, 1024),
        "1",
        "Hash units side by side, which pages queue for. 0: any number.",
    ),
    key(
        "dedup.content",
        Kind::Text,
        "unique",
        "Contents of writes of which the simulator knows the address only: unique, iid_zipf:theta=0.2,share=0.9 or exact_dup_ratio:ratio=0.1.",
    ),
    key(
        "buffer.policy",
        Kind::Policy,
        "lru",
        "Policy of the DRAM buffer, with parameters after a colon, such as \"pt-lru:p=0.9\".",
    ),
    key("buffer.size", size(0, 1 << 40), "0", "Size of the DRAM buffer. 0: no buffer."),
    key(
        "buffer.volatile",
        Kind::Flag,
        "true",
        "A power cut loses the buffer. false: it is protected, and flushes are free.",
    ),
    key(
        "buffer.charge",
        words(&["paper", "full", "none"]),
        "paper",
        "Which tables of the policy take buffer memory. paper: the large-append table; full: also cursors, and 8 B per remembered key; none: all of the size holds data.",
    ),
    key(
        "buffer.writeback",
        words(&Writeback::NAMES),
        "sync",
        "sync: a request that needs the place of a dirty page waits for its program; async: it waits only while buffer.wb_slots of them are under way.",
    ),
    key(
        "buffer.wb_slots",
        count(1, 65_536),
        "128",
        "Victims under way at most with writeback = \"async\", in mapping units. Their memory is not part of buffer.size.",
    ),
    key(
        "buffer.separate_streams",
        Kind::Flag,
        "true",
        "Append-only data that leaves the buffer goes to the last of ftl.streams. No effect with one stream.",
    ),
    key(
        "volume.mode",
        words(&["none", "log", "sung", "han"]),
        "none",
        "Log-structured volume between the load and the device, simulator only. none: the load writes to the device; log: appends every write to log segments; sung, han: the layers of Sung 2022 and Han 2021.",
    ),
    key(
        "volume.op",
        real(0.0, 0.95),
        "0.2",
        "Share of the log space, or of the partitions, that the volume does not export, for the cleaner.",
    ),
    key(
        "volume.log_segment",
        size(0, 1 << 32),
        "0",
        "Log segment: what is written, cleaned and trimmed as a whole. 0: a superblock of the device (of all dies), or a power of two less where fewer than 160 fit.",
    ),
    key("volume.offset", size(0, 1 << 40), "0", "Where the volume begins on the device."),
    key(
        "volume.batch",
        size(8192, 1 << 20),
        "1MiB",
        "Most that is written at once, header included.",
    ),
    key(
        "volume.ack",
        words(&["buffer", "complete"]),
        "buffer",
        "When a write is answered. buffer: its blocks are in memory; complete: the device has written them.",
    ),
    key("volume.cpu", TIME, "1us", "Host CPU time per request; requests queue for it."),
    key(
        "volume.victim",
        words(&["greedy", "cost-benefit"]),
        "cost-benefit",
        "How the cleaner chooses a log segment.",
    ),
    key(
        "volume.clean_move",
        words(&["copy", "remap"]),
        "copy",
        "How the cleaner moves blocks. copy: it reads and writes them; remap: the device remaps them, and copies are made only where it cannot. remap needs ftl.remap, and ftl.indirection of 4 KiB.",
    ),
    key(
        "volume.streams",
        words(&["one", "hot-cold"]),
        "one",
        "Log segments for what the load writes. hot-cold: frequently written blocks have their own. Each stream of the volume has one of ftl.streams, as far as there are.",
    ),
    key(
        "volume.map_memory",
        Kind::MapCache { min: 1 << 20 },
        "all",
        "Memory for the map of the volume, or for the tables of mode sung. all: the whole map; a size: paged from the device.",
    ),
    key(
        "volume.checkpoint",
        size(1 << 20, 1 << 40),
        "256MiB",
        "Log between two checkpoints at most.",
    ),
    key(
        "volume.clean_below",
        count(0, 1 << 20),
        "0",
        "Free log segments below which the cleaner has to keep pace with the load. 0: 2 % of all above the reserve; the least is 2 above it.",
    ),
    key(
        "volume.trim",
        Kind::Flag,
        "true",
        "Trim log segments on the device when they are given back.",
    ),
    key("volume.trim_pause", TIME, "50ms", "Shortest time between two such trims."),
    key(
        "volume.partition",
        size(0, 1 << 42),
        "0",
        "Mode sung: size of a partition, which has a table of its own. 0: 4 GiB; mode han: a quarter of the space.",
    ),
    key(
        "volume.transaction",
        count(1, 506),
        "506",
        "Modes sung and han: blocks that a transaction changes at most.",
    ),
    key(
        "volume.commit_age",
        TIME,
        "5s",
        "Modes sung and han: time after which a transaction is committed though it is not full.",
    ),
    key(
        "volume.free_share",
        real(0.0, 1.0),
        "0.1",
        "Mode sung: contiguous free space / space for data below which the cleaner runs.",
    ),
    key(
        "volume.paper_flush",
        Kind::Flag,
        "false",
        "Modes sung and han: never flush the device, as in the papers; a power cut would lose what was flushed.",
    ),
    key(
        "volume.cpu_search",
        TIME,
        "0",
        "Modes sung and han: host CPU time per table that is searched for a block.",
    ),
    key("faults.program", real(0.0, 1.0), "0.0", "Probability that a program fails."),
    key("faults.erase", real(0.0, 1.0), "0.0", "Probability that an erase fails."),
    key("faults.read", real(0.0, 1.0), "0.0", "Probability that a read is uncorrectable."),
    key(
        "faults.bit_rot",
        real(0.0, 1.0),
        "0.0",
        "Probability that a read returns flipped bits, which the checksum detects.",
    ),
    key(
        "faults.bad_superblocks",
        count(0, 1 << 24),
        "0",
        "Superblocks that are bad from the factory.",
    ),
    key(
        "precondition.fill",
        real(0.0, 100.0),
        "1.0",
        "Share of the logical space written sequentially before the run.",
    ),
    key(
        "precondition.overwrite",
        real(0.0, 1000.0),
        "0.0",
        "Drive writes of uniform random overwrites before the run.",
    ),
    key(
        "precondition.range",
        real(0.000_001, 1.0),
        "1.0",
        "Share of the logical space that fill and overwrite address, from its beginning.",
    ),
    key(
        "precondition.remap_log",
        real(0.0, 1.0),
        "0.0",
        "Share of ftl.remap_log that is then filled with remaps of random mapping units.",
    ),
    key(
        "precondition.until",
        words(&["count", "steady"]),
        "count",
        "count: overwrite as much as said; steady: until the WAF of two windows differs by less than 1 %.",
    ),
    key("run.warmup", count(0, 1 << 53), "0", "Requests that are not measured."),
    key("run.window", count(1, 1 << 53), "100000", "Requests per point of the time series."),
    key(
        "run.mode",
        words(&["open", "closed"]),
        "open",
        "Replay of a trace. open: at its own times; closed: as fast as run.qd allows. Generators have a queue depth of their own.",
    ),
    key(
        "run.speedup",
        real(0.000_001, 1_000_000.0),
        "1.0",
        "Factor by which an open replay runs faster than the trace.",
    ),
    key("run.qd", count(1, 65_536), "32", "Requests in flight in a closed replay."),
    key(
        "run.align",
        words(&["rmw", "round", "drop"]),
        "rmw",
        "Trace requests off the 4 KiB grid. rmw: partial pages are read first; round: widened to whole pages; drop: skipped and counted.",
    ),
    key(
        "run.fit",
        words(&["error", "compact", "wrap"]),
        "error",
        "Trace requests beyond the device. error: refused; compact: used pages are renumbered; wrap: modulo the capacity.",
    ),
];

/// Keys of a `[[tenant]]` table.
pub(crate) const TENANT_KEYS: &[Key] = &[
    key("name", Kind::Text, "", "Name in results. Default: tenant0, tenant1, .."),
    key("workload", Kind::Text, "", "Generated workload of this tenant."),
    key("trace", Kind::Text, "", "Trace of this tenant, relative to the configuration file."),
    key("range", Kind::Extent, "0..100%", "Part of the logical space, in sizes or percent."),
    key("start", START, "0", "Virtual time at which it starts."),
    key("speed", real(0.000_001, 1_000_000.0), "1.0", "Factor on the pace of its trace."),
    key("weight", count(1, 1000), "1", "Share of the turns it gets among tenants that are ready."),
    key("stream", count(0, 127), "0", "Write stream it uses, below ftl.streams."),
];

/// The key called `path`.
pub(crate) fn find(keys: &'static [Key], path: &str) -> Option<&'static Key> {
    keys.iter().find(|key| key.path == path)
}

#[cfg(test)]
mod tests {
    use super::{EXCLUSIVE, KEYS, TENANT_KEYS, find};

    #[test]
    fn every_default_is_valid_and_every_key_explained() {
        for key in KEYS.iter().chain(TENANT_KEYS) {
            let value = key.default_value();
            let again = key.kind.parse(&crate::raw::Raw::bare(&value.toml())).unwrap();
            assert_eq!(value, again, "{}", key.path);
            assert!(key.meaning.ends_with(['.', '%']), "{}", key.path);
        }
    }

    #[test]
    fn keys_are_unique_and_grouped_by_section() {
        let mut sections: Vec<&str> = KEYS.iter().map(|key| key.split().0).collect();
        sections.dedup();
        let mut sorted = sections.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sections.len(), sorted.len(), "each section stands in one piece");
        let mut paths: Vec<&str> = KEYS.iter().map(|key| key.path).collect();
        paths.sort_unstable();
        assert!(paths.windows(2).all(|pair| pair[0] != pair[1]));
        for (a, b) in EXCLUSIVE {
            assert!(find(KEYS, a).is_some() && find(KEYS, b).is_some());
        }
    }
}
