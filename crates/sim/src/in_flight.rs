//! Completion times of the requests in flight in a closed loop.

/// A fixed number of places, each free from a time on. The earliest is always at the front.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// A binary heap, smallest first, and `NEVER` behind it so that every parent has two children.
    times: Vec<u64>,
    depth: usize,
}

/// Later than every completion.
const NEVER: u64 = u64::MAX;

impl InFlight {
    /// `depth` places, all free at `start`.
    pub(crate) fn new(depth: usize, start: u64) -> Self {
        let depth = depth.max(1);
        let mut times = vec![start; depth];
        times.resize(2 * depth + 1, NEVER);
        Self { times, depth }
    }

    /// Number of places.
    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    /// When the next place is free.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.times[0]
    }

    /// Takes the earliest place until `done`, which is before `NEVER`.
    #[inline]
    pub(crate) fn replace_earliest(&mut self, done: u64) {
        let times = &mut self.times[..];
        let mut at = 0;
        // Which child is earlier is a coin toss: adding the comparison is cheaper than guessing.
        while let Some(&[left, right]) = times.get(2 * at + 1..2 * at + 3) {
            let child = 2 * at + 1 + usize::from(right < left);
            let earlier = left.min(right);
            if done <= earlier {
                break;
            }
            times[at] = earlier;
            at = child;
        }
        times[at] = done;
    }

    /// How long the places are taken past `time`, all together.
    pub(crate) fn remaining_after(&self, time: u64) -> u64 {
        self.times[..self.depth].iter().map(|done| done.saturating_sub(time)).sum()
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
            for _ in 0..500 {
                list.sort_unstable();
                assert_eq!(queue.earliest(), list[0]);
                let done = list[0] + rng.below(100);
                list[0] = done;
                queue.replace_earliest(done);
            }
        }
    }
}
