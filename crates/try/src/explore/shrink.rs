//! Why a state fails: the fewest requests without which it does.
//!
//! If a state fails although everything that had completed is there, then something came too late: later writes are added until
//! it is good, by bisection. Otherwise requests are given back to it as long as it fails: first all but one, then by the
//! bisection of Zeller and Hildebrandt (`ddmin`, 2002), which ends where each request that is given back makes it good.
//!
//! Nothing here depends on time or on threads: the same failing states have the same explanation.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;

use onefold_crash::{Log, Piece, State};

use super::bench::{Bench, Problem, Workshop};
use super::report::{Cause, Failing, Finding, Lost, NameOf};
use crate::TryError;

/// Up to so many requests are tried one by one.
const SINGLES: usize = 64;
/// Findings that are explained. Who has so many fixes one first.
const FINDINGS: usize = 20;

/// Requests that were lost, or the one that came late, by their events.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    Lost(Vec<Piece>),
    Late(usize),
    /// Tried again, the same content is good.
    Unsteady,
}

pub(super) struct Explainer<'a, 'b> {
    workshop: &'a Workshop<'a>,
    bench: &'a mut Bench<'b>,
    name_of: NameOf<'a>,
    /// States that were tried, by what was promised.
    known: BTreeMap<(State, (usize, usize)), Option<Problem>>,
}

impl<'a, 'b> Explainer<'a, 'b> {
    pub(super) fn new(
        workshop: &'a Workshop<'a>,
        bench: &'a mut Bench<'b>,
        name_of: NameOf<'a>,
    ) -> Self {
        Self { workshop, bench, name_of, known: BTreeMap::new() }
    }

    /// Explains failing states, in their order.
    pub(super) fn explain(&mut self, failing: &mut [Failing]) -> Result<Vec<Finding>, TryError> {
        for one in &*failing {
            let key = (one.state.clone(), self.counts(one.state.at()));
            self.known.insert(key, Some(one.problem.clone()));
        }
        let (mut reasons, mut findings): (Vec<Reason>, Vec<Finding>) = (Vec::new(), Vec::new());
        for one in failing {
            let mut found = None;
            for (number, reason) in reasons.iter().enumerate() {
                if self.has(&one.state, reason)? {
                    found = Some(number);
                    break;
                }
            }
            if found.is_none() && findings.len() < FINDINGS {
                let reason = self.reason(&one.state)?;
                if self.workshop.stop.load(Relaxed) {
                    break;
                }
                // Another way to the same requests.
                found = reasons.iter().position(|known| is_same(known, &reason));
                if found.is_none() {
                    findings.push(self.finding(&one.state, &one.problem, &reason)?);
                    reasons.push(reason);
                    found = Some(reasons.len() - 1);
                }
            }
            one.finding = found;
            if let Some(finding) = found.and_then(|number| findings.get_mut(number)) {
                finding.states.push(one.state.name(self.workshop.log));
            }
        }
        Ok(findings)
    }

