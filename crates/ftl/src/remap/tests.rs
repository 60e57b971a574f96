//! What shows only inside: segments that are free.

use std::collections::BTreeSet;

use onefold_nand::{
    At, CellTimes, FaultSpec, Geometry, GeometrySpec, MemoryMedia, Nand, Span, TimingSpec, Work,
};
use onefold_units::convert::low32;
use onefold_units::{Lpn, Nanos, Rng};

use super::{Maintenance, RemapConfig, RemapOptions, RemapRange, RemapScheme};
use crate::ftl::Ftl;
use crate::{FtlConfig, Layout, VictimKind};

const AT: At = At { now: Nanos::ZERO, ready: Nanos::ZERO, work: Work::Host };

fn geometry() -> Geometry {
    let spec = GeometrySpec {
        channels: 1,
        ways: 1,
        planes: 1,
        blocks: 18,
        pages: 8,
        page_bytes: 4096,
        unit_bytes: 4096,
        span: Span::Device,
    };
    Geometry::new(spec).expect("a geometry")
}

fn config() -> FtlConfig {
    let scheme = RemapScheme::Ln;
    FtlConfig {
        logical_units: 70,
        hidden_units: 0,
        map_cache_bytes: None,
        victim: VictimKind::Greedy,
        gc_start: 0.0,
        gc_stop: 0.0,
        gc_pacing: true,
        gc_idle: false,
        separate_gc: true,
        streams: 1,
        metadata_pages: false,
        checkpoint: 0.0,
        trim_log_bytes: 4096,
        wear_threshold: 0,
        endurance: 0,
        seed: 1,
        remap: RemapConfig { scheme, log_bytes: 1280, segment_bytes: 128, ..RemapConfig::OFF },
        fingerprints: 0,
    }
}

fn nand(media: MemoryMedia) -> Nand<MemoryMedia> {
    let cell = CellTimes::new(&[Nanos::new(1)]).expect("times");
    let timing = TimingSpec {
        read: cell,
        program: cell,
        erase: Nanos::new(1),
        channel_rate: 1_000_000_000,
        link_rate: 0,
        command: Nanos::ZERO,
        command_page: Nanos::ZERO,
        firmware_read: Nanos::ZERO,
        firmware_write: Nanos::ZERO,
        dram_page: Nanos::ZERO,
        table_lookup: Nanos::ZERO,
        cache_read: false,
        cache_program: false,
        plane_parallel: false,
        read_priority: Nanos::ZERO,
    };
    Nand::new(geometry(), timing, FaultSpec::default(), media)
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
