//! Budgets: `nand<=2GiB@qlc-16k`, `waf<=1.5`, `fs<=1GiB`, `flushes<=100`, `life>=5y`.
//!
//! ```text
//! budget  ::=  name comparison limit [@ drive [+volume]]
//! name    ::=  one of NAMES, or nand.CAUSE
//! ```
//!
//! Limits are numbers as everywhere (`onefold_units::numbers`), and years for times. Names of drives
//! without `@` hold for each drive alone.

use std::fmt;
use std::str::FromStr;

use onefold_sim::result::{PAGE_BYTES, bytes, count, duration, percent, significant};
use onefold_units::Cause;
use onefold_units::convert::float;
use onefold_units::numbers::{self, Decimal, NumberError};
use serde::{Deserialize, Serialize};

use super::{Account, DriveCost, FileSystem};

const DAY_NS: f64 = 86_400e9;
const YEAR_NS: u64 = 365 * 86_400_000_000_000;

/// What a name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bytes,
    Count,
    Ratio,
    /// Nanoseconds.
    Time,
}

/// Where a name gets its number.
#[derive(Clone, Copy, Debug)]
enum Source {
    Program,
    FileSystem(fn(&FileSystem) -> u64),
    Drive(fn(&DriveCost) -> f64),
    Life,
    Cause(Cause),
}

/// Every name but those of causes.
const NAMES: [(&str, Kind, Source); 19] = {
    use Kind::{Bytes, Count, Ratio, Time};
    use Source::{Drive, FileSystem, Life, Program};
    [
        ("program", Bytes, Program),
        ("fs", Bytes, FileSystem(|fs| fs.write_bytes)),
        ("fs.data", Bytes, FileSystem(|fs| fs.by.data)),
        ("fs.journal", Bytes, FileSystem(|fs| fs.by.journal)),
        ("fs.metadata", Bytes, FileSystem(|fs| fs.by.metadata)),
        ("fs.unknown", Bytes, FileSystem(|fs| fs.by.unknown)),
        ("writes", Count, FileSystem(|fs| fs.write_requests)),
        ("fua", Count, FileSystem(|fs| fs.fua_requests)),
        ("flushes", Count, FileSystem(|fs| fs.flush_requests)),
        ("trims", Count, FileSystem(|fs| fs.trim_requests)),
        ("nand", Bytes, Drive(|drive| float(drive.nand_bytes))),
        ("waf", Ratio, Drive(|drive| drive.waf)),
        ("erases", Count, Drive(|drive| float(drive.flash.erases))),
        ("write_p50", Time, Drive(|drive| float(drive.latency_ns.write.p50))),
        ("write_p99", Time, Drive(|drive| float(drive.latency_ns.write.p99))),
        ("flush_p50", Time, Drive(|drive| float(drive.latency_ns.flush.p50))),
        ("flush_p99", Time, Drive(|drive| float(drive.latency_ns.flush.p99))),
        ("flush_max", Time, Drive(|drive| float(drive.latency_ns.flush.max))),
        ("life", Time, Life),
    ]
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    AtMost,
    Below,
    AtLeast,
    Above,
}

impl Comparison {
    /// Longer ones first.
    const ALL: [(&'static str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Below), (">", Self::Above)];

    fn holds(self, value: f64, limit: f64) -> bool {
        match self {
            Self::AtMost => value <= limit,
            Self::Below => value < limit,
            Self::AtLeast => value >= limit,
            Self::Above => value > limit,
        }
    }
}

/// A budget that was read.
#[derive(Clone, Debug)]
pub struct Budget {
    text: String,
    name: String,
    kind: Kind,
    source: Source,
    comparison: Comparison,
    limit: f64,
    drive: Option<String>,
}

/// Why a text is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// It compares nothing.
    #[error(
        "--budget {text}: no comparison, expected NAME<=LIMIT or NAME>=LIMIT, such as fs<=1GiB"
    )]
    Comparison {
        /// The budget.
        text: String,
    },
    /// There is no such name.
    #[error("--budget {text}: {name:?} is no name of a budget, expected one of {names}")]
    Name {
        /// The budget.
        text: String,
        /// The name.
        name: String,
        /// All there are.
        names: String,
    },
    /// The limit is no number of its kind.
    #[error("--budget {text}: the limit is {found:?}, {problem}; expected {expected}")]
    Limit {
        /// The budget.
        text: String,
        /// What stands behind the comparison.
        found: String,
        /// What is wrong.
        problem: NumberError,
        /// What it should be.
        expected: &'static str,
    },
    /// A number of the whole run has no drive.
    #[error("--budget {text}: {name} is the same for all drives, expected it without @")]
    NoDrive {
        /// The budget.
        text: String,
        /// The name.
        name: String,
    },
    /// The drive is not simulated.
    #[error("--budget {text}: no drive {drive:?} is simulated, expected {expected}")]
    Drive {
        /// The budget.
        text: String,
        /// The drive.
        drive: String,
        /// Those that are.
        expected: String,
    },
}

