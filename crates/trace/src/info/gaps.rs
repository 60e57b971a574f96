//! A histogram of times with a fixed relative error.

use onefold_units::convert::{float, floor_u64, index, index64};

/// Buckets per power of two: the lower end of a bucket is within 1/64 of every value in it.
const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;
const BUCKETS: usize = 64 * 64;

/// Counts of times, log-linear.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    buckets: Vec<u64>,
    total: u64,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS], total: 0 }
    }
}

impl Gaps {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        if let Some(count) = self.buckets.get_mut(bucket(value)) {
            *count += 1;
        }
        self.total += 1;
    }

    /// The middle of the bucket that holds the quantile.
    pub(crate) fn quantile(&self, quantile: f64) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
        let rank = floor_u64(quantile * float(self.total)).min(self.total - 1);
        let mut before = 0;
        for (at, count) in (0_u64..).zip(&self.buckets) {
            before += count;
            if before > rank {
                return Some(middle(at));
            }
        }
        None
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < SUB {
        return index64(value);
    }
    let shift = value.ilog2() - SUB_BITS;
    // The top bit selects the power of two, the next six bits the bucket.
    index(shift + 1) * index64(SUB) + index64((value >> shift) - SUB)
}

const fn middle(bucket: u64) -> u64 {
    if bucket < SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    let low = (bucket % SUB + SUB) << shift;
    low + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::{Gaps, bucket, middle};
    use onefold_units::convert::u64_from;

    #[test]
    fn every_value_is_near_its_bucket() {
        for value in (0..5_000).chain((0..64).map(|bit| (1_u64 << bit) + 17)).chain([u64::MAX]) {
            let near = middle(u64_from(bucket(value)));
            assert!(near.abs_diff(value) <= value / 64, "{value} became {near}");
        }
    }

    #[test]
    fn quantiles_are_ranks() {
        let mut gaps = Gaps::default();
        assert_eq!(gaps.quantile(0.5), None);
        for value in 1..=100 {
            gaps.add(value);
        }
        assert_eq!(gaps.quantile(0.5), Some(51));
        assert_eq!(gaps.quantile(0.0), Some(1));
        assert_eq!(gaps.quantile(1.0).map(|q| q.abs_diff(100) <= 1), Some(true));
    }
}
