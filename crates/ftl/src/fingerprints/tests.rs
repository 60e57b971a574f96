use std::collections::BTreeMap;

use onefold_units::convert::{index, low32, u64_from};
use onefold_units::{Ppn, Rng};

use super::{Fingerprint, FingerprintIndex, key_of, slot_of};

const SLOTS: u32 = 96;

/// The index without a bound and without a table.
#[derive(Default)]
struct Model {
    by_content: BTreeMap<Fingerprint, Ppn>,
    by_slot: BTreeMap<Ppn, Fingerprint>,
}

impl Model {
    fn insert(&mut self, content: Fingerprint, slot: Ppn) {
        self.forget(slot);
        if let Some(other) = self.by_content.insert(content, slot) {
            self.by_slot.remove(&other);
        }
        self.by_slot.insert(slot, content);
    }

    fn moved(&mut self, from: Ppn, to: Ppn) {
        if let (true, Some(content)) = (from != to, self.by_slot.get(&from).copied()) {
            self.insert(content, to);
        } else if from != to {
            self.forget(to);
        }
    }

    fn forget(&mut self, slot: Ppn) {
        if let Some(content) = self.by_slot.remove(&slot) {
            self.by_content.remove(&content);
        }
    }
}

/// The invariants of the module, entry by entry.
fn check(dedup: &FingerprintIndex) {
    let mut entries = 0;
    for (place, cell) in (0_u32..).zip(&dedup.cells) {
        let Some(slot) = slot_of(cell) else {
            assert!(!dedup.is_used(place), "an empty place counts as used");
            continue;
        };
        entries += 1;
        let mut probe = dedup.home(&key_of(cell));
        while probe != place {
            assert!(slot_of(dedup.cell(probe)).is_some(), "invariant 1: gap before place {place}");
            assert_ne!(key_of(dedup.cell(probe)), key_of(cell), "invariant 3");
            probe = dedup.after(probe);
        }
        assert_eq!(dedup.place_of[slot.index()], place + 1, "invariant 2");
    }
    assert_eq!(entries, dedup.len());
    let ways_back = dedup.place_of.iter().filter(|place| **place != 0).count();
    assert_eq!(u64_from(ways_back), u64::from(entries), "invariant 2: a way back to nothing");
}

/// Random operations: nothing found differs from the model, and nothing is missing but what was
/// evicted. Returns how many entries were.
fn run(seed: u64, capacity: u32) -> u32 {
    let mut rng = Rng::new(seed);
    let mut dedup = FingerprintIndex::new(u64::from(SLOTS), capacity);
    let mut model = Model::default();
    let mut evicted = 0;
    for _ in 0..400 {
        let mut slot = || Ppn::new(low32(rng.below(u64::from(SLOTS))));
        let (slot, to) = (slot(), slot());
        // Contents that differ in the upper half only, too.
        let content = Fingerprint::new(u128::from(rng.below(120)) << (64 * rng.below(2)));
        match rng.below(8) {
            0..4 => {
                dedup.insert(content, slot);
                model.insert(content, slot);
            }
            4 => {
                dedup.moved(slot, to);
                model.moved(slot, to);
            }
            5 => {
                dedup.forget(slot);
                model.forget(slot);
            }
            _ => {
                let found = dedup.find(content);
                assert!(found.is_none() || found == model.by_content.get(&content).copied());
            }
        }
        check(&dedup);
        // What the index no longer has was evicted; one insertion evicts one entry, and only from a
        // full index.
        let gone: Vec<_> = model
            .by_slot
            .keys()
            .copied()
            .filter(|slot| dedup.place_of[slot.index()] == 0)
            .collect();
        assert!(gone.len() <= 1 && (gone.is_empty() || dedup.len() == capacity), "{gone:?} gone");
        evicted += u32::from(!gone.is_empty());
        for slot in gone {
            model.forget(slot);
        }
        assert_eq!(u64_from(model.by_slot.len()), u64::from(dedup.len()));
    }
    evicted
}

#[test]
fn finds_what_a_map_finds() {
    for seed in 0..300 {
        // Shown only when the test fails: the last seed is the one to repeat.
        eprintln!("seed {seed}");
        assert_eq!(run(seed, SLOTS), 0, "a capacity for every slot evicts nothing");
        assert!(run(seed, 20) > 0);
    }
}

