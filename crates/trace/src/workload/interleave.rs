//! Several sources in one stream, in a fixed ratio of their bytes.

use onefold_units::convert::{narrow, u64_from};

use super::WorkloadError;
use super::page_request::{PageRequest, PageSource};

/// Address spaces of sources start at multiples of 1 GiB, in pages.
const BASE_ALIGN: u32 = 1 << 18;
/// Requests taken from a source at a time.
const BLOCK: usize = 256;
/// Tenants have 8 bits.
const MAX_PARTS: usize = 256;
/// Weights below 2^60 keep the comparison within 128 bits for any length.
const MAX_WEIGHT: u64 = 1 << 60;

/// A source and its share of the traffic, relative to the shares of the others.
pub struct Part {
    /// Produces requests of tenant 0 from page 0 on.
    pub source: Box<dyn PageSource + Send>,
    /// Its weight, for instance the bytes of the whole original.
    pub weight: u64,
}

/// Merges sources: after any number of requests, no source is ahead of another by more than one of
/// its requests, measured in bytes read and written divided by the weight. Trims move no bytes and
/// stay where their source has them.
///
/// Source i is tenant i. The address spaces lie one after another, each from a multiple of 1 GiB on.
/// The stream ends with the first source, which sets the length; another source that ends before
/// is missed in silence.
pub struct Interleave {
    lanes: Vec<Lane>,
}

struct Lane {
    part: Part,
    tenant: u8,
    /// First page of its address space.
    base: u32,
    /// Pages read and written.
    done: u64,
    block: Vec<PageRequest>,
    next: usize,
    filled: usize,
    is_over: bool,
}

impl Interleave {
    /// Puts the sources together; the first one is the main one.
    pub fn new(parts: Vec<Part>) -> Result<Self, WorkloadError> {
        if parts.is_empty() || parts.len() > MAX_PARTS {
            return Err(WorkloadError::TenantCount { found: parts.len() });
        }
        let mut lanes = Vec::with_capacity(parts.len());
        let mut base: u64 = 0;
        for (tenant, part) in (0..=u8::MAX).zip(parts) {
            if !(1..=MAX_WEIGHT).contains(&part.weight) {
                return Err(WorkloadError::TenantWeight { tenant, found: part.weight });
            }
            let end = base + u64::from(part.source.end_pages());
            let limit = u64::from(u32::MAX);
            if end > limit {
                return Err(WorkloadError::TooManyUnits { found: end, limit });
            }
            lanes.push(Lane {
                part,
                tenant,
                base: narrow(base),
                done: 0,
                block: vec![PageRequest::EMPTY; BLOCK],
                next: 0,
                filled: 0,
                is_over: false,
            });
            base = end.next_multiple_of(u64::from(BASE_ALIGN));
        }
        Ok(Self { lanes })
    }

    /// First page of the address space of a tenant.
    #[must_use]
    pub fn base_pages(&self, tenant: u8) -> Option<u32> {
        self.lanes.get(usize::from(tenant)).map(|lane| lane.base)
    }
}

impl PageSource for Interleave {
    fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize {
        for (filled, slot) in out.iter_mut().enumerate() {
            let Some(request) = self.next_request() else { return filled };
            *slot = request;
        }
        out.len()
    }

    /// The warm-up of the main source, alone.
    fn fill_warm_up(&mut self, out: &mut [PageRequest]) -> usize {
        self.lanes[0].part.source.fill_warm_up(out)
    }

    fn end_pages(&self) -> u32 {
        self.lanes.last().map_or(0, |lane| lane.base + lane.part.source.end_pages())
    }
}

impl Interleave {
    fn next_request(&mut self) -> Option<PageRequest> {
        loop {
            let at = self.furthest_behind();
            if let Some(request) = self.lanes[at].next_request() {
                return Some(request);
            }
            if at == 0 {
                return None;
            }
        }
    }

    /// The source with the least traffic for its weight; the first of several.
    fn furthest_behind(&self) -> usize {
        let mut least = 0;
        for (at, lane) in self.lanes.iter().enumerate().skip(1) {
            let other = &self.lanes[least];
            let ahead = u128::from(lane.done) * u128::from(other.part.weight);
            if !lane.is_over && ahead < u128::from(other.done) * u128::from(lane.part.weight) {
                least = at;
            }
        }
        least
    }
}

impl Lane {
    fn next_request(&mut self) -> Option<PageRequest> {
        if self.next == self.filled {
            self.filled = self.part.source.fill_pages(&mut self.block);
            self.next = 0;
            self.is_over = self.filled == 0;
        }
        let request = *self.block.get(..self.filled)?.get(self.next)?;
        self.next += 1;
        self.done += u64::from(request.traffic_pages());
        Some(PageRequest { lpn: self.base + request.lpn, tenant: self.tenant, ..request })
    }
}

impl std::fmt::Debug for Interleave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interleave").field("tenants", &u64_from(self.lanes.len())).finish()
    }
}