    fn log(&self) -> &'a Log {
        self.workshop.log
    }

    /// How many lines and marks count at a position.
    fn counts(&self, at: usize) -> (usize, usize) {
        let (lines, marks) = self.workshop.promises.at(at);
        (lines.len(), marks.len())
    }

    /// What fails in a state, with what was promised at a position.
    fn problem(&mut self, state: State, promised: usize) -> Result<Option<Problem>, TryError> {
        let key = (state, self.counts(promised));
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        // Who is to end does not go on trying.
        let is_over = self.workshop.stop.load(Relaxed);
        let problem = if is_over { None } else { self.bench.run(&key.0, promised)? };
        self.known.insert(key, problem.clone());
        Ok(problem)
    }

    /// Whether everything fails that had completed at `at`, with what was promised at `promised`.
    fn fails_whole(&mut self, at: usize, promised: usize) -> Result<bool, TryError> {
        Ok(self.problem(State::missing(at, Vec::new()), promised)?.is_some())
    }

    fn fails_without(&mut self, at: usize, pieces: &[Piece]) -> Result<bool, TryError> {
        Ok(self.problem(State::missing(at, pieces.to_vec()), at)?.is_some())
    }

    /// Whether a state fails for a known reason.
    fn has(&mut self, state: &State, reason: &Reason) -> Result<bool, TryError> {
        let at = state.at();
        match reason {
            Reason::Unsteady => Ok(false),
            Reason::Late(event) => Ok(at <= *event
                && self.fails_whole(at, at)?
                && self.fails_whole(*event, at)?
                && !self.fails_whole(*event + 1, at)?),
            Reason::Lost(pieces) => {
                let lost = state.lost(self.log());
                let events = |piece: &Piece| lost.iter().any(|lost| lost.event == piece.event);
                Ok(pieces.iter().all(events)
                    && self.fails_without(at, pieces)?
                    && !self.fails_whole(at, at)?)
            }
        }
    }

    fn reason(&mut self, state: &State) -> Result<Reason, TryError> {
        let at = state.at();
        if self.fails_whole(at, at)? {
            return Ok(Reason::Late(self.late(at)?));
        }
        let lost = state.lost(self.log());
        let groups: Vec<Vec<Piece>> =
            lost.chunk_by(|one, next| one.event == next.event).map(<[Piece]>::to_vec).collect();
        let mut fewest = self.fewest(at, groups)?;
        if fewest.is_empty() || !self.fails_without(at, &fewest.concat())? {
            return Ok(Reason::Unsteady);
        }
        // A whole request says more than a part of it.
        for number in 0..fewest.len() {
            let mut more = fewest.clone();
            more[number] = vec![Piece::whole(self.log(), fewest[number][0].event)];
            if more != fewest && self.fails_without(at, &more.concat())? {
                fewest = more;
            }
        }
        Ok(Reason::Lost(fewest.concat()))
    }

    /// The event that makes good what fails at a position, though everything is there that had completed. Where a state turns good
    /// and bad again, as a file is overwritten, the last such event says most: it is looked for from the end.
    fn late(&mut self, at: usize) -> Result<usize, TryError> {
        let end = self.log().events().len();
        let (mut fails, mut good, mut back) = (at, end, 1);
        while end - at > back {
            let before = end - back;
            if self.fails_whole(before, at)? {
                fails = before;
                break;
            }
            good = before;
            back *= 2;
        }
        while good - fails > 1 {
            let middle = fails.midpoint(good);
            if self.fails_whole(middle, at)? { fails = middle } else { good = middle }
        }
        Ok(good.saturating_sub(1))
    }

    /// The fewest groups of pieces without which the state of a position fails.
    fn fewest(
        &mut self,
        at: usize,
        mut groups: Vec<Vec<Piece>>,
    ) -> Result<Vec<Vec<Piece>>, TryError> {
        if groups.len() <= SINGLES {
            for group in &groups {
                if self.fails_without(at, group)? {
                    return Ok(vec![group.clone()]);
                }
            }
        }
        let mut parts = 2;
        while groups.len() > 1 {
            let len = groups.len().div_ceil(parts);
            let mut smaller = None;
            for part in groups.chunks(len) {
                if self.fails_without(at, &part.concat())? {
                    smaller = Some((part.to_vec(), 2));
                    break;
                }
            }
            for start in (0..groups.len()).step_by(len) {
                let (before, behind) = (&groups[..start], groups.get(start + len..).unwrap_or(&[]));
                let rest = [before, behind].concat();
                if smaller.is_none()
                    && !rest.is_empty()
                    && self.fails_without(at, &rest.concat())?
                {
                    smaller = Some((rest, parts.saturating_sub(1).max(2)));
                }
            }
            match smaller {
                Some(found) => (groups, parts) = found,
                None if parts >= groups.len() => break,
                None => parts = (parts * 2).min(groups.len()),
            }
        }
        Ok(groups)
    }

    fn finding(
        &mut self,
        of: &State,
        problem: &Problem,
        reason: &Reason,
    ) -> Result<Finding, TryError> {
        let (log, at) = (self.log(), of.at());
        let lost = |piece: &Piece| {
            let event = &log.events()[piece.event];
            let (offset, bytes) = piece.range(log);
            let file = (self.name_of)(event.entry, offset..offset + bytes);
            Lost { entry: event.entry, offset, bytes, file }
        };
        let (state, cause) = match reason {
            Reason::Late(event) => {
                let late = lost(&Piece::whole(log, *event));
                (State::missing(at, Vec::new()), Cause::Late(late))
            }
            Reason::Lost(pieces) => {
                let all = pieces.iter().map(lost).collect();
                (State::missing(at, pieces.clone()), Cause::Lost(all))
            }
            Reason::Unsteady => (of.clone(), Cause::Unsteady),
        };
        let own = self.problem(state.clone(), at)?;
        Ok(Finding {
            cause,
            after: self.workshop.promises.last_at(at).cloned(),
            behind: at.checked_sub(1).map_or(0, |event| log.events()[event].entry),
            state: state.name(log),
            problem: own.unwrap_or_else(|| problem.clone()),
            states: Vec::new(),
        })
    }
}

/// Whether two reasons name the same requests.
fn is_same(one: &Reason, other: &Reason) -> bool {
    let events = |pieces: &[Piece]| pieces.iter().map(|piece| piece.event).collect::<Vec<_>>();
    match (one, other) {
        (Reason::Late(one), Reason::Late(other)) => one == other,
        (Reason::Lost(one), Reason::Lost(other)) => events(one) == events(other),
        (Reason::Unsteady, Reason::Unsteady) => true,
        _ => false,
    }
}