#[test]
fn without_capacity_nothing_is_kept() {
    let mut dedup = FingerprintIndex::new(u64::from(SLOTS), 0);
    dedup.insert(Fingerprint::new(1), Ppn::new(1));
    dedup.moved(Ppn::new(1), Ppn::new(2));
    dedup.forget(Ppn::new(2));
    assert_eq!(dedup.find(Fingerprint::new(1)), None);
    assert!(dedup.is_empty());
}

#[test]
fn evicts_what_is_not_found() {
    let mut dedup = FingerprintIndex::new(100_000, 1_000);
    let content = |n: u32| Fingerprint::new(u128::from(n));
    let popular = 0..300;
    for n in popular.clone() {
        dedup.insert(content(n), Ppn::new(n));
    }
    for n in 300..50_000 {
        dedup.insert(content(n), Ppn::new(n));
        // Every popular content is found once per 300 insertions, less than a pass of the hand.
        let _ = dedup.find(content(n % 300));
    }
    check(&dedup);
    let kept = popular.filter(|n| dedup.find(content(*n)).is_some()).count();
    assert!(kept >= 290, "{kept} of 300 popular contents are left");
    assert_eq!(dedup.len(), 1_000);
}

#[test]
fn an_entry_that_moves_back_stays_used() {
    let mut dedup = FingerprintIndex::new(100, 50);
    let home = |n: u32| dedup.home(&Fingerprint::new(u128::from(n)).key());
    let second = (1..1_000).find(|n| home(*n) == home(0)).expect("68 homes");
    let [first, second] = [0, second].map(|n| Fingerprint::new(u128::from(n)));
    dedup.insert(first, Ppn::new(0));
    dedup.insert(second, Ppn::new(1));
    assert_eq!(dedup.find(second), Some(Ppn::new(1)));
    dedup.forget(Ppn::new(0));
    let place = dedup.home(&second.key());
    assert_eq!(slot_of(dedup.cell(place)), Some(Ppn::new(1)), "it moved home");
    assert!(dedup.is_used(place) && !dedup.is_used(dedup.after(place)));
}

/// Steps past the home, on average over the entries.
fn mean_steps(dedup: &FingerprintIndex) -> f64 {
    let entries = (0..dedup.places()).filter(|place| slot_of(dedup.cell(*place)).is_some());
    let steps = entries.map(|place| dedup.steps(dedup.home(&key_of(dedup.cell(place))), place));
    f64::from(steps.sum::<u32>()) / f64::from(dedup.len())
}

/// The first eviction took neighbours one after another: load piled up before the hand until all
/// entries were one run, and an insertion took milliseconds.
#[test]
fn lookups_stay_short_through_evictions() {
    const CAPACITY: u32 = 4_096;
    let mut dedup = FingerprintIndex::new(1 << 20, CAPACITY);
    for n in 0..20 * CAPACITY {
        dedup.insert(Fingerprint::new(u128::from(n)), Ppn::new(n));
    }
    check(&dedup);
    // Linear probing with load 3/4: (1 / (1 - 3/4) - 1) / 2 = 1.5 steps (Knuth, vol. 3, 6.4).
    let steps = mean_steps(&dedup);
    assert!((1.0..2.0).contains(&steps), "{steps} steps");
}

#[test]
fn the_hand_visits_every_place() {
    for capacity in [1, 2, 3, 4, 100, 1_000, 1_023] {
        let dedup = FingerprintIndex::new(2_000, capacity);
        let mut seen = vec![false; dedup.cells.len()];
        let mut place = 0;
        while !std::mem::replace(&mut seen[index(place)], true) {
            place = dedup.forward(place, dedup.stride);
        }
        assert!(seen.iter().all(|seen| *seen), "{capacity} entries, stride {}", dedup.stride);
    }
}

#[test]
fn memory_is_as_documented() {
    let (slots, entries) = (1 << 20, 1 << 18);
    let bytes = FingerprintIndex::new(slots, entries).bytes();
    let per_entry = (bytes - 4 * slots) / u64::from(entries);
    assert_eq!(per_entry, 26, "{bytes} B");
    // More entries than slots are never needed.
    let all = FingerprintIndex::new(1_000, u32::MAX);
    assert_eq!(all.bytes(), FingerprintIndex::new(1_000, 1_000).bytes());
    assert_eq!(index(all.places()), all.cells.len());
}
