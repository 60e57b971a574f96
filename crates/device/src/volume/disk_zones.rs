//! Zones of a block device of the kernel: host-managed drives, zoned namespaces of NVMe and the like.
//!
//! 1. A device has zones if the kernel reports any, whatever sysfs says; sysfs tells only how many may be open and active.
//! 2. Zones that prefer sequential writes are written like those that require them.
//! 3. A last zone that is shorter than the others is left alone.

use std::io;
use std::path::PathBuf;

use onefold_units::convert::{index, narrow, u64_from};
use onefold_units::{PAGE_BYTES, ZoneId, ZoneState};
use onefold_volume::{ZoneReport, ZoneStatus};

use super::kernel::{BlkZone, BlkZoneReport, REPORT_ZONES};

/// Sectors of a block of 4 KiB.
const BLOCK_SECTORS: u64 = PAGE_BYTES / 512;

/// `BLK_ZONE_REP_CAPACITY`: the report says what zones take.
const HAS_CAPACITY: u32 = 1;

/// `BLK_ZONE_TYPE_CONVENTIONAL`.
const CONVENTIONAL: u8 = 1;

/// Zones of a device that never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskZones {
    zone_blocks: u32,
    max_open: Option<u32>,
    max_active: Option<u32>,
}

/// Asks the kernel for zones from a sector on; `false` where it knows of none.
type Ask<'a> = dyn FnMut(&mut BlkZoneReport) -> io::Result<bool> + 'a;

fn blank() -> Box<BlkZoneReport> {
    let zones = [BlkZone::default(); REPORT_ZONES];
    Box::new(BlkZoneReport { sector: 0, nr_zones: 0, flags: 0, zones })
}

fn refused(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what)
}

impl DiskZones {
    /// The zones of a device with this number; `None` if it has none (invariant 1).
    pub(super) fn find(ask: &mut Ask<'_>, number: (u32, u32)) -> io::Result<Option<Self>> {
        let mut reply = blank();
        if !ask(&mut reply)? || reply.nr_zones == 0 {
            return Ok(None);
        }
        let len = reply.zones[0].len;
        let blocks = u32::try_from(len / BLOCK_SECTORS).ok().filter(|blocks| *blocks > 0);
        let zone_blocks =
            blocks.filter(|_| len.is_multiple_of(BLOCK_SECTORS)).ok_or_else(|| {
                refused(format!(
                    "zones of {len} sectors of 512 B; expected a multiple of {BLOCK_SECTORS}"
                ))
            })?;
        let (max_open, max_active) =
            (limit(number, "max_open_zones"), limit(number, "max_active_zones"));
        Ok(Some(Self { zone_blocks, max_open, max_active }))
    }

    /// First sector of a zone, and the sectors of one.
    pub(super) fn sectors(&self, zone: ZoneId) -> (u64, u64) {
        let len = u64::from(self.zone_blocks) * BLOCK_SECTORS;
        (u64::from(zone.raw()) * len, len)
    }

    /// What the kernel says of one zone now.
    pub(super) fn status(&self, ask: &mut Ask<'_>, zone: ZoneId) -> io::Result<ZoneStatus> {
        let (start, len) = self.sectors(zone);
        let mut reply = blank();
        reply.sector = start;
        let found = ask(&mut reply)? && reply.nr_zones > 0;
        let first = reply.zones[0];
        if !found || (first.start, first.len) != (start, len) {
            return Err(refused(format!("no zone at sector {start}")));
        }
        status_of(&first, reply.flags & HAS_CAPACITY != 0)
    }

    /// What the kernel says of all zones now.
    pub(super) fn report(&self, ask: &mut Ask<'_>) -> io::Result<ZoneReport> {
        let (_, len) = self.sectors(ZoneId::new(0));
        let mut reply = blank();
        let mut zones = Vec::new();
        loop {
            reply.sector = u64_from(zones.len()) * len;
            let found = if ask(&mut reply)? { index(reply.nr_zones).min(REPORT_ZONES) } else { 0 };
            let whole: Vec<_> =
                reply.zones[..found].iter().take_while(|zone| zone.len == len).collect();
            let has_capacity = reply.flags & HAS_CAPACITY != 0;
            for zone in &whole {
                if zone.start != u64_from(zones.len()) * len {
                    return Err(refused(format!(
                        "zone {} begins at sector {}",
                        zones.len(),
                        zone.start
                    )));
                }
                zones.push(status_of(zone, has_capacity)?);
            }
            // Invariant 3.
            if whole.len() < REPORT_ZONES {
                break;
            }
        }
        let Self { zone_blocks, max_open, max_active } = *self;
        Ok(ZoneReport { zone_blocks, max_open, max_active, zones })
    }
}

/// What a zone is, in blocks. One that takes no whole number of them takes as many as fit.
fn status_of(zone: &BlkZone, has_capacity: bool) -> io::Result<ZoneStatus> {
    let conventional = zone.kind == CONVENTIONAL;
    let state = state_of(zone.cond).ok_or_else(|| {
        refused(format!("the zone at sector {} has condition {}", zone.start, zone.cond))
    })?;
    let capacity = if has_capacity { zone.capacity } else { zone.len };
    let blocks = |sectors: u64| narrow(sectors / BLOCK_SECTORS);
    if conventional {
        return Ok(ZoneStatus::conventional(state, blocks(capacity)));
    }
    // Nothing but whole blocks is written, by us; what somebody else left is the next block.
    let written = zone.wp.saturating_sub(zone.start).div_ceil(BLOCK_SECTORS);
    let written = if state == ZoneState::Empty { 0 } else { narrow(written) };
    Ok(ZoneStatus { conventional: false, state, written, capacity: blocks(capacity) })
}

