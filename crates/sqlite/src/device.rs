//! A database on an Onefold device, without a file system in between.
//!
//! The file that SQLite opens is a *pointer* to the device (the module `pointer`). On the device lie, in bytes from its start:
//!
//! | at | what |
//! |---|---|
//! | 0 | the label, with the size of the database |
//! | 4096 | two blocks that hold the number of the database |
//! | 16,384 | the WAL, aligned, as many bytes as the label says |
//! | behind it | the database |
//!
//! A checkpoint remaps: pages of the database become those of the frames. Up to [`RUNS_MAX`] runs go with one command.
//!
//! # Invariants
//!
//! 1. The WAL begins with the header of an aligned WAL from `format` on. What the last connection deletes is only the frames.
//! 2. Writes to the WAL are held back ([`Held`]): a part of a block until a part of another block is written, and blocks that
//!    follow each other up to [`RUN_BYTES_MAX`]. All is written when a transaction ends (the page of its last frame, or its header
//!    if that is written again, or the end of the lock on the WAL), and when SQLite syncs. Only the connection that writes holds
//!    something, under SQLite's lock on the WAL; and what is held belongs to no transaction that is committed.
//! 3. No byte behind [`Label::database_bytes`] is part of the database. The label grows before what is behind its end is written,
//!    and is durable with the next sync, as the size of a file is.
//! 4. A block of 4 KiB is written as a whole or not at all: an Onefold device promises that.
//! 5. A remap counts once its first page was read and has the content of the frame. So a control export of another device, which
//!    opening finds by the two blocks, cannot make a checkpoint lose a page.

mod label;
mod pointer;
mod registry;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use onefold_format::VectorRange;
use onefold_units::convert::{index64, narrow, u64_from};

use crate::backing::Direct;
use crate::blocks::Blocks;
use crate::checkpoint::Run;
use crate::code::Code;
use crate::error::DeviceError;
use crate::header;
use crate::layout::{BLOCK_BYTES, Layout};
use crate::wal::Medium;

pub(crate) use label::{Found, Label};
pub(crate) use pointer::Pointer;
pub(crate) use registry::{open, opened};

/// Most runs of a remap command.
pub(crate) const RUNS_MAX: usize = onefold_format::REMAP_RANGES_MAX;

/// A block in memory.
const BLOCK: usize = index64(BLOCK_BYTES);
/// Where the two blocks with the number of the database lie.
const TWINS_AT: u64 = BLOCK_BYTES;
/// Where the WAL begins.
const WAL_AT: u64 = 4 * BLOCK_BYTES;
/// The smallest WAL: a header and two groups of 4 KiB pages.
pub(crate) const WAL_BYTES_MIN: u64 = 2 << 20;

/// A database on a device.
#[derive(Debug)]
pub(crate) struct Device<B = Direct> {
    blocks: B,
    wal_bytes: u64,
    state: Mutex<State>,
}

/// A WAL may be longer than it has to be by its room divided by this.
const WASTE_SHARE: u64 = 8;

/// Most bytes of blocks that are held back.
const RUN_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
struct State {
    label: Label,
    /// A block of which a part was written.
    part: Option<Held>,
    /// Whole blocks that follow each other.
    run: Option<Held>,
    /// The last frame header since that of the WAL, by where it lies.
    last_header_at: u64,
    /// The last frame header was that of a commit: its page ends the transaction.
    is_commit: bool,
}

/// Blocks that were written, but not to the disk (invariant 2).
#[derive(Debug)]
struct Held {
    at: u64,
    bytes: Vec<u8>,
}

impl Held {
    fn end(&self) -> u64 {
        self.at + u64_from(self.bytes.len())
    }

    /// What it has of a range.
    fn within(&self, at: u64, bytes: usize) -> Option<Self> {
        let (from, to) = (at.max(self.at), (at + u64_from(bytes)).min(self.end()));
        (from < to).then(|| {
            let held = &self.bytes[index64(from - self.at)..index64(to - self.at)];
            Self { at: from, bytes: held.to_vec() }
        })
    }

    /// Puts bytes where they belong. `false` if they neither lie in it nor follow it, or there would be too many.
    fn take(&mut self, bytes: &[u8], at: u64) -> bool {
        let Some(from) = at.checked_sub(self.at).map(index64) else { return false };
        let to = from + bytes.len();
        if from > self.bytes.len() || to > RUN_BYTES_MAX {
            return false;
        }
        self.bytes.resize(self.bytes.len().max(to), 0);
        self.bytes[from..to].copy_from_slice(bytes);
        true
    }
}

impl State {
    const fn new(label: Label) -> Self {
        Self { label, part: None, run: None, last_header_at: 0, is_commit: false }
    }