/// What became of a budget on one drive, or in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The budget as it was given, with the drive if there are several.
    pub budget: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was found: bytes, requests, a ratio or nanoseconds; `null` if that is not known.
    pub value: Option<f64>,
    /// The same for people.
    pub found: String,
    /// Of a broken one: which file or cause is to blame.
    pub blame: Option<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.holds { "holds" } else { "broken" };
        write!(f, "budget {} {word}: {}", self.budget, self.found)?;
        self.blame.iter().try_for_each(|blame| write!(f, "; {blame}"))
    }
}

impl FromStr for Budget {
    type Err = BudgetError;

    fn from_str(text: &str) -> Result<Self, BudgetError> {
        let given = || text.to_owned();
        let no_comparison = || BudgetError::Comparison { text: given() };
        let at = text.find(['<', '>']).ok_or_else(no_comparison)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let found = Comparison::ALL
            .into_iter()
            .find_map(|(sign, comparison)| rest.strip_prefix(sign).map(|rest| (comparison, rest)));
        let (comparison, rest) = found.ok_or_else(no_comparison)?;
        let (limit, drive) = match rest.split_once('@') {
            Some((limit, drive)) => (limit.trim(), Some(drive.trim().to_owned())),
            None => (rest.trim(), None),
        };
        let (kind, source) = named(name).ok_or_else(|| BudgetError::Name {
            text: given(),
            name: name.to_owned(),
            names: NAMES.map(|(name, ..)| name).join(", ") + ", nand.gc and other causes",
        })?;
        let limit = kind.parse(limit).map_err(|problem| BudgetError::Limit {
            text: given(),
            found: limit.to_owned(),
            problem,
            expected: kind.expected(),
        })?;
        let name = name.to_owned();
        let budget = Self { text: given(), name, kind, source, comparison, limit, drive };
        if budget.drive.is_some() && !budget.is_of_drives() {
            return Err(BudgetError::NoDrive { text: given(), name: budget.name });
        }
        Ok(budget)
    }
}

fn named(name: &str) -> Option<(Kind, Source)> {
    if let Some(cause) = name.strip_prefix("nand.") {
        let cause = Cause::ALL.into_iter().find(|known| known.name() == cause)?;
        return Some((Kind::Bytes, Source::Cause(cause)));
    }
    let known = NAMES.into_iter().find(|(known, ..)| *known == name)?;
    Some((known.1, known.2))
}

impl Kind {
    fn parse(self, text: &str) -> Result<f64, NumberError> {
        match self {
            Self::Bytes => numbers::size(text).map(float),
            Self::Count => numbers::count(text).map(float),
            Self::Ratio => Decimal::share(text).map(Decimal::real),
            Self::Time => match Decimal::split(text)? {
                (years, "y") => years.of(YEAR_NS).map(float),
                _ => numbers::time(text).map(float),
            },
        }
    }

    const fn expected(self) -> &'static str {
        match self {
            Self::Bytes => "a size such as 2GiB",
            Self::Count => "a count such as 100 or 10k",
            Self::Ratio => "a number such as 1.5",
            Self::Time => "a time such as 5y, 30d or 10ms",
        }
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::Bytes => bytes(onefold_units::convert::floor_u64(value)),
            Self::Count => count(onefold_units::convert::floor_u64(value)),
            Self::Ratio => significant(value, 3),
            Self::Time if value >= DAY_NS => days(value / DAY_NS),
            Self::Time => duration(value),
        }
    }
}

/// Days, or years where there are many.
pub(super) fn days(days: f64) -> String {
    if days >= 730.0 {
        format!("{} years", significant(days / 365.0, 3))
    } else if days >= 1.0 {
        format!("{} days", significant(days, 3))
    } else {
        duration(days * DAY_NS)
    }
}

