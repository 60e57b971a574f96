//! Devices with checksums: made, found, opened, looked through.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Condvar, Mutex};
use std::time::Duration;

use onefold_format::{
    CACHE_BLOCK_BYTES, CACHE_REGION_BLOCKS, CacheBits, CacheHeader, CacheHeaderError, DmzRoot,
    cache_sum, decode_cache_sums, encode_cache_sums,
};
use onefold_units::IoFailed;
use onefold_units::convert::{index64, u64_from};

use super::pages::Pages;
use super::{CacheSums, State, Store, Summed, lock, overlap};
use crate::quiet::Quiet;

/// How often a block is read whose checksum is made anew.
const ATTEMPTS: u32 = 3;

/// What looking through all blocks came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheScan {
    /// Blocks that were read and have a checksum.
    pub checked: u64,
    /// Those that differ from it.
    pub differing: u64,
    /// Blocks that cannot be read, or whose checksum cannot.
    pub unreadable: u64,
    /// Blocks whose checksums are made anew when the volume is served.
    pub unknown: u64,
}

/// A header that was found, and whether both copies are whole.
pub(crate) struct Found {
    header: CacheHeader,
    whole: bool,
}

/// The header of a device, if it has checksums. The copy counts where the first block is damaged.
pub(crate) fn find<S: Store>(store: &S) -> Result<Option<Found>, CacheHeaderError> {
    let blocks = store.blocks();
    let mut block = [0; CACHE_BLOCK_BYTES];
    let mut at = |at: u64| {
        let read = at < blocks && store.read(at, &mut block).is_ok();
        if read && DmzRoot::decode(&block).is_ok() {
            // A volume without checksums, whatever is left behind it.
            return Ok(None);
        }
        let found = if read { CacheHeader::decode(&block) } else { Err(CacheHeaderError::None) };
        found.map(|header| Some(header).filter(|header| header.layout.blocks() <= blocks))
    };
    match at(0) {
        Ok(Some(header)) => {
            let whole = at(header.layout.copy_at()) == Ok(Some(header));
            Ok(Some(Found { header, whole }))
        }
        Err(CacheHeaderError::None) => match at(blocks.saturating_sub(1)) {
            Ok(Some(header)) if header.layout.blocks() == blocks => {
                Ok(Some(Found { header, whole: false }))
            }
            Err(CacheHeaderError::None) | Ok(_) => Ok(None),
            Err(error) => Err(error),
        },
        other => other.map(|_| None),
    }
}

/// Takes the copy of a header away that somebody else's volume was made over.
pub(crate) fn forget<S: Store>(store: &S) -> Result<(), IoFailed> {
    let Some(at) = store.blocks().checked_sub(1) else { return Ok(()) };
    let mut block = [0; CACHE_BLOCK_BYTES];
    if store.read(at, &mut block).is_ok() && CacheHeader::decode(&block).is_ok() {
        store.write(at, &[0; CACHE_BLOCK_BYTES])?;
    }
    Ok(())
}

