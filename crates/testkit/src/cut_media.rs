//! A medium whose power fails at a chosen operation.

use onefold_nand::{
    ERASED_HEAD, ERASED_SPARE, Geometry, Head, Media, MediaError, MemoryMedia, SPARE_BYTES, Spare,
};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Ppn, Rng, SuperblockId};

use crate::host_journal::{EraseStep, HostJournal, read_block, write_block};

/// NVRAM writes are atomic within blocks of this size.
const NVRAM_ATOM: u64 = 64;

/// What becomes of the operation that power fails in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Power fails before it: nothing happens.
    Before,
    /// Power fails during it. A torn program leaves each slot unwritten, written, with garbage data
    /// under a good spare area, or with a garbage spare area. A torn erase leaves each slot erased,
    /// intact or with garbage in data or spare area, and the header erased, intact or damaged. An
    /// NVRAM write stops between two blocks of 64 B.
    Torn,
    /// Power fails after it, before the caller hears of it.
    After,
}

/// Whose power fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// The modelled device's: every earlier operation is on the medium.
    Device,
    /// The host's, with the medium in a file: what the last [`Media::sync`] did not cover may be
    /// there, be missing, or be damaged, page by page and in any order.
    Host,
}

#[derive(Clone, Copy, Debug)]
struct Armed {
    left: u64,
    cut: Cut,
}

/// A [`MemoryMedia`] with a power switch. After the cut every operation fails with
/// [`MediaError::PowerLost`] until [`CutMedia::restore`].
///
/// Under [`Power::Host`] it behaves as an image file does: an erase takes two syncs. The first makes
/// durable what it destroys elsewhere, then the header goes; the second makes that durable, then the
/// slots go. A program of a superblock whose erase waits syncs until it is done.
#[derive(Clone, Debug)]
pub struct CutMedia {
    inner: MemoryMedia,
    geometry: Geometry,
    power: Power,
    rng: Rng,
    armed: Option<Armed>,
    off: bool,
    damaged: bool,
    operations: u64,
    journal: HostJournal,
}

impl CutMedia {
    /// An erased medium.
    #[must_use]
    pub fn new(geometry: &Geometry, nvram_bytes: u64, power: Power, seed: u64) -> Self {
        Self {
            inner: MemoryMedia::new(geometry, nvram_bytes),
            geometry: *geometry,
            power,
            rng: Rng::fork(seed, 31),
            armed: None,
            off: false,
            damaged: false,
            operations: 0,
            journal: HostJournal::default(),
        }
    }

    /// An erased medium whose power stays on until it is armed. Tests without cuts may have it as well: a drive is compiled
    /// once for each kind of medium.
    #[must_use]
    pub fn powered(geometry: &Geometry, nvram_bytes: u64) -> Self {
        Self::new(geometry, nvram_bytes, Power::Device, 0)
    }

    /// Lets power fail at the `after`-th operation from now (0 = the next one). Operations are
    /// programs of slots and headers, erases, NVRAM writes and syncs.
    pub const fn arm(&mut self, after: u64, cut: Cut) {
        self.armed = Some(Armed { left: after, cut });
    }

    /// Power stays on for good.
    pub const fn disarm(&mut self) {
        self.armed = None;
    }

    /// Operations so far.
    #[must_use]
    pub const fn operations(&self) -> u64 {
        self.operations
    }