    /// What is held of a range.
    fn held(&self, at: u64, bytes: usize) -> Vec<Held> {
        let all = [&self.run, &self.part].into_iter().flatten();
        all.filter_map(|held| held.within(at, bytes)).collect()
    }
}

/// What block 0 of a disk is.
pub(crate) fn look(blocks: &impl Blocks) -> io::Result<Found> {
    let mut block = [0; BLOCK];
    blocks.read(&mut block, 0)?;
    Ok(Label::decode(&block))
}

impl<B: Blocks> Device<B> {
    /// Makes an empty database on a disk, which loses what it held.
    pub(crate) fn format(blocks: B, id: u128, wal_bytes: u64) -> io::Result<Self> {
        let label = Label { id, wal_bytes, database_bytes: 0 };
        let device = Self { blocks, wal_bytes, state: Mutex::new(State::new(label)) };
        let mut twin = [0; BLOCK];
        twin[..16].copy_from_slice(&id.to_le_bytes());
        for at in [TWINS_AT, TWINS_AT + BLOCK_BYTES] {
            device.blocks.write(&twin, at)?;
        }
        device.blocks.write(&empty_wal(), WAL_AT)?;
        device.blocks.sync()?;
        device.blocks.write(&label.encode(), 0)?;
        device.blocks.sync()?;
        Ok(device)
    }

    /// The database with that label. `None` if the control export is that of another disk.
    pub(crate) fn with_label(blocks: B, label: Label) -> io::Result<Option<Self>> {
        let twins =
            VectorRange { dst: TWINS_AT / BLOCK_BYTES + 1, src: TWINS_AT / BLOCK_BYTES, len: 1 };
        if !blocks.is_equal(twins)? {
            return Ok(None);
        }
        let state = Mutex::new(State::new(label));
        Ok(Some(Self { blocks, wal_bytes: label.wal_bytes, state }))
    }

    /// Number of the database.
    pub(crate) fn id(&self) -> u128 {
        self.state().label.id
    }

    /// Bytes of the database. Another process may have changed them.
    pub(crate) fn database_bytes(&self) -> io::Result<u64> {
        match look(&self.blocks)? {
            Found::Label(label) => {
                self.state().label = label;
                Ok(label.database_bytes)
            }
            Found::Damaged | Found::Nothing => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sets the bytes of the database.
    fn set_database_bytes(&self, bytes: u64) -> Result<(), Code> {
        if bytes > self.database_bytes_max() {
            return Err(Code::FULL);
        }
        let mut state = self.state();
        let label = Label { database_bytes: bytes, ..state.label };
        self.blocks.write(&label.encode(), 0).map_err(|error| write_code(&error))?;
        state.label = label;
        Ok(())
    }

    /// Lets the database have at least that many bytes (invariant 3).
    pub(crate) fn grow(&self, bytes: u64) -> Result<(), Code> {
        let known = self.state().label.database_bytes;
        if bytes <= known || bytes <= self.database_bytes().map_err(|_| Code::READ)? {
            return Ok(());
        }
        self.set_database_bytes(bytes)
    }

    /// Bytes that the database has room for.
    pub(crate) fn database_bytes_max(&self) -> u64 {
        self.blocks.bytes().saturating_sub(self.database_at())
    }

    const fn database_at(&self) -> u64 {
        WAL_AT + self.wal_bytes
    }

    /// Makes durable what was written, what is held back too.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.settle()?;
        self.blocks.sync()
    }

    /// Writes what is held back.
    pub(crate) fn settle(&self) -> io::Result<()> {
        let mut state = self.state();
        self.write_held(&mut state.run)?;
        self.write_held(&mut state.part)
    }

    /// The WAL as the last connection leaves it, durable.
    pub(crate) fn delete_wal(&self) -> io::Result<()> {
        let mut state = self.state();
        (state.part, state.run) = (None, None);
        self.blocks.write(&empty_wal(), WAL_AT)?;
        self.blocks.sync()
    }

    /// Fills `buffer` from a place of the WAL.
    pub(crate) fn read_wal(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        self.read(buffer, WAL_AT + at)
    }

    /// Writes to a place of the WAL, with what is held back if that ends a transaction.
    fn write_wal(&self, bytes: &[u8], at: u64, ends: bool) -> Result<(), Code> {
        if at.saturating_add(u64_from(bytes.len())) > self.wal_bytes {
            return Err(Code::FULL);
        }
        let written = self.write(bytes, WAL_AT + at);
        let settled = written.and_then(|()| if ends { self.settle() } else { Ok(()) });
        settled.map_err(|error| write_code(&error))
    }

    /// The WAL, as a file of constant size.
    pub(crate) const fn wal(&self) -> WalRegion<'_, B> {
        WalRegion(self)
    }

