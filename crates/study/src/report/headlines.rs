//! From rows to mean ratios.

use onefold_units::convert::{float, u64_from};
use serde::Serialize;

use super::value::{place_name, value};
use super::{title, with_latency};
use crate::Row;
use crate::file::{Headline, Study};

/// The averages of a headline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeadlineData {
    /// What it is about.
    pub headline: Headline,
    /// Sizes in bytes, in the order of [`Versus::by_size`].
    pub sizes: Vec<u64>,
    /// One per baseline.
    pub versus: Vec<Versus>,
}

/// The policy against one other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Versus {
    /// Label of the other.
    pub baseline: String,
    /// Over the workloads, one per size.
    pub by_size: Vec<Ratios>,
    /// Over workloads and sizes.
    pub all: Ratios,
}

/// Ratios of a policy to a baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ratios {
    /// Their arithmetic mean; `None` if there is none.
    pub mean: Option<f64>,
    /// The ratio of the means over the points that both have, whose baseline may be 0; `None` if the
    /// baseline has 0 everywhere.
    pub of_means: Option<f64>,
    /// The least and the greatest, each with its workload and size.
    pub range: Option<[(f64, String); 2]>,
    /// Ratios whose two points are computed and whose baseline is above 0.
    pub computed: usize,
    /// Ratios there will be.
    pub expected: usize,
}

impl HeadlineData {
    /// What the numbers are.
    #[must_use]
    pub fn title(&self) -> String {
        let Headline { metric, latency, policy, .. } = &self.headline;
        let what = title(*metric, latency.as_deref());
        format!("{policy} against others: {what}, mean of the ratios")
    }
}

/// A point of both, and where it is.
struct Pair {
    policy: f64,
    baseline: f64,
    place: String,
}

impl Ratios {
    fn new(found: &[Option<Pair>]) -> Self {
        let pairs = || found.iter().flatten();
        let above = pairs().filter(|pair| pair.baseline > 0.0);
        let known: Vec<(f64, String)> =
            above.map(|pair| (pair.policy / pair.baseline, pair.place.clone())).collect();
        let policy: f64 = pairs().map(|pair| pair.policy).sum();
        let baseline: f64 = pairs().map(|pair| pair.baseline).sum();
        let sum: f64 = known.iter().map(|(ratio, _)| ratio).sum();
        let least = known.iter().min_by(|a, b| a.0.total_cmp(&b.0));
        let greatest = known.iter().max_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            mean: (!known.is_empty()).then(|| sum / float(u64_from(known.len()))),
            of_means: (baseline > 0.0).then(|| policy / baseline),
            range: least.zip(greatest).map(|(a, b)| [a.clone(), b.clone()]),
            computed: known.len(),
            expected: found.len(),
        }
    }

    /// The mean, and of how many ratios if some are missing.
    #[must_use]
    pub fn text(&self) -> String {
        let Self { computed, expected, .. } = self;
        match self.mean {
            None => "-".to_owned(),
            Some(mean) if computed == expected => format!("{mean:.3}"),
            Some(mean) => format!("{mean:.3} {computed}/{expected}"),
        }
    }

    /// The ratio of the means.
    #[must_use]
    pub fn of_means_text(&self) -> String {
        self.of_means.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"))
    }

    /// From where to where the ratios go.
    #[must_use]
    pub fn range_text(&self) -> String {
        self.range.as_ref().map_or_else(String::new, |[(least, low), (greatest, high)]| {
            format!("{least:.3} ({low}) to {greatest:.3} ({high})")
        })
    }
}

pub(super) fn headlines(study: &Study, rows: &[Row], headlines: &[Headline]) -> Vec<HeadlineData> {
    headlines.iter().map(|headline| data(study, rows, headline)).collect()
}

fn data(study: &Study, rows: &[Row], headline: &Headline) -> HeadlineData {
    let rows = &*with_latency(study, rows, headline.latency.as_deref());
    let asked = |size: &u64| headline.sizes.is_empty() || headline.sizes.contains(size);
    let sizes: Vec<u64> = study.sizes.iter().copied().filter(asked).collect();
    let versus = |baseline: &String| {
        let over = |sizes: &[u64]| ratios(study, rows, headline, (baseline, sizes));
        Versus {
            baseline: baseline.clone(),
            by_size: sizes.iter().map(|size| over(&[*size])).collect(),
            all: over(&sizes),
        }
    };
    let versus = headline.baselines.iter().map(versus).collect();
    HeadlineData { headline: headline.clone(), sizes, versus }
}

fn ratios(
    study: &Study,
    rows: &[Row],
    headline: &Headline,
    (baseline, sizes): (&str, &[u64]),
) -> Ratios {
    let places = study.places(&headline.workloads, sizes);
    let pair = |name: &str, size: u64| {
        let of = |label| value(rows, (name, size), label, headline.metric);
        let place = place_name(name, size);
        Some(Pair { policy: of(&headline.policy)?, baseline: of(baseline)?, place })
    };
    let found: Vec<_> =
        places.into_iter().map(|(workload, size)| pair(&workload.name, size)).collect();
    Ratios::new(&found)
}
