//! What a buffer counts. Pages here are entries of the buffer.

use onefold_units::convert::float;

use crate::{Access, Area};

/// Reads or writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Requests.
    pub requests: u64,
    /// Requests all of whose pages hit.
    pub full_hits: u64,
    /// Pages accessed.
    pub pages: u64,
    /// Pages that hit. A read of a partly written page hits if all it asks for is there; a write
    /// hits any buffered page.
    pub hits: u64,
    /// Bytes accessed, in whole sectors.
    pub bytes: u64,
    /// Bytes accessed in pages that hit.
    pub bytes_hit: u64,
}

onefold_units::keep!(Accesses { requests, full_hits, pages, hits, bytes, bytes_hit });

impl Accesses {
    /// Pages that did not hit.
    #[must_use]
    pub const fn misses(&self) -> u64 {
        self.pages - self.hits
    }

    /// Counts one request.
    #[inline]
    pub(crate) const fn add(&mut self, pages: u64, hits: u64, bytes_hit: u64) {
        self.requests += 1;
        self.full_hits += if hits == pages && pages > 0 { 1 } else { 0 };
        self.pages += pages;
        self.hits += hits;
        self.bytes_hit += bytes_hit;
    }

    /// Hits per page accessed; 0 if there was none.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        ratio(self.hits, self.pages)
    }

    /// Requests all of whose pages hit, per request; 0 if there was none.
    #[must_use]
    pub fn request_hit_ratio(&self) -> f64 {
        ratio(self.full_hits, self.requests)
    }

    /// Bytes in pages that hit, per byte accessed; 0 if there was none.
    #[must_use]
    pub fn byte_hit_ratio(&self) -> f64 {
        ratio(self.bytes_hit, self.bytes)
    }

    fn combine(&mut self, other: &Self, with: fn(&mut u64, u64)) {
        with(&mut self.requests, other.requests);
        with(&mut self.full_hits, other.full_hits);
        with(&mut self.pages, other.pages);
        with(&mut self.hits, other.hits);
        with(&mut self.bytes, other.bytes);
        with(&mut self.bytes_hit, other.bytes_hit);
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { float(part) / float(whole) }
}

/// Counters of one tenant. What leaves the buffer is counted for the tenant that wrote it last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TenantStats {
    /// Reads.
    pub reads: Accesses,
    /// Writes.
    pub writes: Accesses,
    /// TRIM requests. Their pages are neither hits nor misses.
    pub trim_requests: u64,
    /// Pages of TRIM requests.
    pub trim_pages: u64,
    /// FLUSH requests, also those that a power-loss-protected buffer ignores.
    pub flushes: u64,
    /// FUA write requests, also those that a power-loss-protected buffer treats as plain writes.
    pub fua_writes: u64,
    /// Pages read from flash to serve reads (fills and bypasses), whether mapped or not.
    pub flash_reads: u64,
    /// Pages read from victims that were on their way to flash: hits, counted by whoever executes
    /// the programs (`writeback = async`). A policy alone counts them as misses.
    pub wb_hits: u64,
    /// Pages read from flash to complete partly written pages, and blocks that are programmed as a
    /// whole, whether mapped or not.
    pub pad_reads: u64,
    /// Dirty pages programmed.
    pub pages_programmed: u64,
    /// Pages programmed although not dirty, to complete blocks: those read for it, and clean
    /// entries. They count for the tenant of the first dirty page of the block.
    pub pages_padded: u64,
    /// Programs. One that mixes tenants counts for that of its first page.
    pub programs: u64,
    /// Programs that do not fill their flash page.
    pub short_programs: u64,
    /// Writes to pages that were dirty: absorbed.
    pub overwritten: u64,
    /// Dirty pages discarded by TRIM.
    pub trim_discards: u64,
    /// Dirty pages now in the buffer. A level, not a count.
    pub dirty: u64,
}

onefold_units::keep!(TenantStats {
    reads,
    writes,
    trim_requests,
    trim_pages,
    flushes,
    fua_writes,
    flash_reads,
    wb_hits,
    pad_reads,
    pages_programmed,
    pages_padded,
    programs,
    short_programs,
    overwritten,
    trim_discards,
    dirty
});

/// What the pages of a write did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    /// Entries made dirty.
    pub(crate) dirtied: u64,
    /// The tenant's own dirty entries, written again.
    pub(crate) overwritten: u64,
}

impl TenantStats {
    #[inline]
    pub(crate) const fn count_written(&mut self, written: Written) {
        self.overwritten += written.overwritten;
        self.dirty = self.dirty.wrapping_add(written.dirtied);
    }

    /// Reads and writes together.
    #[must_use]
    pub fn accesses(&self) -> Accesses {
        let mut sum = self.reads;
        sum.combine(&self.writes, |a, b| *a += b);
        sum
    }

