//! Checksums of all that a regular device holds, under whoever uses it: a shorter device, whose reads give what was written or an
//! error (the format is [`onefold_format::CacheHeader`] and what lies beside it). It works as the bitmap mode of dm-integrity does.
//!
//! A *region* is 1024 blocks; its checksums fill one block of the device, in memory a *page*. A region is *dirty* from before its
//! first write until its checksums are on the device. Those of regions that are dirty when the device is opened are made anew from
//! what they hold.
//!
//! 1. Nothing is written to a region before its dirty bit is durable.
//! 2. A dirty bit is cleared when data and checksums of its region are durable, and no write to it began since they were written.
//! 3. Of requests that overlap, a write waits for those before it, and others wait for a write.
//! 4. Pages go to and from the device one at a time, so that none overtakes a newer one.
//! 5. After a failed synchronisation every later flush fails: the operating system tells of what it lost only once.

mod clean;
mod open;
mod pages;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onefold_format::{
    CACHE_BLOCK_BYTES, CACHE_REGION_BLOCKS, CacheBits, CacheHeader, cache_sum, decode_cache_sums,
    encode_cache_sums,
};
use onefold_units::IoFailed;
use onefold_units::convert::{index64, u64_from};

use crate::quiet::Quiet;
pub use open::CacheScan;
pub(crate) use open::{find, forget};
use pages::{Page, Pages};

/// A device of blocks of 4 KiB, each of which it writes as a whole.
pub(crate) trait Store: Send + Sync {
    /// How many it has.
    fn blocks(&self) -> u64;

    /// Blocks that may hold something but zeroes, in their order.
    fn parts(&self) -> Vec<Range<u64>>;

    fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed>;

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed>;

    /// As [`Self::write`], and durable when it returns.
    fn write_durable(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed>;

    /// Makes all that was written durable.
    fn flush(&self) -> Result<(), IoFailed>;
}

/// What is known of the checksums of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSums {
    /// Regions of 4 MiB.
    pub regions: u64,
    /// Those that are dirty.
    pub dirty_regions: u64,
    /// Those that were dirty when the device was opened, and whose checksums were made anew.
    pub remade_regions: u64,
    /// Blocks that could not be read then: they are errors until they are written.
    pub unread_blocks: u64,
    /// Sectors of dirty bits that were damaged.
    pub damaged_bits: u64,
    /// A copy of the header was damaged.
    pub damaged_header: bool,
    /// Reads that were refused because a block differs from its checksum; one that is sent again counts again.
    pub damaged_reads: u64,
    /// Bytes of checksums in memory.
    pub memory_bytes: u64,
}

/// A request under way.
#[derive(PartialEq, Eq)]
struct Busy {
    range: Range<u64>,
    writes: bool,
}

struct State {
    pages: Pages,
    /// Regions whose dirty bit is durable.
    dirty: BTreeSet<u64>,
    /// Regions written since cleaning looked last.
    recent: BTreeSet<u64>,
    /// When it did.
    looked: Duration,
    busy: Vec<Busy>,
    /// A synchronisation failed (invariant 5).
    failed: bool,
    damaged_reads: u64,
}

/// A device with checksums.
pub(crate) struct Summed<S> {
    store: S,
    header: CacheHeader,
    state: Mutex<State>,
    /// A request ended.
    ended: Condvar,
    /// The dirty bits as they are on the device, or as they are about to be; whoever has them writes them.
    bits: Mutex<CacheBits>,
    /// Of whoever reads or writes a page (invariant 4).
    paging: Mutex<()>,
    /// Of whoever cleans.
    cleaning: Mutex<()>,
    /// Regions whose checksums are not known: the device may not be changed, and they were dirty.
    unknown: BTreeSet<u64>,
    /// How it was found.
    found: CacheSums,
    told: Quiet,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn overlap(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start < other.end && other.start < one.end
}

/// The regions of a range of blocks.
fn regions_of(range: &Range<u64>) -> Range<u64> {
    range.start / CACHE_REGION_BLOCKS..range.end.div_ceil(CACHE_REGION_BLOCKS)
}

/// Whether a write to a region is under way.
fn is_written(busy: &[Busy], region: u64) -> bool {
    busy.iter().any(|busy| busy.writes && regions_of(&busy.range).contains(&region))
}

/// The part of a range that lies in a region: from where on in the range, and its blocks in the region.
fn part(range: &Range<u64>, region: u64) -> (usize, Range<usize>) {
    let first = region * CACHE_REGION_BLOCKS;
    let (start, end) = (range.start.max(first), range.end.min(first + CACHE_REGION_BLOCKS));
    (index64(start - range.start), index64(start - first)..index64(end - first))
}

/// Keeps others from the range of a request until it ends.
struct Hold<'a, S> {
    summed: &'a Summed<S>,
    busy: Busy,
}

impl<S> Drop for Hold<'_, S> {
    fn drop(&mut self) {
        let mut state = lock(&self.summed.state);
        if let Some(at) = state.busy.iter().position(|busy| *busy == self.busy) {
            state.busy.swap_remove(at);
        }
        drop(state);
        self.summed.ended.notify_all();
    }
}

impl<S: Store> Summed<S> {
    fn hold(&self, range: Range<u64>, writes: bool) -> Hold<'_, S> {
        let mut state = lock(&self.state);
        let waits = |state: &State| {
            let both = |busy: &Busy| (busy.writes || writes) && overlap(&busy.range, &range);
            state.busy.iter().any(both)
        };
        while waits(&state) {
            state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.busy.push(Busy { range: range.clone(), writes });
        Hold { summed: self, busy: Busy { range, writes } }
    }

    /// Blocks that can be read and written.
    pub(crate) const fn blocks(&self) -> u64 {
        self.header.layout.data_blocks()
    }

