//! Fewest valid slots.

use onefold_units::convert::{index, low32};

use super::table::Way;
use super::{BuildVictim, VictimInfo};

/// The victim policy for whoever has no other in mind: fewest valid slots.
pub static INFO: VictimInfo = VictimInfo {
    name: "greedy",
    about: "The superblock with the fewest valid slots.",
    source: "Wu 2022, sec. IV-D; Desnoyers 2012",
    parameters: &[],
    build: BuildVictim(Way::Greedy),
};

/// Takes the candidate with the fewest valid slots; ties go to the lowest id: least to copy now, blind
/// to how soon the rest would have died by itself. Source: Wu 2022, sec. IV-D; Desnoyers 2012.
///
/// Keys are (valid, id), in rows of about the square root of their number, and each row knows its least
/// key. Slots of a closed superblock only ever die, so that a change lowers a key, and the least of its row
/// with it at most: two writes for each page that is overwritten. A row is looked through when its least
/// key goes, and all least keys for a choice.
#[derive(Clone, Debug)]
pub(crate) struct Greedy {
    keys: Vec<u64>,
    /// By row.
    least: Vec<u64>,
    /// log2 of the keys of a row.
    shift: u32,
}

onefold_units::keep!(Greedy { keys, least } but { shift });

/// Loses against every candidate.
const NOBODY: u64 = u64::MAX;

impl Greedy {
    pub(crate) fn new(superblocks: u32) -> Self {
        let shift = superblocks.max(1).ilog2().div_ceil(2);
        let rows = superblocks.div_ceil(1 << shift);
        let (keys, least) = (vec![NOBODY; index(superblocks)], vec![NOBODY; index(rows)]);
        Self { keys, least, shift }
    }

    #[inline]
    pub(crate) fn set(&mut self, at: u32, valid: u32) {
        self.put(index(at), (u64::from(valid) << 32) | u64::from(at));
    }

    pub(crate) fn remove(&mut self, at: u32) {
        self.put(index(at), NOBODY);
    }

    #[inline]
    fn put(&mut self, at: usize, key: u64) {
        let before = std::mem::replace(&mut self.keys[at], key);
        let least = &mut self.least[at >> self.shift];
        if key < *least {
            *least = key;
        } else if before == *least {
            self.look_through(at >> self.shift);
        }
    }

    #[cold]
    fn look_through(&mut self, row: usize) {
        let keys = self.keys.iter().skip(row << self.shift).take(1 << self.shift);
        self.least[row] = keys.copied().min().unwrap_or(NOBODY);
    }

    pub(crate) fn choose(&self) -> Option<u32> {
        let least = self.least.iter().copied().min()?;
        (least != NOBODY).then(|| low32(least))
    }
}

#[cfg(test)]
mod tests {
    use onefold_units::Rng;
    use onefold_units::convert::index64;

    use super::*;

    #[test]
    fn chooses_as_a_look_at_all() {
        for superblocks in [1, 2, 3, 16, 17, 300] {
            let mut rng = Rng::new(superblocks.into());
            let (mut greedy, mut valid) =
                (Greedy::new(superblocks), vec![None; index(superblocks)]);
            for _ in 0..5000 {
                let at = low32(rng.below(superblocks.into()));
                let one = &mut valid[index(at)];
                match *one {
                    None => *one = Some(low32(rng.below(50))),
                    Some(0) => *one = None,
                    Some(n) => {
                        *one = [None, Some(n + 3), Some(n - 1)][index64(rng.below(9).min(2))];
                    }
                }
                match *one {
                    None => greedy.remove(at),
                    Some(n) => greedy.set(at, n),
                }
                if rng.below(5) == 0 {
                    let all = (0..).zip(&valid).filter_map(|(at, n)| n.map(|n| (n, at)));
                    assert_eq!(greedy.choose(), all.min().map(|(_, at)| at));
                }
            }
        }
    }
}
