//! The flash array in an image file.
//!
//! 1. Data is written before the spare area that names it, so a process that dies leaves a slot that
//!    is programmed, blank, or torn in its spare area, as a power cut would.
//! 2. An area of zeroes in the file is erased: a new image is one hole.
//! 3. Erases take effect as `erases` says; a superblock is programmed only when its erase is done.
//! 4. After a failed access nothing is written any more: what the file holds is unknown.
//! 5. Programs may wait to be written together (`runs`), until a synchronisation at the latest.
//! 6. While synchronisations are postponed, one that is owed happens before anything else is written
//!    but the synchronisation mark, which may always be older than the data.

use std::io;
use std::sync::Arc;

use onefold_format::SyncMark;
use onefold_nand::{
    ERASED_HEAD, ERASED_SPARE, Geometry, HEAD_BYTES, Head, Media, MediaError, SPARE_BYTES, Spare,
};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Ppn, SuperblockId};

use super::erases::{Erases, Step};
use super::runs::{Run, Runs};
use crate::backing::Backing;
use crate::image::{FileLayout, Image};

/// A synchronisation that happens outside the device's lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ticket(u64);

/// Where the FTL keeps its synchronisation mark (docs/spec.md, section 6).
const MARK_OFFSET: u64 = 0;

/// The synchronisation mark to be written when a postponed synchronisation is done.
type PostponedMark = Option<[u8; SyncMark::BYTES]>;

/// Keeps a flash array and NVRAM in an image file.
#[derive(Debug)]
pub struct FileMedia {
    backing: Arc<Backing>,
    layout: FileLayout,
    geometry: Geometry,
    erases: Erases,
    /// Programs not in the file yet.
    runs: Runs,
    /// Synchronisations begun so far.
    syncs: u64,
    /// Synchronisations are left to the caller where possible.
    postpones: bool,
    /// One was asked for and postponed.
    owed: bool,
    mark: PostponedMark,
    failed: Option<i32>,
}

impl FileMedia {
    /// The array of an image, whose geometry is known to be that of its label.
    #[must_use]
    pub fn new(image: &Image, geometry: Geometry) -> Self {
        Self::on(image, *image.layout(), geometry)
    }

    /// The array of a part of an image: what is synchronised, erased and waits is told of each part by itself.
    pub(crate) fn on(image: &Image, layout: FileLayout, geometry: Geometry) -> Self {
        Self {
            backing: image.backing(),
            layout,
            geometry,
            erases: Erases::new(index(geometry.superblocks())),
            runs: Runs::new(index(geometry.unit_bytes())),
            syncs: 0,
            postpones: false,
            owed: false,
            mark: None,
            failed: None,
        }
    }

    /// Error number of the access that failed, if one did.
    #[must_use]
    pub const fn failed(&self) -> Option<i32> {
        self.failed
    }

    /// From now on the last synchronisation, and the mark after it, waits for the caller.
    pub(crate) fn postpone_sync(&mut self) {
        self.postpones = true;
    }

    /// Ends that: the caller synchronises the file and then calls [`FileMedia::synced`].
    pub(crate) fn begin_sync(&mut self) -> (Ticket, PostponedMark) {
        self.postpones = false;
        self.owed = false;
        self.syncs += 1;
        (Ticket(self.syncs), self.mark.take())
    }

    /// The newest ticket.
    pub(crate) const fn newest_ticket(&self) -> Ticket {
        Ticket(self.syncs)
    }

    /// The file was synchronised, which began at `ticket`.
    pub(crate) fn synced(&mut self, ticket: Ticket, mark: PostponedMark) -> Result<(), MediaError> {
        self.advance_erases(ticket)?;
        match mark {
            Some(mark) => self.write_nvram(MARK_OFFSET, &mark),
            None => Ok(()),
        }
    }

    /// Does what was postponed, because something else is about to be written (invariant 6).
    fn pay(&mut self) -> Result<(), MediaError> {
        if !self.owed {
            return Ok(());
        }
        self.owed = false;
        self.sync_now()?;
        match self.mark.take() {
            Some(mark) => self.write_nvram(MARK_OFFSET, &mark),
            None => Ok(()),
        }
    }

    /// Notes that an access failed, here or in the caller's own synchronisation.
    pub(crate) fn fail(&mut self, error: &io::Error) -> MediaError {
        let errno = error.raw_os_error().unwrap_or(0);
        self.failed = Some(errno);
        MediaError::Backing { errno }
    }

    /// Brings all erases to the file; for a clean shutdown.
    pub(crate) fn settle(&mut self) -> Result<(), MediaError> {
        while !self.erases.is_empty() {
            self.sync_now()?;
        }
        Ok(())
    }

    fn usable(&self) -> Result<(), MediaError> {
        self.failed.map_or(Ok(()), |errno| Err(MediaError::Backing { errno }))
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        self.usable()?;
        self.backing.write_at(offset, bytes).map_err(|error| self.fail(&error))
    }

    /// Invariant 1: data first.
    fn write_run(&mut self, run: Run) -> Result<(), MediaError> {
        self.write(self.layout.unit(run.first), &run.data)?;
        self.write(self.layout.spare(run.first), &run.spares)?;
        self.runs.recycle(run);
        Ok(())
    }

