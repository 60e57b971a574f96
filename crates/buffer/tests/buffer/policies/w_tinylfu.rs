//! W-TinyLFU.

use super::lists::{evict, one_stream, renew, take};
use crate::common::model::{Order, Pages, agrees};
use crate::common::replay::g1_misses;
use crate::common::streams::{Case, case};
use onefold_buffer::{BufferConfig, Charge, PolicySpec, Sizes, Stream, new_policy};
use onefold_units::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Counts of one row: 4 bits in 32 places of each line.
type Row = BTreeMap<(u64, u64), u32>;

/// A count-min sketch of four rows.
struct Sketch {
    rows: [Row; 4],
    lines: u64,
    accesses: u64,
    period: u64,
}

impl Sketch {
    fn places(&self, lpn: u32) -> [(u64, u64); 4] {
        let mut hash = Rng::new(u64::from(lpn)).next_u64();
        let line = (hash >> 32) % self.lines;
        [(); 4].map(|()| {
            let place = hash % 32;
            hash /= 256;
            (line, place)
        })
    }

    fn count(&self, lpn: u32) -> u32 {
        let places = self.rows.iter().zip(self.places(lpn));
        places.map(|(row, at)| row.get(&at).copied().unwrap_or(0)).min().unwrap()
    }

    fn add(&mut self, lpn: u32) {
        let places = self.places(lpn);
        for (row, at) in self.rows.iter_mut().zip(places) {
            let count = row.entry(at).or_default();
            *count = (*count + 1).min(15);
        }
        self.accesses += 1;
        if self.accesses.is_multiple_of(self.period) {
            for count in self.rows.iter_mut().flat_map(BTreeMap::values_mut) {
                *count /= 2;
            }
        }
    }
}

/// Oldest page first in each list.
struct WTinyLfu {
    sketch: Sketch,
    window: Vec<u32>,
    probation: Vec<u32>,
    protected: Vec<u32>,
    window_most: usize,
    protected_most: usize,
}

impl WTinyLfu {
    fn evict(&mut self, pages: &mut Pages) {
        let candidate = self.window.first().filter(|_| self.window.len() >= self.window_most);
        let main =
            if self.probation.is_empty() { &mut self.protected } else { &mut self.probation };
        let window_loses = match (candidate, main.first()) {
            (Some(candidate), Some(main)) => {
                self.sketch.count(*candidate) <= self.sketch.count(*main)
            }
            (_, main) => main.is_none(),
        };
        evict(if window_loses { &mut self.window } else { main }, pages);
    }
}

impl Order for WTinyLfu {
    fn new(case: &Case, spec: &PolicySpec) -> Self {
        let window = spec.value("window").ratio().of(case.slots).max(1);
        let protected = spec.value("protected").ratio().of(case.slots - window);
        let lines = u64::from(case.slots).next_power_of_two().max(8) / 8;
        let period = 10 * u64::from(case.slots);
        let [window_list, probation, protected_list] = [const { Vec::new() }; 3];
        Self {
            sketch: Sketch { rows: Default::default(), lines, accesses: 0, period },
            window: window_list,
            probation,
            protected: protected_list,
            window_most: usize::try_from(window).unwrap(),
            protected_most: usize::try_from(protected).unwrap(),
        }
    }

    fn hit(&mut self, lpn: u32, _: bool, _: &mut Pages) {
        self.sketch.add(lpn);
        if self.window.contains(&lpn) {
            renew(&mut self.window, lpn);
            return;
        }
        take(&mut self.probation, lpn);
        renew(&mut self.protected, lpn);
        if self.protected.len() > self.protected_most {
            self.probation.push(self.protected.remove(0));
        }
    }

    fn admit(&mut self, lpn: u32, _: bool, pages: &mut Pages) -> bool {
        self.sketch.add(lpn);
        if pages.is_full() {
            self.evict(pages);
        }
        self.window.push(lpn);
        if self.window.len() > self.window_most {
            self.probation.push(self.window.remove(0));
        }
        true
    }

    fn forget(&mut self, lpn: u32) {
        for list in [&mut self.window, &mut self.probation, &mut self.protected] {
            take(list, lpn);
        }
    }

    fn flush_order(&self) -> Vec<(Stream, Vec<u32>)> {
        one_stream(&[&self.window, &self.probation, &self.protected])
    }
}

#[test]
fn golden_counts() {
    for (slots, golden) in [(1_000, 0.397), (10_000, 0.219)] {
        let found = g1_misses("w-tinylfu", slots);
        assert!((found - golden).abs() < 0.01, "{slots} entries: {found}, not {golden}");
    }
}

/// The sketch of 256 entries takes half an entry.
#[test]
fn the_sketch_is_charged() {
    let policy = PolicySpec::parse("w-tinylfu").unwrap();
    let sizes = Sizes::of_one_die(4096, 1 << 30);
    let slots = |charge| {
        let config = BufferConfig { policy, bytes: 256 * 4096, charge, volatile: true };
        new_policy(&config, &sizes).unwrap().slots()
    };
    assert_eq!([Charge::None, Charge::Paper, Charge::Full].map(slots), [256, 256, 255]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn w_tinylfu_equals_the_naive_model(case in case(), spec in prop::sample::select(vec!["w-tinylfu", "w-tinylfu:window=1/3,protected=1/2", "w-tinylfu:window=1", "w-tinylfu:window=0,protected=0"])) {
        agrees::<WTinyLfu>(spec, &case);
    }
}
