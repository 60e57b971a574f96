//! The entries of a map: an array that takes next to nothing where its numbers follow from one another.
//!
//! A map has two tables of 32-bit numbers: the slot of each unit, and the unit of each slot. Where data
//! was written in order both follow a [`Pattern`]. With p pools and superblocks of s slots,
//! consecutive units go to consecutive pools: their slots are s apart, and p units later 1. Consecutive
//! slots of a superblock hold units that are p apart, and from superblock to superblock 1.
//!
//! A table is cut into *chunks* of 1,024 entries. A *run* says what all entries of a chunk are, in
//! 12 B; a *dense* chunk takes 4 B an entry.
//!
//! 1. A run becomes dense when an entry is set to another number than the run says.
//! 2. A dense chunk becomes a run when its last entry is set and a run says the same: what is written
//!    or trimmed in order ends with it.

use onefold_units::convert::{index, u32_from};
use onefold_units::{Divisor, Keep, Keeper};
use prefetch_index::prefetch_index;

/// Entries of a chunk. Fewer with debug assertions, so that the small drives of tests have many chunks.
const CHUNK: usize = if cfg!(debug_assertions) { 64 } else { 1024 };

type Dense = [u32; CHUNK];

/// How numbers follow from one another: from column to column they grow by `step`, from row to row by 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pattern {
    columns: Divisor,
    step: u32,
}

/// What consecutive entries are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    /// All the same.
    Alike(u32),
    /// The numbers of a pattern whose first is `base`, from the `phase`-th on.
    Along { base: u32, phase: u32 },
}

/// Columns of a pattern that grows by 1 all the way: more than any table has.
const ONE_ROW: u32 = 1 << 31;

impl Pattern {
    pub(crate) fn new(columns: Divisor, step: u32) -> Self {
        match Divisor::new(ONE_ROW) {
            // Rows of one number are a row.
            Some(columns_of_row) if columns.by() == 1 => Self { columns: columns_of_row, step: 1 },
            _ => Self { columns, step },
        }
    }

    /// How much larger the `nth` number of the pattern is than its first.
    #[inline]
    fn growth(self, nth: u32) -> u32 {
        let (row, column) = self.columns.split(nth);
        row.wrapping_add(column.wrapping_mul(self.step))
    }

    /// The run that begins with `first` in this column.
    pub(crate) fn run(self, first: u32, column: u32) -> Run {
        Run::Along { base: first.wrapping_sub(self.growth(column)), phase: column }
    }

    /// The `nth` entry of a run.
    #[inline]
    pub(crate) fn at(self, run: Run, nth: u32) -> u32 {
        match run {
            Run::Alike(number) => number,
            Run::Along { base, phase } => base.wrapping_add(self.growth(phase.wrapping_add(nth))),
        }
    }

    /// The entries of a run from the `nth` on, row by row.
    fn write(self, run: Run, nth: u32, entries: &mut [u32]) {
        let Run::Along { base, phase } = run else { return entries.fill(self.at(run, nth)) };
        let (mut place, mut rest) = (phase.wrapping_add(nth), entries);
        while !rest.is_empty() {
            let left_of_row = self.columns.by() - self.columns.split(place).1;
            let (row, others) = rest.split_at_mut(rest.len().min(index(left_of_row)));
            let mut number = base.wrapping_add(self.growth(place));
            for entry in &mut *row {
                *entry = number;
                number = number.wrapping_add(self.step);
            }
            place = place.wrapping_add(u32_from(row.len()));
            rest = others;
        }
    }

    /// What a run is from its `nth` entry on.
    fn from(self, run: Run, nth: u32) -> Run {
        match run {
            Run::Alike(_) => run,
            Run::Along { phase, .. } => {
                self.run(self.at(run, nth), self.columns.split(phase + nth).1)
            }
        }
    }

    /// The run that says what these entries are, if there is one.
    fn of(self, entries: &Dense) -> Option<Run> {
        let first = entries[0];
        if entries.iter().all(|entry| *entry == first) {
            return Some(Run::Alike(first));
        }
        // The first that is not a step further begins a row, unless there is no pattern.
        let ends_row = |pair: &[u32]| pair[1] != pair[0].wrapping_add(self.step);
        let column = match entries.windows(2).position(ends_row) {
            Some(before) => self.columns.by().checked_sub(u32_from(before) + 1)?,
            None => 0,
        };
        let run = self.run(first, column);
        let last = CHUNK - 1;
        if self.at(run, u32_from(last)) != entries[last] {
            return None;
        }
        let mut expected = [0; CHUNK];
        self.write(run, 0, &mut expected);
        (expected == *entries).then_some(run)
    }
}

