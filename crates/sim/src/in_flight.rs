//! Completion times of the requests in flight in a closed loop.

use std::hint::select_unpredictable;

/// A fixed number of places, each free from a time on.
///
/// A loser tree (Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.1): a match of two places keeps
/// the one that is free later, and the earliest of all comes out at the top. The place it leaves is played
/// again up to the root: one comparison a level, whose outcome selects numbers and decides no branch.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    earliest: Place,
    /// The loser of each match. Match `n` is between the winners of matches 2n and 2n + 1, which are
    /// places from the number of all matches on; there is no match 0.
    losers: Vec<Place>,
}

onefold_units::keep!(InFlight { earliest } each { losers });

/// When a place is free, and its number in the tree.
#[derive(Clone, Copy, Debug)]
struct Place {
    free: u64,
    at: usize,
}

onefold_units::keep!(Place { free, at });

impl InFlight {
    /// `depth` places, all free at `start`.
    pub(crate) fn new(depth: usize, start: u64) -> Self {
        let depth = depth.max(1);
        // All are equal: each match keeps its second place, and the first of all wins.
        let place = |at| Place { free: start, at: Self::second(at, depth) };
        Self { earliest: place(0), losers: (0..depth).map(place).collect() }
    }

    /// The place that match `at` of `depth` keeps at first: the first one below its second side.
    const fn second(at: usize, depth: usize) -> usize {
        let mut at = if at == 0 { 1 } else { 2 * at + 1 };
        while at < depth {
            at *= 2;
        }
        at
    }

    /// Number of places.
    pub(crate) const fn depth(&self) -> usize {
        self.losers.len()
    }

    /// When the next place is free.
    #[inline]
    pub(crate) const fn earliest(&self) -> u64 {
        self.earliest.free
    }

    /// Takes the earliest place until `done`.
    #[inline]
    pub(crate) fn replace_earliest(&mut self, done: u64) {
        let mut winner = Place { free: done, at: self.earliest.at };
        let mut at = winner.at / 2;
        while at > 0 {
            let (one, other) = (winner, &mut self.losers[at]);
            let loses = other.free < one.free;
            // Number by number: a choice between places would be a branch.
            winner = Place {
                free: select_unpredictable(loses, other.free, one.free),
                at: select_unpredictable(loses, other.at, one.at),
            };
            *other = Place {
                free: select_unpredictable(loses, one.free, other.free),
                at: select_unpredictable(loses, one.at, other.at),
            };
            at /= 2;
        }
        self.earliest = winner;
    }

    /// How long the places are taken past `time`, all together.
    pub(crate) fn remaining_after(&self, time: u64) -> u64 {
        let places = self.losers[1..].iter().chain([&self.earliest]);
        places.map(|place| place.free.saturating_sub(time)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::InFlight;
    use onefold_units::Rng;

    #[test]
    fn equals_a_sorted_list() {
        let mut rng = Rng::new(3);
        for depth in [1, 2, 3, 8, 31, 32, 33] {
            let mut queue = InFlight::new(depth, 5);
            let mut list = vec![5; depth];
            assert_eq!(queue.depth(), depth);
            for _ in 0..500 {
                list.sort_unstable();
                assert_eq!(queue.earliest(), list[0]);
                let left = list.iter().map(|done: &u64| done.saturating_sub(60)).sum::<u64>();
                assert_eq!(queue.remaining_after(60), left);
                let done = list[0] + rng.below(100);
                list[0] = done;
                queue.replace_earliest(done);
            }
        }
    }
}
