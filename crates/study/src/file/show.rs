//! What a report shows: figures, headlines and checks.

use onefold_config::nearest;
use onefold_sim::result::columns;

use super::lists::{DEVICE_MOST, items};
use super::reader::{Field, Keys, Table};
use super::{Check, Claim, Figure, FigureKind, Headline, Metric, Study, Verdict, parse_published};
use crate::StudyError;

const FIGURE: Keys = Keys {
    section: "[[figure]]",
    known: &[
        "title",
        "note",
        "kind",
        "metric",
        "latency",
        "workloads",
        "sizes",
        "policies",
        "about",
        "baseline",
        "checks",
        "published",
    ],
};
const HEADLINE: Keys = Keys {
    section: "[[headline]]",
    known: &["metric", "latency", "policy", "baselines", "workloads", "sizes", "published"],
};
const CHECK: Keys = Keys {
    section: "[[check]]",
    known: &["id", "text", "metric", "latency", "workloads", "sizes", "claims", "expect", "reason"],
};

pub(super) fn figures(study: &Table<'_>, parsed: &Study) -> Result<Vec<Figure>, StudyError> {
    study.tables("figure", FIGURE)?.iter().map(|table| figure(table, parsed)).collect()
}

pub(super) fn headlines(study: &Table<'_>, parsed: &Study) -> Result<Vec<Headline>, StudyError> {
    study.tables("headline", HEADLINE)?.iter().map(|table| headline(table, parsed)).collect()
}

pub(super) fn checks(study: &Table<'_>, parsed: &Study) -> Result<Vec<Check>, StudyError> {
    study.tables("check", CHECK)?.iter().map(|table| check(table, parsed)).collect()
}

fn figure(table: &Table<'_>, parsed: &Study) -> Result<Figure, StudyError> {
    let whole = Figure::of(metric(table, parsed)?);
    let bounds = parsed.bounds.iter().map(|bound| bound.name());
    let labels: Vec<&str> = policies(parsed).chain(bounds).collect();
    let ids: Vec<&str> = parsed.checks.iter().map(|check| check.id.as_str()).collect();
    let policies = table.or("policies", Vec::new(), |field| field.names_of(&labels))?;
    let shown: Vec<&str> = match policies.as_slice() {
        [] => labels.clone(),
        some => some.iter().map(String::as_str).collect(),
    };
    let figure = Figure {
        title: table.or("title", whole.title.clone(), Field::name)?,
        note: table.or("note", String::new(), text)?,
        kind: table
            .or("kind", whole.kind, |kind| kind.choice(&FigureKind::ALL, FigureKind::name))?,
        workloads: workloads(table, parsed)?,
        sizes: sizes(table, parsed)?,
        latency: latency(table, whole.metric, parsed)?,
        about: table.or("about", Vec::new(), |field| field.names_of(&shown))?,
        baseline: table.get("baseline").map(|field| field.one_of(&labels)).transpose()?,
        checks: table.or("checks", Vec::new(), |field| field.names_of(&ids))?,
        policies,
        ..whole
    };
    if figure.kind == FigureKind::Series && !figure.metric.is_over_time() {
        let field = table.need("metric", "")?;
        return Err(field.refuse(
            "expected bandwidth, flash_pages, valid_pages or stale_pages: what a window has",
        ));
    }
    let published = parse_published::published(table, &figure, parsed)?;
    Ok(Figure { published, ..figure })
}

fn headline(table: &Table<'_>, parsed: &Study) -> Result<Headline, StudyError> {
    let labels: Vec<&str> = policies(parsed).collect();
    let policy = table.need("policy", "the label of a policy, such as \"AOI\"")?;
    let baselines = table.need("baselines", "the labels of policies, such as [\"LRU\"]")?;
    items(&baselines)?;
    let metric = metric(table, parsed)?;
    Ok(Headline {
        metric,
        latency: latency(table, metric, parsed)?,
        policy: policy.one_of(&labels)?,
        baselines: baselines.names_of(&labels)?,
        workloads: workloads(table, parsed)?,
        sizes: sizes(table, parsed)?,
        published: table.or("published", String::new(), text)?,
    })
}

