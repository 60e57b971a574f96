//! Small zoned namespaces.

use onefold_nand::{FaultSpec, Geometry, GeometrySpec, Media, Span};
use onefold_ssd::zns::{
    Select, Zns, ZnsConfig, ZnsError, ZnsLayout, ZnsMedia, ZoneAction, ZoneLimits,
};
use onefold_ssd::{Payload, SsdConfig, example_config};
use onefold_testkit::CutMedia;
use onefold_units::convert::index;
use onefold_units::{Nanos, ZoneId};

pub(crate) const NOW: Nanos = Nanos::ZERO;

/// Two dies of superblocks of 4 flash pages of `page` blocks each.
pub(crate) fn geometry(page: u32, blocks: u32) -> Geometry {
    Geometry::new(GeometrySpec {
        channels: 2,
        ways: 1,
        planes: 1,
        blocks,
        pages: 4,
        page_bytes: page * 4096,
        unit_bytes: 4096,
        span: Span::Die,
    })
    .unwrap()
}

/// Zones of 16 blocks of which 12 can be written, over both dies, and two spare sets.
pub(crate) fn config(page: u32, zones: u32, limits: ZoneLimits) -> ZnsConfig {
    let depth = 12_u32.div_ceil(2 * 4 * page);
    ZnsConfig {
        geometry: geometry(page, (zones + 2) * depth),
        timing: example_config().timing,
        zone_blocks: 16,
        capacity_blocks: 12,
        zones,
        conventional: None,
        zone_dies: 2,
        limits,
        append_blocks: None,
        read_across: false,
        cache_bytes: 0,
        cache_volatile: true,
        faults: FaultSpec::default(),
    }
}

pub(crate) const fn limits(open: u32, active: u32) -> ZoneLimits {
    ZoneLimits { max_open: Some(open), max_active: Some(active) }
}

pub(crate) const NO_LIMITS: ZoneLimits = ZoneLimits { max_open: None, max_active: None };

/// Flash blocks of each die for conventional zones.
const MAPPED_BLOCKS: u32 = 14;

/// The same namespace with conventional zones of 16 blocks in front, on flash blocks of their own.
pub(crate) fn with_conventional(config: &ZnsConfig, zones: u32) -> ZnsConfig {
    let page = config.geometry.spec().page_bytes / 4096;
    let mut device = SsdConfig { geometry: geometry(page, MAPPED_BLOCKS), ..example_config() };
    device.ftl.logical_units = u64::from(zones * config.zone_blocks);
    device.ftl.trim_log_bytes = 4096;
    device.buffer.bytes = config.cache_bytes;
    let all = geometry(page, config.geometry.spec().blocks + MAPPED_BLOCKS);
    ZnsConfig { geometry: all, conventional: Some(device), ..*config }
}

/// A medium for each kind of zones; `make` gets a geometry and bytes of NVRAM.
pub(crate) fn media<M>(config: &ZnsConfig, make: impl Fn(&Geometry, u64) -> M) -> ZnsMedia<M> {
    let layout = ZnsLayout::new(config).unwrap();
    let share = config.conventional.zip(layout.conventional());
    ZnsMedia {
        sequential: make(layout.geometry(), layout.nvram_bytes()),
        conventional: share.map(|(device, share)| make(&device.geometry, share.nvram_bytes)),
    }
}

pub(crate) fn memory(config: &ZnsConfig) -> ZnsMedia<CutMedia> {
    media(config, CutMedia::powered)
}

pub(crate) fn fresh(config: &ZnsConfig) -> Zns<CutMedia> {
    Zns::new(*config, memory(config)).unwrap()
}

/// Bytes of blocks that hold `versions`.
pub(crate) fn bytes_of(versions: &[u64]) -> Vec<u8> {
    versions.iter().flat_map(|version| version.to_le_bytes().repeat(512)).collect()
}

/// Writes `versions`, a block each.
pub(crate) fn write<M: Media>(
    zns: &mut Zns<M>,
    lba: u64,
    versions: &[u64],
    fua: bool,
) -> Result<(), ZnsError> {
    let blocks = u32::try_from(versions.len()).unwrap();
    zns.write(NOW, lba, blocks, fua, &Payload::Write(&bytes_of(versions))).map(drop)
}

/// What blocks hold; a mixture of versions panics.
pub(crate) fn read<M: Media>(
    zns: &mut Zns<M>,
    lba: u64,
    blocks: u32,
) -> Result<Vec<u64>, ZnsError> {
    let mut bytes = vec![0xEE; index(blocks) * 4096];
    zns.read(NOW, lba, blocks, &mut bytes)?;
    let version = |block: &[u8]| {
        let first = u64::from_le_bytes(block[..8].try_into().unwrap());
        assert_eq!(block, bytes_of(&[first]), "a mixture at block {lba}");
        first
    };
    Ok(bytes.chunks(4096).map(version).collect())
}

pub(crate) fn act<M: Media>(
    zns: &mut Zns<M>,
    zone: u32,
    action: ZoneAction,
) -> Result<(), ZnsError> {
    zns.manage(NOW, Select::One(ZoneId::new(zone)), action).map(drop)
}
