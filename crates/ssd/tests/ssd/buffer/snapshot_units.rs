//! Units that only the device itself reaches.

use onefold_buffer::{LRU, PolicySpec};
use onefold_ftl::{
    ConfigError, FtlError, Layout, RemapConfig, RemapError, RemapOptions, RemapRange, RemapScheme,
};
use onefold_nand::{Geometry, GeometrySpec};
use onefold_ssd::{Ssd, SsdConfig, SsdError};
use onefold_testkit::CutMedia;
use onefold_units::{Cause, Lpn, Nanos};

use super::common::{Rig, config, geometry};

const HOST: u32 = 64;
const SNAPSHOTS: u32 = 32;

fn shared() -> SsdConfig {
    let mut config = config(PolicySpec::new(&LRU), geometry(4096, 4096), 8);
    config.ftl.logical_units = HOST.into();
    config.ftl.snapshot_units = SNAPSHOTS.into();
    let log_bytes = 16 << 10;
    config.ftl.remap = RemapConfig { scheme: RemapScheme::Lh, log_bytes, ..RemapConfig::OFF };
    config
}

fn blank(config: &SsdConfig) -> CutMedia {
    let layout = Layout::new(&config.geometry, &config.ftl).unwrap();
    CutMedia::powered(&config.geometry, layout.nvram_bytes())
}

fn range(dst: Lpn, src: Lpn, len: u32) -> RemapRange {
    RemapRange { dst, src, len }
}

/// A host sees the capacity without them and can name none, whatever it asks.
#[test]
fn no_command_of_a_host_reaches_them() {
    let config = shared();
    let mut rig = Rig::new(Ssd::new(config, blank(&config)).unwrap());
    assert_eq!(rig.ssd.capacity(), u64::from(HOST) * 4096);
    assert_eq!(rig.ssd.snapshot_units(), SNAPSHOTS);
    let first = rig.ssd.snapshot_lpn(0);
    assert!(rig.read(u64::from(first.raw()) * 4096, 4096).is_err());
    for (dst, src) in [(first, Lpn::new(0)), (Lpn::new(0), first), (Lpn::new(HOST - 1), first)] {
        let ranges = [range(dst, src, 1)];
        let refused = rig.ssd.remap(Nanos::ZERO, &ranges, RemapOptions::default());
        let error = FtlError::Remap(RemapError::OutOfRange { range: 0, end: 65, units: HOST });
        assert_eq!(refused, Err(SsdError::Ftl(error)));
    }
    let beyond = [range(rig.ssd.snapshot_lpn(SNAPSHOTS - 1), Lpn::new(0), 2)];
    assert!(rig.ssd.remap_snapshots(Nanos::ZERO, &beyond, RemapOptions::default()).is_err());
    // What the device does for itself leaves the limit of the host where it was.
    assert_eq!(rig.ssd.ftl().host_units(), HOST);
}

/// What is remapped there stays while the host overwrites and collection moves everything, also over
/// a power cut.
#[test]
fn they_keep_what_is_remapped_there() {
    let config = shared();
    let mut rig = Rig::new(Ssd::new(config, blank(&config)).unwrap());
    for at in 0..u64::from(HOST) {
        rig.write(at * 4096, &[u8::try_from(at).unwrap(); 4096], false).unwrap();
    }
    let all = [range(rig.ssd.snapshot_lpn(1), Lpn::new(0), 16)];
    let now = Nanos::ZERO;
    rig.ssd.remap_snapshots(now, &all, RemapOptions::default()).unwrap();
    rig.ssd.write_snapshot_unit(now, 0, &[0xAB; 4096]).unwrap();
    rig.ssd.settle(now).unwrap();
    let programs = rig.ssd.ftl().stats().programs.of(Cause::Fallback);
    assert_eq!(programs, 0, "nothing is copied");
    let (ssd, report) = Ssd::recover(config, rig.ssd.into_media()).unwrap();
    assert_eq!(report.lost_units, 0);
    let mut rig = Rig::new(ssd);
    for round in 0..20 {
        for at in 0..u64::from(HOST) {
            rig.write(at * 4096, &[200 + round; 4096], false).unwrap();
        }
    }
    let mut ssd = rig.ssd;
    assert!(ssd.ftl().stats().erases > 0);
    ssd.ftl().check().unwrap();
    let mut unit = [0; 4096];
    for at in 0..16 {
        ssd.read_snapshot_unit(now, 1 + at, &mut unit).unwrap();
        assert_eq!(unit, [u8::try_from(at).unwrap(); 4096]);
    }
    ssd.read_snapshot_unit(now, 0, &mut unit).unwrap();
    assert_eq!(unit, [0xAB; 4096]);
    ssd.trim_snapshot_units(now, 0, SNAPSHOTS).unwrap();
    for at in 0..SNAPSHOTS {
        assert!(!ssd.ftl().is_mapped(ssd.snapshot_lpn(at)), "{at}");
    }
    assert!(ssd.ftl().is_mapped(Lpn::new(HOST - 1)));
}

/// Translation pages of a demand-paged map come behind them.
#[test]
fn translation_pages_do_not_overwrite_them() {
    let geometry =
        Geometry::new(GeometrySpec { blocks: 64, pages: 64, ..*geometry(4096, 4096).spec() });
    let mut config = SsdConfig { geometry: geometry.unwrap(), ..shared() };
    config.ftl.logical_units = 4 * 1024;
    // Four pages of entries for the host, one of them in DRAM.
    config.ftl.map_cache_bytes = Some(4096);
    config.buffer.bytes = 0;
    let mut rig = Rig::new(Ssd::new(config, blank(&config)).unwrap());
    for at in 0..SNAPSHOTS {
        rig.ssd.write_snapshot_unit(Nanos::ZERO, at, &[u8::try_from(at).unwrap(); 4096]).unwrap();
    }
    for at in (0..4 * 1024).step_by(512) {
        rig.write(at * 4096, &[0xEE; 4096], false).unwrap();
    }
    assert!(rig.ssd.ftl().stats().programs.of(Cause::Metadata) > 0, "pages left the cache");
    let mut unit = [0; 4096];
    for at in 0..SNAPSHOTS {
        rig.ssd.read_snapshot_unit(Nanos::ZERO, at, &mut unit).unwrap();
        assert_eq!(unit, [u8::try_from(at).unwrap(); 4096]);
    }
}

/// They take flash like the capacity of the host: what does not fit is refused by both names.
#[test]
fn they_count_as_capacity() {
    let mut config = shared();
    config.ftl.snapshot_units = 300;
    let error = Layout::new(&config.geometry, &config.ftl).unwrap_err();
    assert!(matches!(error, ConfigError::NoSpace { logical, snapshots, .. }
        if logical == 364 * 4096 && snapshots == 300 * 4096));
    assert!(error.to_string().starts_with("capacity.logical with capacity.snapshots is "));
    assert!(error.to_string().contains("lower capacity.logical, capacity.snapshots or"));
    config.ftl.snapshot_units = u64::from(u32::MAX);
    let error = Layout::new(&config.geometry, &config.ftl).unwrap_err().to_string();
    assert!(error.starts_with("capacity.snapshots is 4294967295, expected 0 to"), "{error}");
}