    /// Whether power is gone.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        self.off
    }

    /// Whether a power cut may have left damaged slots behind, ever.
    #[must_use]
    pub const fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Power comes back. Under [`Power::Host`] also after a run without a cut: power fails now.
    pub fn restore(&mut self) {
        if self.power == Power::Host {
            self.damaged = true;
            self.journal.lose(&mut self.inner, &self.geometry, &mut self.rng);
        }
        self.armed = None;
        self.off = false;
    }

    /// The bytes.
    pub const fn inner_mut(&mut self) -> &mut MemoryMedia {
        &mut self.inner
    }

    /// Counts an operation. `Some` where it is the one that power fails in.
    fn step(&mut self) -> Result<Option<Cut>, MediaError> {
        if self.off {
            return Err(MediaError::PowerLost);
        }
        self.operations += 1;
        let Some(armed) = &mut self.armed else { return Ok(None) };
        if armed.left > 0 {
            armed.left -= 1;
            return Ok(None);
        }
        self.off = true;
        Ok(Some(armed.cut))
    }

    fn touch(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        if self.power == Power::Host {
            self.journal.touch(&mut self.inner, &self.geometry, superblock)?;
        }
        Ok(())
    }

    /// Makes everything durable, and then takes the erases that waited one step further.
    fn settle(&mut self) -> Result<(), MediaError> {
        for (superblock, step) in self.journal.settle() {
            self.touch(superblock)?;
            match step {
                EraseStep::Head => self.inner.program_head(superblock, &ERASED_HEAD)?,
                EraseStep::Slots => self.inner.erase(superblock)?,
            }
        }
        Ok(())
    }

    fn settle_before_reuse(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        while self.journal.waits(superblock) {
            self.settle()?;
        }
        Ok(())
    }

    fn garbage<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        for chunk in bytes.chunks_mut(8) {
            let random = self.rng.next_u64().to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
        bytes
    }

    fn garbage_spare(&mut self) -> Spare {
        self.garbage::<SPARE_BYTES>()
    }

    fn garbled(&mut self, data: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        let from = index64(self.rng.below(u64_from(data.len())));
        // The end of the page did not make it, as with a program that was stopped.
        for byte in data.iter_mut().skip(from) {
            *byte = !*byte;
        }
        data
    }

    fn tear_program(
        &mut self,
        first: Ppn,
        spares: &[Spare],
        data: &[u8],
    ) -> Result<(), MediaError> {
        self.damaged = true;
        let unit = index(self.geometry.unit_bytes());
        for (place, spare) in spares.iter().enumerate() {
            let bytes = data.get(place * unit..(place + 1) * unit).unwrap_or_default();
            let ppn = Ppn::from_index(first.index() + place);
            match self.rng.below(4) {
                0 => {}
                1 => self.inner.program(ppn, &[*spare], bytes)?,
                2 => {
                    let bytes = self.garbled(bytes);
                    self.inner.program(ppn, &[*spare], &bytes)?;
                }
                _ => {
                    let spare = self.garbage_spare();
                    self.inner.program(ppn, &[spare], bytes)?;
                }
            }
        }
        Ok(())
    }

    fn tear_erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        self.damaged = true;
        let mut block = read_block(&mut self.inner, &self.geometry, superblock)?;
        match self.rng.below(3) {
            0 => block.head = ERASED_HEAD,
            1 => block.head = self.garbage(),
            _ => {}
        }
        for slot in &mut block.slots {
            match self.rng.below(4) {
                0 => *slot = (ERASED_SPARE, Vec::new()),
                1 => {}
                2 if slot.0 != ERASED_SPARE => slot.1 = self.garbled(&slot.1),
                _ if slot.0 != ERASED_SPARE => slot.0 = self.garbage_spare(),
                _ => {}
            }
        }
        write_block(&mut self.inner, &self.geometry, superblock, &block)
    }

    /// Writes the blocks of an NVRAM write up to a random one.
    fn tear_nvram(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        let len = u64_from(bytes.len());
        let blocks = (offset + len).div_ceil(NVRAM_ATOM) - offset / NVRAM_ATOM;
        let kept = self.rng.below(blocks + 1);
        let end = ((offset / NVRAM_ATOM + kept) * NVRAM_ATOM).clamp(offset, offset + len);
        self.inner.nvram_write(offset, &bytes[..index64(end - offset)])
    }
}

impl Media for CutMedia {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        let cut = self.step()?;
        let (superblock, _) = self.geometry.split(first);
        if cut != Some(Cut::Before) {
            self.settle_before_reuse(superblock)?;
            self.touch(superblock)?;
        }
        match cut {
            None => return self.inner.program(first, spares, data),
            Some(Cut::Before) => {}
            Some(Cut::Torn) => self.tear_program(first, spares, data)?,
            Some(Cut::After) => self.inner.program(first, spares, data)?,
        }
        Err(MediaError::PowerLost)
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        if self.off {
            return Err(MediaError::PowerLost);
        }
        self.inner.read(ppn, data)
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        if self.off {
            return Err(MediaError::PowerLost);
        }
        self.inner.read_spares(superblock)
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        let cut = self.step()?;
        if cut != Some(Cut::Before) {
            self.settle_before_reuse(superblock)?;
            self.touch(superblock)?;
        }
        match cut {
            None => return self.inner.program_head(superblock, head),
            Some(Cut::Before) => {}
            Some(Cut::Torn) => {
                let head = self.garbage();
                self.inner.program_head(superblock, &head)?;
            }
            Some(Cut::After) => self.inner.program_head(superblock, head)?,
        }
        Err(MediaError::PowerLost)
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        if self.off {
            return Err(MediaError::PowerLost);
        }
        self.inner.read_head(superblock)
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        let cut = self.step()?;
        if self.power == Power::Host && cut != Some(Cut::Before) {
            self.journal.wait(superblock);
            return if cut.is_none() { Ok(()) } else { Err(MediaError::PowerLost) };
        }
        match cut {
            None => return self.inner.erase(superblock),
            Some(Cut::Before) => {}
            Some(Cut::Torn) => self.tear_erase(superblock)?,
            Some(Cut::After) => self.inner.erase(superblock)?,
        }
        Err(MediaError::PowerLost)
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        let cut = self.step()?;
        if self.power == Power::Host && cut != Some(Cut::Before) {
            self.journal.touch_nvram(&mut self.inner, offset, bytes)?;
        }
        match cut {
            None => return self.inner.nvram_write(offset, bytes),
            Some(Cut::Before) => {}
            Some(Cut::Torn) => self.tear_nvram(offset, bytes)?,
            Some(Cut::After) => self.inner.nvram_write(offset, bytes)?,
        }
        Err(MediaError::PowerLost)
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        if self.off {
            return Err(MediaError::PowerLost);
        }
        self.inner.nvram_read(offset, bytes)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        match self.step()? {
            None => self.settle(),
            // A sync that did not return promises nothing.
            Some(Cut::Before | Cut::Torn) => Err(MediaError::PowerLost),
            Some(Cut::After) => {
                self.settle()?;
                Err(MediaError::PowerLost)
            }
        }
    }
}
