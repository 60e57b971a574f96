//! The numbers of a figure as bars, with what was published of them.

use onefold_sim::report::plot::{Axis, Group as Bars, GroupedPlot, Level, Outline};

use super::data::{number, range_text};
use super::line_plots::hatch;
use super::value::place_name;
use super::{Data, Group, Point};
use crate::Study;
use crate::file::PublishedRange;

/// A plot whose highest value is below this share of the highest of its figure gets an axis of its
/// own: its bars could not be read otherwise.
pub(super) const FLAT: f64 = 0.25;

/// How a plot of bars looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look<'a> {
    /// Width and height in pixels.
    pub(super) size: (f64, f64),
    /// What the names of the groups are.
    pub(super) x_title: &'a str,
    /// Whether bars have tooltips.
    pub(super) has_tips: bool,
}

/// The plot of some groups of a figure, each with its name.
pub(super) fn plot(
    (study, data): (&Study, &Data),
    groups: &[Group],
    look: Look<'_>,
    y: Axis,
    name: impl Fn(&Group) -> String,
) -> GroupedPlot {
    let tip = |group: &Group, label: &str, text: &dyn Fn() -> String| {
        let place = place_name(&group.workload, group.size_bytes);
        if look.has_tips { format!("{label}, {place}: {}", text()) } else { String::new() }
    };
    let level = |group: &Group, label: &str, series, point: &Point| {
        let height = point.value()?;
        Some(Level { series, height, tip: tip(group, label, &|| number(data, height)) })
    };
    let outline = |group: &Group, label: &str, range: &Option<PublishedRange>| {
        let PublishedRange { from, to } = (*range)?;
        let text = || format!("{} (published)", range_text(data, PublishedRange { from, to }));
        Some(Outline { from, to, tip: tip(group, label, &text) })
    };
    let bars = |group: &Group| {
        let policies = || data.policies.iter().zip(&group.policies);
        let bounds = data.bounds.iter().zip(&group.bounds);
        let published = data.policies.iter().zip(&group.published);
        Bars {
            label: name(group),
            bars: policies()
                .map(|(label, point)| level(group, label, hatch(study, label), point))
                .collect(),
            outlines: published.map(|(label, range)| outline(group, label, range)).collect(),
            levels: bounds
                .filter_map(|(label, point)| level(group, label, stroke(study, label), point))
                .collect(),
        }
    };
    let first = groups.first().map_or("", |group| group.workload.as_str());
    GroupedPlot {
        title: format!("{}: {first}", data.title()),
        size: look.size,
        x_title: look.x_title.to_owned(),
        y,
        reference: data.figure.baseline.is_some().then_some(1.0),
        groups: groups.iter().map(bars).collect(),
    }
}

/// What the sizes of a study are.
pub(super) fn sizes_title(study: &Study) -> &str {
    study.devices.as_ref().map_or("buffer size", |devices| &devices.size_key)
}

/// The line of a bound, the same in all figures.
pub(super) fn stroke(study: &Study, name: &str) -> usize {
    study.bounds.iter().position(|bound| bound.name() == name).unwrap_or_default()
}

/// The highest number of some groups, published ones too; at least the reference of a figure with a baseline.
pub(super) fn highest(data: &Data, groups: &[Group]) -> f64 {
    let values = groups.iter().flat_map(|group| group.policies.iter().chain(&group.bounds));
    let published = groups.iter().flat_map(|group| group.published.iter().flatten());
    let all = values.filter_map(Point::value).chain(published.map(|range| range.greatest()));
    all.fold(if data.figure.baseline.is_some() { 1.0 } else { 0.0 }, f64::max)
}

/// The vertical axis of a figure.
pub(super) fn axis(data: &Data, highest: f64) -> Axis {
    let metric = data.figure.metric;
    match &data.figure.baseline {
        Some(label) => Axis::number(&format!("relative to {label}"), highest),
        None if metric.is_share() => Axis::share(metric.title(), highest),
        None if metric.is_time() => Axis::time(metric.title(), highest),
        None => Axis::number(metric.title(), highest),
    }
}
