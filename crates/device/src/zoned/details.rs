//! What a zoned namespace tells about itself.

use onefold_nand::Media;
use onefold_ssd::HostStats;
use onefold_ssd::zns::{Zns, ZnsStats, ZoneLimits, ZoneState};
use onefold_units::convert::{float, u64_from};
use onefold_units::{PAGE_BYTES, ZoneId};

/// Everything that is known of a zoned namespace, taken at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ZonedDetails {
    /// Zones.
    pub zones: u32,
    /// Bytes between the starts of two zones.
    pub zone_bytes: u64,
    /// Bytes of a zone that can be written.
    pub capacity_bytes: u64,
    /// Open and active zones at most.
    pub limits: ZoneLimits,
    /// Open and active zones.
    pub resources: (u32, u32),
    /// Zones by state, in the order of [`ZoneState::ALL`].
    pub by_state: [u32; ZoneState::ALL.len()],
    /// Bytes written to the zones since their last resets.
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

impl ZonedDetails {
    pub(super) fn of<M: Media>(zns: &Zns<M>) -> Self {
        let config = zns.config();
        let mut by_state = [0; ZoneState::ALL.len()];
        let (mut written, mut resets) = (0, 0);
        for zone in (0..config.zones).filter_map(|zone| zns.zone(ZoneId::new(zone))) {
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
