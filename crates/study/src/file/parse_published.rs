//! From the tables of a study file to published numbers.

use super::reader::{Field, Keys, Table};
use super::{Figure, Published, PublishedRange, Study};
use crate::StudyError;

const PUBLISHED: Keys = Keys {
    section: "[[figure.published]]",
    known: &["workloads", "sizes", "policies", "value", "from", "to", "note"],
};

/// Reads the published numbers of a figure, whose other keys are read already.
pub(super) fn published(
    table: &Table<'_>,
    figure: &Figure,
    study: &Study,
) -> Result<Vec<Published>, StudyError> {
    let mut all: Vec<Published> = Vec::new();
    for (table, place) in table.tables_with_places("published", PUBLISHED)? {
        let one = one(&table, figure, study)?;
        let points = points(figure, study, &one);
        if points.is_empty() {
            return Err(place.refuse("expected at least one point that the figure has"));
        }
        if let Some((workload, _, policy)) = points.iter().find(|(workload, size, policy)| {
            all.iter().any(|a| a.is_about(workload, *size, policy))
        }) {
            let problem = format!("{policy} on {workload} has a published number already");
            return Err(place.refuse(format_args!("expected one for each point: {problem}")));
        }
        all.push(one);
    }
    Ok(all)
}

fn one(table: &Table<'_>, figure: &Figure, study: &Study) -> Result<Published, StudyError> {
    let workloads: Vec<&str> = match figure.workloads.as_slice() {
        [] => study.workloads.iter().map(|workload| workload.name.as_str()).collect(),
        some => some.iter().map(String::as_str).collect(),
    };
    let sizes = if figure.sizes.is_empty() { &study.sizes } else { &figure.sizes };
    let labels = study.policies.iter().map(|policy| policy.label.as_str());
    let is_shown = |label: &&str| {
        figure.policies.is_empty() || figure.policies.iter().any(|other| other == label)
    };
    let labels: Vec<&str> = labels.filter(is_shown).collect();
    let size = |item: &Field<'_>| {
        let bytes = item.size(1, u64::MAX)?;
        if sizes.contains(&bytes) {
            return Ok(bytes);
        }
        Err(item.refuse("expected one of the sizes of the figure"))
    };
    Ok(Published {
        workloads: table.or("workloads", Vec::new(), |field| field.names_of(&workloads))?,
        sizes: table.or("sizes", Vec::new(), |field| field.items()?.iter().map(size).collect())?,
        policies: table.or("policies", Vec::new(), |field| field.names_of(&labels))?,
        range: range(table, figure)?,
        note: table.or("note", String::new(), |field| field.text().map(str::to_owned))?,
    })
}

/// `value`, or `from` and `to`, or one of them.
fn range(table: &Table<'_>, figure: &Figure) -> Result<PublishedRange, StudyError> {
    let number = |key| table.get(key).map(|field| number(&field, figure)).transpose();
    let (from, to) = (number("from")?, number("to")?);
    let Some(value) = number("value")? else {
        if from.is_none() && to.is_none() {
            return Err(table.missing("value", "the published number, or from and to"));
        }
        if let (Some(low), Some(high), Some(field)) = (from, to, table.get("to"))
            && low > high
        {
            return Err(field.refuse("expected at least what `from` is"));
        }
        return Ok(PublishedRange { from, to });
    };
    if let Some(field) = table.get("from").or_else(|| table.get("to")) {
        return Err(field.refuse("expected either value, or from and to"));
    }
    Ok(PublishedRange { from: Some(value), to: Some(value) })
}

/// A number in the unit of the figure: a time if it shows times and divides them by nothing.
fn number(field: &Field<'_>, figure: &Figure) -> Result<f64, StudyError> {
    if figure.metric.is_time() && figure.baseline.is_none() {
        return field.time().map(onefold_units::convert::float);
    }
    let number = field.number()?;
    if number >= 0.0 { Ok(number) } else { Err(field.refuse("expected a number of at least 0")) }
}

/// The points of a figure that a published number is about: workload, size, policy.
fn points<'a>(figure: &Figure, study: &'a Study, one: &Published) -> Vec<(&'a str, u64, &'a str)> {
    let labels = || study.policies.iter().map(|policy| policy.label.as_str());
    let is_shown = |label: &str| {
        figure.policies.is_empty() || figure.policies.iter().any(|other| other == label)
    };
    let places = study.places(&figure.workloads, &figure.sizes).into_iter();
    let all = places.flat_map(|(workload, size)| {
        labels().map(move |label| (workload.name.as_str(), size, label))
    });
    all.filter(|(workload, size, label)| is_shown(label) && one.is_about(workload, *size, label))
        .collect()
}
