//! The states of a log, in the order in which they are worth looking at, each content once.

use std::collections::{BTreeMap, VecDeque};

use crate::CrashError;
use crate::contents::{Digest, Digester, pending_events};
use crate::log::{Log, What};
use crate::state::{Pending, State};

/// Kinds of states, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// At each flush and each write with FUA: exactly what is durable.
    Durable,
    /// Between two of them: everything that had completed.
    Prefix,
    /// Before each flush: one request missing, alone or torn.
    One,
    /// By chance, without an end.
    Random,
}

/// Goes through the states of a log.
///
/// First what is durable at each flush and each FUA write; then everything that had completed, after each entry; then, before each
/// flush, one request missing, one alone, and one torn at each end; then by chance, as long as somebody asks.
#[derive(Debug)]
pub struct States<'a> {
    log: &'a Log,
    kind: Kind,
    /// Position in the log.
    at: usize,
    /// Round of the states by chance.
    round: u64,
    /// States of the position that were not told yet.
    waiting: VecDeque<State>,
    digester: Digester,
    seen: BTreeMap<Digest, State>,
    /// States whose content another one has.
    repeated: u64,
    /// Rounds by chance; 0: none.
    rounds: u64,
}

impl<'a> States<'a> {
    /// All states that can be counted, and then `rounds` times one by chance before each flush.
    #[must_use]
    pub fn new(log: &'a Log, rounds: u64) -> Self {
        Self {
            log,
            kind: Kind::Durable,
            at: 0,
            round: 0,
            waiting: VecDeque::new(),
            digester: Digester::default(),
            seen: BTreeMap::new(),
            repeated: 0,
            rounds,
        }
    }

    /// States so far whose content another one had.
    #[must_use]
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The next state whose content none before had.
    ///
    /// # Errors
    /// The log or the disk before cannot be read.
    pub fn next_new(&mut self) -> Result<Option<(State, Digest)>, CrashError> {
        while let Some(state) = self.next_named() {
            let digest = self.digester.digest(self.log, &state)?;
            if self.seen.contains_key(&digest) {
                self.repeated += 1;
                continue;
            }
            self.seen.insert(digest, state);
            return Ok(Some((state, digest)));
        }
        Ok(None)
    }

    /// The next state, whatever its content.
    fn next_named(&mut self) -> Option<State> {
        loop {
            if let Some(state) = self.waiting.pop_front() {
                return Some(state);
            }
            if self.at > self.log.events().len() {
                self.at = 0;
                self.kind = match self.kind {
                    Kind::Durable => Kind::Prefix,
                    Kind::Prefix => Kind::One,
                    Kind::One => Kind::Random,
                    Kind::Random => {
                        self.round += 1;
                        Kind::Random
                    }
                };
            }
            if self.kind == Kind::Random && self.round >= self.rounds {
                return None;
            }
            self.wait(self.at);
            self.at += 1;
        }
    }

    /// Takes down the states of a kind at a position.
    fn wait(&mut self, at: usize) {
        let before = at.checked_sub(1).map(|event| &self.log.events()[event].what);
        let state = |pending| State { at, pending };
        match self.kind {
            Kind::Durable => {
                if matches!(before, None | Some(What::Flush | What::Write { fua: true })) {
                    self.waiting.push_back(state(Pending::None));
                }
            }
            Kind::Prefix => {
                if matches!(before, Some(What::Write { .. } | What::Discard)) {
                    self.waiting.push_back(state(Pending::All));
                }
            }
            Kind::One if self.is_end(at) => self.one(at),
            Kind::Random if self.is_end(at) => {
                if pending_events(self.log, at).next().is_some() {
                    self.waiting.push_back(state(Pending::Random(self.round)));
                }
            }
            Kind::One | Kind::Random => {}
        }
    }

    /// Whether a flush is next, or nothing.
    fn is_end(&self, at: usize) -> bool {
        self.log.events().get(at).is_none_or(|event| event.what == What::Flush)
    }

    fn one(&mut self, at: usize) {
        let pending: Vec<usize> = pending_events(self.log, at).collect();
        let state = |pending| State { at, pending };
        // With one request it is there or not.
        if pending.len() > 1 {
            self.waiting.extend(pending.iter().map(|event| state(Pending::Miss(*event))));
            self.waiting.extend(pending.iter().map(|event| state(Pending::Only(*event))));
        }
        for event in pending {
            let units = self.log.events()[event].bytes / self.log.unit_bytes();
            if units > 1 {
                let torn = [1, units - 1];
                self.waiting.extend(torn.map(|units| state(Pending::Head(event, units))));
                self.waiting.extend(torn.map(|units| state(Pending::Tail(event, units))));
            }
        }
    }
}
