//! Requests of a load as commands of a zoned namespace.

use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::{Select, Zns, ZnsError, ZoneAction, ZoneState};
use onefold_ssd::{Completion, HostStats, Payload};
use onefold_units::convert::narrow;
use onefold_units::{Nanos, Op, ZoneId};

const BLOCK: u64 = 4096;

/// A zoned namespace as the load sees it.
pub(super) struct ZonedHost {
    pub(super) zns: Zns<NullMedia>,
    /// What the load asked for, trims included.
    pub(super) host: HostStats,
}

/// Why a request was not carried out.
pub(super) enum Refused {
    /// It is not in whole blocks.
    Alignment,
    /// This.
    Zone(ZnsError),
}

impl From<ZnsError> for Refused {
    fn from(error: ZnsError) -> Self {
        Self::Zone(error)
    }
}

impl ZonedHost {
    pub(super) fn new(zns: Zns<NullMedia>) -> Self {
        Self { zns, host: HostStats::default() }
    }

    fn capacity(&self) -> u64 {
        self.zns.config().capacity_blocks.into()
    }

    /// Bytes that the load can address.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.zns.config().zones) * self.capacity() * BLOCK
    }

    /// Carries out a request.
    pub(super) fn submit(
        &mut self,
        now: Nanos,
        op: Op,
        fua: bool,
        offset: u64,
        len: u64,
    ) -> Result<Completion, Refused> {
        if !(offset | len).is_multiple_of(BLOCK) {
            return Err(Refused::Alignment);
        }
        self.host.count(op, len / BLOCK);
        if op == Op::Flush {
            return Ok(self.zns.flush(now)?);
        }
        let capacity = self.capacity();
        let (mut block, end) = (offset / BLOCK, (offset + len) / BLOCK);
        let mut all = Completion { at: now, delay: Delay::None };
        while block < end {
            let (zone, at) = (ZoneId::new(narrow(block / capacity)), block % capacity);
            let count = (capacity - at).min(end - block);
            let done = match op {
                Op::Read => self.read(now, zone, at, count)?,
                Op::Write => self.write(now, zone, at, count, fua)?,
                _ if count == capacity => self.reset(now, zone)?,
                _ => all,
            };
            all = join(all, done);
            block += count;
        }
        Ok(all)
    }

    fn read(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        at: u64,
        count: u64,
    ) -> Result<Completion, ZnsError> {
        self.zns.read(now, self.lba(zone, at), narrow(count), &mut [])
    }

    fn write(
        &mut self,
        now: Nanos,
        zone: ZoneId,
        at: u64,
        count: u64,
        fua: bool,
    ) -> Result<Completion, ZnsError> {
        let reset = match at {
            0 => self.reset(now, zone)?,
            _ => Completion { at: now, delay: Delay::None },
        };
        let lba = self.lba(zone, at);
        let written = self.zns.write(now, lba, narrow(count), fua, &Payload::None)?;
        Ok(join(reset, written))
    }

    /// Resets a zone that holds something.
    fn reset(&mut self, now: Nanos, zone: ZoneId) -> Result<Completion, ZnsError> {
        let lba = self.lba(zone, 0);
        match self.zns.zone(zone) {
            Some(info) if info.write_pointer != Some(lba) && info.state != ZoneState::Offline => {
                self.zns.manage(now, Select::One(zone), ZoneAction::Reset)
            }
            _ => Ok(Completion { at: now, delay: Delay::None }),
        }
    }

    fn lba(&self, zone: ZoneId, at: u64) -> u64 {
        u64::from(zone.raw()) * u64::from(self.zns.config().zone_blocks) + at
    }

    /// Writes a share of the zones, from the first on.
    pub(super) fn fill(&mut self, share: f64) -> Result<(), ZnsError> {
        self.zns.set_timed(false);
        let zones = self.zns.config().zones;
        let total = onefold_units::convert::float(u64::from(zones) * self.capacity());
        let mut left = onefold_units::convert::floor_u64(share * total + 0.5);
        for zone in (0..zones).cycle().map(ZoneId::new) {
            let count = left.min(self.capacity());
            if count == 0 {
                break;
            }
            self.write(Nanos::ZERO, zone, 0, count, false)?;
            left -= count;
        }
        self.zns.set_timed(true);
        Ok(())
    }
}

fn join(a: Completion, b: Completion) -> Completion {
    Completion { at: a.at.max(b.at), delay: a.delay.max(b.delay) }
}