impl Budget {
    const fn is_of_drives(&self) -> bool {
        matches!(self.source, Source::Drive(_) | Source::Life | Source::Cause(_))
    }

    /// Refuses a drive that is not among those that are simulated, by [`DriveCost::label`].
    ///
    /// # Errors
    /// [`BudgetError::Drive`].
    pub fn expect_among(&self, labels: &[String]) -> Result<(), BudgetError> {
        let is_there = match &self.drive {
            Some(drive) => labels.contains(drive),
            None => !self.is_of_drives() || !labels.is_empty(),
        };
        if is_there {
            return Ok(());
        }
        let expected = match labels {
            [] => "--drives to name some".to_owned(),
            labels => format!("one of {}", labels.join(", ")),
        };
        let drive = self.drive.clone().unwrap_or_default();
        Err(BudgetError::Drive { text: self.text.clone(), drive, expected })
    }

    /// Judges an account: once, or for each drive that the budget is about.
    #[must_use]
    pub fn judge(&self, account: &Account) -> Vec<Verdict> {
        if !self.is_of_drives() {
            return vec![self.judged(account, None)];
        }
        let is_meant = |drive: &&DriveCost| match &self.drive {
            Some(label) => drive.label() == *label,
            None => drive.volume.is_none(),
        };
        account
            .drives
            .iter()
            .filter(is_meant)
            .map(|drive| self.judged(account, Some(drive)))
            .collect()
    }

    fn judged(&self, account: &Account, drive: Option<&DriveCost>) -> Verdict {
        let value = self.value(account, drive);
        let holds = value.is_ok_and(|value| self.comparison.holds(value, self.limit));
        let budget = match (drive, &self.drive) {
            (Some(drive), None) => format!("{}@{}", self.text, drive.label()),
            _ => self.text.clone(),
        };
        let found = match value {
            Ok(value) if value.is_infinite() => "nothing was programmed".to_owned(),
            Ok(value) => self.kind.text(value),
            Err(why) => format!("not known: {why}"),
        };
        let blame = (!holds && value.is_ok()).then(|| self.blame(account, drive)).flatten();
        let value = value.ok().filter(|value| value.is_finite());
        Verdict { budget, holds, value, found, blame }
    }

    fn value(&self, account: &Account, drive: Option<&DriveCost>) -> Result<f64, &'static str> {
        let drive = drive.ok_or("no drive was simulated");
        match self.source {
            Source::Program => {
                account.program.map(float).ok_or("nobody counted the bytes of the program")
            }
            Source::FileSystem(of) => {
                let fs = account.file_system.as_ref().ok_or("there is no recording")?;
                Ok(float(of(fs)))
            }
            Source::Drive(of) => Ok(of(drive?)),
            Source::Cause(cause) => {
                let pages = &drive?.flash.program_pages;
                Ok(float(pages.of(cause.name()) * PAGE_BYTES))
            }
            Source::Life => match drive? {
                drive if drive.nand_bytes == 0 => Ok(f64::INFINITY),
                drive => {
                    let days = drive.life.days.ok_or("no rated erase cycles (ftl.endurance)")?;
                    Ok(days * DAY_NS)
                }
            },
        }
    }

    /// Whose most of it is. Journal, tables and what is unknown are their own cause.
    fn blame(&self, account: &Account, drive: Option<&DriveCost>) -> Option<String> {
        let fs = account.file_system.as_ref();
        let of_flash = drive.and_then(|drive| {
            let (cause, most) = drive.causes().into_iter().next()?;
            Some(format!("most of flash is {cause}, {}", of_all(most, drive.nand_bytes)))
        });
        let is_part = self.name.starts_with("fs.");
        let of_fs = fs.filter(|_| drive.is_none() && !is_part).and_then(|fs| {
            let (part, most) = fs.by.parts().into_iter().max_by_key(|(_, bytes)| *bytes)?;
            (most > 0).then(|| format!("most is {part}, {}", of_all(most, fs.write_bytes)))
        });
        let file = fs.filter(|_| !is_part || self.name == "fs.data").and_then(|fs| {
            let file = fs.files.first()?;
            Some(format!("the file written most is `{}`, {}", file.path, bytes(file.write_bytes)))
        });
        let parts: Vec<String> = [of_flash, of_fs, file].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

fn of_all(part: u64, all: u64) -> String {
    format!("{} ({})", bytes(part), percent(float(part) / float(all.max(1))))
}
