//! What a result says against itself: reasons not to believe its numbers.

use onefold_units::convert::float;

use crate::result::{RunResult, SeriesPoint};
use crate::setup::Setup;
use crate::tenant::{Bound, Pace, Tenant};

/// Fewer points of the series do not show how the run went.
const POINTS: usize = 20;
/// Change of the WAF from the third quarter of a run to the last that is called moving.
const MOVING: f64 = 0.05;
/// Share of the capacity that a load discards before that is worth a word.
const DISCARDED: f64 = 0.25;
/// A replay that is this late, and by this share of its length, has a backlog.
const LATE_NS: u64 = 100_000_000;
const LATE_SHARE: f64 = 0.01;

/// Reasons for doubt in a result that is complete but for these.
pub(crate) fn of_result(setup: &Setup, run: &RunResult) -> Vec<String> {
    let found = [failures(run), few_points(run), no_collection(run), moving(run), discards(run)];
    idle(setup, run).chain(found.into_iter().flatten()).collect()
}

/// Keys that did nothing. The volume of an image is there without `volume.mode`.
fn idle(setup: &Setup, run: &RunResult) -> impl Iterator<Item = String> {
    let has_volume = run.volume.is_some();
    let of_volume = |key: &str| key.starts_with("volume.") || key == "ftl.streams";
    let keys =
        setup.config.idle().into_iter().filter(move |(key, _)| !(has_volume && of_volume(key)));
    keys.map(|(key, why)| format!("{key} did nothing: {why}"))
}

fn failures(run: &RunResult) -> Option<String> {
    let failed = run.host.failed_requests;
    let died = run.faults.as_ref().is_some_and(|faults| faults.failed_dies > 0);
    let why = if died {
        "a die failed and the drive takes no changes any more"
    } else {
        "flash could not be read"
    };
    (failed > 0).then(|| format!("{failed} requests failed, as {why}: they have no latency"))
}

fn few_points(run: &RunResult) -> Option<String> {
    let points = run.series.points.len();
    (points < POINTS).then(|| {
        format!(
            "the series has {points} points, too few to see whether the run had settled: \
             a longer load or a smaller run.window gives more"
        )
    })
}

/// On a device of blocks: nothing was erased though something was written.
fn no_collection(run: &RunResult) -> Option<String> {
    let blocks = run.zoned.is_none() && run.zoned_volume.is_none();
    (blocks && run.host.write_pages > 0 && run.flash.erases == 0).then(|| {
        "nothing was erased, so garbage was not collected: this WAF is that of a drive with free space \
         (precondition.overwrite=2 ages it)"
            .to_owned()
    })
}

/// The WAF of the last quarter of the run is another one than that of the quarter before.
fn moving(run: &RunResult) -> Option<String> {
    let points = &run.series.points;
    let quarter = points.len() / 4;
    if points.len() < POINTS || run.flash.erases == 0 {
        return None;
    }
    let (rest, last) = points.split_at(points.len() - quarter);
    let before = waf(&rest[rest.len() - quarter..])?;
    let last = waf(last)?;
    let change = (last / before - 1.0).abs();
    (change > MOVING).then(|| {
        format!(
            "the WAF still moved: {before:.3} in the third quarter of the run, {last:.3} in the last one"
        )
    })
}

fn waf(points: &[SeriesPoint]) -> Option<f64> {
    let host: u64 = points.iter().map(|point| point.host_write_pages).sum();
    let programs: u64 = points.iter().map(|point| point.program_pages.total()).sum();
    (host > 0 && programs > 0).then(|| float(programs) / float(host))
}

/// The load discarded what preconditioning had written, as making a file system does.
fn discards(run: &RunResult) -> Option<String> {
    let capacity = run.device.logical_bytes / crate::result::PAGE_BYTES;
    let filled = run.precondition.as_ref().is_some_and(|before| before.fill > 0.0);
    let share = float(run.host.trim_pages) / float(capacity.max(1));
    (filled && capacity > 0 && share > DISCARDED).then(|| {
        format!(
            "the load discarded {share:.2} of the capacity: what preconditioning had written there is gone"
        )
    })
}

/// A load that came at its own times and found the device busy for longer and longer.
pub(crate) fn backlog(tenant: &Tenant) -> Option<String> {
    let Pace::Open { bound: Bound::None, .. } = &tenant.pace else { return None };
    let late = tenant.last_done.saturating_sub(tenant.last_issue);
    let length = tenant.last_done.saturating_sub(tenant.first_at.unwrap_or(0));
    (late > LATE_NS && float(late) > LATE_SHARE * float(length)).then(|| {
        format!(
            "the device fell {:.1} s behind the times of the load: latencies mean nothing",
            float(late) / 1e9
        )
    })
}
