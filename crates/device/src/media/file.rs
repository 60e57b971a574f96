//! The flash array in an image file.
//!
//! 1. Data is written before the spare area that names it, so a process that dies leaves a slot that
//!    is programmed, blank, or torn in its spare area, as a power cut would.
//! 2. An area of zeroes in the file is erased: a new image is one hole.
//! 3. Erases take effect as `erases` says; a superblock is programmed only when its erase is done.
//! 4. Nothing that is written fails for the FTL: what the file does not take waits in memory, in order, and is read from
//!    there (`backlog`). Who runs the device lets nothing change it meanwhile (`drain`), and calls nothing durable.
//! 5. Programs may wait to be written together (`runs`), until a synchronisation at the latest.
//! 6. While synchronisations are postponed, one that is owed happens before anything else is written
//!    but the synchronisation mark, which may always be older than the data.
//! 7. After a failed synchronisation nothing is written to the file any more: what it holds of the data before is unknown.

use std::io;

use onefold_format::SyncMark;
use onefold_nand::{
    ERASED_HEAD, ERASED_SPARE, Geometry, HEAD_BYTES, Head, Media, MediaError, SPARE_BYTES, Spare,
};
use onefold_units::convert::{index, u64_from};
use onefold_units::{Ppn, SuperblockId};