    /// Writes everything that waits.
    fn write_runs(&mut self) -> Result<(), MediaError> {
        while let Some(run) = self.runs.take_oldest() {
            self.write_run(run)?;
        }
        Ok(())
    }

    fn load(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        self.backing.read_at(offset, bytes).map_err(|error| self.fail(&error))
    }

    fn sync_now(&mut self) -> Result<(), MediaError> {
        self.write_runs()?;
        self.usable()?;
        self.syncs += 1;
        let ticket = Ticket(self.syncs);
        self.backing.sync().map_err(|error| self.fail(&error))?;
        self.advance_erases(ticket)
    }

    fn advance_erases(&mut self, ended: Ticket) -> Result<(), MediaError> {
        self.usable()?;
        for step in self.erases.advance(ended.0, self.syncs) {
            match step {
                Step::Head(superblock) => {
                    self.write(self.layout.head(superblock), &[0; HEAD_BYTES])?;
                }
                Step::Contents(superblock) => self.clear(superblock)?,
            }
        }
        Ok(())
    }

    fn clear(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        let first = self.geometry.ppn(superblock, 0);
        let slots = self.layout.slots;
        let spare = self.layout.spare(first);
        // Without spare areas the data means nothing. Its blocks stay: giving them back would make
        // the next program of each page allocate file and page cache anew, the better half of its
        // cost.
        let cleared = self.backing.zero(spare, slots * u64_from(SPARE_BYTES));
        cleared.map_err(|error| self.fail(&error))
    }

    /// Sees to it that a superblock may be programmed (invariant 3).
    fn finish_erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        while self.erases.is_waiting(superblock) {
            self.sync_now()?;
        }
        Ok(())
    }

    fn write_nvram(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        let at = self.nvram_offset(offset, bytes.len())?;
        self.write(at, bytes)
    }

    fn nvram_offset(&self, offset: u64, len: usize) -> Result<u64, MediaError> {
        let end = offset.checked_add(u64_from(len));
        if end.is_none_or(|end| end > self.layout.nvram_bytes) {
            return Err(MediaError::Unreadable);
        }
        Ok(self.layout.nvram + offset)
    }

    fn superblock_of(&self, ppn: Ppn) -> SuperblockId {
        self.geometry.split(ppn).0
    }
}

impl Media for FileMedia {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        self.pay()?;
        self.finish_erase(self.superblock_of(first))?;
        let superblock = self.superblock_of(first);
        if !data.is_empty() {
            let run = self.runs.add(superblock, first, spares, data);
            return run.map_or(Ok(()), |run| self.write_run(run));
        }
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run)?;
        }
        // Slots without bytes read as zeroes, whatever lay there before the erase.
        let len = u64_from(spares.len()) * self.layout.unit_bytes;
        let unit = self.layout.unit(first);
        self.backing.zero(unit, len).map_err(|error| self.fail(&error))?;
        self.write(self.layout.spare(first), spares.as_flattened())
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        let superblock = self.superblock_of(ppn);
        if let Some((spare, bytes)) = self.runs.find(superblock, ppn) {
            if !data.is_empty() {
                data.copy_from_slice(bytes);
            }
            return Ok(spare);
        }
        let mut spare = [0; SPARE_BYTES];
        if !self.erases.is_waiting(superblock) {
            self.load(self.layout.spare(ppn), &mut spare)?;
        }
        if spare == [0; SPARE_BYTES] {
            data.fill(0);
            return Ok(ERASED_SPARE);
        }
        if !data.is_empty() {
            self.load(self.layout.unit(ppn), data)?;
        }
        Ok(spare)
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        let slots = index(self.geometry.slots());
        if self.erases.is_waiting(superblock) {
            return Ok(vec![ERASED_SPARE; slots]);
        }
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run)?;
        }
        let mut bytes = vec![0; slots * SPARE_BYTES];
        let first = self.geometry.ppn(superblock, 0);
        self.load(self.layout.spare(first), &mut bytes)?;
        let (spares, _) = bytes.as_chunks::<SPARE_BYTES>();
        Ok(spares.iter().map(|spare| erased_if_blank(*spare)).collect())
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        self.pay()?;
        self.finish_erase(superblock)?;
        self.write(self.layout.head(superblock), head)
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        if self.erases.is_waiting(superblock) {
            return Ok(ERASED_HEAD);
        }
        let mut head = [0; HEAD_BYTES];
        self.load(self.layout.head(superblock), &mut head)?;
        Ok(if head == [0; HEAD_BYTES] { ERASED_HEAD } else { head })
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        self.usable()?;
        self.pay()?;
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run)?;
        }
        self.erases.ask(superblock, self.syncs);
        Ok(())
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        if self.owed
            && offset == MARK_OFFSET
            && let Ok(mark) = bytes.try_into()
        {
            self.mark = Some(mark);
            return Ok(());
        }
        self.pay()?;
        self.write_nvram(offset, bytes)
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        let at = self.nvram_offset(offset, bytes.len())?;
        self.load(at, bytes)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        self.pay()?;
        if self.postpones {
            self.write_runs()?;
            self.owed = true;
            return self.usable();
        }
        self.sync_now()
    }
}

fn erased_if_blank(spare: Spare) -> Spare {
    if spare == [0; SPARE_BYTES] { ERASED_SPARE } else { spare }
}
