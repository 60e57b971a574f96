//! What was found.

use std::ops::Range;

use onefold_crash::{Kind, State};
use onefold_units::convert::u64_from;

use super::bench::Problem;
use super::promises::Promise;
use crate::junit::{Case, Suite};

/// Says in words what a range of the disk belonged to when an entry of the log wrote it; `None` if nobody knows.
pub type NameOf<'a> = &'a (dyn Fn(u64, Range<u64>) -> Option<String> + Sync);

/// What was found in the states of a log.
#[derive(Clone, Debug)]
pub struct Report {
    /// States that were numbered: in all shards together they were tried.
    pub states: u64,
    /// Whether it was ended before its time.
    pub is_interrupted: bool,
    /// States that were tried here, in the order of [`Kind::ALL`].
    pub checked: [u64; Kind::ALL.len()],
    /// States that were left out, as another one had the same content.
    pub repeated: u64,
    /// States that failed, by number.
    pub failing: Vec<Failing>,
    /// What explains them.
    pub findings: Vec<Finding>,
    /// How long it took.
    pub seconds: f64,
}

/// A state that failed.
#[derive(Clone, Debug)]
pub struct Failing {
    /// Its number, from 0: the same in all shards.
    pub number: u64,
    /// The state.
    pub state: State,
    /// Why it is not good.
    pub problem: Problem,
    /// Which of the findings explains it; `None`: there were too many.
    pub finding: Option<usize>,
}

/// What failing states have in common.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The requests that are missing.
    pub cause: Cause,
    /// What had been promised last.
    pub after: Option<Promise>,
    /// The last entry of the log before the power cut.
    pub behind: u64,
    /// The name of the state in which only that is missing.
    pub state: String,
    /// How it fails.
    pub problem: Problem,
    /// Names of the failing states that it explains.
    pub states: Vec<String>,
}

/// Why a state fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// These requests had completed and were lost: without them it fails, with each of them it does not.
    Lost(Vec<Lost>),
    /// Nothing was lost that had completed: this request came later, and with it the state is good.
    Late(Lost),
    /// It failed once, and was good when it was tried again: the check depends on something else.
    Unsteady,
}

/// A request, or a part of it, that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Its entry in the log.
    pub entry: u64,
    /// First byte on the disk.
    pub offset: u64,
    /// Bytes.
    pub bytes: u64,
    /// What it belongs to, in words: a file in quotes, the journal.
    pub file: Option<String>,
}

impl Lost {
    /// Such as ``4 KiB of `db-journal` ``.
    fn what(&self) -> String {
        let bytes = size(self.bytes);
        match &self.file {
            Some(name) => format!("{bytes} of {name}"),
            None => format!("{bytes} at byte {}", grouped(self.offset)),
        }
    }
}

impl Finding {
    /// Whether another one is the same mistake at another moment: as many requests to the same files are missing, and it fails alike.
    #[must_use]
    pub fn resembles(&self, other: &Self) -> bool {
        let of = |finding: &Self| {
            let (is_late, all) = match &finding.cause {
                Cause::Lost(all) => (false, all.clone()),
                Cause::Late(late) => (true, vec![late.clone()]),
                Cause::Unsteady => (false, Vec::new()),
            };
            let mut files: Vec<_> = all.into_iter().map(|lost| lost.file).collect();
            files.sort();
            (is_late, files, finding.problem.kind, finding.problem.code)
        };
        of(self) == of(other)
    }

    /// In one sentence: what was promised, what is missing, and what comes of it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let after = self.after.as_ref().map_or_else(String::new, |promise| {
            format!("after mark `{}` (entry {}), ", promise.text, grouped(promise.entry))
        });
        let missing = match &self.cause {
            Cause::Lost(all) => {
                let each = |lost: &Lost| format!("entry {}, {}", grouped(lost.entry), lost.what());
                let all: Vec<_> = all.iter().map(each).collect();
                format!("lost: {}", all.join(", and "))
            }
            Cause::Unsteady => {
                "it failed once and was good when it was tried again, so the check is unsteady"
                    .to_owned()
            }
            Cause::Late(late) => {
                format!("not written yet: entry {}, {}", grouped(late.entry), late.what())
            }
        };
        let cut = format!("cut behind entry {}, ", grouped(self.behind));
        format!("{after}{cut}{missing}; {}", self.problem.sentence())
    }
}

impl Report {
    /// States that were tried.
    #[must_use]
    pub fn tried(&self) -> u64 {
        self.checked.iter().sum()
    }

    /// Failing states without a finding.
    pub fn unexplained(&self) -> impl Iterator<Item = &Failing> {
        self.failing.iter().filter(|failing| failing.finding.is_none())
    }

    /// The findings, each with how many more are like it.
    #[must_use]
    pub fn groups(&self) -> Vec<(&Finding, usize)> {
        let mut groups: Vec<(&Finding, usize)> = Vec::new();
        for finding in &self.findings {
            match groups.iter_mut().find(|(first, _)| first.resembles(finding)) {
                Some((_, more)) => *more += 1,
                None => groups.push((finding, 0)),
            }
        }
        groups
    }

    /// A test case for each finding, and one for all states that are good.
    #[must_use]
    pub fn suite(&self) -> Suite {
        let good = self.tried().saturating_sub(u64_from(self.failing.len()));
        let mut cases = vec![Case {
            name: format!("{good} states that are good"),
            seconds: self.seconds,
            ..Case::default()
        }];
        let case = |finding: &Finding| Case {
            name: finding.state.clone(),
            failure: Some(finding.sentence()),
            details: format!("{}\nstates: {}", finding.problem.output, finding.states.join(" ")),
            ..Case::default()
        };
        cases.extend(self.findings.iter().map(case));
        let count = self.unexplained().count();
        cases.extend(self.unexplained().next().map(|first| Case {
            name: "more states".to_owned(),
            failure: Some(format!("{count} states fail, which are not explained")),
            details: first.problem.output.clone(),
            ..Case::default()
        }));
        Suite { name: "power cuts".to_owned(), cases }
    }
}

/// Bytes in the largest unit of which they are a whole number.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fits = |unit: &&(u64, &str)| bytes >= unit.0 && bytes.is_multiple_of(unit.0);
    match units.iter().find(fits) {
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explore::ProblemKind;

    #[test]
    fn numbers_and_sizes_are_easy_to_read() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(
            [512, 4096, 1 << 20, 3 << 29].map(size),
            ["512 B", "4 KiB", "1 MiB", "1536 MiB"]
        );
    }

    #[test]
    fn a_finding_is_a_sentence() {
        let lost =
            Lost { entry: 3198, offset: 8192, bytes: 4096, file: Some("`db-journal`".into()) };
        let problem = Problem {
            kind: ProblemKind::Check,
            code: Some(1),
            output: "looking\nrecord 17 is gone\n".into(),
        };
        let mut finding = Finding {
            cause: Cause::Lost(vec![lost.clone()]),
            after: None,
            behind: 3204,
            state: "e3204-miss3198".into(),
            problem,
            states: Vec::new(),
        };
        assert_eq!(
            finding.sentence(),
            "cut behind entry 3,204, lost: entry 3,198, 4 KiB of `db-journal`; check exited 1: record 17 is gone"
        );
        finding.cause = Cause::Late(Lost { file: None, ..lost });
        assert_eq!(
            finding.sentence(),
            "cut behind entry 3,204, not written yet: entry 3,198, 4 KiB at byte 8,192; check exited 1: record 17 is gone"
        );
    }
}