    /// Hits per page read or written.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.accesses().hit_ratio()
    }

    /// All pages programmed, dirty or not.
    #[must_use]
    pub const fn all_programmed(&self) -> u64 {
        self.pages_programmed + self.pages_padded
    }

    /// 1 - all pages programmed / pages written; 0 if none was written. Negative if padding costs
    /// more than the buffer absorbs.
    #[must_use]
    pub fn absorption(&self) -> f64 {
        if self.writes.pages == 0 {
            return 0.0;
        }
        1.0 - float(self.all_programmed()) / float(self.writes.pages)
    }

    /// What became of the pages written; equal to `writes.pages` at any time.
    pub(crate) const fn accounted(&self) -> u64 {
        self.overwritten + self.pages_programmed + self.trim_discards + self.dirty
    }

    /// Applies `with` to each counter, but not to the level `dirty`.
    fn combine(&mut self, other: &Self, with: fn(&mut u64, u64)) {
        self.reads.combine(&other.reads, with);
        self.writes.combine(&other.writes, with);
        with(&mut self.trim_requests, other.trim_requests);
        with(&mut self.trim_pages, other.trim_pages);
        with(&mut self.flushes, other.flushes);
        with(&mut self.fua_writes, other.fua_writes);
        with(&mut self.flash_reads, other.flash_reads);
        with(&mut self.wb_hits, other.wb_hits);
        with(&mut self.pad_reads, other.pad_reads);
        with(&mut self.pages_programmed, other.pages_programmed);
        with(&mut self.pages_padded, other.pages_padded);
        with(&mut self.programs, other.programs);
        with(&mut self.short_programs, other.short_programs);
        with(&mut self.overwritten, other.overwritten);
        with(&mut self.trim_discards, other.trim_discards);
    }
}

/// Counters of one area: a list of the policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaStats {
    /// Name of the area.
    pub name: &'static str,
    /// Entries, or ghosts, now in it. A level, not a count.
    pub entries: u32,
    /// Dirty entries now in it. A level, not a count.
    pub dirty: u32,
    /// Clean entries evicted.
    pub clean_evictions: u64,
    /// Dirty entries evicted, and programmed for it.
    pub dirty_evictions: u64,
    /// Dirty entries programmed in place: flushed or written with FUA.
    pub flushed: u64,
}

onefold_units::keep!(AreaStats { entries, dirty, clean_evictions, dirty_evictions, flushed } but { name });

impl AreaStats {
    /// Entries evicted, clean or dirty.
    #[must_use]
    pub const fn evictions(&self) -> u64 {
        self.clean_evictions + self.dirty_evictions
    }

    /// Dirty entries programmed.
    #[must_use]
    pub const fn write_backs(&self) -> u64 {
        self.dirty_evictions + self.flushed
    }

    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.dirty += other.dirty;
        self.clean_evictions += other.clean_evictions;
        self.dirty_evictions += other.dirty_evictions;
        self.flushed += other.flushed;
    }
}

/// Pages of one tenant that hit in one area.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AreaHits {
    /// Name of the area.
    pub name: &'static str,
    /// Pages read that were in it.
    pub reads: u64,
    /// Pages written that were in it.
    pub writes: u64,
}

/// Hits in one list, reads and writes.
type Hits = [u64; 2];

/// Counters of all tenants and areas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Grows up to the highest tenant seen, 256 at most.
    tenants: Vec<TenantStats>,
    areas: Vec<AreaStats>,
    /// Hits in each list, tenant after tenant, up to the highest tenant that hit.
    hits: Vec<Hits>,
    /// Look-ups in tables of the policy, such as the large-append table.
    pub lookups: u64,
}

onefold_units::keep!(Stats { tenants, hits, lookups } each { areas });

impl Stats {
    pub(crate) fn new(areas: &[Area]) -> Self {
        let area = |area: &Area| AreaStats { name: area.name, ..AreaStats::default() };
        Self { areas: areas.iter().map(area).collect(), ..Self::default() }
    }

    /// The counters of every list of the policy that holds entries, in its order. Lists of the same
    /// name belong to one area.
    #[must_use]
    pub fn areas(&self) -> &[AreaStats] {
        &self.areas
    }

    /// The counters of every area of entries, in the order of the first list of each name.
    #[must_use]
    pub fn areas_by_name(&self) -> Vec<AreaStats> {
        let mut merged: Vec<AreaStats> = Vec::new();
        for list in self.areas.iter().filter(|list| list.name != Area::ghosts().name) {
            match merged.iter_mut().find(|area| area.name == list.name) {
                Some(area) => area.add(list),
                None => merged.push(*list),
            }
        }
        merged
    }

