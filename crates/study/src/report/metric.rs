//! The number of a row that a metric means.

use onefold_sim::result::{RunResult, Volume, ZonedVolume, measured};
use onefold_units::convert::float;

use serde_json::Value;

use crate::file::{AreaRatio, Metric};
use crate::row::{AccessRow, ratio};
use crate::series::Windows;
use crate::{Row, TenantRow};

/// The metric of a row; `None` if nothing was accessed.
pub(crate) fn metric(row: &Row, metric: Metric) -> Option<f64> {
    if let Some(kept) = &row.kept {
        return kept.numbers.get(metric.name()).copied();
    }
    let tenants = || row.tenants.iter().filter(|tenant| tenant.target || !metric.is_of_target());
    let sum = |of: fn(&TenantRow) -> u64| total(tenants().map(of));
    let share = |over: u64, under: u64| (under > 0).then(|| ratio(over, under));
    let hits = |access: fn(&TenantRow) -> &AccessRow| {
        let pages = total(tenants().map(|tenant| access(tenant).pages));
        share(total(tenants().map(|tenant| access(tenant).hits)), pages)
    };
    if metric.is_of_devices() {
        return row.result.as_ref().and_then(|run| of_run(run, metric));
    }
    match metric {
        Metric::Area(ratio) => in_area(row, ratio),
        Metric::TargetHitRatio | Metric::TotalHitRatio => share(
            sum(|tenant| total([tenant.reads.hits, tenant.writes.hits])),
            sum(|tenant| total([tenant.reads.pages, tenant.writes.pages])),
        ),
        Metric::TargetReadHitRatio => hits(|tenant| &tenant.reads),
        Metric::TargetWriteHitRatio => hits(|tenant| &tenant.writes),
        Metric::TargetLatency | Metric::TotalLatency => share(
            sum(|tenant| total([tenant.latency_ns.read.sum, tenant.latency_ns.write.sum])),
            sum(|tenant| {
                total([tenant.latency_ns.read.requests, tenant.latency_ns.write.requests])
            }),
        ),
        Metric::PagesProgrammed => Some(float(sum(|t| t.pages_programmed))),
        Metric::Absorption => {
            let programmed = sum(|tenant| tenant.pages_programmed);
            let written = sum(|tenant| tenant.writes.pages);
            share(programmed, written).map(|programmed| 1.0 - programmed)
        }
        _ => None,
    }
}

/// Hits in an area per page accessed; `None` if the policy has no such area.
fn in_area(row: &Row, wanted: &AreaRatio) -> Option<f64> {
    let AreaRatio { accessed, area, .. } = wanted;
    let counts = |tenant: &&TenantRow| tenant.target || !accessed.is_of_target();
    let tenants = || row.tenants.iter().filter(counts);
    let areas = || tenants().flat_map(|tenant| &tenant.area_hits).filter(|one| one.name == *area);
    areas().next()?;
    let hits = total(areas().map(|one| accessed.of(one.reads, one.writes)));
    let pages = total(tenants().map(|one| accessed.of(one.reads.pages, one.writes.pages)));
    (pages > 0).then(|| ratio(hits, pages))
}

fn of_run(run: &RunResult, metric: Metric) -> Option<f64> {
    let written = |value| (run.host.write_pages > 0).then_some(value);
    if metric.is_of_series() {
        return Windows::of(run)?.whole(metric);
    }
    match metric {
        Metric::Column(column) => measured(run).get(&column.name).and_then(Value::as_f64),
        Metric::Bandwidth => Some(run.bandwidth / 1e6),
        Metric::Waf => written(run.waf),
        Metric::OpsPerSecond => ops_per_second(run),
        Metric::FlashPages => Some(float(run.flash.program_pages.total())),
        Metric::WriteLatency => (run.host.write_requests > 0).then_some(run.latency_ns.write.mean),
        Metric::ReadLatency => (run.host.read_requests > 0).then_some(run.latency_ns.read.mean),
        Metric::WafHost => written(run.volume.as_ref().map_or(1.0, |volume| volume.waf_host)),
        Metric::WafData => written(run.volume.as_ref().map_or(run.waf, Volume::waf_data)),
        Metric::LongestStall => {
            Some(run.volume.as_ref().map_or(0.0, |volume| float(volume.stalls.max_ns)))
        }
        Metric::DedupShare => {
            let shared = run.remap.as_ref().map_or(0, |remap| remap.deduplicated);
            (run.host.write_pages > 0).then(|| ratio(shared, run.host.write_pages))
        }
        _ => of_volume(run, metric),
    }
}

