//! How often keys were accessed lately, roughly, in 8 to 16 bytes per entry.
//!
//! A count-min sketch (Cormode, Muthukrishnan 2005): a key counts in one counter of each of 4 rows,
//! and its count is the least of the 4. They are all in one cache line.

use onefold_units::Rng;
use onefold_units::convert::{index64, low32};

/// Words of a cache line; each row has 2 of them.
const LINE: u64 = 8;
const ROWS: u64 = 4;
/// The largest count of 4 bits.
const COUNT_MOST: u64 = 15;
/// Accesses per entry after which all counts are halved: Einziger et al. 2017, section 3.3.
const SAMPLE: u64 = 10;

/// Counters of 4 bits, 16 in a word.
#[derive(Clone)]
pub(super) struct Sketch {
    words: Box<[u64]>,
    /// Accesses between two halvings.
    period: u64,
    /// Accesses until the next one.
    left: u64,
}

onefold_units::keep!(Sketch { words, left } but { period });

/// Words of the sketch for a buffer of `entries`.
fn words(entries: u32) -> u64 {
    u64::from(entries).next_power_of_two().max(LINE)
}

impl Sketch {
    pub(super) fn new(entries: u32) -> Self {
        let period = SAMPLE * u64::from(entries);
        let words = vec![0; index64(words(entries))].into_boxed_slice();
        Self { words, period, left: period }
    }

    /// Memory of the sketch for a buffer of `entries`.
    pub(super) fn bytes(entries: u32) -> u64 {
        words(entries) * 8
    }

    /// Where the counter of a key in each row is: the word, and the lowest bit in it.
    #[inline]
    fn counters(&self, key: u32) -> impl Iterator<Item = (usize, u32)> + use<> {
        let hash = Rng::new(u64::from(key)).next_u64();
        let lines = self.words.len() / index64(LINE);
        let line = (index64(hash >> 32) & (lines - 1)) * index64(LINE);
        (0..ROWS).map(move |row| {
            let bits = hash >> (8 * row);
            (line + index64(2 * row + (bits & 1)), low32((bits >> 1) & 15) * 4)
        })
    }

    /// Counts an access.
    #[inline]
    pub(super) fn add(&mut self, key: u32) {
        for (word, shift) in self.counters(key) {
            let word = &mut self.words[word];
            if (*word >> shift) & COUNT_MOST < COUNT_MOST {
                *word += 1 << shift;
            }
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = self.period;
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        for word in &mut self.words {
            *word = (*word >> 1) & 0x7777_7777_7777_7777;
        }
    }

    /// Accesses lately: never less than there were since the last halving, up to 15.
    #[inline]
    pub(super) fn count(&self, key: u32) -> u64 {
        let counts =
            self.counters(key).map(|(word, shift)| (self.words[word] >> shift) & COUNT_MOST);
        counts.min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Sketch;

    #[test]
    fn counts_saturate_and_are_halved() {
        let mut sketch = Sketch::new(1000);
        for _ in 0..20 {
            sketch.add(7);
        }
        sketch.add(8);
        assert_eq!([7, 8, 9].map(|key| sketch.count(key)), [15, 1, 0]);
        for key in 0..10_000 - 21 {
            sketch.add(100_000 + key % 50);
        }
        assert_eq!([7, 8].map(|key| sketch.count(key)), [7, 0]);
        assert_eq!((100_000..100_050).map(|key| sketch.count(key)).max(), Some(7));
    }

    #[test]
    fn counts_are_seldom_too_high() {
        let mut sketch = Sketch::new(4096);
        for key in 0..4096 {
            sketch.add(key);
        }
        assert!((0..4096).all(|key| sketch.count(key) >= 1));
        let wrong = (4096..8192).filter(|key| sketch.count(*key) > 0).count();
        assert!(wrong < 4096 / 10, "{wrong} of 4096 keys that were never added");
    }

    #[test]
    fn the_smallest_buffer_has_a_line() {
        assert_eq!([1, 8, 9, 32_768].map(Sketch::bytes), [64, 64, 128, 262_144]);
        let mut sketch = Sketch::new(1);
        sketch.add(u32::MAX);
        assert_eq!(sketch.count(u32::MAX), 1);
    }
}
