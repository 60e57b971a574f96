//! Goes through the states with several threads, and explains those that fail.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onefold_crash::{Kind, Log, State, States};
use onefold_units::convert::u64_from;

use super::bench::{Bench, Checks, Problem, Workshop};
use super::promises::Promises;
use super::report::{Failing, NameOf, Report};
use super::shrink::Explainer;
use crate::TryError;

/// Rounds of states by chance that bring nothing new, after which there is nothing more to expect.
const IDLE_ROUNDS: u64 = 16;

/// How many states to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many, evenly spread over all but those by chance; and states by chance if there are fewer.
    Most(u64),
    /// All but those by chance.
    All,
}

/// A part of the states: each `of`-th of those that are tried, from the one with this number on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: u64,
    of: u64,
}

impl Shard {
    /// All states.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Part `number` of `of`; `None` unless `1 <= number <= of`.
    #[must_use]
    pub const fn new(number: u64, of: u64) -> Option<Self> {
        if 1 <= number && number <= of { Some(Self { number, of }) } else { None }
    }

    /// The number of the part, from 1, and how many there are.
    #[must_use]
    pub const fn parts(self) -> (u64, u64) {
        (self.number, self.of)
    }
}

/// What to look at, and how.
pub struct Search<'a> {
    /// What is checked in each state.
    pub checks: Checks,
    /// How many states.
    pub amount: Amount,
    /// The part of them that this process looks at.
    pub shard: Shard,
    /// Threads.
    pub jobs: NonZeroUsize,
    /// Position of the log before which no power cut is of interest.
    pub since: usize,
    /// Seed of the states by chance.
    pub seed: u64,
    /// Says to which file a range of the disk belongs.
    pub name_of: NameOf<'a>,
    /// Is told how many states were tried, and how many failed.
    pub progress: &'a (dyn Fn(u64, u64) + Sync),
}