    /// Where the pages of one tenant were when they hit, by area as [`Stats::areas_by_name`] has them.
    #[must_use]
    pub fn hits_by_area(&self, tenant: u8) -> Vec<AreaHits> {
        let named = |area: &AreaStats| AreaHits { name: area.name, ..AreaHits::default() };
        let mut merged: Vec<AreaHits> = self.areas_by_name().iter().map(named).collect();
        let hits = self.hits.iter().skip(usize::from(tenant) * self.areas.len());
        for (list, [reads, writes]) in self.areas.iter().zip(hits) {
            if let Some(area) = merged.iter_mut().find(|area| area.name == list.name) {
                area.reads += reads;
                area.writes += writes;
            }
        }
        merged
    }

    /// Counts a page that hit in a list.
    #[inline]
    pub(crate) fn count_hit(&mut self, tenant: u8, list: u8, access: Access) {
        let at = usize::from(tenant) * self.areas.len() + usize::from(list);
        if at >= self.hits.len() {
            self.grow_hits(tenant);
        }
        self.hits[at][usize::from(access == Access::Write)] += 1;
    }

    #[cold]
    fn grow_hits(&mut self, tenant: u8) {
        let tenants = usize::from(tenant) + 1;
        self.hits.resize(tenants * self.areas.len(), Hits::default());
    }

    #[inline]
    pub(crate) fn area(&self, list: u8) -> &AreaStats {
        &self.areas[usize::from(list)]
    }

    #[inline]
    pub(crate) fn area_mut(&mut self, list: u8) -> &mut AreaStats {
        &mut self.areas[usize::from(list)]
    }

    /// The counters of one tenant.
    #[must_use]
    pub fn tenant(&self, tenant: u8) -> TenantStats {
        self.tenants.get(usize::from(tenant)).copied().unwrap_or_default()
    }

    /// The counters of tenants 0, 1, .. up to the highest one seen.
    #[must_use]
    pub fn tenants(&self) -> &[TenantStats] {
        &self.tenants
    }

    /// The sum over all tenants.
    #[must_use]
    pub fn total(&self) -> TenantStats {
        let mut sum = TenantStats::default();
        for tenant in &self.tenants {
            sum.combine(tenant, |a, b| *a += b);
            sum.dirty += tenant.dirty;
        }
        sum
    }

    /// What was counted since `earlier`, an older state of the same statistics (after a warm-up,
    /// for example). `dirty` stays the current level.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut delta = self.clone();
        for (now, before) in delta.tenants.iter_mut().zip(&earlier.tenants) {
            now.combine(before, |a, b| *a -= b);
        }
        for (now, before) in delta.areas.iter_mut().zip(&earlier.areas) {
            now.clean_evictions -= before.clean_evictions;
            now.dirty_evictions -= before.dirty_evictions;
            now.flushed -= before.flushed;
        }
        for (now, before) in delta.hits.iter_mut().zip(&earlier.hits) {
            now[0] -= before[0];
            now[1] -= before[1];
        }
        delta.lookups -= earlier.lookups;
        delta
    }

    /// The counters of one tenant, to change.
    #[inline]
    pub fn tenant_mut(&mut self, tenant: u8) -> &mut TenantStats {
        let at = usize::from(tenant);
        if at >= self.tenants.len() {
            self.grow(at + 1);
        }
        &mut self.tenants[at]
    }

    #[cold]
    fn grow(&mut self, tenants: usize) {
        self.tenants.resize(tenants, TenantStats::default());
    }
}

#[cfg(test)]
mod tests {
    use super::Stats;

    #[test]
    fn sums_and_differences() {
        let mut stats = Stats::default();
        stats.tenant_mut(3).reads.pages = 8;
        stats.tenant_mut(3).reads.hits = 2;
        stats.tenant_mut(0).writes.pages = 4;
        stats.tenant_mut(0).writes.hits = 4;
        stats.tenant_mut(0).pages_programmed = 1;
        stats.tenant_mut(0).dirty = 3;
        assert_eq!(stats.tenants().len(), 4);
        assert_eq!((stats.total().accesses().pages, stats.total().dirty), (12, 3));
        assert!((stats.total().hit_ratio() - 0.5).abs() < 1e-12);
        assert!((stats.tenant(0).absorption() - 0.75).abs() < 1e-12);
        assert_eq!(stats.tenant(3).reads.misses(), 6);
        assert!(stats.tenant(200).hit_ratio().abs() < 1e-12);
        let earlier = stats.clone();
        stats.tenant_mut(3).reads.pages += 5;
        let delta = stats.since(&earlier);
        assert_eq!((delta.total().reads.pages, delta.total().dirty), (5, 3));
    }
}
