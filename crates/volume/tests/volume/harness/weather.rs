//! How a backing fails for a while.

use onefold_units::Rng;
use onefold_units::convert::index64;
use onefold_volume::{Io, IoFailed, IoKind};

use super::disk::Fate;

/// Requests of each kind that fail, in 1/1000. Any of them may have done nothing, a part, or all of what it was asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weather {
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    pub(crate) flushes: u64,
    /// Trims, remaps, resets, finishes and reports of zones.
    pub(crate) others: u64,
    /// Writes fail because the backing is full.
    pub(crate) full: bool,
    /// Only requests that begin in these blocks fail.
    pub(crate) place: Option<(u32, u32)>,
}

impl Weather {
    pub(crate) const CALM: Self =
        Self { reads: 0, writes: 0, flushes: 0, others: 0, full: false, place: None };

    /// Everything fails.
    pub(crate) const DOWN: Self = Self { reads: 1000, writes: 1000, others: 1000, ..Self::CALM };

    /// Some fail more often than not, and some never do. Flushes fail in few spells, as the volume takes no changes then.
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let mut share = || [0, 0, 20, 20, 300, 800, 1000][index64(rng.below(7))];
        let (reads, writes, others) = (share(), share(), share());
        let flushes = if rng.below(12) == 0 { 100 } else { 0 };
        match rng.below(8) {
            0 => Self { flushes, ..Self::DOWN },
            1 => Self { writes: 1000, full: true, ..Self::CALM },
            _ => Self { reads, writes, flushes, others, full: rng.below(4) == 0, place: None },
        }
    }

    /// How a request fails, if it does.
    pub(crate) fn failure(&self, io: &Io, rng: &mut Rng) -> Option<(Fate, IoFailed)> {
        let share = match io.kind {
            IoKind::Read => self.reads,
            IoKind::Write => self.writes,
            IoKind::Flush => self.flushes,
            IoKind::Trim | IoKind::Remap | IoKind::Reset | IoKind::Finish | IoKind::Report => {
                self.others
            }
        };
        let elsewhere = self.place.is_some_and(|(from, to)| !(from..to).contains(&io.at.raw()));
        if share == 0 || elsewhere || rng.below(1000) >= share {
            return None;
        }
        if self.full && io.kind == IoKind::Write {
            return Some((Fate::Lost, IoFailed::NoSpace));
        }
        let fate = [Fate::Lost, Fate::Torn, Fate::Whole][index64(rng.below(3))];
        Some((fate, IoFailed::Error))
    }
}
