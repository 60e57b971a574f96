//! The requests of a look-alike.

use onefold_units::convert::{float, floor_u64, index64, narrow};
use onefold_units::{Op, Rng};

use super::PageVolume;
use super::volume::{GROUP, MAX_PAGES};
use crate::workload::math::{exp, ln};
use crate::workload::page_request::{PAGE_BYTES, PageRequest, PageSource, fill_requests};
use crate::workload::{Request, Scatter, WorkloadError, Zipf};

/// The streams of one seed, one per kind of decision.
mod stream {
    pub(super) const OPS: u64 = 1;
    pub(super) const SIZES: u64 = 2;
    pub(super) const RANKS: u64 = 3;
    pub(super) const RECENCY: u64 = 4;
    pub(super) const READS: u64 = 5;
    pub(super) const SCATTER: u64 = 6;
}

/// Produces the requests of a [`PageVolume`].
#[derive(Clone, Debug)]
pub struct PageGenerator {
    volume: PageVolume,
    starts: Starts,
    ops: Rng,
    sizes: Rng,
    reads: Rng,
    /// Where the loop goes on.
    next_of_loop: u64,
    /// Pages to read and write.
    left: u64,
}

/// Chooses the first page of an access: by popularity, or again one of the last.
#[derive(Clone, Debug)]
struct Starts {
    zipf: Zipf,
    ranks: Rng,
    groups: Scatter,
    rho: f64,
    recency: Rng,
    /// Logarithm of the longest distance.
    log_distance: f64,
    /// The last accesses, a ring; the next one goes to `next`.
    ring: Vec<u32>,
    next: usize,
    capacity: usize,
}

impl Starts {
    fn next(&mut self) -> u64 {
        let start = self.repeated().unwrap_or_else(|| {
            let rank = self.zipf.rank(&mut self.ranks);
            self.groups.apply(rank / GROUP) * GROUP + rank % GROUP
        });
        if self.ring.len() < self.capacity {
            self.ring.push(narrow(start));
        } else {
            self.ring[self.next] = narrow(start);
        }
        self.next = (self.next + 1) % self.capacity;
        start
    }

    /// The start used d accesses ago, with the logarithm of d uniform.
    fn repeated(&mut self) -> Option<u64> {
        if self.recency.unit() >= self.rho {
            return None;
        }
        let distance = index64(floor_u64(exp(self.recency.unit() * self.log_distance)).max(1));
        let known = self.ring.len();
        if distance > known {
            return None;
        }
        let at =
            if self.next >= distance { self.next - distance } else { self.next + known - distance };
        Some(u64::from(self.ring[at]))
    }
}

impl PageVolume {
    /// Fits the volume to a device of `device_bytes` bytes. `seed` is used unless the specification
    /// has its own.
    pub fn instantiate(
        &self,
        device_bytes: u64,
        seed: u64,
    ) -> Result<PageGenerator, WorkloadError> {
        let end = self.natural_bytes();
        if end > device_bytes {
            return Err(WorkloadError::RangeBeyondDevice { end, device: device_bytes });
        }
        let too_many = WorkloadError::TooManyUnits { found: self.pages, limit: MAX_PAGES };
        let zipf = Zipf::mandelbrot(self.pages, self.s, self.q).ok_or(too_many)?;
        Ok(PageGenerator::new(self, zipf, self.seed.unwrap_or(seed)))
    }
}

impl PageGenerator {
    /// `zipf` is the popularity the volume asks for.
    pub(super) fn new(volume: &PageVolume, zipf: Zipf, seed: u64) -> Self {
        let scatter = Rng::fork(seed, stream::SCATTER).next_u64();
        Self {
            starts: Starts {
                zipf,
                ranks: Rng::fork(seed, stream::RANKS),
                groups: Scatter::new(volume.pages.div_ceil(GROUP), scatter),
                rho: volume.rho,
                recency: Rng::fork(seed, stream::RECENCY),
                log_distance: ln(float(volume.distance + 1)),
                ring: Vec::new(),
                next: 0,
                capacity: index64(volume.distance),
            },
            ops: Rng::fork(seed, stream::OPS),
            sizes: Rng::fork(seed, stream::SIZES),
            reads: Rng::fork(seed, stream::READS),
            next_of_loop: 0,
            left: volume.bytes / u64::from(PAGE_BYTES),
            volume: volume.clone(),
        }
    }

    /// Fills `out` from its start and returns how many requests it wrote. Fewer than asked means
    /// the end of the workload.
    pub fn fill(&mut self, out: &mut [Request]) -> usize {
        fill_requests(self, out)
    }

    fn step(&mut self) -> PageRequest {
        let size = self.size();
        let written = self.volume.written_pages();
        if self.ops.unit() >= self.volume.read_share {
            return request(Op::Write, self.starts.next(), size, written);
        }
        let volume = &self.volume;
        if volume.loop_pages > 0 && self.reads.unit() < volume.loop_share {
            let at = self.next_of_loop;
            let size = size.min(volume.loop_pages - at);
            self.next_of_loop = (at + size) % volume.loop_pages;
            return request(Op::Read, written + at, size, written + volume.loop_pages);
        }
        if volume.read_only > 0 && self.reads.next_u64().is_multiple_of(2) {
            let at = written + self.reads.below(volume.read_only);
            return request(Op::Read, at, size, written + volume.read_only);
        }
        request(Op::Read, self.starts.next(), size, written)
    }

    /// 1 page, or uniform from 2 to 2 mean - 2; a fraction of the upper end makes the mean exact.
    fn size(&mut self) -> u64 {
        if self.sizes.unit() >= self.volume.multi {
            return 1;
        }
        let largest = floor_u64(2.0 * self.volume.mean - 2.0 + self.sizes.unit()).max(2);
        2 + self.sizes.below(largest - 1)
    }
}

/// A request that ends at `end` at the latest.
fn request(op: Op, start: u64, pages: u64, end: u64) -> PageRequest {
    PageRequest { lpn: narrow(start), n: narrow(pages.min(end - start)), op, tenant: 0 }
}

impl PageSource for PageGenerator {
    fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize {
        let mut filled = 0;
        for slot in out {
            if self.left == 0 {
                break;
            }
            *slot = self.step();
            self.left = self.left.saturating_sub(u64::from(slot.n));
            filled += 1;
        }
        filled
    }

    fn end_pages(&self) -> u32 {
        narrow(self.volume.written_pages() + self.volume.read_only)
    }
}

impl Iterator for PageGenerator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        let mut one = [Request::EMPTY];
        (self.fill(&mut one) == 1).then_some(one[0])
    }
}
