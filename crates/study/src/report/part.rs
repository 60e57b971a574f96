//! What a report shows: figures, averages and checks, of a whole study or of a part of it.
//!
//! A figure of a part shows the workloads and policies that the part has. An average and a check are
//! about all of their points together: they are left out if the part lacks one.

use serde::Serialize;

use super::checks::compared;
use super::shown_figures;
use crate::file::{Check, Figure, Headline, Published, Study};
use crate::run::Options;

/// What a report shows.
pub(super) struct Shown {
    pub(super) figures: Vec<Figure>,
    pub(super) headlines: Vec<Headline>,
    pub(super) checks: Vec<Check>,
}

/// How much of a study needs workloads or policies that a part of it leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Figures without anything to show, without what they are about, or without their baseline.
    pub figures: usize,
    /// Averages.
    pub headlines: usize,
    /// Checks.
    pub checks: usize,
}

impl LeftOut {
    /// Whether the part shows all that the study does.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// The checks alone.
    #[must_use]
    pub fn of_checks(self) -> Self {
        Self { checks: self.checks, ..Self::default() }
    }
}

/// `1 figure and 12 checks need what --only and --policy leave out`.
impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [(self.figures, "figure"), (self.headlines, "average"), (self.checks, "check")];
        let count = |(count, name): (usize, &str)| match count {
            0 => None,
            1 => Some(format!("1 {name}")),
            _ => Some(format!("{count} {name}s")),
        };
        let counts: Vec<String> = all.into_iter().filter_map(count).collect();
        let verb = if self.figures + self.headlines + self.checks == 1 { "needs" } else { "need" };
        match counts.split_last() {
            None => f.write_str("nothing needs")?,
            Some((last, [])) => write!(f, "{last} {verb}")?,
            Some((last, rest)) => write!(f, "{} and {last} {verb}", rest.join(", "))?,
        }
        f.write_str(" what --only and --policy leave out")
    }
}

impl Shown {
    /// All of a study.
    pub(super) fn new(study: &Study) -> Self {
        Self {
            figures: shown_figures(study),
            headlines: study.headlines.clone(),
            checks: study.checks.clone(),
        }
    }

    /// What a part of a study can show, and how much it cannot.
    pub(super) fn of_part(study: &Study, options: &Options) -> (Self, LeftOut) {
        let whole = Self::new(study);
        let part = Part { study, options };
        let checks: Vec<Check> =
            whole.checks.iter().filter(|check| part.has_check(check)).cloned().collect();
        let shown = Self {
            figures: whole
                .figures
                .iter()
                .filter_map(|figure| part.figure(figure, &checks))
                .collect(),
            headlines: whole.headlines.iter().filter_map(|one| part.headline(one)).collect(),
            checks,
        };
        let left_out = LeftOut {
            figures: whole.figures.len() - shown.figures.len(),
            headlines: whole.headlines.len() - shown.headlines.len(),
            checks: whole.checks.len() - shown.checks.len(),
        };
        (shown, left_out)
    }
}

/// A part of a study.
#[derive(Clone, Copy)]
struct Part<'a> {
    study: &'a Study,
    options: &'a Options,
}

impl Part<'_> {
    fn has_check(self, check: &Check) -> bool {
        let has = |(workload, label): (&str, &str)| {
            self.options.has_workload(workload) && self.options.has_policy(label)
        };
        compared(self.study, check).into_iter().all(has)
    }

    /// An average over all of its workloads, beside the baselines that are left.
    fn headline(self, headline: &Headline) -> Option<Headline> {
        let names = self.study.workloads.iter().map(|workload| &workload.name);
        let mut own =
            names.filter(|name| headline.workloads.is_empty() || headline.workloads.contains(name));
        let has_all = own.all(|name| self.options.has_workload(name));
        let baselines = self.policies(&headline.baselines);
        let is_left = has_all && self.options.has_policy(&headline.policy) && !baselines.is_empty();
        is_left.then(|| Headline { baselines, ..headline.clone() })
    }

    /// What is left of a figure: it names its workloads and policies if some are left out.
    fn figure(self, figure: &Figure, checks: &[Check]) -> Option<Figure> {
        let lacks = |label: &String| !self.options.has_policy(label);
        if figure.baseline.as_ref().is_some_and(lacks)
            || (!figure.about.is_empty() && figure.about.iter().all(lacks))
        {
            return None;
        }
        let mut part = Figure {
            checks: figure
                .checks
                .iter()
                .filter(|id| checks.iter().any(|check| check.id == **id))
                .cloned()
                .collect(),
            published: figure.published.iter().filter_map(|one| self.published(one)).collect(),
            ..figure.clone()
        };
        if !self.options.only.is_empty() {
            let all = self.study.workloads.iter().map(|workload| &workload.name);
            part.workloads = self.workloads(&chosen(all, &figure.workloads));
            if part.workloads.is_empty() {
                return None;
            }
        }
        if !self.options.policies.is_empty() {
            part.policies = self.policies(&chosen(&self.labels(figure), &figure.policies));
            if part.policies.is_empty() {
                return None;
            }
        }
        Some(part)
    }

    /// The labels that a figure can show.
    fn labels(self, figure: &Figure) -> Vec<String> {
        let policies = self.study.policies.iter().map(|policy| policy.label.clone());
        let bounds = self.study.bounds.iter().filter(|bound| bound.applies(figure.metric));
        policies.chain(bounds.map(|bound| bound.name().to_owned())).collect()
    }

    /// What is left of a published number.
    fn published(self, one: &Published) -> Option<Published> {
        let (workloads, policies) = (self.workloads(&one.workloads), self.policies(&one.policies));
        // Empty lists mean all of the figure.
        let is_gone = |before: &[String], now: &[String]| !before.is_empty() && now.is_empty();
        (!is_gone(&one.workloads, &workloads) && !is_gone(&one.policies, &policies))
            .then(|| Published { workloads, policies, ..one.clone() })
    }

    fn workloads(self, names: &[String]) -> Vec<String> {
        names.iter().filter(|name| self.options.has_workload(name)).cloned().collect()
    }

    fn policies(self, labels: &[String]) -> Vec<String> {
        labels.iter().filter(|label| self.options.has_policy(label)).cloned().collect()
    }
}

/// Those of all names that a list has; an empty list has all.
fn chosen<'a>(all: impl IntoIterator<Item = &'a String>, list: &[String]) -> Vec<String> {
    all.into_iter().filter(|name| list.is_empty() || list.contains(name)).cloned().collect()
}
