//! Sizes and alignment of the requests of a look-alike.

use onefold_units::convert::{float, index64, u64_from};
use onefold_units::{PAGE_BYTES, Rng, SECTOR_BYTES};

use super::super::address::threshold;
use super::super::math::pow;
use super::preset::Volume;

/// Pages of a request: 4 KiB to 64 KiB.
pub(super) const PAGES: [u64; 5] = [1, 2, 4, 8, 16];
const SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;
/// An unaligned request within a page is this long at most, in sectors. Short ones fit the volumes
/// best: their requests transfer far less than the pages they touch.
const SHORT_SECTORS: u64 = 2;
/// Sectors such a request leaves out of its page, on average.
const SHORT_GAP: f64 = 6.5;
/// A shifted request leaves out one page's worth of sectors at its two ends.
const SHIFT_GAP: f64 = 8.0;
/// At most this share of the reads or of the writes has several pages.
const MULTI_MAX: f64 = 0.95;

/// How often each of [`PAGES`] occurs; the weights add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SizeMix(pub(super) [f64; 5]);

impl SizeMix {
    /// `multi` of the requests have several pages, and all have `mean` on average, as far as the
    /// sizes go: weights of the sizes from 8 KiB on form a geometric series.
    fn new(mean: f64, multi: f64) -> Self {
        let wanted = 1.0 + (mean - 1.0) / multi;
        let series = |ratio: f64| [1.0, 2.0, 3.0, 4.0].map(|power| pow(ratio, power));
        // The mean of the series grows with its ratio: bisect, on a logarithmic scale.
        let (mut low, mut high) = (1.0 / 1024.0, 1024.0);
        for _ in 0..60 {
            let ratio = f64::sqrt(low * high);
            if mean_pages(&series(ratio)) < wanted { low = ratio } else { high = ratio }
        }
        let weights = series(f64::sqrt(low * high));
        let total: f64 = weights.iter().sum();
        let [a, b, c, d] = weights.map(|weight| multi * weight / total);
        Self([1.0 - multi, a, b, c, d])
    }

    /// Expected pages of a request.
    pub(super) fn mean(&self) -> f64 {
        self.0.iter().zip(PAGES).map(|(weight, pages)| weight * float(pages)).sum()
    }
}

fn mean_pages(weights: &[f64; 4]) -> f64 {
    let pages: f64 = weights.iter().zip(&PAGES[1..]).map(|(w, pages)| w * float(*pages)).sum();
    pages / weights.iter().sum::<f64>()
}

/// The sizes of reads and of writes that give the volume's bytes per request, blocks read to blocks
/// written and share of requests with several pages.
pub(super) fn size_mixes(volume: &Volume) -> (SizeMix, SizeMix) {
    let multi = volume.multi_share;
    let gap = multi * SHIFT_GAP + (1.0 - multi) * SHORT_GAP;
    let bytes = volume.mean_bytes + volume.unaligned_share * gap * float(SECTOR_BYTES);
    let mean = bytes / float(PAGE_BYTES);
    let writes = volume.write_share;
    // Blocks per request as counted, brought to the mean that gives the bytes.
    let scale = mean / (volume.write_blocks + volume.read_blocks) * volume.requests;
    let write_mean = scale * volume.write_blocks / (volume.requests * writes);
    let read_mean = scale * volume.read_blocks / (volume.requests * (1.0 - writes));
    // Larger requests of the two are also more often of several pages.
    let odds = multi / (mean - 1.0);
    let read_multi = ((read_mean - 1.0) * odds).min(MULTI_MAX);
    let write_multi = ((multi - (1.0 - writes) * read_multi) / writes).min(MULTI_MAX);
    (SizeMix::new(read_mean, read_multi), SizeMix::new(write_mean, write_multi))
}

/// Draws sizes of reads, and which sectors of its pages a request leaves out.
#[derive(Clone, Debug)]
pub(super) struct Shaper {
    rng: Rng,
    /// Of 2^64 draws, those up to each size but the last.
    read_below: [u64; 4],
    unaligned_below: u64,
}

impl Shaper {
    pub(super) fn new(reads: &SizeMix, unaligned_share: f64, rng: Rng) -> Self {
        let mut sum = 0.0;
        let mut read_below = [0; 4];
        for (below, weight) in read_below.iter_mut().zip(&reads.0) {
            sum += weight;
            *below = threshold(sum);
        }
        Self { rng, read_below, unaligned_below: threshold(unaligned_share) }
    }

    /// Pages of the next read.
    pub(super) fn read_pages(&mut self) -> u64 {
        let draw = self.rng.next_u64();
        let class = self.read_below.iter().filter(|below| draw >= **below).count();
        PAGES[class]
    }

    /// Offset and length in bytes of a request that touches `pages` pages from `first`.
    pub(super) fn bytes(&mut self, first: u64, pages: u64) -> (u64, u64) {
        let start = first * PAGE_BYTES;
        if self.rng.next_u64() >= self.unaligned_below {
            return (start, pages * PAGE_BYTES);
        }
        if pages == 1 {
            let sectors = 1 + self.rng.below(SHORT_SECTORS);
            let skip = self.rng.below(SECTORS - sectors + 1);
            return (start + skip * SECTOR_BYTES, sectors * SECTOR_BYTES);
        }
        let skip = 1 + self.rng.below(SECTORS - 1);
        (start + skip * SECTOR_BYTES, (pages - 1) * PAGE_BYTES)
    }
}

/// Things written as a whole, by one request each: always the same pages, so that all pages of one
/// are written equally often. Their sizes repeat every [`Objects::CYCLE`] in an order that has the
/// right proportions from any first object on.
#[derive(Clone, Debug)]
pub(super) struct Objects {
    pages: Vec<u64>,
    starts: Vec<u64>,
    cycle_pages: u64,
}

impl Objects {
    /// Objects in a cycle, which lie side by side.
    pub(super) const CYCLE: u64 = 128;

    pub(super) fn new(mix: &SizeMix) -> Self {
        let mut counts = [0.0; 5];
        let mut objects = Self { pages: Vec::new(), starts: Vec::new(), cycle_pages: 0 };
        for at in 1..=Self::CYCLE {
            // The size that lags its share most.
            let lag = |class: usize| mix.0[class] * float(at) - counts[class];
            let class =
                (1..PAGES.len()).fold(0, |best, c| if lag(c) > lag(best) { c } else { best });
            counts[class] += 1.0;
            objects.pages.push(PAGES[class]);
            objects.starts.push(objects.cycle_pages);
            objects.cycle_pages += PAGES[class];
        }
        objects
    }

    /// Pages of a whole cycle.
    pub(super) const fn cycle_pages(&self) -> u64 {
        self.cycle_pages
    }

    /// Cycle, first page in it, and pages of an object.
    pub(super) fn place(&self, object: u64) -> (u64, u64, u64) {
        let at = index64(object % u64_from(self.pages.len()));
        (object / Self::CYCLE, self.starts[at], self.pages[at])
    }
}