fn check(table: &Table<'_>, parsed: &Study) -> Result<Check, StudyError> {
    let metric = metric(table, parsed)?;
    let claims = table.need("claims", "inequalities, such as [\"2L > LRU + 0.1\"]")?;
    let claim = |field: &Field<'_>| {
        Claim::parse(field.text()?, metric, parsed).map_err(|problem| field.refuse(problem))
    };
    let expect = table
        .or("expect", Verdict::Holds, |field| field.choice(&Verdict::EXPECTED, Verdict::name))?;
    let reason = match table.get("reason") {
        Some(field) if expect == Verdict::Holds => {
            return Err(field.refuse("expected only with expect = \"fails\""));
        }
        Some(field) => field.name()?,
        None if expect == Verdict::Fails => {
            return Err(table.missing("reason", "why it is known not to hold"));
        }
        None => String::new(),
    };
    Ok(Check {
        id: table.need("id", "a short name, such as \"O3\"")?.name()?,
        text: table.need("text", "what it says, in words")?.name()?,
        metric,
        latency: latency(table, metric, parsed)?,
        workloads: workloads(table, parsed)?,
        sizes: sizes(table, parsed)?,
        claims: items(&claims)?.iter().map(claim).collect::<Result<_, _>>()?,
        expect,
        reason,
    })
}

fn metric(table: &Table<'_>, parsed: &Study) -> Result<Metric, StudyError> {
    let metric = table.need("metric", "what is shown, such as \"target_hit_ratio\"")?;
    one_metric(&metric, parsed)
}

fn one_metric(field: &Field<'_>, parsed: &Study) -> Result<Metric, StudyError> {
    parsed.metric(field.text()?).map_err(|problem| field.refuse(problem))
}

impl Study {
    /// A number that the points of the study have.
    ///
    /// # Errors
    /// There is none of that name: those there are.
    pub fn metric(&self, name: &str) -> Result<Metric, String> {
        let fits = |metric: &Metric| metric.is_of_devices() == self.devices.is_some();
        if let Some(found) = Metric::find(name).filter(fits) {
            return Ok(found);
        }
        let own: Vec<&str> = Metric::ALL.into_iter().filter(fits).map(Metric::name).collect();
        let columns = columns().iter().map(|column| column.name.as_str());
        let (columns, more) = match self.devices {
            Some(_) => (Some(columns), ", or a number of a result such as latency_ns.write.p99"),
            None => (None, ", or a hit ratio in an area of a policy such as total_hit_ratio.sorb"),
        };
        let all = own.iter().copied().chain(columns.into_iter().flatten());
        let hint =
            nearest(name, all).map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
        Err(format!("expected one of {}{more}{hint}", own.join(", ")))
    }
}

/// What tables over all points show.
pub(super) fn metrics(study: &Table<'_>, parsed: &Study) -> Result<Vec<Metric>, StudyError> {
    let Some(field) = study.get("metrics") else { return Ok(Vec::new()) };
    items(&field)?.iter().map(|item| one_metric(item, parsed)).collect()
}

/// The label of a latency model, which only a latency can have.
fn latency(
    table: &Table<'_>,
    metric: Metric,
    parsed: &Study,
) -> Result<Option<String>, StudyError> {
    let Some(field) = table.get("latency") else { return Ok(None) };
    if !metric.is_time() || metric.is_of_devices() {
        return Err(
            field.refuse(format_args!("expected only with a latency, not {}", metric.name()))
        );
    }
    let labels: Vec<&str> = parsed.latencies.iter().map(|choice| choice.label.as_str()).collect();
    field.one_of(&labels).map(Some)
}

fn text(field: &Field<'_>) -> Result<String, StudyError> {
    field.text().map(str::to_owned)
}

fn policies(parsed: &Study) -> impl Iterator<Item = &str> {
    parsed.policies.iter().map(|policy| policy.label.as_str())
}

fn workloads(table: &Table<'_>, parsed: &Study) -> Result<Vec<String>, StudyError> {
    let all: Vec<&str> = parsed.workloads.iter().map(|w| w.name.as_str()).collect();
    table.or("workloads", Vec::new(), |field| field.names_of(&all))
}

/// A part of the sizes of the study.
pub(super) fn sizes(table: &Table<'_>, parsed: &Study) -> Result<Vec<u64>, StudyError> {
    let size = |item: &Field<'_>| {
        let bytes = item.size(1, DEVICE_MOST)?;
        if parsed.sizes.contains(&bytes) {
            return Ok(bytes);
        }
        Err(item.refuse("expected one of the sizes of the study"))
    };
    table.or("sizes", Vec::new(), |field| field.items()?.iter().map(size).collect())
}
