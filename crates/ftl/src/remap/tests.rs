//! What shows only inside: segments that are free, and how many entries there are.

use std::collections::BTreeSet;

use onefold_nand::{
    At, CellTimes, FaultSpec, Geometry, GeometrySpec, MemoryMedia, Nand, Span, TimingSpec, Work,
};
use onefold_units::convert::{low32, u64_from};
use onefold_units::{Lpn, Nanos, Rng};

use super::groups::Group;
use super::port::NvramPort;
use super::{Maintenance, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use crate::ftl::Ftl;
use crate::{FtlConfig, Layout};

const AT: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

fn geometry() -> Geometry {
    geometry_of(1, Span::Device)
}

fn geometry_of(channels: u32, span: Span) -> Geometry {
    let spec = GeometrySpec {
        channels,
        ways: 1,
        planes: 1,
        blocks: 18,
        pages: 8,
        page_bytes: 4096,
        unit_bytes: 4096,
        span,
    };
    Geometry::new(spec).expect("a geometry")
}

fn config() -> FtlConfig {
    let scheme = RemapScheme::Ln;
    FtlConfig {
        gc_start: 0.0,
        trim_log_bytes: 4096,
        seed: 1,
        remap: RemapConfig { scheme, log_bytes: 1280, segment_bytes: 128, ..RemapConfig::OFF },
        ..FtlConfig::plain(70)
    }
}

fn nand(media: MemoryMedia) -> Nand<MemoryMedia> {
    nand_of(geometry(), media)
}

fn nand_of(geometry: Geometry, media: MemoryMedia) -> Nand<MemoryMedia> {
    let cell = CellTimes::new(&[Nanos::new(1)]).expect("times");
    let timing = TimingSpec {
        read: cell,
        program: cell,
        erase: Nanos::new(1),
        channel_rate: 1_000_000_000,
        ..TimingSpec::EXAMPLE
    };
    Nand::new(geometry, timing, FaultSpec::default(), media)
}

fn used(ftl: &Ftl<MemoryMedia>) -> BTreeSet<u32> {
    let groups = ftl.remap.iter().flat_map(|remap| &remap.groups);
    groups.flat_map(|group| &group.segments).map(|segment| segment.id).collect()
}

/// A device after writes and remaps.
fn used_device(seed: u64) -> Ftl<MemoryMedia> {
    let mut rng = Rng::new(seed);
    let bytes = Layout::new(&geometry(), &config()).expect("a layout").nvram_bytes();
    let media = MemoryMedia::new(&geometry(), bytes);
    let mut ftl = Ftl::new(nand(media), config(), 0).expect("a device");
    for _ in 0..300 {
        let [a, b] = [0; 2].map(|_| Lpn::new(low32(rng.below(70))));
        if rng.below(2) == 0 {
            ftl.write(AT, a, 1, 0, &[7; 4096]).expect("a write");
        } else {
            let range = RemapRange { dst: a, src: b, len: 1 };
            ftl.remap(AT, &[range], RemapOptions::default()).expect("a remap");
        }
    }
    ftl
}

/// Segments keep their bytes after they were given back. Recovery took old copies of entries for those
/// that count, until no segment was free.
#[test]
fn segments_that_were_given_back_stay_free() {
    for seed in 0..20 {
        let ftl = used_device(seed);
        let before = used(&ftl);
        let recovered = Ftl::recover(nand(ftl.into_media()), config(), 0);
        let after = used(&recovered.expect("a recovery").0);
        assert!(after.is_subset(&before), "seed {seed}: {before:?}, then {after:?}");
    }
}

/// Without a segment to begin with, compacting failed half done.
#[test]
fn nothing_is_compacted_without_a_spare_segment() {
    let mut ftl = used_device(1);
    let before = used(&ftl);
    let remap = ftl.remap.as_mut().expect("a log");
    let taken =
        [std::mem::take(&mut remap.segments.free), std::mem::take(&mut remap.segments.waiting)];
    assert_eq!(ftl.maintain(Nanos::ZERO, Maintenance::CompactLog), Ok(()));
    assert_eq!(used(&ftl), before);
    let remap = ftl.remap.as_mut().expect("a log");
    remap.segments.free = taken.concat();
    assert_eq!(ftl.check(), Ok(()));
}

/// Units that are written in one piece, and how many dies take them in turn.
const UNITS: u32 = 64;
const DIES: u32 = 4;

/// Superblocks of one die with 8 slots: the units fill 8 of them.
fn striped_device(log: RemapConfig) -> Ftl<MemoryMedia> {
    let geometry = geometry_of(DIES, Span::Die);
    let config = FtlConfig { logical_units: 4 * u64::from(UNITS), remap: log, ..config() };
    let bytes = Layout::new(&geometry, &config).expect("a layout").nvram_bytes();
    let media = MemoryMedia::new(&geometry, bytes);
    let mut ftl = Ftl::new(nand_of(geometry, media), config, 0).expect("a device");
    for lpn in 0..UNITS {
        ftl.write(AT, Lpn::new(lpn), 1, 0, &[7; 4096]).expect("a write");
    }
    ftl
}

fn clone_to(ftl: &mut Ftl<MemoryMedia>, dst: u32) {
    let range = RemapRange { dst: Lpn::new(dst), src: Lpn::new(0), len: UNITS };
    let done = ftl.remap(AT, &[range], RemapOptions::default()).expect("a remap");
    assert_eq!(done.outcomes[0].remapped, UNITS);
}

/// Length and stride of every entry.
fn runs(ftl: &Ftl<MemoryMedia>) -> Vec<(u16, u16)> {
    let groups = ftl.remap.iter().flat_map(|remap| &remap.groups);
    groups.flat_map(Group::entries).map(|(entry, _)| (entry.len, entry.stride)).collect()
}

fn log_of(segments: u64) -> RemapConfig {
    RemapConfig { log_bytes: segments * 128, ..config().remap }
}

#[test]
fn a_clone_takes_an_entry_per_superblock_whatever_superblocks_are() {
    let mut ftl = striped_device(log_of(60));
    clone_to(&mut ftl, UNITS);
    assert_eq!(runs(&ftl), [(8, 4); 8]);
    // So does a clone of the clone.
    let range = RemapRange { dst: Lpn::new(2 * UNITS), src: Lpn::new(UNITS), len: UNITS };
    ftl.remap(AT, &[range], RemapOptions::default()).expect("a remap");
    assert_eq!(runs(&ftl), [(8, 4); 16]);
    assert_eq!(ftl.check(), Ok(()));
}

/// A page of a unit that was written again is in no run; the others are as long as they can be.
#[test]
fn runs_end_where_units_lie_elsewhere() {
    let mut ftl = striped_device(log_of(60));
    // The die whose turn it is takes it: not the one that has the neighbours.
    ftl.write(AT, Lpn::new(9), 1, 0, &[7; 4096]).expect("a write");
    clone_to(&mut ftl, UNITS);
    let mut runs = runs(&ftl);
    runs.sort_unstable();
    // Unit 9 had the third slot of its superblock.
    let expected = [[(1, 1), (2, 4), (5, 4)].as_slice(), &[(8, 4); 7]].concat();
    assert_eq!(runs, expected);
    assert_eq!(ftl.check(), Ok(()));
}

/// Entries do not grow when slots move that several units share (remap.md, I12).
#[test]
fn collection_keeps_runs() {
    let mut ftl = striped_device(log_of(60));
    clone_to(&mut ftl, UNITS);
    clone_to(&mut ftl, 2 * UNITS);
    let moved = |ftl: &Ftl<MemoryMedia>| ftl.remap_stats().moved_entries;
    while moved(&ftl) < 4 * u64::from(UNITS) {
        let before = moved(&ftl);
        ftl.maintain(Nanos::ZERO, Maintenance::Collect).expect("a collection");
        assert!(moved(&ftl) > before);
        // Each victim is two runs, and may come to lie in two superblocks.
        assert!(runs(&ftl).len() <= 2 * 2 * 8, "{:?}", runs(&ftl));
        assert_eq!(ftl.check(), Ok(()));
    }
    for n in 0..UNITS {
        let at = [n, UNITS + n, 2 * UNITS + n].map(|lpn| ftl.slot(Lpn::new(lpn)));
        assert!(at[0] == at[1] && at[0] == at[2], "unit {n}: {at:?}");
    }
}

/// What does not fit the log at once is done in parts as long as possible.
#[test]
fn parts_of_a_long_remap_are_long() {
    let mut ftl = striped_device(RemapConfig { scheme: RemapScheme::Lh, ..log_of(10) });
    clone_to(&mut ftl, UNITS);
    assert!(ftl.remap_stats().log_full > 0);
    assert_eq!(runs(&ftl), [(8, 4); 8]);
    assert_eq!(ftl.check(), Ok(()));
}

/// Nanoseconds for which a step of housekeeping keeps the port of NVRAM busy, with these times of a line.
fn busy(ftl: &mut Ftl<MemoryMedia>, step: Maintenance, read: u64, write: u64) -> u64 {
    let remap = ftl.remap.as_mut().expect("a log");
    let (nvram_read, nvram_write) = (Nanos::new(read), Nanos::new(write));
    remap.port = NvramPort::new(&RemapConfig { nvram_read, nvram_write, ..remap.config });
    ftl.maintain(Nanos::ZERO, step).expect("a step");
    ftl.remap.as_ref().expect("a log").port.until().get()
}

/// Compaction reads the group and writes what lives, and collection writes the entries of what it moves: all at the port of NVRAM,
/// which the next remap waits for.
#[test]
fn upkeep_takes_its_time_at_the_port() {
    let (mut read, mut written) = (used_device(1), used_device(1));
    let group = read.largest_group().expect("a group");
    let group = &read.remap.as_ref().expect("a log").groups[group.index()];
    // Segments of two lines, entries of 24 bytes.
    let lines = 2 * u64_from(group.segments.len());
    let live = (24 * u64::from(group.nvram.live)).div_ceil(64);
    assert_eq!(busy(&mut read, Maintenance::CompactLog, 1, 0), lines);
    let lines = busy(&mut written, Maintenance::CompactLog, 0, 1);
    assert!((live / 2..=2 * live + 2).contains(&lines), "{lines} lines for {live} of live units");

    let mut striped = striped_device(log_of(60));
    clone_to(&mut striped, UNITS);
    // A superblock of one die has a run of 8 units, which the next one takes over.
    assert!(busy(&mut striped, Maintenance::Collect, 0, 1) >= u64::from(DIES));
}