    fn range(&self, at: u64, bytes: &[u8]) -> Range<u64> {
        let range = at..at + u64_from(bytes.len() / CACHE_BLOCK_BYTES);
        assert!(range.end <= self.blocks(), "blocks {range:?} of {}", self.blocks());
        range
    }

    /// Reads blocks. One that differs from its checksum is read once more, and then an error.
    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        let range = self.range(at, bytes);
        let _hold = self.hold(range.clone(), false);
        let mut differing = None;
        for _ in 0..2 {
            self.store.read(self.header.layout.data_at() + at, bytes)?;
            differing = self.differing(&range, bytes)?;
            if differing.is_none() {
                return Ok(());
            }
        }
        lock(&self.state).damaged_reads += 1;
        if let (Some(block), Some(times)) = (differing, self.told.happened()) {
            tracing::error!(times, block, "the cache does not hold what was written to it");
        }
        Err(IoFailed::Error)
    }

    /// Reads blocks that somebody else judges.
    pub(crate) fn read_unjudged(&self, at: u64, bytes: &mut [u8]) -> Result<(), IoFailed> {
        let _hold = self.hold(self.range(at, bytes), false);
        self.store.read(self.header.layout.data_at() + at, bytes)
    }

    /// Writes blocks.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), IoFailed> {
        let range = self.range(at, bytes);
        let _hold = self.hold(range.clone(), true);
        // Whatever else may fail does so before something changes.
        for region in regions_of(&range) {
            self.with_page(region, |_| ())?;
        }
        self.mark(regions_of(&range))?;
        let sums: Vec<u32> = bytes.chunks(CACHE_BLOCK_BYTES).map(cache_sum).collect();
        let written = self.store.write(self.header.layout.data_at() + at, bytes);
        if written.is_ok() {
            return self.note(&range, &sums);
        }
        // Some of it may have been written. What is neither old nor new stays an error until it is written.
        let mut block = [0; CACHE_BLOCK_BYTES];
        for (at, sum) in range.zip(sums) {
            let read = self.store.read(self.header.layout.data_at() + at, &mut block);
            if read.is_ok() && cache_sum(&block) == sum {
                self.note(&(at..at + 1), &[sum])?;
            }
        }
        written
    }

    /// The first block that differs from its checksum.
    fn differing(&self, range: &Range<u64>, bytes: &[u8]) -> Result<Option<u64>, IoFailed> {
        let sums: Vec<u32> = bytes.chunks(CACHE_BLOCK_BYTES).map(cache_sum).collect();
        for region in regions_of(range).filter(|region| !self.unknown.contains(region)) {
            let (from, within) = part(range, region);
            let found = self.with_page(region, |page| {
                let expected = &page.sums[within.clone()];
                expected.iter().zip(&sums[from..]).position(|(one, other)| one != other)
            })?;
            if let Some(found) = found {
                return Ok(Some(range.start + u64_from(from + found)));
            }
        }
        Ok(None)
    }

    /// Blocks have these checksums from now on.
    fn note(&self, range: &Range<u64>, sums: &[u32]) -> Result<(), IoFailed> {
        for region in regions_of(range) {
            let (from, within) = part(range, region);
            let sums = &sums[from..from + within.len()];
            self.with_page(region, |page| {
                page.sums[within.clone()].copy_from_slice(sums);
                page.is_dirty = true;
            })?;
        }
        Ok(())
    }

    /// Does something with a page, which is read if it is not in memory. It stays there while its region is written.
    fn with_page<T>(&self, region: u64, what: impl Fn(&mut Page) -> T) -> Result<T, IoFailed> {
        loop {
            if let Some(page) = lock(&self.state).pages.get(region) {
                return Ok(what(page));
            }
            self.load(region)?;
        }
    }

    fn load(&self, region: u64) -> Result<(), IoFailed> {
        let _paging = lock(&self.paging);
        if lock(&self.state).pages.get(region).is_some() {
            return Ok(());
        }
        let mut block = [0; CACHE_BLOCK_BYTES];
        self.store.read(self.header.layout.sums_at() + region, &mut block)?;
        self.make_room();
        lock(&self.state).pages.insert(region, Page::new(decode_cache_sums(&block)));
        Ok(())
    }

    /// Takes a page from memory if there are too many. Where the device takes none there are more.
    fn make_room(&self) {
        let victim = {
            let state = &mut *lock(&self.state);
            let busy = &state.busy;
            state.pages.victim(|region| is_written(busy, region))
        };
        let Some(victim) = victim.filter(|victim| self.put(*victim).is_ok()) else { return };
        let mut state = lock(&self.state);
        if !is_written(&state.busy, victim) {
            state.pages.remove_clean(victim);
        }
    }

    /// Writes a page if it has changed. Only whoever pages calls it. The region is dirty, so it does not matter when.
    fn put(&self, region: u64) -> Result<(), IoFailed> {
        let mut state = lock(&self.state);
        let Some(page) = state.pages.get(region).filter(|page| page.is_dirty) else {
            return Ok(());
        };
        page.is_dirty = false;
        let block = encode_cache_sums(&page.sums);
        drop(state);
        let put = self.store.write(self.header.layout.sums_at() + region, &block);
        if put.is_err()
            && let Some(page) = lock(&self.state).pages.get(region)
        {
            page.is_dirty = true;
        }
        put
    }

    /// What is known of the checksums.
    pub(crate) fn details(&self) -> CacheSums {
        let state = lock(&self.state);
        CacheSums {
            dirty_regions: u64_from(state.dirty.len() + self.unknown.len()),
            damaged_reads: state.damaged_reads,
            memory_bytes: state.pages.bytes(),
            ..self.found
        }
    }
}