/// `enum blk_zone_cond`.
const fn state_of(cond: u8) -> Option<ZoneState> {
    Some(match cond {
        0 => ZoneState::NotWritePointer,
        0xE => ZoneState::Full,
        1 => ZoneState::Empty,
        2 => ZoneState::ImplicitlyOpen,
        3 => ZoneState::ExplicitlyOpen,
        4 => ZoneState::Closed,
        0xD => ZoneState::ReadOnly,
        0xF => ZoneState::Offline,
        _ => return None,
    })
}

/// A limit of the queue of a device in sysfs. Before Linux 5.9 nobody tells; 0 is none.
fn limit((major, minor): (u32, u32), name: &str) -> Option<u32> {
    let queue = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/queue"));
    let text = std::fs::read_to_string(queue.join(name)).ok()?;
    text.trim().parse().ok().filter(|limit| *limit > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers as the kernel does for a device of these zones.
    fn device(zones: &[BlkZone], flags: u32) -> impl FnMut(&mut BlkZoneReport) -> io::Result<bool> {
        move |reply| {
            let behind = zones.iter().filter(|zone| zone.start + zone.len > reply.sector);
            let part: Vec<_> = behind.take(REPORT_ZONES).copied().collect();
            reply.zones[..part.len()].copy_from_slice(&part);
            (reply.nr_zones, reply.flags) = (narrow(u64_from(part.len())), flags);
            Ok(true)
        }
    }

    /// Zones of 2 MiB of which 1 MiB can be written, one in each condition, and a shorter one.
    fn zones(count: u64) -> Vec<BlkZone> {
        let conditions = [1, 2, 3, 4, 0xD, 0xE, 0xF];
        let zone = |n: u64| BlkZone {
            start: n * 4096,
            len: if n + 1 == count { 1024 } else { 4096 },
            wp: n * 4096 + 24,
            kind: 2 + u8::try_from(n % 2).unwrap(),
            cond: conditions[index(narrow(n)) % 7],
            capacity: 2048,
            ..BlkZone::default()
        };
        (0..count).map(zone).collect()
    }

    fn report(zones: &[BlkZone], flags: u32) -> io::Result<ZoneReport> {
        let mut ask = device(zones, flags);
        DiskZones::find(&mut ask, (0, 0))?.expect("zones").report(&mut ask)
    }

    #[test]
    fn what_the_kernel_says_is_told_in_blocks() {
        let found = report(&zones(8), HAS_CAPACITY).unwrap();
        assert_eq!((found.zone_blocks, found.max_open, found.max_active), (512, None, None));
        let state: Vec<_> = found.zones.iter().map(|zone| zone.state.name()).collect();
        let names = "empty, implicitly open, explicitly open, closed, read only, full, offline";
        assert_eq!(state.join(", "), names, "the short one is left alone");
        let written: Vec<_> = found.zones.iter().map(|zone| zone.written).collect();
        assert_eq!(written[..4], [0, 3, 3, 3]);
        assert_eq!(found.capacity().unwrap(), 256);
        assert_eq!(report(&zones(8), 0).unwrap().capacity().unwrap(), 512, "before Linux 5.9");
    }

    #[test]
    fn conventional_zones_have_no_write_pointer_and_may_take_more() {
        let mut zones = zones(5);
        zones[1] = BlkZone { kind: CONVENTIONAL, cond: 0, capacity: 4096, ..zones[1] };
        let found = report(&zones, HAS_CAPACITY).unwrap();
        let kinds: Vec<_> = found.zones.iter().map(|zone| zone.conventional).collect();
        assert_eq!(kinds, [false, true, false, false]);
        assert_eq!((found.zones[1].state, found.capacity().unwrap()), (ZoneState::Full, 256));
    }

    #[test]
    fn many_zones_take_several_reports() {
        let most = u64_from(REPORT_ZONES);
        for count in [most, most + 1, most + 2, 2 * most + 1, 2 * most + 7] {
            let found = report(&zones(count), HAS_CAPACITY).unwrap();
            assert_eq!(u64_from(found.zones.len()), count - 1);
        }
    }

    #[test]
    fn one_zone_is_told_as_in_the_report_of_all() {
        let zones = zones(300);
        let mut ask = device(&zones, HAS_CAPACITY);
        let found = DiskZones::find(&mut ask, (0, 0)).unwrap().expect("zones");
        let all = found.report(&mut ask).unwrap();
        for zone in [0, 1, 127, 128, 298] {
            let one = found.status(&mut ask, ZoneId::new(zone)).unwrap();
            assert_eq!(one, all.zones[index(zone)]);
        }
        for zone in [299, 300] {
            let error = found.status(&mut ask, ZoneId::new(zone)).unwrap_err().to_string();
            assert_eq!(error, format!("no zone at sector {}", zone * 4096));
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        let with = |change: fn(&mut BlkZone)| {
            let mut zones = zones(4);
            change(&mut zones[1]);
            report(&zones, HAS_CAPACITY).unwrap_err().to_string()
        };
        assert!(with(|zone| zone.cond = 7).contains("condition 7"));
        assert!(with(|zone| zone.start += 8).contains("zone 1 begins at sector 4104"));
        let odd = BlkZone { len: 4097, ..zones(2)[0] };
        let error = DiskZones::find(&mut device(&[odd], 0), (0, 0)).unwrap_err().to_string();
        assert!(error.contains("4097 sectors"), "{error}");
        assert_eq!(DiskZones::find(&mut |_| Ok(false), (0, 0)).unwrap(), None);
    }
}
