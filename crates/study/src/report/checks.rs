//! From rows to what became of each check.

use serde::Serialize;

use super::value::{shown, value};
use super::{title, with_latency};
use crate::Row;
use crate::file::{Check, Claim, Metric, Study, Term, Verdict, Workload};

/// What became of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckData {
    /// The check.
    pub check: Check,
    /// All cases together.
    pub verdict: Verdict,
    /// Every claim at every workload and size it is about.
    pub cases: Vec<Case>,
}

/// One claim at one workload and size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Case {
    /// Name of the workload.
    pub workload: String,
    /// Size of the buffer in bytes.
    pub size_bytes: u64,
    /// What became of it.
    pub verdict: Verdict,
    /// The claim with the value of every term, in the unit of the figures: percent for shares.
    pub numbers: String,
    /// The inequalities that do not hold, such as `AOI > 2L`.
    pub wrong: Vec<String>,
}

impl CheckData {
    /// Whether it is what the study expects.
    #[must_use]
    pub fn is_as_expected(&self) -> bool {
        self.verdict == self.check.expect
    }

    /// What is compared.
    #[must_use]
    pub fn title(&self) -> String {
        title(self.check.metric, self.check.latency.as_deref())
    }

    /// What became of it, and whether that was known.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = |verdict| self.cases.iter().filter(|case| case.verdict == verdict).count();
        let held = count(Verdict::Holds);
        let missing = match count(Verdict::Missing) {
            0 => String::new(),
            missing => format!(", {missing} not computed"),
        };
        let known = match (self.verdict, self.check.expect) {
            (Verdict::Fails, Verdict::Fails) => ", as is known",
            (Verdict::Holds, Verdict::Fails) => ", but was known to fail",
            _ => "",
        };
        format!("{} ({held} of {} hold{missing}){known}", self.verdict.name(), self.cases.len())
    }
}

pub(super) fn checks(study: &Study, rows: &[Row], checks: &[Check]) -> Vec<CheckData> {
    checks.iter().map(|check| judge(study, rows, check)).collect()
}

/// Every number that a check compares: its workload, and the label of its policy or bound.
pub(super) fn compared<'a>(study: &'a Study, check: &'a Check) -> Vec<(&'a str, &'a str)> {
    let number = |(workload, term): (&'a Workload, &'a Term)| {
        let workload = term.workload.as_deref().unwrap_or(&workload.name);
        Some((workload, term.label.as_deref()?))
    };
    let of_claim = |claim: &'a Claim| {
        let places = places(study, check, claim).into_iter();
        places.flat_map(move |(workload, _)| claim.terms().map(move |term| (workload, term)))
    };
    check.claims.iter().flat_map(of_claim).filter_map(number).collect()
}

fn judge(study: &Study, rows: &[Row], check: &Check) -> CheckData {
    let rows = &*with_latency(study, rows, check.latency.as_deref());
    let case = |claim, (workload, size): (&Workload, u64)| {
        case(rows, check.metric, claim, (&workload.name, size))
    };
    let of_claim = |claim| places(study, check, claim).into_iter().map(move |at| case(claim, at));
    let cases: Vec<Case> = check.claims.iter().flat_map(of_claim).collect();
    let together = cases.iter().map(|case| case.verdict).reduce(Verdict::and);
    CheckData { check: check.clone(), verdict: together.unwrap_or(Verdict::Missing), cases }
}

/// Where a claim is asked: what all its terms name themselves does not come from the check.
fn places<'a>(study: &'a Study, check: &Check, claim: &Claim) -> Vec<(&'a Workload, u64)> {
    let terms = || claim.terms().filter(|term| term.label.is_some());
    let workloads: Option<Vec<String>> = terms().map(|term| term.workload.clone()).collect();
    let sizes: Option<Vec<u64>> = terms().map(|term| term.size).collect();
    let first = |all: Vec<String>| all.into_iter().take(1).collect();
    let workloads = workloads.map_or_else(|| check.workloads.clone(), first);
    let sizes = sizes.map_or_else(|| check.sizes.clone(), |all| all[..all.len().min(1)].to_vec());
    study.places(&workloads, &sizes)
}

fn case(rows: &[Row], metric: Metric, claim: &Claim, (workload, size): (&str, u64)) -> Case {
    let number = |term: &Term| {
        let Some(label) = &term.label else { return Some(term.offset) };
        let at = (term.workload.as_deref().unwrap_or(workload), term.size.unwrap_or(size));
        value(rows, at, label, metric).map(|value| term.factor * value + term.offset)
    };
    let sides: Vec<Vec<(&Term, Option<f64>)>> =
        claim.sides.iter().map(|side| side.iter().map(|t| (t, number(t))).collect()).collect();
    let mut wrong = Vec::new();
    for (pair, comparison) in sides.windows(2).zip(&claim.comparisons) {
        for (left, left_value) in &pair[0] {
            for (right, right_value) in &pair[1] {
                if let (Some(a), Some(b)) = (left_value, right_value)
                    && !comparison.holds(*a, *b)
                {
                    wrong.push(format!("{} {} {}", left.text, comparison.name(), right.text));
                }
            }
        }
    }
    let verdict = if !wrong.is_empty() {
        Verdict::Fails
    } else if sides.iter().flatten().any(|(_, value)| value.is_none()) {
        Verdict::Missing
    } else {
        Verdict::Holds
    };
    let numbers = numbers(metric, claim, &sides);
    Case { workload: workload.to_owned(), size_bytes: size, verdict, numbers, wrong }
}

/// The claim with its numbers: `AOI (77.00) >= VBBMS - 0.02 (72.40)`.
fn numbers(metric: Metric, claim: &Claim, sides: &[Vec<(&Term, Option<f64>)>]) -> String {
    let term = |(term, value): &(&Term, Option<f64>)| {
        let value = value.map_or_else(|| "-".to_owned(), |value| shown(metric, value));
        format!("{} ({value})", term.text)
    };
    let side = |side: &Vec<(&Term, Option<f64>)>| {
        side.iter().map(term).collect::<Vec<String>>().join(", ")
    };
    let signs = std::iter::once("").chain(claim.comparisons.iter().map(|sign| sign.name()));
    let words = signs.zip(sides).map(|(sign, terms)| format!("{sign} {}", side(terms)));
    words.collect::<Vec<String>>().join(" ").trim_start().to_owned()
}
