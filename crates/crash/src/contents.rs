//! What a disk holds in a state, unit by unit, and a digest by which equal contents are known.

use std::collections::BTreeSet;
use std::fmt;

use onefold_units::Rng;
use onefold_units::convert::{index64, u64_from};
use twox_hash::XxHash3_128;

use crate::CrashError;
use crate::log::{Log, What};
use crate::state::{Pending, Piece, State};

/// Sum over all units that differ from the disk before: equal contents, equal digests. Of logs of one disk with units of one size
/// digests can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest(u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Which version of a unit is there, as an index into all versions; `None` is the disk before.
pub(crate) fn chosen(log: &Log, state: &State, unit: u64) -> Option<usize> {
    let versions = log.before(unit, state.at);
    let event = |version: usize| log.versions()[version].event();
    let is_durable = |version: &usize| log.is_durable(event(*version), state.at);
    let durable = versions.clone().rev().find(is_durable);
    // Those behind the last durable one compete.
    let mut pending = durable.map_or(versions.start, |durable| durable + 1)..versions.end;
    let found = match &state.pending {
        Pending::None => None,
        Pending::All => pending.last(),
        Pending::Only(only) => pending.find(|version| event(*version) == *only),
        Pending::Miss(pieces) => {
            pending.rev().find(|version| !is_missing(log, pieces, event(*version), unit))
        }
        Pending::Random(seed) => {
            let stream = unit ^ u64_from(state.at).rotate_left(32);
            let count = Rng::fork(*seed, stream).below(u64_from(pending.len()) + 1);
            index64(count).checked_sub(1).map(|last| pending.start + last)
        }
    };
    found.or(durable)
}

/// Whether pieces, in ascending order, have a unit as an event wrote it.
fn is_missing(log: &Log, pieces: &[Piece], event: usize, unit: u64) -> bool {
    let first = pieces.partition_point(|piece| piece.event < event);
    let own = pieces[first..].iter().take_while(|piece| piece.event == event);
    own.into_iter().any(|piece| piece.has(log, event, unit))
}

/// Events that had completed at a cut and are not durable.
pub(crate) fn pending_events(log: &Log, at: usize) -> impl Iterator<Item = usize> + '_ {
    let is_pending = |event: &usize| {
        matches!(log.events()[*event].what, What::Write { fua: false } | What::Discard)
    };
    (log.epoch(at)..at).filter(is_pending)
}

impl State {
    /// What the state lacks of what had completed: [`State::missing`] with it is a state of the same content. What a later write
    /// of the same unit replaced is not lacking.
    #[must_use]
    pub fn lost(&self, log: &Log) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        for event in pending_events(log, self.at) {
            let start = log.events()[event].offset / log.unit_bytes();
            for version in log.written(event) {
                let unit = log.versions()[version].unit;
                let durable = Self { at: self.at, pending: Pending::None };
                let is_lost = |chosen: Option<usize>| chosen.is_none_or(|chosen| chosen < version);
                if !is_lost(chosen(log, self, unit)) || !is_lost(chosen(log, &durable, unit)) {
                    continue;
                }
                let first = unit - start;
                match pieces.last_mut() {
                    Some(last) if last.event == event && last.first + last.units == first => {
                        last.units += 1;
                    }
                    _ => pieces.push(Piece { event, first, units: 1 }),
                }
            }
        }
        whole(log, &pieces)
    }
}

/// The same pieces, where those of one event that are all that it wrote are one. A discard has versions only of units that held
/// something.
fn whole(log: &Log, pieces: &[Piece]) -> Vec<Piece> {
    let mut all = Vec::new();
    for of_event in pieces.chunk_by(|one, next| one.event == next.event) {
        let event = of_event[0].event;
        let units: u64 = of_event.iter().map(|piece| piece.units).sum();
        if units == u64_from(log.written(event).count()) {
            all.push(Piece::whole(log, event));
        } else {
            all.extend(of_event);
        }
    }
    all
}

