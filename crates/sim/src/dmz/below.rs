//! The devices below a zoned volume.

use std::collections::BTreeMap;

use onefold_ftl::FtlStats;
use onefold_nand::{Delay, NullMedia};
use onefold_ssd::zns::{Select, Zns, ZoneAction, ZoneState};
use onefold_ssd::{Command, Completion, HostStats, Payload, Ssd};
use onefold_units::convert::{index, narrow, u64_from};
use onefold_units::{Cause, CauseCounts, Nanos, Op, ZoneId};
use onefold_zoned::{Backing, Condition, Io, IoFailed, IoKind, ZoneReport};

use crate::series::Windowed;

const BLOCK: u64 = 4096;

/// A zoned device, and a regular one before it unless the first has conventional zones.
pub(super) struct Below {
    pub(super) regular: Option<Ssd<NullMedia>>,
    pub(super) zns: Zns<NullMedia>,
    /// What was written while the volume was made, by device and block.
    kept: BTreeMap<(usize, u64), Vec<u8>>,
    /// What the zoned one was asked for.
    pub(super) zns_host: HostStats,
}

impl Below {
    pub(super) fn new(mut regular: Option<Ssd<NullMedia>>, mut zns: Zns<NullMedia>) -> Self {
        if let Some(regular) = &mut regular {
            regular.set_timed(false);
        }
        zns.set_timed(false);
        Self { regular, zns, kept: BTreeMap::new(), zns_host: HostStats::default() }
    }

    pub(super) fn set_timed(&mut self) {
        self.kept.clear();
        if let Some(regular) = &mut self.regular {
            regular.set_timed(true);
        }
        self.zns.set_timed(true);
    }

    /// What the devices were asked for, in their order.
    pub(super) fn received(&self) -> Vec<HostStats> {
        let regular = self.regular.as_ref().map(|regular| *regular.host_stats());
        regular.into_iter().chain([self.zns_host]).collect()
    }

    /// What the regular device did, nothing if there is none.
    pub(super) fn regular_stats(&self) -> FtlStats {
        self.regular.as_ref().map_or_else(FtlStats::default, |regular| regular.ftl().stats())
    }

    /// Carries out what the volume asks for. A failure is the volume's to handle.
    pub(super) fn execute(&mut self, now: Nanos, io: &Io) -> Result<Completion, IoFailed> {
        let op = match io.kind {
            IoKind::Read => Op::Read,
            IoKind::Write => Op::Write,
            IoKind::Flush => Op::Flush,
            IoKind::Reset => return self.reset_zone(now, io.at),
        };
        self.submit(now, index(io.device), op, io.at, io.blocks.into())
    }

    fn submit(
        &mut self,
        now: Nanos,
        device: usize,
        op: Op,
        at: u64,
        blocks: u64,
    ) -> Result<Completion, IoFailed> {
        if let Some(regular) = self.regular.as_mut().filter(|_| device == 0) {
            let (offset, len) = if op == Op::Flush { (0, 0) } else { (at * BLOCK, blocks * BLOCK) };
            let command = Command::new(op, offset, len);
            return regular.submit(now, &command, Payload::None).map_err(|_| IoFailed::Error);
        }
        self.zns_host.count(op, blocks);
        let done = match op {
            Op::Read => self.zns.read(now, at, narrow(blocks), &mut []),
            Op::Write => self.zns.write(now, at, narrow(blocks), false, &Payload::None),
            _ => self.zns.flush(now),
        };
        done.map_err(|_| IoFailed::Error)
    }

    fn zone(&self, at: u64) -> ZoneId {
        ZoneId::new(narrow(at / u64::from(self.zns.config().zone_blocks)))
    }

    fn reset_zone(&mut self, now: Nanos, at: u64) -> Result<Completion, IoFailed> {
        let zone = Select::One(self.zone(at));
        self.zns.manage(now, zone, ZoneAction::Reset).map_err(|_| IoFailed::Error)
    }
}

/// For making and opening the volume, before the devices have a clock.
impl Backing for Below {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        for (at, bytes) in (at..).zip(bytes.chunks_mut(4096)) {
            match self.kept.get(&(device, at)) {
                Some(kept) => bytes.copy_from_slice(kept),
                None => bytes.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        for (at, bytes) in (at..).zip(bytes.chunks(4096)) {
            self.kept.insert((device, at), bytes.to_vec());
        }
        let blocks = u64_from(bytes.len()) / BLOCK;
        self.submit(Nanos::ZERO, device, Op::Write, at, blocks).map(|_| ())
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        self.submit(Nanos::ZERO, device, Op::Flush, 0, 0).map(|_| ())
    }

    fn reset(&mut self, _device: usize, at: u64) -> Result<(), IoFailed> {
        self.reset_zone(Nanos::ZERO, at).map(|_| ())
    }

    fn report(&mut self, _device: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        let info = self.zns.zone(self.zone(at)).ok_or(IoFailed::Error)?;
        let condition = match info.state {
            ZoneState::ReadOnly => Condition::ReadOnly,
            ZoneState::Offline => Condition::Offline,
            _ => Condition::Good,
        };
        let end = info.start + u64::from(self.zns.config().zone_blocks);
        let written = narrow(info.write_pointer.unwrap_or(end) - info.start);
        Ok(ZoneReport { condition, written })
    }
}

/// Pages of all devices, empty zones of the zoned one.
impl Windowed for Below {
    fn programs(&self) -> CauseCounts {
        let mut sum = self.regular_stats().programs;
        add(&mut sum, &self.zns.stats().programs);
        sum
    }

    fn free(&self) -> u32 {
        self.zns.free()
    }
}

/// Adds counts of pages.
pub(crate) fn add(sum: &mut CauseCounts, other: &CauseCounts) {
    for cause in Cause::ALL {
        sum.add(cause, other.of(cause));
    }
}

/// When and why a command ends.
pub(super) fn told(done: Result<Completion, IoFailed>, now: Nanos) -> (Nanos, Delay, bool) {
    match done {
        Ok(done) => (done.at, done.delay, false),
        Err(IoFailed::Error | IoFailed::NoSpace) => (now, Delay::None, true),
    }
}