impl<S: Store> Summed<S> {
    /// Gives a device checksums of what it holds.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn make(store: S, header: CacheHeader) -> Result<Self, IoFailed> {
        let bits = CacheBits::clean(&header.layout);
        let summed = Self::new(store, header, bits, BTreeSet::new(), CacheSums::default());
        let (layout, store) = (&header.layout, &summed.store);
        let parts = store.parts();
        for region in 0..layout.regions() {
            let blocks = summed.blocks_of(region);
            let shifted = layout.data_at() + blocks.start..layout.data_at() + blocks.end;
            // All of them are written, so that a file has room for them from now on.
            let mut sums = vec![0; index64(CACHE_REGION_BLOCKS)];
            if parts.iter().any(|part| overlap(part, &shifted)) {
                for (sum, block) in sums.iter_mut().zip(summed.hold_of(region, 1)) {
                    *sum = cache_sum(&block.ok_or(IoFailed::Error)?);
                }
            }
            store.write(layout.sums_at() + region, &encode_cache_sums(&sums))?;
        }
        for number in 0..layout.bits_blocks() {
            store.write(layout.bits_at() + number, &lock(&summed.bits).encode(number))?;
        }
        store.write(layout.copy_at(), &header.encode())?;
        store.flush()?;
        store.write(0, &header.encode())?;
        store.flush()?;
        Ok(summed)
    }

    /// Opens a device that was found to have checksums. With `write` those of dirty regions are made anew.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn open(store: S, found: &Found, write: bool) -> Result<Self, IoFailed> {
        let header = found.header;
        let layout = &header.layout;
        let mut bytes = vec![0; index64(layout.bits_blocks()) * CACHE_BLOCK_BYTES];
        store.read(layout.bits_at(), &mut bytes)?;
        let (bits, damaged_bits) = CacheBits::decode(&bytes);
        let dirty: BTreeSet<u64> =
            (0..layout.regions()).filter(|one| bits.is_dirty(*one)).collect();
        let how = CacheSums {
            remade_regions: if write { u64_from(dirty.len()) } else { 0 },
            damaged_bits,
            damaged_header: !found.whole,
            ..CacheSums::default()
        };
        if !write {
            return Ok(Self::new(store, header, bits, dirty, how));
        }
        let mut summed = Self::new(store, header, bits, BTreeSet::new(), how);
        for region in &dirty {
            summed.found.unread_blocks += summed.remake(*region)?;
        }
        if how.damaged_header {
            summed.store.write(layout.copy_at(), &header.encode())?;
            summed.store.flush()?;
            summed.store.write(0, &header.encode())?;
        }
        if !dirty.is_empty() || damaged_bits > 0 || how.damaged_header {
            summed.store.flush()?;
            *lock(&summed.bits) = CacheBits::clean(layout);
            for number in 0..layout.bits_blocks() {
                let block = lock(&summed.bits).encode(number);
                summed.store.write(layout.bits_at() + number, &block)?;
            }
            summed.store.flush()?;
        }
        Ok(summed)
    }

    fn new(
        store: S,
        header: CacheHeader,
        bits: CacheBits,
        unknown: BTreeSet<u64>,
        found: CacheSums,
    ) -> Self {
        let state = State {
            pages: Pages::default(),
            dirty: BTreeSet::new(),
            recent: BTreeSet::new(),
            looked: Duration::ZERO,
            busy: Vec::new(),
            failed: false,
            damaged_reads: 0,
        };
        Self {
            store,
            header,
            state: Mutex::new(state),
            ended: Condvar::new(),
            bits: Mutex::new(bits),
            paging: Mutex::default(),
            cleaning: Mutex::default(),
            unknown,
            found: CacheSums { regions: header.layout.regions(), ..found },
            told: Quiet::default(),
        }
    }

    /// The blocks of a region.
    fn blocks_of(&self, region: u64) -> Range<u64> {
        let first = region * CACHE_REGION_BLOCKS;
        first..(first + CACHE_REGION_BLOCKS).min(self.blocks())
    }

    /// What the blocks of a region hold, each read on its own where they cannot be read together.
    fn hold_of(&self, region: u64, attempts: u32) -> Vec<Option<Vec<u8>>> {
        let blocks = self.blocks_of(region);
        let at = self.header.layout.data_at();
        let mut bytes = vec![0; index64(blocks.end - blocks.start) * CACHE_BLOCK_BYTES];
        if self.store.read(at + blocks.start, &mut bytes).is_ok() {
            return bytes.chunks(CACHE_BLOCK_BYTES).map(|one| Some(one.to_vec())).collect();
        }
        let mut one = |block: u64| {
            let mut bytes = vec![0; CACHE_BLOCK_BYTES];
            let mut read = |_| self.store.read(at + block, &mut bytes).is_ok();
            (0..attempts).any(&mut read).then_some(bytes)
        };
        blocks.map(&mut one).collect()
    }

    /// Makes the checksums of a region anew. Gives how many of its blocks cannot be read: they keep theirs.
    fn remake(&self, region: u64) -> Result<u64, IoFailed> {
        let at = self.header.layout.sums_at() + region;
        let held = self.hold_of(region, ATTEMPTS);
        let unread = held.iter().filter(|block| block.is_none()).count();
        let mut sums = vec![0; index64(CACHE_REGION_BLOCKS)];
        if unread > 0 {
            let mut block = [0; CACHE_BLOCK_BYTES];
            self.store.read(at, &mut block)?;
            sums = decode_cache_sums(&block);
        }
        for (sum, block) in sums.iter_mut().zip(held) {
            *sum = block.map_or(*sum, |block| cache_sum(&block));
        }
        self.store.write(at, &encode_cache_sums(&sums))?;
        Ok(u64_from(unread))
    }

    /// Compares all blocks with their checksums. Nothing may be written meanwhile.
    pub(crate) fn scan(&self) -> CacheScan {
        let mut scan = CacheScan::default();
        for region in 0..self.header.layout.regions() {
            let blocks = self.blocks_of(region);
            if self.unknown.contains(&region) {
                scan.unknown += blocks.end - blocks.start;
                continue;
            }
            for (at, block) in blocks.zip(self.hold_of(region, 1)) {
                let within = index64(at % CACHE_REGION_BLOCKS);
                let sum = self.with_page(region, |page| page.sums[within]);
                match (block, sum) {
                    (Some(block), Ok(sum)) => {
                        scan.checked += 1;
                        scan.differing += u64::from(cache_sum(&block) != sum);
                    }
                    _ => scan.unreadable += 1,
                }
            }
        }
        scan
    }
}
