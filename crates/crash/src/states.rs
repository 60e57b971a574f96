//! The states of a log, in the order in which they are worth looking at, each content once.

use std::collections::{BTreeSet, VecDeque};

use crate::CrashError;
use crate::contents::{Digest, Digester, pending_events};
use crate::log::{Log, What};
use crate::state::{Kind, Pending, Piece, State};

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
    /// Contents, each with how much had been promised.
    seen: BTreeSet<(Digest, usize)>,
    /// States whose content another one has.
    repeated: u64,
    /// Rounds by chance; 0: none.
    rounds: u64,
    /// Added to the number of a round by chance.
    seed: u64,
    /// Positions from which on something more is promised, in ascending order.
    promised: Vec<usize>,
    /// First position of interest.
    since: usize,
    /// Rounds by chance without a new content, since the last one, and after how many of them to end.
    idle: u64,
    idle_limit: u64,
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
            digester: Digester::new(log),
            seen: BTreeSet::new(),
            repeated: 0,
            rounds,
            seed: 0,
            promised: Vec::new(),
            since: 0,
            idle: 0,
            idle_limit: u64::MAX,
        }
    }

    /// States by chance that differ from those of another seed.
    #[must_use]
    pub const fn with_seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// What was promised from these positions on tells states of one content apart: a disk that was right before may be
    /// wrong later.
    #[must_use]
    pub fn with_promises(mut self, mut positions: Vec<usize>) -> Self {
        positions.sort_unstable();
        self.promised = positions;
        self
    }

    /// No states of a power cut before this position.
    #[must_use]
    pub const fn since(mut self, position: usize) -> Self {
        self.since = position;
        self
    }

    /// Ends after so many rounds by chance that brought nothing new.
    #[must_use]
    pub const fn ending_after_idle(mut self, rounds: u64) -> Self {
        self.idle_limit = rounds;
        self
    }

    /// States so far whose content another one had.
    #[must_use]
    pub const fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The next state whose content none before had, or of which more was promised.
    ///
    /// # Errors
    /// The log or the disk before cannot be read.
    pub fn next_new(&mut self) -> Result<Option<(State, Digest)>, CrashError> {
        while let Some(state) = self.next_named() {
            let digest = self.digester.digest(self.log, &state)?;
            let promised = self.promised.partition_point(|from| *from <= state.at);
            if self.seen.insert((digest, promised)) {
                self.idle = 0;
                return Ok(Some((state, digest)));
            }
            self.repeated += 1;
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
                        self.idle += 1;
                        Kind::Random
                    }
                };
            }
            let is_over = self.round >= self.rounds || self.idle >= self.idle_limit;
            if self.kind == Kind::Random && is_over {
                return None;
            }
            if self.at >= self.since {
                self.wait(self.at);
            }
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
                    self.waiting
                        .push_back(state(Pending::Random(self.seed.wrapping_add(self.round))));
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
        let miss = |piece| state(Pending::Miss(vec![piece]));
        // With one request it is there or not.
        if pending.len() > 1 {
            let whole = pending.iter().map(|event| Piece::whole(self.log, *event));
            self.waiting.extend(whole.map(miss));
            self.waiting.extend(pending.iter().map(|event| state(Pending::Only(*event))));
        }
        for event in pending {
            let units = Piece::whole(self.log, event).units;
            if units > 1 {
                let parts = [(1, units - 1), (units - 1, 1), (0, 1), (0, units - 1)];
                let parts = parts.map(|(first, units)| miss(Piece { event, first, units }));
                self.waiting.extend(parts);
            }
        }
    }
}
