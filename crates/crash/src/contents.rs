//! What a disk holds in a state, as the difference to what is durable, and a digest by which equal contents are known.

use std::collections::{BTreeMap, BTreeSet};

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};
use twox_hash::XxHash3_128;

use crate::CrashError;
use crate::log::{Log, Source, What};
use crate::state::{Pending, State};

/// Sum over all units that differ from the disk before: equal contents, equal digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(u128);

/// Units whose content is not the durable one.
pub(crate) type Changed = BTreeMap<u64, Source>;

/// The units of a state that do not hold what is durable at its cut.
pub(crate) fn changed(log: &Log, state: &State) -> Changed {
    let State { at, pending } = *state;
    let mut changed = Changed::new();
    if pending == Pending::None {
        return changed;
    }
    let mut chance = match pending {
        Pending::Random(seed) => Some(Chance::new(log, at, seed)),
        _ => None,
    };
    for event in pending_events(log, at) {
        let is_there = |number: u64| match pending {
            Pending::None => false,
            Pending::All | Pending::Random(_) => true,
            Pending::Miss(missing) => event != missing,
            Pending::Only(only) => event == only,
            Pending::Head(torn, units) => event != torn || number < units,
            Pending::Tail(torn, units) => event != torn || number >= units,
        };
        let first = log.events()[event].offset / log.unit_bytes();
        for (unit, source) in log.written(event) {
            // Behind a durable write of the unit it does not count.
            let is_late =
                log.durable(unit, at).is_none_or(|durable| index64(durable.event.into()) < event);
            let takes = chance.as_mut().is_none_or(|chance| chance.takes(unit, event));
            if is_late && takes && is_there(unit - first) {
                changed.insert(unit, source);
            }
        }
    }
    changed
}

/// Events that had completed at a cut and are not durable.
pub(crate) fn pending_events(log: &Log, at: usize) -> impl Iterator<Item = usize> + '_ {
    let is_pending = |event: &usize| {
        matches!(log.events()[*event].what, What::Write { fua: false } | What::Discard)
    };
    (log.epoch(at)..at).filter(is_pending)
}

/// Up to which write each unit is there, by chance: each write of a unit, or none, with the same probability.
struct Chance {
    last: BTreeMap<u64, usize>,
    none: BTreeSet<u64>,
}

impl Chance {
    fn new(log: &Log, at: usize, seed: u64) -> Self {
        let mut writes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for event in pending_events(log, at) {
            for (unit, _) in log.written(event) {
                writes.entry(unit).or_default().push(event);
            }
        }
        let mut rng = Rng::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64_from(at));
        let (mut last, mut none) = (BTreeMap::new(), BTreeSet::new());
        for (unit, events) in writes {
            match index64(rng.below(u64_from(events.len()) + 1)) {
                0 => _ = none.insert(unit),
                chosen => _ = last.insert(unit, events[chosen - 1]),
            }
        }
        Self { last, none }
    }

    fn takes(&self, unit: u64, event: usize) -> bool {
        !self.none.contains(&unit) && self.last.get(&unit).is_none_or(|last| event <= *last)
    }
}

/// Digests of contents, of which those of what is durable are kept from one position to the next.
#[derive(Debug, Default)]
pub(crate) struct Digester {
    /// Digest of what is durable at this position.
    durable: u128,
    at: usize,
    /// What is durable of the units that were ever written.
    hashes: BTreeMap<u64, u128>,
    base: BTreeMap<u64, u128>,
    buffer: Vec<u8>,
}

impl Digester {
    /// The digest of a state. States have to come in the order of their positions to be cheap.
    pub(crate) fn digest(&mut self, log: &Log, state: &State) -> Result<Digest, CrashError> {
        self.go_to(log, state.at)?;
        let mut sum = self.durable;
        for (unit, source) in changed(log, state) {
            let (old, new) = (self.now(log, unit)?, self.hash(log, unit, Some(source))?);
            sum = sum.wrapping_sub(old).wrapping_add(new);
        }
        Ok(Digest(sum))
    }

    fn go_to(&mut self, log: &Log, at: usize) -> Result<(), CrashError> {
        if at < self.at {
            (self.durable, self.at) = (0, 0);
            self.hashes.clear();
        }
        // What became durable in between was written since the last flush before.
        let units: BTreeSet<u64> = (log.epoch(self.at)..at)
            .flat_map(|event| log.written(event))
            .map(|(unit, _)| unit)
            .collect();
        for unit in units {
            let old = self.now(log, unit)?;
            let source = log.durable(unit, at).map(|version| version.source);
            let new = self.hash(log, unit, source)?;
            self.durable = self.durable.wrapping_sub(old).wrapping_add(new);
            self.hashes.insert(unit, new);
        }
        self.at = at;
        Ok(())
    }

    /// The hash of what is durable of a unit.
    fn now(&mut self, log: &Log, unit: u64) -> Result<u128, CrashError> {
        match self.hashes.get(&unit) {
            Some(hash) => Ok(*hash),
            None => self.of_base(log, unit),
        }
    }

    fn of_base(&mut self, log: &Log, unit: u64) -> Result<u128, CrashError> {
        if let Some(hash) = self.base.get(&unit) {
            return Ok(*hash);
        }
        let hash = self.hash(log, unit, None)?;
        self.base.insert(unit, hash);
        Ok(hash)
    }

    fn hash(&mut self, log: &Log, unit: u64, source: Option<Source>) -> Result<u128, CrashError> {
        self.buffer.resize(index64(log.unit_bytes()), 0);
        log.read(unit, source, &mut self.buffer)?;
        Ok(XxHash3_128::oneshot_with_seed(unit, &self.buffer))
    }
}
