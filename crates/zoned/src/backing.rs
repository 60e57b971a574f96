//! Devices that answer at once: for making and opening volumes, and for tests.

use onefold_units::Nanos;
use onefold_units::convert::index;

use crate::io::{Io, IoFailed, IoKind};
use crate::volume::Volume;
use crate::zones::Condition;

/// What a device says of a sequential zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneReport {
    /// Whether it can be used.
    pub condition: Condition,
    /// Blocks before its write pointer; nothing is meant by it unless the zone is good.
    pub written: u32,
}

/// Devices of 4 KiB blocks. `at` counts blocks on the device.
pub trait Backing {
    /// Fills `bytes`, whole blocks, from block `at` on.
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed>;

    /// Stores `bytes`, whole blocks, from block `at` on.
    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed>;

    /// Makes all that was written or reset durable.
    fn flush(&mut self, device: usize) -> Result<(), IoFailed>;

    /// Resets the sequential zone that begins at block `at`.
    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed>;

    /// What is known of the sequential zone that begins at block `at`.
    fn report(&mut self, device: usize, at: u64) -> Result<ZoneReport, IoFailed>;
}

impl<B: Backing + ?Sized> Backing for &mut B {
    fn read(&mut self, device: usize, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        (**self).read(device, at, bytes)
    }

    fn write(&mut self, device: usize, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        (**self).write(device, at, bytes)
    }

    fn flush(&mut self, device: usize) -> Result<(), IoFailed> {
        (**self).flush(device)
    }

    fn reset(&mut self, device: usize, at: u64) -> Result<(), IoFailed> {
        (**self).reset(device, at)
    }

    fn report(&mut self, device: usize, at: u64) -> Result<ZoneReport, IoFailed> {
        (**self).report(device, at)
    }
}

/// Carries out one request of a volume.
pub fn execute(volume: &mut Volume, backing: &mut dyn Backing, io: Io) -> Result<(), IoFailed> {
    let device = index(io.device);
    match io.kind {
        IoKind::Read => backing.read(device, io.at, volume.buffer_mut(io.id)),
        IoKind::Write => backing.write(device, io.at, volume.buffer(io.id)),
        IoKind::Flush => backing.flush(device),
        IoKind::Reset => backing.reset(device, io.at),
    }
}

/// Carries out everything that a volume asks for now. Gives the number of requests.
pub fn drive(volume: &mut Volume, backing: &mut dyn Backing, now: Nanos) -> u64 {
    let mut count = 0;
    while let Some(io) = volume.poll_io() {
        let result = execute(volume, backing, io);
        volume.completed(now, io.id, result);
        count += 1;
    }
    count
}