/// Requests per second of virtual time.
fn ops_per_second(run: &RunResult) -> Option<f64> {
    (run.virtual_ns > 0).then(|| float(run.host.requests()) * 1e9 / float(run.virtual_ns))
}

/// Metrics of what a volume sends to its devices.
fn of_volume(run: &RunResult, metric: Metric) -> Option<f64> {
    let Some(zoned) = &run.zoned_volume else {
        let volume = run.volume.as_ref()?;
        return match metric {
            Metric::ValidCopies => {
                Some(float(volume.sent_pages.get("cleaning").copied().unwrap_or(0)))
            }
            Metric::PhysPerUser => Some(volume.waf_host),
            Metric::ZoneResets => Some(float(volume.zone_resets)),
            _ => None,
        };
    };
    let written = run.host.write_pages;
    let of_written = |pages: u64| (written > 0).then(|| ratio(pages, written));
    let (started, aborted) = zoned.reclaims_total();
    match metric {
        Metric::ValidCopies => Some(float(zoned.valid_copies)),
        Metric::ValidCopiesRegular => Some(float(zoned.valid_copies_to("regular"))),
        Metric::ValidCopiesZoned => Some(float(zoned.valid_copies_to("zoned"))),
        // Nothing that was copied was the journal's.
        Metric::JournalCopyShare => Some(ratio(zoned.journal_copies, zoned.valid_copies)),
        Metric::JournalShare => {
            of_written(total([zoned.sent("journal"), zoned.sent("journal_appended")]))
        }
        Metric::PhysPerUser => of_written(written).map(|_| zoned.phys_per_user),
        Metric::ZeroFill => {
            of_written(total([zoned.sent("zero_fill"), zoned.sent("zero_fill_aborted")]))
        }
        Metric::Reclaims => Some(float(started)),
        Metric::Aborted => (started > 0).then(|| ratio(aborted, started)),
        Metric::Waits => Some(float(waits(zoned))),
        Metric::ZoneResets => Some(float(total(zoned.devices.iter().map(|device| device.resets)))),
        Metric::JournalMoves => Some(float(zoned.journal_moves)),
        _ => None,
    }
}

fn waits(zoned: &ZonedVolume) -> u64 {
    total(zoned.waits.values().map(|waits| waits.count))
}

/// The sum of counts, which come from a file: where they are damaged it is the largest number.
fn total(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use onefold_sim::result::{RunResult, ZonedDevice, ZonedVolume};

    use super::{metric, of_run};
    use crate::file::Metric;
    use crate::{Row, TenantRow};

    /// The share of the journal left out what is appended to zones of its own.
    #[test]
    fn the_journal_is_counted_wherever_it_lies() {
        let device = |name: &str, sent: &[(&str, u64)]| ZonedDevice {
            name: name.to_owned(),
            sent_pages: sent.iter().map(|(cause, pages)| ((*cause).to_owned(), *pages)).collect(),
            ..ZonedDevice::default()
        };
        let mut run = RunResult::default();
        run.host.write_pages = 10;
        run.zoned_volume = Some(ZonedVolume {
            devices: vec![
                device("regular", &[("journal", 2), ("reclaim_seq_data", 7)]),
                device("zoned", &[("journal_appended", 3), ("reclaim_buf", 4), ("user", 9)]),
            ],
            ..ZonedVolume::default()
        });
        assert_eq!(of_run(&run, Metric::JournalShare), Some(0.5));
        run.zoned_volume.as_mut().unwrap().devices[1].resets = 6;
        assert_eq!(of_run(&run, Metric::ZoneResets), Some(6.0));
        assert_eq!(of_run(&run, Metric::ValidCopiesRegular), Some(7.0));
        assert_eq!(of_run(&run, Metric::ValidCopiesZoned), Some(4.0));
    }

    /// Found by fuzzing: sums of counts that a damaged file of results holds were a panic.
    #[test]
    fn counts_that_no_device_has_are_no_panic() {
        let mut tenant = TenantRow { target: true, ..TenantRow::default() };
        for access in [&mut tenant.reads, &mut tenant.writes] {
            (access.pages, access.hits) = (u64::MAX, u64::MAX);
        }
        for latency in [&mut tenant.latency_ns.read, &mut tenant.latency_ns.write] {
            (latency.requests, latency.sum) = (u64::MAX, u64::MAX);
        }
        tenant.pages_programmed = u64::MAX;
        let row = Row { tenants: vec![tenant.clone(), tenant], ..Row::default() };
        for wanted in Metric::ALL.into_iter().filter(|metric| !metric.is_of_devices()) {
            assert!(metric(&row, wanted).is_some_and(f64::is_finite), "{}", wanted.name());
        }
    }
}
