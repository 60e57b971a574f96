//! A backing that answers at once: for making, opening and checking volumes, and for tests.

use onefold_units::convert::index;
use onefold_units::{Nanos, ZoneId};

use crate::engine::Engine;
use crate::io::{Io, IoFailed, IoKind, Relocation};
use crate::log::BLOCK;
use crate::zones::ZoneReport;

/// Blocks of 4 KiB that can be read and written. `at` counts blocks.
pub trait Backing {
    /// Fills `bytes`, whole blocks, from block `at` on.
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed>;

    /// Stores `bytes`, whole blocks, from block `at` on.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed>;

    /// Makes all that was written durable.
    fn flush(&mut self) -> Result<(), IoFailed>;

    /// The blocks hold nothing any more.
    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed>;

    /// Lets blocks hold what others hold without moving data. One that cannot fails.
    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        let _ = list;
        Err(IoFailed)
    }

    /// What the backing says of its zones now; `None` if it has none. A volume asks each time it is opened.
    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        Ok(None)
    }

    /// Empties a zone.
    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let _ = zone;
        Err(IoFailed)
    }

    /// A zone takes no more writes until it is reset.
    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let _ = zone;
        Err(IoFailed)
    }
}

impl<B: Backing + ?Sized> Backing for &mut B {
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        (**self).read(at, bytes)
    }

    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        (**self).write(at, bytes)
    }

    fn flush(&mut self) -> Result<(), IoFailed> {
        (**self).flush()
    }

    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed> {
        (**self).trim(at, blocks)
    }

    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        (**self).remap(list)
    }

    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        (**self).zones()
    }

    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        (**self).reset(zone)
    }

    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        (**self).finish(zone)
    }
}

/// Carries out one request of a volume.
pub fn execute<E: Engine + ?Sized, B: Backing>(
    volume: &mut E,
    backing: &mut B,
    io: Io,
) -> Result<(), IoFailed> {
    let at = u64::from(io.at.raw());
    match io.kind {
        IoKind::Read => backing.read(at, volume.buffer_mut(io.id)),
        IoKind::Write => {
            let bytes = volume.buffer(io.id);
            let len = (index(io.blocks) * BLOCK).min(bytes.len());
            backing.write(at, &bytes[..len])
        }
        IoKind::Flush => backing.flush(),
        IoKind::Trim => backing.trim(at, u64::from(io.blocks)),
        IoKind::Remap => backing.remap(&volume.relocations(io.id)),
        IoKind::Reset => backing.reset(io.zone()),
        IoKind::Finish => backing.finish(io.zone()),
    }
}

/// Carries out everything that a volume asks for now. Gives the number of requests.
pub fn drive<E: Engine + ?Sized, B: Backing>(volume: &mut E, backing: &mut B, now: Nanos) -> u64 {
    let mut count = 0;
    loop {
        let requests = turn(volume, backing, now);
        if requests == 0 {
            return count;
        }
        count += requests;
    }
}

/// Lets a volume go on once, and carries out what it asks for then.
fn turn<E: Engine + ?Sized, B: Backing>(volume: &mut E, backing: &mut B, now: Nanos) -> u64 {
    let mut count = 0;
    volume.pump(now);
    while let Some(io) = volume.poll_io() {
        let result = execute(volume, backing, io);
        volume.completed(now, io.id, result);
        count += 1;
    }
    count
}

/// Drives a volume until the checkpoint under way or asked for is over. What it does in the background is left to who uses
/// it then. `false` if the volume froze without one.
pub fn settle<E: Engine + ?Sized, B: Backing>(volume: &mut E, backing: &mut B, now: Nanos) -> bool {
    while volume.is_settling() && volume.frozen().is_none() {
        let before = volume.stats().checkpoints;
        let requests = turn(volume, backing, now);
        if requests == 0 && volume.stats().checkpoints == before && volume.is_idle() {
            break;
        }
    }
    !volume.is_settling()
}

/// Reads one block.
pub(crate) fn read_block<B: Backing>(
    backing: &mut B,
    at: u64,
) -> Result<Box<[u8; BLOCK]>, IoFailed> {
    let mut block = Box::new([0; BLOCK]);
    backing.read(at, &mut block[..]).map(|()| block)
}

/// Bytes of a number of blocks.
pub(crate) fn bytes_of(blocks: u32) -> usize {
    index(blocks) * BLOCK
}