    /// The database, as a file.
    pub(crate) const fn database(&self) -> DatabaseRegion<'_, B> {
        DatabaseRegion(self)
    }

    /// Lets pages of the database be those of frames. `content` is that of the first page (invariant 5).
    pub(crate) fn clone_runs(
        &self,
        layout: Layout,
        runs: &[Run],
        content: &[u8],
    ) -> io::Result<()> {
        let page_bytes = layout.page_bytes();
        let range = |run: &Run| VectorRange {
            dst: (self.database_at() + u64::from(run.page - 1) * page_bytes) / BLOCK_BYTES,
            src: (WAL_AT + layout.page_at(u64::from(run.frame))) / BLOCK_BYTES,
            len: narrow(u64::from(run.pages) * page_bytes / BLOCK_BYTES),
        };
        let ranges: Vec<VectorRange> = runs.iter().map(range).collect();
        let end = runs.iter().map(|run| u64::from(run.page - 1 + run.pages) * page_bytes).max();
        self.grow(end.unwrap_or(0)).map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        self.blocks.remap(&ranges)?;
        let mut found = vec![0; content.len()];
        self.read(&mut found, ranges.first().map_or(0, |range| range.dst * BLOCK_BYTES))?;
        if found == content { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_held(&self, held: &mut Option<Held>) -> io::Result<()> {
        if let Some(blocks) = held {
            self.blocks.write(&blocks.bytes, blocks.at)?;
            *held = None;
        }
        Ok(())
    }

    /// Fills `buffer` from a place of the disk.
    fn read(&self, buffer: &mut [u8], at: u64) -> io::Result<()> {
        // What is written to the disk meanwhile has these bytes too.
        let held = self.state().held(at, buffer.len());
        let (first, end) = (at / BLOCK_BYTES * BLOCK_BYTES, at + u64_from(buffer.len()));
        if first == at && end.is_multiple_of(BLOCK_BYTES) {
            self.blocks.read(buffer, at)?;
        } else {
            let mut whole = vec![0; index64(end.next_multiple_of(BLOCK_BYTES) - first)];
            self.blocks.read(&mut whole, first)?;
            let from = index64(at - first);
            buffer.copy_from_slice(&whole[from..from + buffer.len()]);
        }
        for Held { at: held_at, bytes } in held {
            let from = index64(held_at - at);
            buffer[from..from + bytes.len()].copy_from_slice(&bytes);
        }
        Ok(())
    }

    /// Writes to a place of the disk, which is held back.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        let mut state = self.state();
        let (mut left, mut at) = (bytes, at);
        while !left.is_empty() {
            let to_end = index64(BLOCK_BYTES - at % BLOCK_BYTES);
            let is_whole = at.is_multiple_of(BLOCK_BYTES) && left.len() >= BLOCK;
            let count = if is_whole { left.len() / BLOCK * BLOCK } else { to_end.min(left.len()) };
            let (now, after) = left.split_at(count.min(RUN_BYTES_MAX));
            if is_whole {
                self.hold_whole(&mut state, now, at)?;
            } else {
                self.hold_part(&mut state, now, at)?;
            }
            at += u64_from(now.len());
            left = after;
        }
        Ok(())
    }

    fn hold_whole(&self, state: &mut State, bytes: &[u8], at: u64) -> io::Result<()> {
        let end = at + u64_from(bytes.len());
        state.part.take_if(|part| (at..end).contains(&part.at));
        if !state.run.as_mut().is_some_and(|run| run.take(bytes, at)) {
            self.write_held(&mut state.run)?;
            state.run = Some(Held { at, bytes: bytes.to_vec() });
        }
        Ok(())
    }

    fn hold_part(&self, state: &mut State, bytes: &[u8], at: u64) -> io::Result<()> {
        let within = index64(at % BLOCK_BYTES);
        let block_at = at - u64_from(within);
        if state.part.as_ref().is_none_or(|part| part.at != block_at) {
            self.write_held(&mut state.part)?;
            // The rest of the block may be held itself.
            if state.run.as_ref().is_some_and(|run| (run.at..run.end()).contains(&block_at)) {
                self.write_held(&mut state.run)?;
            }
            let mut block = vec![0; BLOCK];
            self.blocks.read(&mut block, block_at)?;
            state.part = Some(Held { at: block_at, bytes: block });
        }
        if let Some(part) = &mut state.part {
            part.bytes[within..within + bytes.len()].copy_from_slice(bytes);
        }
        Ok(())
    }
}

/// The first block of a WAL without frames.
fn empty_wal() -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..32].copy_from_slice(&header::empty());
    block
}

fn write_code(error: &io::Error) -> Code {
    if error.kind() == io::ErrorKind::StorageFull { Code::FULL } else { Code::WRITE }
}

