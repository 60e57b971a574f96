//! What a medium in a file has done since its last synchronisation, and what is left of it when the
//! host loses power.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use onefold_nand::{ERASED_HEAD, ERASED_SPARE, Geometry, Head, Media, MediaError, Spare};
use onefold_units::convert::{index, index64, u64_from};
use onefold_units::{Ppn, Rng, SuperblockId};

const BLOCK: u64 = 64;

/// Everything a superblock holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) head: Head,
    pub(crate) slots: Vec<(Spare, Vec<u8>)>,
}

/// What an erase that waits does after the next sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EraseStep {
    /// Clears the header.
    Head,
    /// Clears the slots, and is done.
    Slots,
}

/// Superblocks and NVRAM blocks as the last sync left them, where they were touched since.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostJournal {
    before: BTreeMap<u32, Block>,
    /// Every content a 64 B block had since the sync, the synchronised one first.
    nvram: BTreeMap<u64, Vec<Vec<u8>>>,
    waiting: BTreeMap<u32, EraseStep>,
}

impl HostJournal {
    pub(crate) fn touch<M: Media>(
        &mut self,
        media: &mut M,
        geometry: &Geometry,
        superblock: SuperblockId,
    ) -> Result<(), MediaError> {
        if let Entry::Vacant(vacant) = self.before.entry(superblock.raw()) {
            vacant.insert(read_block(media, geometry, superblock)?);
        }
        Ok(())
    }

    /// Notes an NVRAM write that is about to happen.
    pub(crate) fn touch_nvram<M: Media>(
        &mut self,
        media: &mut M,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), MediaError> {
        let end = offset + u64_from(bytes.len());
        for block in offset / BLOCK..end.div_ceil(BLOCK) {
            let mut content = vec![0; index64(BLOCK)];
            media.nvram_read(block * BLOCK, &mut content)?;
            let versions = self.nvram.entry(block).or_insert_with(|| vec![content.clone()]);
            for (at, byte) in (block * BLOCK..).zip(&mut content) {
                if (offset..end).contains(&at) {
                    *byte = bytes[index64(at - offset)];
                }
            }
            versions.push(content);
        }
        Ok(())
    }

    pub(crate) fn wait(&mut self, superblock: SuperblockId) {
        self.waiting.entry(superblock.raw()).or_insert(EraseStep::Head);
    }

    pub(crate) fn waits(&self, superblock: SuperblockId) -> bool {
        self.waiting.contains_key(&superblock.raw())
    }

    /// Everything is durable. Returns what the erases that waited for it do now.
    pub(crate) fn settle(&mut self) -> Vec<(SuperblockId, EraseStep)> {
        self.before.clear();
        self.nvram.clear();
        let steps = std::mem::take(&mut self.waiting);
        let cleared = steps.iter().filter(|(_, step)| **step == EraseStep::Head);
        self.waiting = cleared.map(|(at, _)| (*at, EraseStep::Slots)).collect();
        steps.into_iter().map(|(at, step)| (SuperblockId::new(at), step)).collect()
    }

    /// The host loses power: each touched slot, header and NVRAM block is new, old or damaged.
    pub(crate) fn lose<M: Media>(&mut self, media: &mut M, geometry: &Geometry, rng: &mut Rng) {
        self.waiting.clear();
        for (superblock, old) in std::mem::take(&mut self.before) {
            let superblock = SuperblockId::new(superblock);
            let Ok(mut block) = read_block(media, geometry, superblock) else { continue };
            if rng.below(2) == 0 {
                block.head = old.head;
            }
            for (slot, old) in block.slots.iter_mut().zip(old.slots) {
                if *slot != old {
                    lose_slot(slot, old, rng);
                }
            }
            let written = write_block(media, geometry, superblock, &block);
            assert_eq!(written, Ok(()), "the medium in memory does not fail");
        }
        for (block, versions) in std::mem::take(&mut self.nvram) {
            let kept = &versions[index64(rng.below(u64_from(versions.len())))];
            assert_eq!(media.nvram_write(block * BLOCK, kept), Ok(()));
        }
    }
}

/// Spare areas and data lie in different parts of the file: each reaches it by itself.
fn lose_slot(slot: &mut (Spare, Vec<u8>), old: (Spare, Vec<u8>), rng: &mut Rng) {
    match rng.below(8) {
        0..3 => {}
        3..5 => *slot = old,
        5 => slot.0 = old.0,
        6 => slot.1 = old.1,
        _ => slot.0[index64(rng.below(u64_from(slot.0.len())))] ^= 0x55,
    }
}

pub(crate) fn read_block<M: Media>(
    media: &mut M,
    geometry: &Geometry,
    superblock: SuperblockId,
) -> Result<Block, MediaError> {
    let head = media.read_head(superblock)?;
    let mut slots = Vec::with_capacity(index(geometry.slots()));
    for slot in 0..geometry.slots() {
        let mut data = vec![0; index(geometry.unit_bytes())];
        let spare = media.read(geometry.ppn(superblock, slot), &mut data)?;
        slots.push((spare, data));
    }
    Ok(Block { head, slots })
}

pub(crate) fn write_block<M: Media>(
    media: &mut M,
    geometry: &Geometry,
    superblock: SuperblockId,
    block: &Block,
) -> Result<(), MediaError> {
    media.erase(superblock)?;
    if block.head != ERASED_HEAD {
        media.program_head(superblock, &block.head)?;
    }
    let first = geometry.ppn(superblock, 0).index();
    for (at, (spare, data)) in (first..).zip(&block.slots) {
        if *spare != ERASED_SPARE {
            media.program(Ppn::from_index(at), &[*spare], data)?;
        }
    }
    Ok(())
}
