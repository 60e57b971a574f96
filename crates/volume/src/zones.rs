//! What a zoned backing says of itself (zoned.md, section 2).

use onefold_units::ZoneState;

/// A zone as the backing reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneStatus {
    /// Where it is in its life.
    pub state: ZoneState,
    /// Blocks behind its start that were written: where the next write has to begin. Nothing where the zone is full, read-only or
    /// offline, as the backing does not say it then.
    pub written: u32,
    /// Blocks that can be written, from its start on.
    pub capacity: u32,
}

/// All zones of a backing. Zone `n` begins at block `n * zone_blocks`. All have to be written in order: conventional zones are
/// no part of a backing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Addresses of a zone in blocks of 4 KiB.
    pub zone_blocks: u32,
    /// Zones that may be open at once; `None`: all.
    pub max_open: Option<u32>,
    /// Zones that may be open or closed at once, that is written in part; `None`: all.
    pub max_active: Option<u32>,
    /// The zones in order.
    pub zones: Vec<ZoneStatus>,
}