/// A table of numbers.
#[derive(Clone, Debug)]
pub(crate) struct Entries {
    len: usize,
    pattern: Pattern,
    /// The dense chunks; apart from the runs, so that a cache line holds many of them.
    dense: Vec<Option<Box<Dense>>>,
    /// What the other chunks are.
    runs: Vec<Run>,
}

onefold_units::keep_enum!(Run { Alike(number), Along { base, phase } });

impl Keep for Entries {
    fn keep(&mut self, keeper: &mut Keeper<'_>) {
        let Self { len: _, pattern: _, dense, runs } = self;
        keeper.each(runs);
        for chunk in dense {
            let mut is_dense = chunk.is_some();
            is_dense.keep(keeper);
            if keeper.reads() {
                *chunk = is_dense.then(|| Box::new([0; CHUNK]));
            }
            if let Some(entries) = chunk {
                entries.keep(keeper);
            }
        }
    }
}

impl Entries {
    /// A table of so many entries, all `number`.
    pub(crate) fn new(len: usize, number: u32, pattern: Pattern) -> Self {
        let chunks = len.div_ceil(CHUNK);
        let runs = vec![Run::Alike(number); chunks];
        Self { len, pattern, dense: vec![None; chunks], runs }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn pattern(&self) -> Pattern {
        self.pattern
    }

    /// The entry at `at`, which is within the table.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> u32 {
        match &self.dense[at / CHUNK] {
            Some(chunk) => chunk[at % CHUNK],
            None => self.pattern.at(self.runs[at / CHUNK], u32_from(at % CHUNK)),
        }
    }

