//! Names of crash states: where the power was cut, and what of the rest is there.

use std::fmt;

use crate::CrashError;
use crate::log::{Log, What};

/// One outcome of a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// Events that had completed.
    pub(crate) at: usize,
    /// What of those that were not durable is there.
    pub(crate) pending: Pending,
}

/// What is there of the writes that had completed and were not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// Nothing.
    None,
    /// Everything.
    All,
    /// All but one event.
    Miss(usize),
    /// One event alone.
    Only(usize),
    /// All, but of one event so many units from its start.
    Head(usize, u64),
    /// All, but of one event none of so many units from its start.
    Tail(usize, u64),
    /// Each unit is there up to some write, by chance.
    Random(u64),
}

impl State {
    /// Position of the cut: events that had completed.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// What of those that were not durable is there.
    #[must_use]
    pub const fn pending(&self) -> Pending {
        self.pending
    }

    /// The name of the state, such as `e3204-miss3198`: entries of the log, from 1.
    #[must_use]
    pub fn name(&self, log: &Log) -> String {
        // Position 0 is before the first entry.
        let entry = |event: usize| log.events().get(event).map_or(0, |event| event.entry);
        let at = self.at.checked_sub(1).map_or(0, entry);
        // A write that asks for a flush before it is two events of one entry.
        let half = self.at > 0 && log.events().get(self.at).is_some_and(|next| next.entry == at);
        let at = format!("e{at}{}", if half { "f" } else { "" });
        match self.pending {
            Pending::None => at,
            Pending::All => format!("{at}-all"),
            Pending::Miss(event) => format!("{at}-miss{}", entry(event)),
            Pending::Only(event) => format!("{at}-only{}", entry(event)),
            Pending::Head(event, units) => format!("{at}-head{}.{units}", entry(event)),
            Pending::Tail(event, units) => format!("{at}-tail{}.{units}", entry(event)),
            Pending::Random(seed) => format!("{at}-rand{seed}"),
        }
    }

    /// The state of a name.
    ///
    /// # Errors
    /// It is none of this log.
    pub fn parse(name: &str, log: &Log) -> Result<Self, CrashError> {
        let refused = |problem: &dyn fmt::Display| CrashError::Name {
            found: name.to_owned(),
            problem: problem.to_string(),
        };
        let form = "expected a name such as e3204, e3204-all, e3204-miss3198, e3204-head3198.1 or e3204-rand7";
        let (at, rest) = name.split_once('-').unwrap_or((name, ""));
        let at = at.strip_prefix('e').ok_or_else(|| refused(&form))?;
        let (number, half) = at.strip_suffix('f').map_or((at, false), |number| (number, true));
        let entry: u64 = number.parse().map_err(|_| refused(&form))?;
        let events = log.events();
        let end = events.partition_point(|event| event.entry <= entry);
        let known = entry == 0 || events.get(end.wrapping_sub(1)).is_some_and(|e| e.entry == entry);
        if !known {
            let last = events.last().map_or(0, |event| event.entry);
            return Err(refused(&format_args!("the log has entries 1 to {last}")));
        }
        let at = end - usize::from(half && end > 0);
        let write = |text: &str| {
            let entry: u64 = text.parse().map_err(|_| refused(&form))?;
            let event = events.iter().position(|event| {
                event.entry == entry && matches!(event.what, What::Write { .. } | What::Discard)
            });
            let pending = event.filter(|event| *event < at && log.epoch(at) <= *event);
            pending.ok_or_else(|| refused(&format_args!("entry {entry} is not pending there")))
        };
        let part = |text: &str| {
            let (entry, units) = text.split_once('.').ok_or_else(|| refused(&form))?;
            Ok::<_, CrashError>((write(entry)?, units.parse().map_err(|_| refused(&form))?))
        };
        let pending = if rest.is_empty() {
            Pending::None
        } else if rest == "all" {
            Pending::All
        } else if let Some(rest) = rest.strip_prefix("miss") {
            Pending::Miss(write(rest)?)
        } else if let Some(rest) = rest.strip_prefix("only") {
            Pending::Only(write(rest)?)
        } else if let Some(rest) = rest.strip_prefix("head") {
            let (event, units) = part(rest)?;
            Pending::Head(event, units)
        } else if let Some(rest) = rest.strip_prefix("tail") {
            let (event, units) = part(rest)?;
            Pending::Tail(event, units)
        } else if let Some(rest) = rest.strip_prefix("rand") {
            Pending::Random(rest.parse().map_err(|_| refused(&form))?)
        } else {
            return Err(refused(&form));
        };
        Ok(Self { at, pending })
    }
}
