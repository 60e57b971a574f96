//! What a zoned namespace tells about itself.

use onefold_ftl::Wear;
use onefold_nand::Media;
use onefold_ssd::HostStats;
use onefold_ssd::zns::{Zns, ZnsStats, ZoneLimits, ZoneState};
use onefold_units::convert::{float, u64_from};
use onefold_units::{Lpn, PAGE_BYTES, ZoneId};

/// Everything that is known of a zoned namespace, taken at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedDetails {
    /// Sequential zones.
    pub zones: u32,
    /// Conventional zones, which come first.
    pub conventional: Option<ConventionalDetails>,
    /// Bytes between the starts of two zones.
    pub zone_bytes: u64,
    /// Bytes of a sequential zone that can be written.
    pub capacity_bytes: u64,
    /// Open and active zones at most.
    pub limits: ZoneLimits,
    /// Open and active zones.
    pub resources: (u32, u32),
    /// Sequential zones by state, in the order of [`ZoneState::ALL`].
    pub by_state: [u32; ZoneState::ALL.len()],
    /// Bytes written to sequential zones since their last resets.
    pub written_bytes: u64,
    /// Resets of all zones since the image was made.
    pub resets: u64,
    /// Sets of flash blocks, those that failed, and those that no zone will need.
    pub sets: u32,
    /// Sets that failed.
    pub bad_sets: u32,
    /// Sets that no zone in service will need.
    pub spare_sets: u32,
    /// Erases per set: fewest, mean, most.
    pub wear: (u32, f64, u32),
    /// Counters since the device was opened.
    pub stats: ZnsStats,
    /// Counters of the host since the device was opened.
    pub host: HostStats,
}

/// What is known of conventional zones and of the device behind them.
#[derive(Clone, Debug, PartialEq)]
pub struct ConventionalDetails {
    /// Zones.
    pub zones: u32,
    /// Those that can only be read, and those not even that.
    pub out_of_service: [u32; 2],
    /// Bytes that hold something.
    pub stored_bytes: u64,
    /// Superblocks of flash.
    pub superblocks: u32,
    /// Superblocks that failed.
    pub bad_superblocks: u32,
    /// Those that hold nothing.
    pub free_superblocks: u32,
    /// Logical capacity / usable flash.
    pub rho: f64,
    /// Erases per superblock.
    pub wear: Wear,
}

impl ConventionalDetails {
    fn of<M: Media>(zns: &Zns<M>) -> Option<Self> {
        let ftl = zns.conventional()?.ftl();
        let count = |state| {
            let zones = (0..zns.config().conventional_zones()).map(ZoneId::new);
            let found = zones.filter(|zone| zns.zone(*zone).is_some_and(|one| one.state == state));
            onefold_units::convert::u32_from(found.count())
        };
        let (space, units) = (ftl.space(), ftl.host_units());
        Some(Self {
            zones: zns.config().conventional_zones(),
            out_of_service: [ZoneState::ReadOnly, ZoneState::Offline].map(count),
            stored_bytes: u64::from(ftl.stored_count(Lpn::new(0), units)) * PAGE_BYTES,
            superblocks: space.superblocks,
            bad_superblocks: space.bad_superblocks,
            free_superblocks: ftl.free_superblocks(),
            rho: space.rho,
            wear: ftl.wear(),
        })
    }
}

impl ZonedDetails {
    pub(super) fn of<M: Media>(zns: &Zns<M>) -> Self {
        let config = zns.config();
        let mut by_state = [0; ZoneState::ALL.len()];
        let (mut written, mut resets) = (0, 0);
        let sequential = config.conventional_zones()..config.all_zones();
        for zone in sequential.filter_map(|zone| zns.zone(ZoneId::new(zone))) {
            let place = ZoneState::ALL.iter().position(|state| *state == zone.state);
            by_state[place.unwrap_or_default()] += 1;
            resets += u64::from(zone.resets);
            written += zns.written_end(zone.zone) - zone.start;
        }
        let wear: Vec<u32> = zns.wear().collect();
        let sum: u64 = wear.iter().map(|erases| u64::from(*erases)).sum();
        let (least, most) = (wear.iter().min().copied(), wear.iter().max().copied());
        let mean = float(sum) / float(u64_from(wear.len().max(1)));
        Self {
            zones: config.zones,
            conventional: ConventionalDetails::of(zns),
            zone_bytes: u64::from(config.zone_blocks) * PAGE_BYTES,
            capacity_bytes: u64::from(config.capacity_blocks) * PAGE_BYTES,
            limits: config.limits,
            resources: zns.resources(),
            by_state,
            written_bytes: written * PAGE_BYTES,
            resets,
            sets: zns.layout().sets(),
            bad_sets: zns.bad_sets(),
            spare_sets: zns.spare_sets(),
            wear: (least.unwrap_or(0), mean, most.unwrap_or(0)),
            stats: zns.stats(),
            host: *zns.host_stats(),
        }
    }

    /// Zones in a state.
    #[must_use]
    pub fn in_state(&self, state: ZoneState) -> u32 {
        let place = ZoneState::ALL.iter().position(|one| *one == state);
        place.map_or(0, |place| self.by_state[place])
    }
}