    /// Begins to load the cache line of an entry that is needed soon, if it has one. Nobody waits for it.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(Some(chunk)) = self.dense.get(at / CHUNK) {
            prefetch_index(chunk.as_slice(), at % CHUNK);
        }
    }

    /// The entry at `at`, if there is one.
    #[inline]
    pub(crate) fn find(&self, at: usize) -> Option<u32> {
        (at < self.len).then(|| self.get(at))
    }

    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len).map(|at| self.get(at))
    }

    /// The entries below `end`, each with its place. Takes no time for those that are alike and are not.
    pub(crate) fn below(&self, end: u32) -> impl Iterator<Item = (usize, u32)> + '_ {
        let is_above = move |run: Run| matches!(run, Run::Alike(number) if number >= end);
        let chunks = (0..self.dense.len())
            .filter(move |place| self.dense[*place].is_some() || !is_above(self.runs[*place]));
        let all = chunks.flat_map(|place| place * CHUNK..self.len.min((place + 1) * CHUNK));
        all.map(|at| (at, self.get(at))).filter(move |(_, entry)| *entry < end)
    }

    /// Whether all of these entries are `number`. Looks at each where they are dense.
    pub(crate) fn are_all(&self, range: std::ops::Range<usize>, number: u32) -> bool {
        let mut at = range.start;
        while at < range.end {
            let all = match &self.dense[at / CHUNK] {
                None => self.runs[at / CHUNK] == Run::Alike(number),
                Some(chunk) => {
                    let end = CHUNK.min(at % CHUNK + (range.end - at));
                    chunk[at % CHUNK..end].iter().all(|entry| *entry == number)
                }
            };
            if !all {
                return false;
            }
            at = (at / CHUNK + 1) * CHUNK;
        }
        true
    }

    #[inline]
    pub(crate) fn set(&mut self, at: usize, number: u32) {
        self.replace(at, number);
    }

    /// Sets an entry, and returns what it was.
    #[inline]
    pub(crate) fn replace(&mut self, at: usize, number: u32) -> u32 {
        let before = match &mut self.dense[at / CHUNK] {
            Some(chunk) => std::mem::replace(&mut chunk[at % CHUNK], number),
            None => self.replace_in_run(at, number),
        };
        if at % CHUNK == CHUNK - 1 {
            self.settle(at / CHUNK);
        }
        before
    }

    /// Rule 1.
    #[cold]
    fn replace_in_run(&mut self, at: usize, number: u32) -> u32 {
        let before = self.pattern.at(self.runs[at / CHUNK], u32_from(at % CHUNK));
        if before != number {
            self.unroll(at / CHUNK)[at % CHUNK] = number;
        }
        before
    }

    /// The entries of a chunk one by one.
    fn unroll(&mut self, place: usize) -> &mut Dense {
        let (pattern, run) = (self.pattern, self.runs[place]);
        self.dense[place].get_or_insert_with(|| {
            let mut entries = Box::new([0; CHUNK]);
            pattern.write(run, 0, &mut *entries);
            entries
        })
    }

    /// Rule 2.
    #[cold]
    fn settle(&mut self, place: usize) {
        let dense = &mut self.dense[place];
        if let Some(run) = dense.as_deref().and_then(|entries| self.pattern.of(entries)) {
            self.runs[place] = run;
            *dense = None;
        }
    }

    /// Sets `count` entries from `at` on to those of a run. Whole chunks take no time for each entry.
    pub(crate) fn lay(&mut self, at: usize, count: u32, run: Run) {
        let pattern = self.pattern;
        let mut nth = 0;
        while nth < count {
            let here = at + index(nth);
            let (place, begin) = (here / CHUNK, here % CHUNK);
            let end = CHUNK.min(begin + index(count - nth));
            if end - begin == CHUNK {
                self.dense[place] = None;
                self.runs[place] = pattern.from(run, nth);
            } else {
                pattern.write(run, nth, &mut self.unroll(place)[begin..end]);
                if end == CHUNK {
                    self.settle(place);
                }
            }
            nth += u32_from(end - begin);
        }
    }

    /// Sets all entries.
    pub(crate) fn fill(&mut self, number: u32) {
        self.dense.fill_with(|| None);
        self.runs.fill(Run::Alike(number));
    }

    /// Chunks that take 4 B an entry.
    #[cfg(test)]
    pub(crate) fn dense_chunks(&self) -> usize {
        self.dense.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK, Entries, Pattern, Run};
    use onefold_units::convert::{index64, low32, u32_from};
    use onefold_units::{Divisor, Rng};

    fn pattern(columns: u32, step: u32) -> Pattern {
        Pattern::new(Divisor::new(columns).expect("not zero"), step)
    }

    /// Patterns of maps: their columns and step, both ways round.
    fn patterns() -> impl Iterator<Item = Pattern> {
        let shapes = [(1, 4096), (16, 256), (12, 384), (2, 5), (1000, 3)];
        shapes.into_iter().flat_map(|(a, b)| [pattern(a, b), pattern(b, a)])
    }

    #[test]
    fn what_is_set_in_order_takes_no_chunk() {
        for pattern in patterns() {
            for column in 0..pattern.columns.by().min(40) {
                let mut entries = Entries::new(4 * CHUNK, u32::MAX, pattern);
                let run = pattern.run(77_000_000, column);
                for at in 0..4 * CHUNK {
                    entries.set(at, pattern.at(run, u32_from(at)));
                    assert!(entries.dense_chunks() <= 1, "{pattern:?} {column} {at}");
                }
                assert_eq!(entries.dense_chunks(), 0, "{pattern:?} {column}");
                let expected = (0..).map(|nth| pattern.at(run, nth));
                assert!(entries.iter().eq(expected.take(4 * CHUNK)), "{pattern:?} {column}");
            }
        }
    }

    #[test]
    fn one_entry_that_differs_is_kept() {
        for pattern in patterns() {
            for odd in [0, 1, 2, CHUNK / 2, CHUNK - 2, CHUNK - 1] {
                let mut entries = Entries::new(CHUNK, 5, pattern);
                entries.lay(0, u32_from(CHUNK), pattern.run(1 << 20, 0));
                entries.set(odd, 3);
                // The last entry is looked at again with what is odd among those before it.
                let last = entries.get(CHUNK - 1);
                entries.set(CHUNK - 1, last);
                assert_eq!(entries.get(odd), 3, "{pattern:?} {odd}");
                assert_eq!(entries.dense_chunks(), 1, "{pattern:?} {odd}");
            }
        }
    }

    #[test]
    fn equals_an_array() {
        for pattern in patterns() {
            let mut rng = Rng::new(3);
            let len = 5 * CHUNK + 300;
            let mut entries = Entries::new(len, u32::MAX, pattern);
            let mut model = vec![u32::MAX; len];
            for _ in 0..300 {
                let at = index64(rng.below(u64::try_from(len).expect("small")));
                let count = index64(rng.below(3000)).min(len - at);
                let (first, kind) = (low32(rng.below(1 << 32)), rng.below(5));
                let column = low32(rng.below(u64::from(pattern.columns.by())));
                let run = if kind == 4 { Run::Alike(9) } else { pattern.run(first, column) };
                if kind < 2 {
                    entries.lay(at, u32_from(count), run);
                }
                for (nth, slot) in model[at..at + count].iter_mut().enumerate() {
                    let follows = kind != 3 || nth % 500 != 499;
                    *slot = if follows { pattern.at(run, u32_from(nth)) } else { first };
                    if kind >= 2 {
                        entries.set(at + nth, *slot);
                    }
                }
                assert!(entries.iter().eq(model.iter().copied()), "{pattern:?}");
                let same = model[at..at + count].iter().all(|entry| *entry == 9);
                assert_eq!(entries.are_all(at..at + count, 9), same, "{pattern:?}");
            }
            let low = model.iter().copied().enumerate().filter(|(_, entry)| *entry < 1 << 31);
            assert!(entries.below(1 << 31).eq(low), "{pattern:?}");
            assert_eq!((entries.find(len - 1), entries.find(len)), (Some(model[len - 1]), None));
        }
    }
}