/// The WAL of a device. It never gets shorter or longer; how far it goes its frames say.
#[derive(Debug)]
pub(crate) struct WalRegion<'a, B = Direct>(&'a Device<B>);

impl<B: Blocks> Medium for WalRegion<'_, B> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code> {
        if at.saturating_add(u64_from(buffer.len())) > self.0.wal_bytes {
            buffer.fill(0);
            return Ok(false);
        }
        self.0.read_wal(buffer, at).map(|()| true).map_err(|_| Code::READ)
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code> {
        let device = self.0;
        let mut state = device.state();
        // The first block is the header of the WAL.
        let is_wal_header = at == 0;
        let ends = std::mem::take(&mut state.is_commit) || is_wal_header;
        if is_wal_header {
            state.last_header_at = 0;
        }
        drop(state);
        device.write_wal(bytes, at, ends)
    }

    fn may_waste(&self, bytes: u64) -> bool {
        bytes <= self.0.wal_bytes / WASTE_SHARE
    }

    fn write_header(&self, block: &[u8], at: u64) -> Result<(), Code> {
        let device = self.0;
        let mut state = device.state();
        state.is_commit = block.first_chunk().is_some_and(header::is_commit);
        // A header that is written again, as its checksum has changed, has no page behind it.
        let ends = state.is_commit && at <= state.last_header_at;
        state.last_header_at = state.last_header_at.max(at);
        drop(state);
        device.write_wal(block, at, ends)
    }

    fn truncate(&self, _bytes: u64) -> Result<(), Code> {
        Ok(())
    }

    fn bytes(&self) -> Result<u64, Code> {
        Ok(self.0.wal_bytes)
    }
}

/// The database of a device.
#[derive(Debug)]
pub(crate) struct DatabaseRegion<'a, B = Direct>(&'a Device<B>);

impl<B: Blocks> Medium for DatabaseRegion<'_, B> {
    fn read_at(&self, buffer: &mut [u8], at: u64) -> Result<bool, Code> {
        let device = self.0;
        let end = at.saturating_add(u64_from(buffer.len()));
        let mut bytes = device.state().label.database_bytes;
        if end > bytes {
            bytes = device.database_bytes().map_err(|_| Code::READ)?;
        }
        let count = index64(bytes.saturating_sub(at).min(u64_from(buffer.len())));
        let (there, behind) = buffer.split_at_mut(count);
        behind.fill(0);
        if !there.is_empty() {
            device.read(there, device.database_at() + at).map_err(|_| Code::READ)?;
        }
        Ok(behind.is_empty())
    }

    fn write_at(&self, bytes: &[u8], at: u64) -> Result<(), Code> {
        let device = self.0;
        device.grow(at.saturating_add(u64_from(bytes.len())))?;
        let written = device.write(bytes, device.database_at() + at);
        written.and_then(|()| device.settle()).map_err(|error| write_code(&error))
    }

    fn truncate(&self, bytes: u64) -> Result<(), Code> {
        self.0.set_database_bytes(bytes)
    }

    fn bytes(&self) -> Result<u64, Code> {
        self.0.database_bytes().map_err(|_| Code::READ)
    }
}

/// Whether WAL and database of a label lie on a disk of so many bytes, at blocks.
fn is_sound(label: &Label, disk_bytes: u64) -> bool {
    let wal_end = WAL_AT.checked_add(label.wal_bytes);
    label.wal_bytes >= WAL_BYTES_MIN
        && label.wal_bytes.is_multiple_of(BLOCK_BYTES)
        && wal_end
            .and_then(|end| end.checked_add(label.database_bytes))
            .is_some_and(|end| end <= disk_bytes)
}

/// Opens the disk that a pointer names.
pub(crate) fn open_disk(pointer: &Pointer) -> Result<Device, DeviceError> {
    let Pointer { id, disk, control } = pointer;
    let failed = |source| DeviceError::File { what: "use", path: disk.clone(), source };
    let blocks = Direct::open(disk, control)?;
    let label = match look(&blocks).map_err(failed)? {
        Found::Label(label) => label,
        Found::Damaged => return Err(DeviceError::Label { disk: disk.clone() }),
        Found::Nothing => return Err(DeviceError::NoLabel { disk: disk.clone() }),
    };
    if label.id != *id {
        let (found, expected) = (label.id, *id);
        return Err(DeviceError::OtherDisk { disk: disk.clone(), found, expected });
    }
    if !is_sound(&label, blocks.bytes()) {
        return Err(DeviceError::Label { disk: disk.clone() });
    }
    let opened = Device::with_label(blocks, label).map_err(failed)?;
    opened.ok_or_else(|| DeviceError::NoControl { disk: disk.clone(), control: control.clone() })
}

#[cfg(test)]
mod tests;