use super::backlog::Step;
use super::erases::{self, Erases};
use super::held::Held;
use super::runs::{Run, Runs};
use super::store::Store;
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
    store: Store,
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
            store: Store::new(image.backing()),
            layout,
            geometry,
            erases: Erases::new(index(geometry.superblocks())),
            runs: Runs::new(index(geometry.unit_bytes())),
            syncs: 0,
            postpones: false,
            owed: false,
            mark: None,
        }
    }

    /// What keeps writes from the file, if something does.
    #[must_use]
    pub const fn held(&self) -> Option<Held> {
        self.store.held()
    }

    /// The file and how it was treated by the host.
    pub(crate) const fn store(&self) -> &Store {
        &self.store
    }

    /// Bytes that a power cut takes: those of programs that are not in the file.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.runs.bytes() + self.store.waiting_bytes()
    }

    /// Brings to the file what it did not take before.
    ///
    /// # Errors
    /// It still does not take it. Nothing is lost by that, and it may be tried again.
    pub fn drain(&mut self) -> Result<(), Held> {
        self.store.drain()
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

    /// Ends that without the caller, who cannot go on: what was postponed happens now, or waits with everything else.
    pub(crate) fn sync_after_all(&mut self) {
        self.postpones = false;
        self.pay();
    }

    /// The newest ticket.
    pub(crate) const fn newest_ticket(&self) -> Ticket {
        Ticket(self.syncs)
    }

    /// The file was synchronised, which began at `ticket`.
    pub(crate) fn synced(&mut self, ticket: Ticket, mark: PostponedMark) {
        self.advance_erases(ticket);
        if let Some(mark) = mark {
            self.store.write(self.layout.nvram + MARK_OFFSET, &mark);
        }
    }

    /// The caller's synchronisation failed (invariant 7).
    pub(crate) fn sync_failed(&mut self, error: &io::Error) -> Held {
        self.store.sync_failed(error)
    }

    /// Does what was postponed, because something else is about to be written (invariant 6).
    fn pay(&mut self) {
        if !self.owed {
            return;
        }
        self.owed = false;
        self.sync_now();
        if let Some(mark) = self.mark.take() {
            self.store.write(self.layout.nvram + MARK_OFFSET, &mark);
        }
    }

    /// Brings everything to the file, erases included; for a clean shutdown.
    ///
    /// # Errors
    /// The file does not take it.
    pub(crate) fn settle(&mut self) -> Result<(), Held> {
        self.drain()?;
        while !self.erases.is_empty() {
            self.sync_now();
            self.drain()?;
        }
        Ok(())
    }

    /// Invariant 1: data first.
    fn write_run(&mut self, run: Run) {
        self.store.write(self.layout.unit(run.first), &run.data);
        self.store.write(self.layout.spare(run.first), &run.spares);
        self.runs.recycle(run);
    }

    /// Writes everything that waits to be written together.
    fn write_runs(&mut self) {
        while let Some(run) = self.runs.take_oldest() {
            self.write_run(run);
        }
    }

    fn sync_now(&mut self) {
        self.write_runs();
        self.syncs += 1;
        let ticket = Ticket(self.syncs);
        self.store.put(Step::Sync);
        self.advance_erases(ticket);
    }

    fn advance_erases(&mut self, ended: Ticket) {
        for step in self.erases.advance(ended.0, self.syncs) {
            match step {
                erases::Step::Head(superblock) => {
                    self.store.write(self.layout.head(superblock), &[0; HEAD_BYTES]);
                }
                erases::Step::Contents(superblock) => self.clear(superblock),
            }
        }
    }

    fn clear(&mut self, superblock: SuperblockId) {
        let first = self.geometry.ppn(superblock, 0);
        let slots = self.layout.slots;
        // Without spare areas the data means nothing. Its blocks stay: giving them back would make
        // the next program of each page allocate file and page cache anew, the better half of its
        // cost.
        self.store
            .put(Step::Zero { at: self.layout.spare(first), len: slots * u64_from(SPARE_BYTES) });
    }

    /// Sees to it that a superblock may be programmed (invariant 3).
    fn finish_erase(&mut self, superblock: SuperblockId) {
        while self.erases.is_waiting(superblock) {
            self.sync_now();
        }
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
        self.pay();
        self.finish_erase(self.superblock_of(first));
        let superblock = self.superblock_of(first);
        if !data.is_empty() {
            let run = self.runs.add(superblock, first, spares, data);
            if let Some(run) = run {
                self.write_run(run);
            }
            return Ok(());
        }
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run);
        }
        // Slots without bytes read as zeroes, whatever lay there before the erase.
        let len = u64_from(spares.len()) * self.layout.unit_bytes;
        self.store.put(Step::Zero { at: self.layout.unit(first), len });
        self.store.write(self.layout.spare(first), spares.as_flattened());
        Ok(())
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
            self.store.load(self.layout.spare(ppn), &mut spare)?;
        }
        if spare == [0; SPARE_BYTES] {
            data.fill(0);
            return Ok(ERASED_SPARE);
        }
        if !data.is_empty() {
            self.store.load(self.layout.unit(ppn), data)?;
        }
        Ok(spare)
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        let slots = index(self.geometry.slots());
        if self.erases.is_waiting(superblock) {
            return Ok(vec![ERASED_SPARE; slots]);
        }
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run);
        }
        let mut bytes = vec![0; slots * SPARE_BYTES];
        let first = self.geometry.ppn(superblock, 0);
        self.store.load(self.layout.spare(first), &mut bytes)?;
        let (spares, _) = bytes.as_chunks::<SPARE_BYTES>();
        Ok(spares.iter().map(|spare| erased_if_blank(*spare)).collect())
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        self.pay();
        self.finish_erase(superblock);
        self.store.write(self.layout.head(superblock), head);
        Ok(())
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        if self.erases.is_waiting(superblock) {
            return Ok(ERASED_HEAD);
        }
        let mut head = [0; HEAD_BYTES];
        self.store.load(self.layout.head(superblock), &mut head)?;
        Ok(if head == [0; HEAD_BYTES] { ERASED_HEAD } else { head })
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        self.pay();
        if let Some(run) = self.runs.take(superblock) {
            self.write_run(run);
        }
        self.erases.ask(superblock, self.syncs);
        Ok(())
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        let at = self.nvram_offset(offset, bytes.len())?;
        if self.owed
            && offset == MARK_OFFSET
            && let Ok(mark) = bytes.try_into()
        {
            self.mark = Some(mark);
            return Ok(());
        }
        self.pay();
        self.store.write(at, bytes);
        Ok(())
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        let at = self.nvram_offset(offset, bytes.len())?;
        self.store.load(at, bytes)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        self.pay();
        if self.postpones {
            self.write_runs();
            self.owed = true;
        } else {
            self.sync_now();
        }
        Ok(())
    }

    fn is_held_up(&self) -> bool {
        self.store.held().is_some()
    }
}

fn erased_if_blank(spare: Spare) -> Spare {
    if spare == [0; SPARE_BYTES] { ERASED_SPARE } else { spare }
}
