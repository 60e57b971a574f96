//! Names of crash states: where the power was cut, and what of the rest is there.

use std::fmt;

use crate::CrashError;
use crate::log::{Log, What};

/// One outcome of a power cut.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct State {
    /// Events that had completed.
    pub(crate) at: usize,
    /// What of those that were not durable is there.
    pub(crate) pending: Pending,
}

/// What is there of the writes that had completed and were not durable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// Nothing.
    None,
    /// Everything.
    All,
    /// All but these, in ascending order.
    Miss(Vec<Piece>),
    /// One event alone.
    Only(usize),
    /// Each unit is there up to some write, by chance.
    Random(u64),
}

/// Units of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Piece {
    /// The event.
    pub event: usize,
    /// Its first unit of them, from 0.
    pub first: u64,
    /// Units.
    pub units: u64,
}

impl Piece {
    /// All units of an event.
    #[must_use]
    pub fn whole(log: &Log, event: usize) -> Self {
        Self { event, first: 0, units: log.events()[event].bytes / log.unit_bytes() }
    }

    /// First byte on the disk, and bytes.
    #[must_use]
    pub fn range(&self, log: &Log) -> (u64, u64) {
        let unit = log.unit_bytes();
        (log.events()[self.event].offset + self.first * unit, self.units * unit)
    }

    /// Whether it has a unit of the disk, as an event wrote it.
    pub(crate) fn has(&self, log: &Log, event: usize, unit: u64) -> bool {
        let number = unit - log.events()[event].offset / log.unit_bytes();
        self.event == event && (self.first..self.first + self.units).contains(&number)
    }

    /// `3198`, or `3198.0-3` where it is a part.
    fn name(&self, log: &Log) -> String {
        let entry = log.events()[self.event].entry;
        let last = self.first + self.units - 1;
        match self {
            _ if *self == Self::whole(log, self.event) => entry.to_string(),
            Self { first, units: 1, .. } => format!("{entry}.{first}"),
            Self { first, .. } => format!("{entry}.{first}-{last}"),
        }
    }
}

/// The kinds of states, in the order in which they are worth looking at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// At each flush and each write with FUA: exactly what is durable.
    Durable,
    /// After each entry: everything that had completed.
    Prefix,
    /// Before each flush: one request missing, alone or torn.
    One,
    /// Before each flush: by chance, without an end.
    Random,
}

impl Kind {
    /// All kinds, in their order.
    pub const ALL: [Self; 4] = [Self::Durable, Self::Prefix, Self::One, Self::Random];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Durable => "durable",
            Self::Prefix => "prefix",
            Self::One => "one",
            Self::Random => "random",
        }
    }
}

impl State {
    /// Everything that had completed at a position but these pieces, each of which was not durable there.
    #[must_use]
    pub fn missing(at: usize, mut pieces: Vec<Piece>) -> Self {
        pieces.sort_unstable();
        let pending = if pieces.is_empty() { Pending::All } else { Pending::Miss(pieces) };
        Self { at, pending }
    }

    /// Position of the cut: events that had completed.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }

    /// What of those that were not durable is there.
    #[must_use]
    pub const fn pending(&self) -> &Pending {
        &self.pending
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self.pending {
            Pending::None => Kind::Durable,
            Pending::All => Kind::Prefix,
            Pending::Miss(_) | Pending::Only(_) => Kind::One,
            Pending::Random(_) => Kind::Random,
        }
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
        match &self.pending {
            Pending::None => at,
            Pending::All => format!("{at}-all"),
            Pending::Miss(pieces) => {
                let pieces: Vec<_> = pieces.iter().map(|piece| piece.name(log)).collect();
                format!("{at}-miss{}", pieces.join("+"))
            }
            Pending::Only(event) => format!("{at}-only{}", entry(*event)),
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
        let form = "expected a name such as e3204, e3204-all, e3204-miss3198, e3204-miss3198.0-3, e3204-only3198 or e3204-rand7";
        let (at, rest) = name.split_once('-').unwrap_or((name, ""));
        let at = at.strip_prefix('e').ok_or_else(|| refused(&form))?;
        let (number, half) = at.strip_suffix('f').map_or((at, false), |number| (number, true));
        let entry: u64 = number.parse().map_err(|_| refused(&form))?;
        let events = log.events();
        let end = log.behind(entry);
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
        let number = |text: &str| text.parse::<u64>().map_err(|_| refused(&form));
        let piece = |text: &str| {
            let Some((entry, units)) = text.split_once('.') else {
                return Ok(Piece::whole(log, write(text)?));
            };
            let (first, last) = units.split_once('-').unwrap_or((units, units));
            let (event, first, last) = (write(entry)?, number(first)?, number(last)?);
            let all = Piece::whole(log, event).units;
            if first <= last && last < all {
                return Ok(Piece { event, first, units: last - first + 1 });
            }
            let unit = log.unit_bytes();
            Err(refused(&format_args!("entry {entry} has {all} units of {unit} bytes, from 0")))
        };
        let pending = if rest.is_empty() {
            Pending::None
        } else if rest == "all" {
            Pending::All
        } else if let Some(rest) = rest.strip_prefix("miss") {
            Pending::Miss(rest.split('+').map(piece).collect::<Result<_, _>>()?)
        } else if let Some(rest) = rest.strip_prefix("only") {
            Pending::Only(write(rest)?)
        } else if let Some(rest) = rest.strip_prefix("rand") {
            Pending::Random(number(rest)?)
        } else {
            return Err(refused(&form));
        };
        Ok(Self { at, pending })
    }
}
