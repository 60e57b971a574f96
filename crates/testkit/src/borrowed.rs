//! A borrowed medium is a medium, so that it is still there when recovery fails with its FTL.

use onefold_nand::{Head, Media, MediaError, Spare};
use onefold_units::{Ppn, SuperblockId};

use crate::CutMedia;

impl Media for &mut CutMedia {
    const STORES: bool = true;

    fn program(&mut self, first: Ppn, spares: &[Spare], data: &[u8]) -> Result<(), MediaError> {
        (**self).program(first, spares, data)
    }

    fn read(&mut self, ppn: Ppn, data: &mut [u8]) -> Result<Spare, MediaError> {
        (**self).read(ppn, data)
    }

    fn read_spares(&mut self, superblock: SuperblockId) -> Result<Vec<Spare>, MediaError> {
        (**self).read_spares(superblock)
    }

    fn program_head(&mut self, superblock: SuperblockId, head: &Head) -> Result<(), MediaError> {
        (**self).program_head(superblock, head)
    }

    fn read_head(&mut self, superblock: SuperblockId) -> Result<Head, MediaError> {
        (**self).read_head(superblock)
    }

    fn erase(&mut self, superblock: SuperblockId) -> Result<(), MediaError> {
        (**self).erase(superblock)
    }

    fn nvram_write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediaError> {
        (**self).nvram_write(offset, bytes)
    }

    fn nvram_read(&mut self, offset: u64, bytes: &mut [u8]) -> Result<(), MediaError> {
        (**self).nvram_read(offset, bytes)
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        (**self).sync()
    }
}
