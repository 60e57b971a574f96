//! A backing that answers at once: for making, opening and checking volumes, and for tests.

use std::collections::BTreeMap;

use onefold_format::volume::{BlockError, Extent};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Location, Nanos, ZoneId};

use crate::engine::Engine;
use crate::error::MountError;
use crate::io::{Buffer, Io, IoFailed, IoKind, Relocation};
use crate::limits::BLOCK;
use crate::zones::{ZoneReport, ZoneStatus};

/// Blocks of one piece, at most: 1 MiB.
pub(crate) const PIECE_BLOCKS_MAX: u32 = 256;

/// Blocks that opening has in memory at a time, at most: 32 MiB.
const READ_BLOCKS_MAX: u32 = 8192;

/// Blocks that lie side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The first one.
    pub at: u64,
    /// How many.
    pub blocks: u32,
}

/// How long a volume may need to settle on a backing that fails.
const SETTLE_MAX: Nanos = Nanos::new(100_000_000_000);

/// Blocks of 4 KiB that can be read and written. `at` counts blocks.
pub trait Backing {
    /// Fills `bytes`, whole blocks, from block `at` on.
    fn read(&mut self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed>;

    /// Reads several pieces and gives them in their order. One with a deep queue has all of them under way at once.
    fn read_all(&mut self, pieces: &[Piece]) -> Vec<Result<Buffer, IoFailed>> {
        let read = |piece: &Piece| {
            let mut buffer = Buffer::new(bytes_of(piece.blocks));
            self.read(piece.at, buffer.bytes_mut()).map(|()| buffer)
        };
        pieces.iter().map(read).collect()
    }

    /// Stores `bytes`, whole blocks, from block `at` on.
    fn write(&mut self, at: u64, bytes: &[u8]) -> Result<(), IoFailed>;

    /// Makes all that was written durable.
    fn flush(&mut self) -> Result<(), IoFailed>;

    /// The blocks hold nothing any more.
    fn trim(&mut self, at: u64, blocks: u64) -> Result<(), IoFailed>;

    /// Lets blocks hold what others hold without moving data. One that cannot fails.
    fn remap(&mut self, list: &[Relocation]) -> Result<(), IoFailed> {
        let _ = list;
        Err(IoFailed::Error)
    }

    /// What the backing says of its zones now; `None` if it has none. A volume asks each time it is opened.
    fn zones(&mut self) -> Result<Option<ZoneReport>, IoFailed> {
        Ok(None)
    }

    /// What the backing says of one zone now.
    fn zone(&mut self, zone: ZoneId) -> Result<ZoneStatus, IoFailed> {
        Ok(self.zones()?.ok_or(IoFailed::Error)?.status(zone.raw()))
    }

    /// Empties a zone.
    fn reset(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let _ = zone;
        Err(IoFailed::Error)
    }

    /// A zone takes no more writes until it is reset.
    fn finish(&mut self, zone: ZoneId) -> Result<(), IoFailed> {
        let _ = zone;
        Err(IoFailed::Error)
    }
}

/// Carries out one request of a volume.
pub fn execute<E: Engine + ?Sized>(
    volume: &mut E,
    backing: &mut dyn Backing,
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
        IoKind::Report => backing.zone(io.zone()).map(|zone| volume.zone_reported(io.id, zone)),
    }
}

