//! A shared bus as a list of busy intervals.

/// A bus that serves transfers in the order in which they become ready.
///
/// An operation is scheduled when it is submitted, but its transfer may lie far in the future behind
/// a queue on its die. A single busy-until time would make every later transfer wait for it; the
/// list of intervals lets a transfer take the earliest gap that fits.
///
/// Invariant 1: intervals are disjoint, not touching, and ascending.
/// Invariant 2: intervals that ended before the latest submission change no answer. They are dropped now
/// and then, so that the list is at most twice as long as the work in flight, or [`PAST_MAX`] longer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    busy: Vec<Interval>,
    /// Length of the list at which the past is dropped.
    sweep_at: usize,
}

onefold_units::keep!(Channel { busy, sweep_at });

/// Intervals of the past that are kept at least before they are dropped.
const PAST_MAX: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    start: u64,
    end: u64,
}

onefold_units::keep!(Interval { start, end });

impl Channel {
    /// Takes the earliest gap of `duration` at or after `ready`, and returns its start. `now` is
    /// the time of the submission and never decreases.
    #[inline]
    pub(crate) fn reserve(&mut self, now: u64, ready: u64, duration: u64) -> u64 {
        if duration == 0 {
            return ready;
        }
        match self.busy.last_mut() {
            // Behind all others, most of the time: in touch with the last one, or not.
            Some(last) if ready >= last.start && ready <= last.end => {
                let start = last.end;
                last.end += duration;
                start
            }
            Some(last) if ready < last.start => self.reserve_gap(now, ready, duration),
            _ => {
                self.busy.push(Interval { start: ready, end: ready + duration });
                self.sweep(now);
                ready
            }
        }
    }

    fn reserve_gap(&mut self, now: u64, ready: u64, duration: u64) -> u64 {
        let mut at = self.busy.len();
        while at > 0 && self.busy[at - 1].end > ready {
            at -= 1;
        }
        let mut start = ready;
        while let Some(next) = self.busy.get(at) {
            if start + duration <= next.start {
                break;
            }
            start = start.max(next.end);
            at += 1;
        }
        let new = Interval { start, end: start + duration };
        let joins_left = at > 0 && self.busy[at - 1].end == new.start;
        let joins_right = self.busy.get(at).is_some_and(|next| next.start == new.end);
        match (joins_left, joins_right) {
            (true, true) => {
                self.busy[at - 1].end = self.busy[at].end;
                self.busy.remove(at);
            }
            (true, false) => self.busy[at - 1].end = new.end,
            (false, true) => self.busy[at].start = new.start,
            (false, false) => {
                self.busy.insert(at, new);
                self.sweep(now);
            }
        }
        start
    }

    #[inline]
    fn sweep(&mut self, now: u64) {
        if self.busy.len() >= self.sweep_at {
            self.drop_past(now);
        }
    }

    #[cold]
    fn drop_past(&mut self, now: u64) {
        let past = self.busy.partition_point(|interval| interval.end <= now);
        self.busy.drain(..past);
        self.sweep_at = 2 * self.busy.len() + PAST_MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::{Channel, PAST_MAX};
    use onefold_units::Rng;

    #[test]
    fn a_short_wait_fills_the_gap_before_a_far_reservation() {
        let mut channel = Channel::default();
        assert_eq!(channel.reserve(0, 1000, 10), 1000);
        assert_eq!(channel.reserve(0, 5, 10), 5);
        assert_eq!(channel.reserve(0, 995, 10), 1010, "995..1005 does not fit before 1000");
        assert_eq!(channel.reserve(0, 990, 10), 990, "990..1000 does");
    }

    #[test]
    fn equals_a_plain_search_over_all_intervals() {
        let mut rng = Rng::new(7);
        let mut channel = Channel::default();
        let mut all: Vec<(u64, u64)> = Vec::new();
        let mut now = 0;
        for _ in 0..5000 {
            now += rng.below(20);
            let ready = now + rng.below(400);
            let duration = 1 + rng.below(15);
            let mut expected = ready;
            all.sort_unstable();
            for &(start, end) in &all {
                if expected + duration > start && end > expected {
                    expected = end;
                }
            }
            let got = channel.reserve(now, ready, duration);
            assert_eq!(got, expected);
            all.push((got, got + duration));
            all.retain(|&(_, end)| end > now);
            // Invariant 2: never more than 68 at once here.
            assert!(all.len() <= 68 && channel.busy.len() <= 2 * 68 + PAST_MAX);
        }
    }
}
