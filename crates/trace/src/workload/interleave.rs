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

#[cfg(test)]
mod tests {
    use super::{Interleave, Part};
    use crate::workload::page_request::{PageRequest, PageSource};
    use crate::workload::{Mix, WorkloadError};
    use onefold_units::{Op, Rng};
    use proptest::prelude::*;

    /// Requests of random sizes, some of them trims.
    struct Random {
        rng: Rng,
        left: u32,
    }

    impl PageSource for Random {
        fn fill_pages(&mut self, out: &mut [PageRequest]) -> usize {
            let got = out.len().min(self.left.try_into().unwrap());
            for slot in &mut out[..got] {
                let n = 1 + u32::try_from(self.rng.below(100)).unwrap();
                let op = [Op::Read, Op::Write, Op::Trim][usize::from(n % 7 == 0) * 2];
                *slot = PageRequest { lpn: 1000 - n, n, op, tenant: 0 };
            }
            self.left -= u32::try_from(got).unwrap();
            got
        }

        fn end_pages(&self) -> u32 {
            1000
        }
    }

    fn random(seed: u64, left: u32) -> Random {
        Random { rng: Rng::new(seed), left }
    }

    fn part(source: Random, weight: u64) -> Part {
        Part { source: Box::new(source), weight }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

        /// After every request, no tenant is ahead of another by more than a request.
        #[test]
        fn the_ratio_holds_after_every_request(
            weights in prop::collection::vec(1_u64..1_000_000, 1..6),
            seed: u64,
            batch in 1_usize..700,
        ) {
            let parts = weights.iter().zip(seed..).map(|(weight, seed)| {
                part(random(seed, 100_000), *weight)
            });
            let mut merged = Interleave::new(parts.collect()).unwrap();
            let mut done = vec![0_u64; weights.len()];
            let mut out = vec![PageRequest::EMPTY; batch];
            for _ in 0..=3_000 / batch {
                prop_assert_eq!(merged.fill_pages(&mut out), batch);
                for request in &out {
                    let tenant = usize::from(request.tenant);
                    let base = merged.base_pages(request.tenant).unwrap();
                    prop_assert!(request.lpn >= base && request.lpn + request.n <= base + 1000);
                    done[tenant] += u64::from(request.traffic_pages());
                    for (a, wa) in done.iter().zip(&weights) {
                        for (b, wb) in done.iter().zip(&weights) {
                            prop_assert!(a * wb <= b * wa + 100 * wb, "{done:?} for {weights:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn each_source_keeps_its_order_and_the_first_one_sets_the_length() {
        let parts =
            vec![part(random(1, 1000), 3), part(random(2, 100), 2), part(random(3, 100_000), 1)];
        let mut merged = Interleave::new(parts).unwrap();
        assert_eq!(merged.end_pages(), (2 << 18) + 1000);
        let mut out = vec![PageRequest::EMPTY; 100_000];
        let got = merged.fill_pages(&mut out);
        assert!(got < out.len());
        assert_eq!(merged.fill_pages(&mut [PageRequest::EMPTY]), 0);
        for (tenant, expected) in [(0, 1000), (1, 100)] {
            let mut alone = vec![PageRequest::EMPTY; expected];
            random(u64::from(tenant) + 1, 100_000).fill_pages(&mut alone);
            let base = merged.base_pages(tenant).unwrap();
            let found: Vec<_> = out[..got]
                .iter()
                .filter(|request| request.tenant == tenant)
                .map(|request| PageRequest { lpn: request.lpn - base, tenant: 0, ..*request })
                .collect();
            assert_eq!(found, alone, "tenant {tenant}");
        }
    }

    #[test]
    fn refuses_what_cannot_be_merged() {
        let none = Interleave::new(Vec::new()).unwrap_err();
        assert_eq!(none, WorkloadError::TenantCount { found: 0 });
        let many = (0..257).map(|seed| part(random(seed, 1), 1)).collect();
        assert_eq!(Interleave::new(many).unwrap_err(), WorkloadError::TenantCount { found: 257 });
        let idle = vec![part(random(1, 1), 0)];
        let expected = WorkloadError::TenantWeight { tenant: 0, found: 0 };
        assert_eq!(Interleave::new(idle).unwrap_err(), expected);
    }

    /// Every mix fits the device of the paper and has its ratio and its length.
    #[test]
    fn mixes_of_the_paper() {
        let ratios = [5847, 1779, 1411, 890, 660, 3721, 4093, 157, 55, 29, 28, 35, 137, 170];
        for (mix, ratio) in Mix::ALL.into_iter().zip(ratios) {
            assert_eq!(Mix::named(mix.name), Some(mix));
            let found = mix.store_gib / mix.target_gib;
            assert!((found - f64::from(ratio)).abs() <= 0.5, "{}: {found}", mix.name);
            let merged = mix.instantiate(&mix.store(), 300 << 30, 1).unwrap();
            assert!(merged.base_pages(1).unwrap() >= 74_000_000 - 100_000);
        }
    }
}