/// Carries out everything that a volume asks for now. Gives the number of requests.
pub fn drive<E: Engine + ?Sized>(volume: &mut E, backing: &mut dyn Backing, now: Nanos) -> u64 {
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
pub(crate) fn turn<E: Engine + ?Sized>(
    volume: &mut E,
    backing: &mut dyn Backing,
    now: Nanos,
) -> u64 {
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
pub fn settle<E: Engine + ?Sized>(volume: &mut E, backing: &mut dyn Backing, now: Nanos) -> bool {
    let (mut now, last) = (now, now + SETTLE_MAX);
    while volume.is_settling() && volume.frozen().is_none() {
        let before = volume.stats().checkpoints;
        let requests = turn(volume, backing, now);
        if requests > 0 || volume.stats().checkpoints > before {
            continue;
        }
        // What failed is sent again after a pause.
        match volume.poll_timeout() {
            Some(due) if volume.stats().failed_requests > 0 && now < due && due < last => now = due,
            _ => break,
        }
    }
    !volume.is_settling()
}

/// Reads one block.
///
/// # Errors
/// The backing failed.
pub(crate) fn read_block(backing: &mut dyn Backing, at: u64) -> Result<Box<[u8; BLOCK]>, IoFailed> {
    let mut block = Box::new([0; BLOCK]);
    backing.read(at, &mut block[..]).map(|()| block)
}

/// Reads pieces, as many at once as may be in memory, and hands each to `each`, in their order.
pub(crate) fn read_pieces(
    backing: &mut dyn Backing,
    pieces: &[Piece],
    mut each: impl FnMut(usize, Result<Buffer, IoFailed>) -> Result<(), MountError>,
) -> Result<(), MountError> {
    let mut done = 0;
    while done < pieces.len() {
        let mut blocks = 0;
        let fits = |piece: &&Piece| {
            blocks += piece.blocks;
            blocks <= READ_BLOCKS_MAX
        };
        let end = done + pieces[done..].iter().take_while(fits).count().max(1);
        for result in backing.read_all(&pieces[done..end]) {
            each(done, result)?;
            done += 1;
        }
    }
    Ok(())
}

/// Reads blocks wherever they lie, and hands each to `each`, in their order. `what` names them where one cannot be read.
pub(crate) fn fetch_each(
    backing: &mut dyn Backing,
    what: &'static str,
    places: &[Location],
    mut each: impl FnMut(usize, &[u8]) -> Result<(), MountError>,
) -> Result<(), MountError> {
    let mut pieces: Vec<Piece> = Vec::new();
    for at in places.iter().map(|at| u64::from(at.raw())) {
        match pieces.last_mut() {
            Some(last)
                if last.at + u64::from(last.blocks) == at && last.blocks < PIECE_BLOCKS_MAX =>
            {
                last.blocks += 1;
            }
            _ => pieces.push(Piece { at, blocks: 1 }),
        }
    }
    let mut done = 0;
    read_pieces(backing, &pieces, |piece, result| {
        let at = pieces[piece].at;
        let buffer = result.map_err(|_| MountError::Read { what, at })?;
        for block in buffer.bytes().chunks(BLOCK) {
            each(done, block)?;
            done += 1;
        }
        Ok(())
    })
}

/// Reads one block. `what` names it where it cannot be read.
///
/// # Errors
/// It cannot be read.
pub fn fetch(
    backing: &mut dyn Backing,
    what: &'static str,
    at: Location,
) -> Result<Box<[u8; BLOCK]>, MountError> {
    let at = u64::from(at.raw());
    read_block(backing, at).map_err(|_| MountError::Read { what, at })
}

/// The error for a block of `what` at `at` that could be read and cannot be used.
pub fn damaged(what: &'static str, at: Location) -> impl Fn(BlockError) -> MountError {
    move |why| MountError::Damaged { what, at: at.raw().into(), why }
}

/// Every block of some extents, in their order.
#[must_use]
pub fn locations(extents: &[Extent]) -> Vec<Location> {
    let of = |extent: &Extent| {
        let first = extent.location.raw();
        (first..first.saturating_add(extent.blocks)).map(Location::new)
    };
    extents.iter().flat_map(of).collect()
}

/// Blocks that were read ahead: some that lie side by side, and single ones.
#[derive(Debug, Default)]
pub(crate) struct Window {
    first: u64,
    buffer: Buffer,
    single: BTreeMap<u64, Buffer>,
}

impl Window {
    pub(crate) const fn new(first: u64, buffer: Buffer) -> Self {
        Self { first, buffer, single: BTreeMap::new() }
    }

    /// Reads single blocks at once, if the first of them was not read yet. Those that cannot be read are left for [`Window::block`].
    pub(crate) fn read_single(&mut self, backing: &mut dyn Backing, places: &[u64]) {
        if places.first().is_none_or(|first| self.has(*first)) {
            return;
        }
        let pieces: Vec<Piece> = places.iter().map(|at| Piece { at: *at, blocks: 1 }).collect();
        let read = backing.read_all(&pieces).into_iter().zip(places);
        self.single = read.filter_map(|(block, at)| Some((*at, block.ok()?))).collect();
    }

    fn has(&self, at: u64) -> bool {
        let blocks = u64_from(self.buffer.bytes().len() / BLOCK);
        (self.first..self.first + blocks).contains(&at) || self.single.contains_key(&at)
    }

    /// A block. If it has to be read, `ahead` blocks are read from there on; where that fails, it alone.
    pub(crate) fn block(
        &mut self,
        backing: &mut dyn Backing,
        at: u64,
        ahead: u32,
    ) -> Result<&[u8], IoFailed> {
        if !self.has(at) {
            let mut read = |blocks| {
                let mut buffer = Buffer::new(bytes_of(blocks));
                backing.read(at, buffer.bytes_mut()).map(|()| buffer)
            };
            let buffer = match read(ahead.max(1)) {
                Err(IoFailed::Error) if ahead > 1 => read(1)?,
                result => result?,
            };
            *self = Self::new(at, buffer);
        }
        if let Some(block) = self.single.get(&at) {
            return Ok(block.bytes());
        }
        let from = index64(at - self.first) * BLOCK;
        Ok(&self.buffer.bytes()[from..from + BLOCK])
    }
}

/// Bytes of a number of blocks.
#[must_use]
pub fn bytes_of(blocks: u32) -> usize {
    index(blocks) * BLOCK
}
