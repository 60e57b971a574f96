//! Numbers of a metric: where they come from, and as text.

use onefold_config::size_text;
use onefold_sim::result::{duration, significant};
use onefold_units::convert::{float, u64_from};

use super::metric::metric;
use crate::Row;
use crate::file::Metric;

/// A size of a study as text; nothing in a grid, which has its sizes as axes.
pub(super) fn size_name(bytes: u64) -> String {
    if bytes == 0 { String::new() } else { size_text(bytes) }
}

/// A workload and a size of a study, as text.
pub(super) fn place_name(workload: &str, bytes: u64) -> String {
    if bytes == 0 { workload.to_owned() } else { format!("{workload}, {}", size_text(bytes)) }
}

/// The rows of one point, one for each seed: of a policy, or else of a bound of that name.
pub(super) fn rows_of<'a>(
    rows: &'a [Row],
    (workload, size): (&str, u64),
    label: &str,
    bound: bool,
) -> Vec<&'a Row> {
    let is_of = |row: &&Row| {
        (row.workload == workload && row.size_bytes == size)
            && (row.label == label && row.bound == bound)
    };
    rows.iter().filter(is_of).collect()
}

/// The mean of a metric over the seeds of a point; `None` without a result, or if nothing was accessed.
pub(super) fn mean(rows: &[&Row], wanted: Metric) -> Option<f64> {
    let values: Option<Vec<f64>> = rows.iter().map(|row| metric(row, wanted)).collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / float(u64_from(values.len())))
}

/// The metric of one point; `None` without a result, or if nothing was accessed.
pub(super) fn value(rows: &[Row], place: (&str, u64), label: &str, wanted: Metric) -> Option<f64> {
    let of = |bound: bool| Some(rows_of(rows, place, label, bound)).filter(|rows| !rows.is_empty());
    let rows = of(false).or_else(|| of(true))?;
    rows.iter().all(|row| row.error.is_none()).then(|| mean(&rows, wanted)).flatten()
}

/// A number as text; shares in percent.
pub(super) fn shown(wanted: Metric, value: f64) -> String {
    if wanted.is_share() {
        format!("{:.2}", value * 100.0)
    } else if wanted.is_time() {
        duration(value)
    } else {
        significant(value, 4)
    }
}
