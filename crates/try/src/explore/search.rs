//! Goes through the states with several threads, and explains those that fail.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use onefold_crash::{Kind, Log, State, States};

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
    spread: Spread,
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
        // Without a check nobody asks what was promised.
        let has_check = search.checks.command.is_some();
        let positions = if has_check { promises.positions() } else { Vec::new() };
        let states = |rounds| {
            let states = States::new(log, rounds).with_promises(positions.clone());
            states.with_seed(search.seed).since(search.since)
        };
        let (rounds, spread) = match search.amount {
            Amount::All => (0, Spread { most: u64::MAX, of: 0 }),
            Amount::Most(most) => (u64::MAX, Spread { most, of: count(states(0), most, stop)? }),
        };
        Ok(Self {
            states: states(rounds).ending_after_idle(IDLE_ROUNDS),
            spread,
            number: 0,
            taken: 0,
            checked: [0; Kind::ALL.len()],
            failing: Vec::new(),
            is_over: false,
        })
    }

    /// The next state of a shard, with its number.
    fn next(&mut self, search: &Search<'_>) -> Result<Option<(u64, State)>, TryError> {
        let Shard { number: part, of } = search.shard;
        loop {
            if self.is_over || self.taken >= self.spread.most {
                return Ok(None);
            }
            let Some((state, _)) = self.states.next_new()? else {
                self.is_over = true;
                return Ok(None);
            };
            let number = self.number;
            self.number += 1;
            if self.spread.takes(number) {
                let turn = self.taken % of;
                self.taken += 1;
                if turn == part - 1 {
                    return Ok(Some((number, state)));
                }
            }
        }
    }
}

/// How many states there are before those by chance.
fn count(mut states: States<'_>, most: u64, stop: &AtomicBool) -> Result<u64, TryError> {
    let mut number = 0;
    while most > 0 && !stop.load(Relaxed) && states.next_new()?.is_some() {
        number += 1;
    }
    Ok(number)
}

/// Which of the states are tried if there are more than one wants: the tape is long, and its end as interesting as its beginning.
#[derive(Clone, Copy, Debug)]
struct Spread {
    most: u64,
    /// States before those by chance.
    of: u64,
}

impl Spread {
    /// Whether the state of a number, from 0, is one of them.
    fn takes(self, number: u64) -> bool {
        let before = |number| u128::from(number) * u128::from(self.most) / u128::from(self.of);
        self.of <= self.most || before(number) < before(number + 1)
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
        let taken = |most, of| -> Vec<u64> {
            (0..of).filter(|number| Spread { most, of }.takes(*number)).collect()
        };
        assert_eq!(taken(3, 10), [3, 6, 9]);
        assert_eq!(taken(10, 10), (0..10).collect::<Vec<_>>());
        assert_eq!(taken(1000, 4999).len(), 1000);
        assert_eq!(taken(0, 5), [0; 0]);
    }
}
