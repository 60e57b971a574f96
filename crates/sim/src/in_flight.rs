//! Completion times of the requests in flight in a closed loop.

/// A fixed number of places, each free from a time on. The earliest is always at the front.
#[derive(Clone, Debug)]
pub(crate) struct InFlight {
    /// A binary heap, smallest first.
    times: Vec<u64>,
}

impl InFlight {
    /// `depth` places, all free at `start`.
    pub(crate) fn new(depth: usize, start: u64) -> Self {
        Self { times: vec![start; depth.max(1)] }
    }

    /// Number of places.
    pub(crate) fn depth(&self) -> usize {
        self.times.len()
    }

    /// When the next place is free.
    #[inline]
    pub(crate) fn earliest(&self) -> u64 {
        self.times[0]
    }

    /// Takes the earliest place until `done`.
    #[inline]
    pub(crate) fn replace_earliest(&mut self, done: u64) {
        let len = self.times.len();
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child >= len {
                break;
            }
            if child + 1 < len && self.times[child + 1] < self.times[child] {
                child += 1;
            }
            if done <= self.times[child] {
                break;
            }
            self.times[at] = self.times[child];
            at = child;
        }
        self.times[at] = done;
    }

    /// How long the places are taken past `time`, all together.
    pub(crate) fn remaining_after(&self, time: u64) -> u64 {
        self.times.iter().map(|done| done.saturating_sub(time)).sum()
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