/// Digests of contents. Two of them go along with the position, so that a state costs what it differs in.
#[derive(Debug)]
pub(crate) struct Digester {
    at: usize,
    /// Of what is durable.
    durable: u128,
    /// Of everything that had completed.
    all: u128,
    /// By version; 0: not known yet.
    hashes: Vec<u128>,
    buffer: Vec<u8>,
}

impl Digester {
    pub(crate) fn new(log: &Log) -> Self {
        let (hashes, buffer) = (vec![0; log.versions().len()], vec![0; index64(log.unit_bytes())]);
        Self { at: 0, durable: 0, all: 0, hashes, buffer }
    }

    /// The digest of a state. States have to come in the order of their positions to be cheap.
    pub(crate) fn digest(&mut self, log: &Log, state: &State) -> Result<Digest, CrashError> {
        if state.at < self.at {
            (self.at, self.durable, self.all) = (0, 0, 0);
        }
        while self.at < state.at {
            self.step(log)?;
        }
        let as_durable = State { at: state.at, pending: Pending::None };
        let as_all = State { at: state.at, pending: Pending::All };
        let (sum, from, units) = match &state.pending {
            Pending::None => (self.durable, &as_durable, BTreeSet::new()),
            Pending::All => (self.all, &as_all, BTreeSet::new()),
            Pending::Only(only) => (self.durable, &as_durable, units(log, [*only])),
            Pending::Miss(pieces) => {
                (self.all, &as_all, units(log, pieces.iter().map(|piece| piece.event)))
            }
            Pending::Random(_) => (self.all, &as_all, units(log, pending_events(log, state.at))),
        };
        let mut sum = sum;
        for unit in units {
            let (old, new) = (chosen(log, from, unit), chosen(log, state, unit));
            sum = self.changed(log, sum, unit, old, new)?;
        }
        Ok(Digest(sum))
    }

    /// Goes behind the next event.
    fn step(&mut self, log: &Log) -> Result<(), CrashError> {
        let (before, event) = (self.at, self.at);
        self.at += 1;
        let is_new = log.events()[event].what;
        let events = if is_new == What::Flush { log.epoch(before)..before } else { event..self.at };
        let durable = |at, unit| chosen(log, &State { at, pending: Pending::None }, unit);
        for event in events {
            for version in log.written(event) {
                let unit = log.versions()[version].unit;
                let versions = log.before(unit, self.at);
                if is_new != What::Flush {
                    let old = (version > versions.start).then(|| version - 1);
                    self.all = self.changed(log, self.all, unit, old, Some(version))?;
                }
                // Of several writes that become durable the last one counts.
                if version + 1 == versions.end {
                    let (old, new) = (durable(before, unit), durable(self.at, unit));
                    self.durable = self.changed(log, self.durable, unit, old, new)?;
                }
            }
        }
        Ok(())
    }

    /// A sum when a unit holds another version.
    fn changed(
        &mut self,
        log: &Log,
        sum: u128,
        unit: u64,
        old: Option<usize>,
        new: Option<usize>,
    ) -> Result<u128, CrashError> {
        if old == new {
            return Ok(sum);
        }
        let (old, new) = (self.hash(log, unit, old)?, self.hash(log, unit, new)?);
        Ok(sum.wrapping_sub(old).wrapping_add(new))
    }

    fn hash(&mut self, log: &Log, unit: u64, version: Option<usize>) -> Result<u128, CrashError> {
        let Some(version) = version else {
            log.read_base(unit * log.unit_bytes(), &mut self.buffer)?;
            return Ok(XxHash3_128::oneshot_with_seed(unit, &self.buffer));
        };
        if self.hashes[version] == 0 {
            log.read(log.versions()[version], &mut self.buffer)?;
            self.hashes[version] = XxHash3_128::oneshot_with_seed(unit, &self.buffer);
        }
        Ok(self.hashes[version])
    }
}

/// The units that events wrote.
fn units(log: &Log, events: impl IntoIterator<Item = usize>) -> BTreeSet<u64> {
    let written = events.into_iter().flat_map(|event| log.written(event));
    written.map(|version| log.versions()[version].unit).collect()
}
