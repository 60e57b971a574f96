//! Completion times of the requests in flight in a closed loop.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onefold_units::convert::{index64, u64_from};

/// A fixed number of places, each free from a time on.
///
/// A loser tree (Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.1): a match of two places keeps
/// the one that is free later, and the earliest of all comes out at the top. The place it leaves is played
/// again up to the root: a minimum and a maximum a level, and no branch that could be mispredicted.
///
/// A place is one number: when it is free, since `base`, and below that its number. Where times lie too far
/// apart for that (78 hours with 65,536 places, 18 years with 32) a heap takes over.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// When the earliest place is free.
    earliest: u64,
    /// Its number.
    at: u64,
    base: u64,
    /// Times from `base` up to here fit a place; 0 once `far` has all of them.
    span: u64,
    /// Bits of the number of a place.
    bits: u32,
    /// Number of places.
    depth: usize,
    /// The loser of each match. With the winners of the matches numbered from `depth` on, behind the places,
    /// match `n` is between 2n and 2n + 1: the last one is the final, and its winner the earliest place.
    losers: Vec<u64>,
    far: BinaryHeap<Reverse<u64>>,
}

onefold_units::keep!(InFlight { earliest, at, base, span, far } each { losers } but { bits, depth });

impl InFlight {
    /// `depth` places, all free at `start`.
    pub(crate) fn new(depth: usize, start: u64) -> Self {
        let depth = depth.max(1);
        let mut winners: Vec<u64> = (0..u64_from(depth)).collect();
        let mut losers = Vec::with_capacity(depth - 1);
        for side in (0..2 * depth - 2).step_by(2) {
            let (one, other) = (winners[side], winners[side + 1]);
            winners.push(one.min(other));
            losers.push(one.max(other));
        }
        let bits = u64_from(depth - 1).max(1).ilog2() + 1;
        let span = 1 << (u64::BITS - bits);
        // The first of places that are free at the same time wins.
        let (at, far) = (0, BinaryHeap::new());
        Self { earliest: start, at, base: start, span, bits, depth, losers, far }
    }

    /// Number of places.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// When the next place is free.
    #[inline]
    pub(crate) const fn earliest(&self) -> u64 {
        self.earliest
    }

    /// Takes the earliest place until `done`.
    #[inline]
    pub(crate) fn replace_earliest(&mut self, done: u64) {
        let since = done.wrapping_sub(self.base);
        if since >= self.span {
            return self.replace_far(done);
        }
        let mut winner = (since << self.bits) | self.at;
        let mut at = index64(self.at / 2);
        let losers = self.losers.as_mut_slice();
        while let Some(loser) = losers.get_mut(at) {
            (winner, *loser) = (winner.min(*loser), winner.max(*loser));
            // Both are at most the number of places.
            at = at.wrapping_add(self.depth) / 2;
        }
        self.at = winner & !(u64::MAX << self.bits);
        self.earliest = self.base + (winner >> self.bits);
    }

    /// The same if the time does not fit with the `base` there is.
    #[cold]
    fn replace_far(&mut self, done: u64) {
        if self.far.is_empty() {
            if done.checked_sub(self.earliest).is_some_and(|since| since < self.span) {
                let less = (self.earliest - self.base) << self.bits;
                self.losers.iter_mut().for_each(|place| *place -= less);
                self.base = self.earliest;
                return self.replace_earliest(done);
            }
            self.far = self.all().map(Reverse).collect();
            self.span = 0;
        }
        self.far.pop();
        self.far.push(Reverse(done));
        self.earliest = self.far.peek().map_or(done, |earliest| earliest.0);
    }

    /// When each place of the tree is free.
    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        let losers = self.losers.iter().map(|place| self.base + (place >> self.bits));
        losers.chain([self.earliest])
    }

    /// How long the places are taken past `time`, all together.
    pub(crate) fn remaining_after(&self, time: u64) -> u128 {
        let left = |free: u64| u128::from(free.saturating_sub(time));
        if self.far.is_empty() {
            self.all().map(left).sum()
        } else {
            self.far.iter().map(|free| left(free.0)).sum()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::InFlight;
    use onefold_units::Rng;

    #[test]
    fn equals_a_sorted_list() {
        let mut rng = Rng::new(3);
        let (mut moved, mut far) = (0, 0);
        for depth in [1, 2, 3, 8, 9, 31, 32, 33] {
            let mut queue = InFlight::new(depth, 5);
            let mut list = vec![5; depth];
            assert_eq!(queue.depth(), depth);
            // In the end they lie so far apart that they do not fit one number.
            for step in 0..1000 {
                list.sort_unstable();
                assert_eq!(queue.earliest(), list[0]);
                let left = list.iter().map(|done: &u64| u128::from(done.saturating_sub(60))).sum();
                assert_eq!(queue.remaining_after(60), left);
                let apart =
                    if step % 17 == 3 { [0, 1 << 38, 1 << 57, 1 << 58][step / 250] } else { 0 };
                let done = list[0] + rng.below(100) + apart * rng.below(4);
                list[0] = done;
                queue.replace_earliest(done);
            }
            moved += u32::from(queue.base > 5);
            far += u32::from(!queue.far.is_empty());
        }
        assert!(moved > 0 && far > 0, "{moved} {far}");
    }
}
