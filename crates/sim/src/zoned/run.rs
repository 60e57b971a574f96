//! The run of a load on a zoned namespace: its requests as commands.

use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::{
    Select, Zns, ZnsConfig, ZnsError, ZnsMedia, ZnsStats, ZoneAction, ZoneInfo, ZoneState,
};
use onefold_ssd::{Command, Completion, HostStats, Payload};
use onefold_units::convert::narrow;
use onefold_units::{Nanos, Op, ZoneId};

use super::outcome::{self, Finished};
use crate::SimError;
use crate::at_once::{self, AtOnce};
use crate::control::Control;
use crate::cpu::thread_cpu_s;
use crate::gathered::Gathered;
use crate::precondition::Preconditioned;
use crate::result::RunResult;
use crate::series::Windowed;
use crate::setup::Setup;
use crate::source::Source;

const BLOCK: u64 = 4096;

/// Runs a setup on a zoned namespace.
pub(crate) fn simulate(
    setup: &Setup,
    config: &ZnsConfig,
    control: &Control<'_>,
) -> Result<RunResult, SimError> {
    let mut device = ZonedHost::new(Zns::new(*config, ZnsMedia::NULL)?);
    let mut gathered = Gathered::default();
    let tenants = gathered.tenants(setup, device.bytes(), control)?;
    let begin = thread_cpu_s();
    device.fill(setup.config.precondition().fill, control)?;
    let preconditioned =
        Preconditioned { cpu_s: thread_cpu_s() - begin, ..Preconditioned::default() };
    let (device, ran) = at_once::run(device, tenants, &setup.config.run(), None, control)?;
    let ((zns, host), ran) = ran.split();
    let finished = Finished {
        stats: device.zns.stats().since(&zns),
        host: device.host.since(&host),
        executed: device.host.requests(),
        bytes: device.bytes(),
        zns: device.zns,
        regular: None,
        ran,
        preconditioned,
        gathered,
        volume: None,
    };
    outcome::result(setup, finished)
}

/// A zoned namespace as the load sees it.
struct ZonedHost {
    zns: Zns<NullMedia>,
    /// What the load asked for, trims included.
    host: HostStats,
}

impl AtOnce for ZonedHost {
    type Counters = (ZnsStats, HostStats);
    type Error = Refused;

    fn device(&self) -> &impl Windowed {
        &self.zns
    }

    fn host(&self) -> &HostStats {
        &self.host
    }

    fn counters(&self) -> Self::Counters {
        (self.zns.stats(), self.host)
    }

    fn submit(
        &mut self,
        now: Nanos,
        command: &Command,
        _source: &mut Source,
    ) -> Result<Completion, Refused> {
        self.carry_out(now, command)
    }

    fn fails_alone(error: &Refused) -> bool {
        matches!(error, Refused::Zone(error) if error.is_unreadable())
    }

    fn error(refused: Refused, request: u64, command: &Command) -> SimError {
        let Command { op, len, offset, .. } = command;
        let what = format!("{} of {len} B at byte {offset}", op.name());
        match refused {
            Refused::Alignment => SimError::ZoneAlignment { request, what },
            Refused::Zone(source) => SimError::Zone { request, what, source },
        }
    }
}

/// Why a request was not carried out.
enum Refused {
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
    fn new(zns: Zns<NullMedia>) -> Self {
        Self { zns, host: HostStats::default() }
    }

    /// Bytes that the load can address.
    fn bytes(&self) -> u64 {
        self.zns.config().writable_blocks() * BLOCK
    }

    /// The zone of a block of the load, and where in it that is.
    fn place(&self, block: u64) -> Result<(ZoneInfo, u64), ZnsError> {
        let config = self.zns.config();
        let (conventional, size) = (config.conventional_zones(), u64::from(config.zone_blocks));
        let front = u64::from(conventional) * size;
        let (zone, at) = match block.checked_sub(front) {
            None => (narrow(block / size), block % size),
            Some(behind) => {
                let capacity = u64::from(config.capacity_blocks);
                (conventional + narrow(behind / capacity), behind % capacity)
            }
        };
        let capacity = self.zns.blocks();
        let missing = ZnsError::LbaOutOfRange { lba: block, blocks: 1, capacity };
        Ok((self.zns.zone(ZoneId::new(zone)).ok_or(missing)?, at))
    }

    /// Carries out a request.
    fn carry_out(&mut self, now: Nanos, command: &Command) -> Result<Completion, Refused> {
        let Command { op, fua, offset, len, .. } = *command;
        if !(offset | len).is_multiple_of(BLOCK) {
            return Err(Refused::Alignment);
        }
        self.host.count(op, len / BLOCK);
        if op == Op::Flush {
            return Ok(self.zns.flush(now)?);
        }
        let (mut block, end) = (offset / BLOCK, (offset + len) / BLOCK);
        let mut all = Completion { at: now, delay: Delay::None };
        while block < end {
            let (zone, at) = self.place(block)?;
            let capacity = u64::from(zone.capacity);
            let count = (capacity - at).min(end - block);
            let lba = zone.start + at;
            let done = match op {
                Op::Read => self.zns.read(now, lba, narrow(count), &mut [])?,
                Op::Write => self.write(now, zone, at, count, fua)?,
                _ if zone.conventional => self.zns.deallocate(now, lba, narrow(count))?,
                _ if count == capacity => self.reset(now, zone)?,
                _ => all,
            };
            all = join(all, done);
            block += count;
        }
        Ok(all)
    }

    fn write(
        &mut self,
        now: Nanos,
        zone: ZoneInfo,
        at: u64,
        count: u64,
        fua: bool,
    ) -> Result<Completion, ZnsError> {
        let reset = match at {
            0 => self.reset(now, zone)?,
            _ => Completion { at: now, delay: Delay::None },
        };
        let written = self.zns.write(now, zone.start + at, narrow(count), fua, &Payload::None)?;
        Ok(join(reset, written))
    }

    /// Resets a zone with a write pointer that holds something.
    fn reset(&mut self, now: Nanos, zone: ZoneInfo) -> Result<Completion, ZnsError> {
        let holds = zone.write_pointer != Some(zone.start) && zone.state != ZoneState::Offline;
        if holds && !zone.conventional {
            return self.zns.manage(now, Select::One(zone.zone), ZoneAction::Reset);
        }
        Ok(Completion { at: now, delay: Delay::None })
    }

    /// Writes a share of the zones, from the first on.
    fn fill(&mut self, share: f64, control: &Control<'_>) -> Result<(), SimError> {
        let failed = |source| {
            let what = "preconditioning".to_owned();
            SimError::Zone { request: 0, what, source }
        };
        self.zns.set_timed(false);
        let blocks = self.zns.config().writable_blocks();
        let total = onefold_units::convert::float(blocks);
        let mut left = onefold_units::convert::floor_u64(share * total + 0.5);
        let mut block = 0;
        while left > 0 {
            control.go_on()?;
            let (zone, at) = self.place(block % blocks).map_err(failed)?;
            let count = left.min(zone.capacity.into());
            self.write(Nanos::ZERO, zone, at, count, false).map_err(failed)?;
            left -= count;
            block += count;
        }
        self.zns.set_timed(true);
        Ok(())
    }
}

fn join(a: Completion, b: Completion) -> Completion {
    Completion { at: a.at.max(b.at), delay: a.delay.max(b.delay) }
}
