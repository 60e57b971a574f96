//! Numbers of a metric: where they come from, and as text.

use onefold_sim::result::{duration, significant};

use super::metric::metric;
use crate::Row;
use crate::file::Metric;

/// The metric of one point; `None` without a result, or if nothing was accessed.
pub(super) fn value(
    rows: &[Row],
    (workload, size): (&str, u64),
    label: &str,
    wanted: Metric,
) -> Option<f64> {
    let of = |bound: bool| {
        rows.iter().find(|row| {
            (row.workload == workload && row.size_bytes == size)
                && (row.label == label && row.bound == bound)
        })
    };
    let row = of(false).or_else(|| of(true))?;
    row.error.is_none().then(|| metric(row, wanted)).flatten()
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