/// Tries the states of a log. Ends soon after `stop` is set, with what there is by then.
///
/// # Errors
/// The last state, which needs no power cut, fails already; or something is missing that is needed to try states.
pub fn explore(
    log: &Arc<Log>,
    promises: &Promises,
    search: &Search<'_>,
    stop: &AtomicBool,
) -> Result<Report, TryError> {
    let begun = Instant::now();
    search.checks.fs.expect_usable(false)?;
    let workshop = Workshop::new(log, promises, &search.checks, stop)?;
    let mut bench = workshop.bench()?;
    let end = log.events().len();
    let last = State::missing(end, Vec::new());
    if let Some(problem) = bench.run(&last, end)?
        && !stop.load(Relaxed)
    {
        let (state, problem) = (last.name(log), problem.sentence());
        return Err(TryError::FailsAnyway { state, problem });
    }
    let tried = Mutex::new(Tried::new(log, promises, search, stop)?);
    let worker = |bench: &mut Bench<'_>| work(bench, &tried, search, stop);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for _ in 1..search.jobs.get() {
            let mut bench = workshop.bench()?;
            threads.push(scope.spawn(move || worker(&mut bench)));
        }
        let own = worker(&mut bench);
        // The first error is the one to tell; the others have the same reason.
        threads.into_iter().fold(own, |result, thread| {
            let joined = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and(joined)
        })
    })?;
    let Tried { states, taken, checked, mut failing, .. } =
        tried.into_inner().unwrap_or_else(PoisonError::into_inner);
    failing.sort_by_key(|failing| failing.number);
    let repeated = states.repeated();
    let mut explainer = Explainer::new(&workshop, &mut bench, search.name_of);
    let findings = explainer.explain(&mut failing)?;
    Ok(Report {
        states: taken,
        is_interrupted: stop.load(Relaxed),
        checked,
        repeated,
        failing,
        findings,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// What was tried so far.
struct Tried<'a> {
    states: States<'a>,
    /// States to try before others are asked for, each with its number.
    chosen: VecDeque<(u64, State)>,
    /// How many to try.
    most: u64,
    /// Number of the next state.
    number: u64,
    /// States of all shards that were taken so far.
    taken: u64,
    /// By kind.
    checked: [u64; Kind::ALL.len()],
    failing: Vec<Failing>,
    /// Nobody goes on after an error.
    is_over: bool,
}

impl<'a> Tried<'a> {
    fn new(
        log: &'a Log,
        promises: &Promises,
        search: &Search<'_>,
        stop: &AtomicBool,
    ) -> Result<Self, TryError> {
        let (most, rounds) = match search.amount {
            Amount::All => (u64::MAX, 0),
            Amount::Most(most) => (most, u64::MAX),
        };
        // Without a check nobody asks what was promised.
        let has_check = search.checks.command.is_some();
        let positions = if has_check { promises.positions() } else { Vec::new() };
        let states = States::new(log, rounds).with_seed(search.seed).since(search.since);
        let mut tried = Self {
            states: states.ending_after_idle(IDLE_ROUNDS).with_promises(positions),
            chosen: VecDeque::new(),
            most,
            number: 0,
            taken: 0,
            checked: [0; Kind::ALL.len()],
            failing: Vec::new(),
            is_over: false,
        };
        if let Amount::Most(most) = search.amount {
            tried.choose(most, stop)?;
        }
        Ok(tried)
    }

    /// Chooses states that are evenly spread over all but those by chance: the end of a long tape is as interesting as its beginning.
    fn choose(&mut self, most: u64, stop: &AtomicBool) -> Result<(), TryError> {
        let mut spread = Spread::new(most);
        while most > 0 && !stop.load(Relaxed) {
            let Some((number, state)) = self.ask()? else { break };
            let is_by_chance = state.kind() == Kind::Random;
            spread.push(number, state);
            if is_by_chance {
                break;
            }
        }
        self.chosen = spread.chosen();
        Ok(())
    }

    /// The next state of all.
    fn ask(&mut self) -> Result<Option<(u64, State)>, TryError> {
        let next = self.states.next_new()?;
        Ok(next.map(|(state, _)| {
            self.number += 1;
            (self.number - 1, state)
        }))
    }

    /// The next state of a shard, with its number.
    fn next(&mut self, search: &Search<'_>) -> Result<Option<(u64, State)>, TryError> {
        let Shard { number: part, of } = search.shard;
        while !self.is_over && self.taken < self.most {
            let next = match self.chosen.pop_front() {
                Some(chosen) => Some(chosen),
                None => self.ask()?,
            };
            self.is_over = next.is_none();
            let turn = self.taken % of;
            self.taken += u64::from(next.is_some());
            if turn == part - 1 {
                return Ok(next);
            }
        }
        Ok(None)
    }
}

/// Keeps a number of states that are evenly spread over those that come, without knowing how many these are.
struct Spread {
    most: u64,
    /// Of so many that came one is kept.
    stride: u64,
    /// At most twice as many as wanted.
    kept: Vec<(u64, State)>,
}

impl Spread {
    const fn new(most: u64) -> Self {
        Self { most, stride: 1, kept: Vec::new() }
    }

    fn push(&mut self, number: u64, state: State) {
        if !number.is_multiple_of(self.stride) {
            return;
        }
        self.kept.push((number, state));
        if u64_from(self.kept.len()) > self.most.saturating_mul(2) {
            self.stride *= 2;
            self.kept.retain(|(number, _)| number.is_multiple_of(self.stride));
        }
    }

    /// What is wanted of what is kept.
    fn chosen(self) -> VecDeque<(u64, State)> {
        let (most, kept) = (u128::from(self.most), self.kept.len() as u128);
        let before = |number: usize| number as u128 * most / kept;
        let is_chosen = |number: usize| kept <= most || before(number) < before(number + 1);
        let numbered = self.kept.into_iter().enumerate();
        numbered.filter(|(number, _)| is_chosen(*number)).map(|(_, state)| state).collect()
    }
}

/// Tries states until there are no more.
fn work(
    bench: &mut Bench<'_>,
    tried: &Mutex<Tried<'_>>,
    search: &Search<'_>,
    stop: &AtomicBool,
) -> Result<(), TryError> {
    let lock =
        || -> MutexGuard<'_, Tried<'_>> { tried.lock().unwrap_or_else(PoisonError::into_inner) };
    loop {
        let next = lock().next(search)?;
        let Some((number, state)) = next else { return Ok(()) };
        let found = bench.run(&state, state.at());
        let mut tried = lock();
        if stop.load(Relaxed) {
            return Ok(());
        }
        let problem: Option<Problem> = found.inspect_err(|_| tried.is_over = true)?;
        let kind = state.kind();
        for (of, count) in Kind::ALL.iter().zip(&mut tried.checked) {
            *count += u64::from(*of == kind);
        }
        if let Some(problem) = problem {
            tried.failing.push(Failing { number, state, problem, finding: None });
        }
        let failing = tried.failing.len();
        let checked = tried.checked.iter().sum();
        drop(tried);
        (search.progress)(checked, u64::try_from(failing).unwrap_or(u64::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_states_are_spread_over_all() {
        let chosen = |most, of| -> Vec<u64> {
            let mut spread = Spread::new(most);
            (0..of).for_each(|number| spread.push(number, State::missing(0, Vec::new())));
            spread.chosen().into_iter().map(|(number, _)| number).collect()
        };
        assert_eq!(chosen(3, 4), [1, 2, 3]);
        assert_eq!(chosen(10, 10), (0..10).collect::<Vec<_>>());
        let few = chosen(1000, 4999);
        assert_eq!(few.len(), 1000);
        let steps = few.windows(2).map(|two| two[1] - two[0]);
        assert!(few[0] < 10 && few[999] >= 4990 && steps.clone().all(|step| step <= 8), "{few:?}");
        assert_eq!(chosen(0, 5), [0; 0]);
    }
}
