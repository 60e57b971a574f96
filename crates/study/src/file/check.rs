//! What the results of a study must show: claims in the notation of a chain of inequalities.
//!
//! ```text
//! claim := side (comparison side)+         comparison := ">=" | ">" | "<=" | "<", between spaces
//! side  := term ("," term)*                every term of a side stands against every one of the next
//! term  := number | [number "*"] label ["@" place]* [("+" | "-") number]
//! place := name of a workload | size       where the number is taken from; else each of the check
//! ```
//!
//! Numbers are in the unit of the metric: `AOI >= VBBMS - 0.02 > 2L, ARC` means two points of a hit
//! ratio.

use onefold_units::numbers::real;
use serde::{Serialize, Serializer};

use super::{Metric, Study};

/// One ordering that the results must show, or a part of one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Name by which figures refer to it; parts of one ordering share it.
    pub id: String,
    /// What it says, in words.
    pub text: String,
    /// The number that is compared.
    pub metric: Metric,
    /// Label of the latency model; the first of the study if `None`.
    pub latency: Option<String>,
    /// Names of the workloads; all if empty.
    pub workloads: Vec<String>,
    /// Sizes in bytes; all if empty.
    pub sizes: Vec<u64>,
    /// What must hold for each of the workloads and sizes.
    pub claims: Vec<Claim>,
    /// What is known to come out.
    pub expect: Verdict,
    /// Why it is known not to hold.
    pub reason: String,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every claim holds wherever it was asked.
    Holds,
    /// A claim does not hold.
    Fails,
    /// No claim failed, but numbers are missing.
    Missing,
}

impl Verdict {
    /// What can be expected.
    pub const EXPECTED: [Self; 2] = [Self::Holds, Self::Fails];

    /// Name in study files and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Missing => "not computed",
        }
    }

    /// Of two parts: one that fails decides, then one that is missing.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        [Self::Fails, Self::Missing]
            .into_iter()
            .find(|verdict| [self, other].contains(verdict))
            .unwrap_or(Self::Holds)
    }
}

/// A chain of inequalities.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// As it was written.
    pub text: String,
    /// At least two.
    pub sides: Vec<Vec<Term>>,
    /// One between each two sides.
    pub comparisons: Vec<Comparison>,
}

impl Serialize for Claim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// How two sides compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    More,
    /// `<`
    Less,
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Self; 4] = [Self::AtLeast, Self::AtMost, Self::More, Self::Less];

    /// How it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::Less => "<",
        }
    }

    /// Whether it is so.
    #[must_use]
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::AtLeast => left >= right,
            Self::AtMost => left <= right,
            Self::More => left > right,
            Self::Less => left < right,
        }
    }
}

/// `factor * label@workload@size + offset`.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// As it was written.
    pub text: String,
    /// What the number is multiplied by.
    pub factor: f64,
    /// Whose number it is; `None` for a plain number, which is the offset.
    pub label: Option<String>,
    /// Where it is taken from, if not from every workload of the check.
    pub workload: Option<String>,
    /// The size of the buffer in bytes, if not every size of the check.
    pub size: Option<u64>,
    /// What is added, in the unit of the metric.
    pub offset: f64,
}

impl Claim {
    /// Reads a claim about `metric` in the names of `study`; what is wrong with it otherwise.
    pub(crate) fn parse(text: &str, metric: Metric, study: &Study) -> Result<Self, String> {
        let (mut sides, mut comparisons, mut side) = (Vec::new(), Vec::new(), String::new());
        for word in text.split_whitespace() {
            if let Some(found) = Comparison::ALL.into_iter().find(|c| c.name() == word) {
                sides.push(terms(&std::mem::take(&mut side), metric, study)?);
                comparisons.push(found);
            } else {
                side.push(' ');
                side.push_str(word);
            }
        }
        sides.push(terms(&side, metric, study)?);
        if comparisons.is_empty() {
            return Err("expected sides with >=, <=, > or < and spaces between them".to_owned());
        }
        Ok(Self { text: text.to_owned(), sides, comparisons })
    }

    /// Its terms.
    pub fn terms(&self) -> impl Iterator<Item = &Term> {
        self.sides.iter().flatten()
    }
}

fn terms(side: &str, metric: Metric, study: &Study) -> Result<Vec<Term>, String> {
    side.split(',').map(|text| Term::parse(text.trim(), metric, study)).collect()
}

impl Term {
    fn parse(text: &str, metric: Metric, study: &Study) -> Result<Self, String> {
        let (mut label, mut factor, mut offset) = (text, 1.0, 0.0);
        let plain =
            Self { text: text.to_owned(), factor, label: None, workload: None, size: None, offset };
        if let Some(offset) = real(text) {
            return Ok(Self { offset, ..plain });
        }
        if let Some((before, rest)) = label.split_once(" * ")
            && let Some(found) = real(before)
        {
            (label, factor) = (rest, found);
        }
        for (sign, one) in [(" + ", 1.0), (" - ", -1.0)] {
            if let Some((rest, after)) = label.rsplit_once(sign)
                && let Some(found) = real(after)
            {
                (label, offset) = (rest, one * found);
            }
        }
        let mut parts = label.split('@').map(str::trim);
        let label = known_label(parts.next().unwrap_or_default(), metric, study)?;
        let mut term = Self { factor, offset, label: Some(label), ..plain };
        parts.try_for_each(|part| term.place(part, study))?;
        Ok(term)
    }

    /// Takes a workload or a size as the place of its number.
    fn place(&mut self, name: &str, study: &Study) -> Result<(), String> {
        let free = (self.workload.is_none(), self.size.is_none());
        let size = onefold_config::size(name).ok().filter(|size| study.sizes.contains(size));
        if free.0 && study.workloads.iter().any(|workload| workload.name == name) {
            self.workload = Some(name.to_owned());
        } else if free.1 && size.is_some() {
            self.size = size;
        } else {
            return Err(format!(
                "`@{name}` in `{}` is neither a workload nor a size of the study, or one too many",
                self.text
            ));
        }
        Ok(())
    }
}

fn known_label(label: &str, metric: Metric, study: &Study) -> Result<String, String> {
    let policies = || study.policies.iter().map(|policy| policy.label.as_str());
    if policies().any(|policy| policy == label) {
        return Ok(label.to_owned());
    }
    let bounds = || study.bounds.iter().filter(|bound| bound.applies(metric));
    if bounds().any(|bound| bound.name() == label) {
        return Ok(label.to_owned());
    }
    let known: Vec<&str> = policies().chain(bounds().map(|bound| bound.name())).collect();
    Err(format!("`{label}` has no {}; expected one of {}", metric.name(), known.join(", ")))
}
