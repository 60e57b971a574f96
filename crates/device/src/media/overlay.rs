//! Looking at an image without changing it: what would be written stays in memory.

use std::collections::BTreeMap;

use onefold_nand::{ERASED_HEAD, ERASED_SPARE, Geometry, Head, Media, MediaError, Spare};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Ppn, SuperblockId};

use super::FileMedia;

/// A superblock that was erased here; what it held in the file is gone.
#[derive(Debug)]
struct Fresh {
    head: Head,
    slots: BTreeMap<u32, (Spare, Vec<u8>)>,
}

/// A medium over a file that is only read. Recovery writes little, so little is kept.
#[derive(Debug)]
pub(crate) struct Overlay {
    base: FileMedia,
    geometry: Geometry,
    erased: BTreeMap<u32, Fresh>,
    /// Slots programmed in superblocks that were not erased here.
    slots: BTreeMap<u32, (Spare, Vec<u8>)>,
    heads: BTreeMap<u32, Head>,
    nvram: Vec<u8>,
}

impl Overlay {
    pub(crate) fn new(
        mut base: FileMedia,
        geometry: Geometry,
        nvram_bytes: u64,
    ) -> Result<Self, MediaError> {
        let mut nvram = vec![0; index64(nvram_bytes)];
        base.nvram_read(0, &mut nvram)?;
        let (erased, slots, heads) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Ok(Self { base, geometry, erased, slots, heads, nvram })
    }

    fn nvram_at(&mut self, offset: u64, len: usize) -> Result<&mut [u8], MediaError> {
        let end = offset.checked_add(u64_from(len)).ok_or(MediaError::Unreadable)?;
        let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
        let range = range.ok_or(MediaError::Unreadable)?;
        self.nvram.get_mut(range.0..range.1).ok_or(MediaError::Unreadable)
    }
}

impl Media for Overlay {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        let (superblock, _) = self.geometry.split(first);
        let slots = match self.erased.get_mut(&superblock.raw()) {
            Some(fresh) => &mut fresh.slots,
            None => &mut self.slots,
        };
        let mut units = data.chunks_exact(index(self.geometry.unit_bytes()));
        for (ppn, spare) in (first.raw()..).zip(spares) {
            slots.insert(ppn, (*spare, units.next().unwrap_or_default().to_vec()));
        }
        Ok(())
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        let (superblock, _) = self.geometry.split(ppn);
        let fresh = self.erased.get(&superblock.raw());
        let slots = fresh.map_or(&self.slots, |fresh| &fresh.slots);
        let Some(stored) = slots.get(&ppn.raw()) else {
            if fresh.is_none() {
                return self.base.read(ppn, data);
            }
            data.fill(0);
            return Ok(ERASED_SPARE);
        };
        if stored.1.len() == data.len() {
            data.copy_from_slice(&stored.1);
        } else {
            data.fill(0);
        }
        Ok(stored.0)
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        let slots = self.geometry.slots();
        if !self.erased.contains_key(&superblock.raw()) {
            let mut spares = self.base.read_spares(superblock)?;
            let first = self.geometry.ppn(superblock, 0).raw();
            for (ppn, (spare, _)) in self.slots.range(first..first.saturating_add(slots)) {
                spares[index(ppn - first)] = *spare;
            }
            return Ok(spares);
        }
        (0..slots).map(|slot| self.read(self.geometry.ppn(superblock, slot), &mut [])).collect()
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        match self.erased.get_mut(&superblock.raw()) {
            Some(fresh) => fresh.head = *head,
            None => drop(self.heads.insert(superblock.raw(), *head)),
        }
        Ok(())
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        if let Some(fresh) = self.erased.get(&superblock.raw()) {
            return Ok(fresh.head);
        }
        match self.heads.get(&superblock.raw()) {
            Some(head) => Ok(*head),
            None => self.base.read_head(superblock),
        }
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        let fresh = Fresh { head: ERASED_HEAD, slots: BTreeMap::new() };
        self.erased.insert(superblock.raw(), fresh);
        Ok(())
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        self.nvram_at(offset, bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        bytes.copy_from_slice(self.nvram_at(offset, bytes.len())?);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }
}
