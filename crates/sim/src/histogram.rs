//! Counts of latencies in buckets of equal relative width.

use onefold_units::convert::{float, floor_u64, index, index64, u64_from};

/// Bits of a value that are told apart: values below 2^11 have a bucket each, and each doubling beyond has 2^10
/// buckets, so that a bucket is at most 0.1 % wide. Source: `HdrHistogram` with three significant digits, whose
/// quantiles these are.
const DIGITS: u32 = 11;
const STEPS: u64 = 1 << (DIGITS - 1);

/// Values from 2^41 ns (37 minutes) on count as one less.
const LIMIT: u64 = 1 << 41;

/// Buckets that hold all values below [`LIMIT`].
const BUCKETS: usize =
    index64(LIMIT >> (LIMIT.ilog2() - DIGITS)) + index64(STEPS) * index(LIMIT.ilog2() - DIGITS);

/// How many values fell into each bucket.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    /// By bucket; empty before the first value: most operations never occur in a run.
    counts: Vec<u64>,
    total: u64,
}

onefold_units::keep!(Histogram { counts, total });

/// The bucket of a value.
#[inline]
fn bucket(value: u64) -> u64 {
    let value = value.min(LIMIT - 1);
    let doublings = (value | (2 * STEPS - 1)).ilog2() - (DIGITS - 1);
    u64::from(doublings) * STEPS + (value >> doublings)
}

/// The largest value of a bucket.
const fn highest(bucket: u64) -> u64 {
    if bucket < 2 * STEPS {
        return bucket;
    }
    let doublings = bucket / STEPS - 1;
    ((bucket - doublings * STEPS + 1) << doublings) - 1
}

impl Histogram {
    pub(crate) const fn new() -> Self {
        Self { counts: Vec::new(), total: 0 }
    }

    /// Counts a value.
    #[inline]
    pub(crate) fn record(&mut self, value: u64) {
        match self.counts.get_mut(index64(bucket(value))) {
            Some(count) => *count += 1,
            None => self.record_first(value),
        }
        self.total += 1;
    }

    #[cold]
    fn record_first(&mut self, value: u64) {
        // As the allocator zeroes it, no memory is touched for counts that stay 0.
        self.counts = vec![0; BUCKETS];
        self.counts[index64(bucket(value))] += 1;
    }

    /// Values counted.
    #[inline]
    pub(crate) const fn total(&self) -> u64 {
        self.total
    }

    /// Counts what another one counted.
    pub(crate) fn add(&mut self, other: &Self) {
        if other.total > 0 {
            self.counts.resize(BUCKETS, 0);
            self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
            self.total += other.total;
        }
    }

    /// The largest value and the count of each bucket that is not empty, in order.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let buckets = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        buckets.map(|(at, count)| (highest(u64_from(at)), *count))
    }

    /// The value that a share of all values does not exceed, within its bucket; 0 of none.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let wanted = floor_u64((share * float(self.total)).ceil()).max(1);
        let mut seen = 0;
        let mut recorded = self.recorded();
        let found = recorded.find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0, |(value, _)| value)
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Rng;

    use super::*;

    /// Each value is in one bucket, which ends with it or less than 0.1 % above it, and the next begins behind it.
    #[test]
    fn buckets_follow_one_another() {
        let mut rng = Rng::new(5);
        for bits in 0..LIMIT.ilog2() {
            for value in (0..200).map(|_| (1 << bits) | rng.below(1 << bits)) {
                let end = highest(bucket(value));
                assert!(end >= value && end - value <= value / 1024, "{value} is in one to {end}");
                assert_eq!(
                    (bucket(end), bucket(end + 1)),
                    (bucket(value), bucket(value) + u64::from(end + 1 < LIMIT))
                );
            }
        }
        assert_eq!(bucket(u64::MAX), u64_from(BUCKETS) - 1);
        assert_eq!(highest(bucket(LIMIT)), LIMIT - 1);
    }

    #[test]
    fn quantiles_are_those_of_a_sorted_list() {
        let mut rng = Rng::new(6);
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), 0);
        let mut all: Vec<u64> =
            (0..1000).map(|_| rng.below(1 << (1 + rng.clone().below(40)))).collect();
        for value in &all {
            histogram.record(*value);
        }
        all.sort_unstable();
        for (share, place) in
            [(0.0, 0), (0.001, 0), (0.5, 499), (0.9, 899), (0.9995, 999), (1.0, 999)]
        {
            assert_eq!(histogram.quantile(share), highest(bucket(all[place])), "{share}");
        }
        let recorded: u64 = histogram.recorded().map(|(_, count)| count).sum();
        assert_eq!((recorded, histogram.total()), (1000, 1000));
        histogram.add(&histogram.clone());
        assert_eq!((histogram.total(), histogram.quantile(0.5)), (2000, highest(bucket(all[499]))));
    }
}
