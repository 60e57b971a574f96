//! The number of a row that a metric means.

use onefold_units::convert::float;

use crate::file::Metric;
use crate::row::{AccessRow, ratio};
use crate::{Row, TenantRow};

/// The metric of a row; `None` if nothing was accessed.
pub(super) fn metric(row: &Row, metric: Metric) -> Option<f64> {
    let tenants = || row.tenants.iter().filter(|tenant| tenant.target || !metric.is_of_target());
    let sum = |of: fn(&TenantRow) -> u64| tenants().map(of).sum::<u64>();
    let share = |over: u64, under: u64| (under > 0).then(|| ratio(over, under));
    let hits = |access: fn(&TenantRow) -> &AccessRow| {
        let pages = tenants().map(|tenant| access(tenant).pages).sum();
        share(tenants().map(|tenant| access(tenant).hits).sum(), pages)
    };
    match metric {
        Metric::TargetHitRatio | Metric::TotalHitRatio => share(
            sum(|tenant| tenant.reads.hits + tenant.writes.hits),
            sum(|tenant| tenant.reads.pages + tenant.writes.pages),
        ),
        Metric::TargetReadHitRatio => hits(|tenant| &tenant.reads),
        Metric::TargetWriteHitRatio => hits(|tenant| &tenant.writes),
        Metric::TargetLatency | Metric::TotalLatency => share(
            sum(|tenant| tenant.latency_ns.read.sum + tenant.latency_ns.write.sum),
            sum(|tenant| tenant.latency_ns.read.requests + tenant.latency_ns.write.requests),
        ),
        Metric::PagesProgrammed => Some(float(sum(|t| t.pages_programmed))),
        Metric::Absorption => {
            let programmed = sum(|tenant| tenant.pages_programmed);
            let written = sum(|tenant| tenant.writes.pages);
            share(programmed, written).map(|programmed| 1.0 - programmed)
        }
    }
}
