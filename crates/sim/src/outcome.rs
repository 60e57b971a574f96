//! What the results of all runs have in common, and the laws that they obey (ssd.md 3.3).

use onefold_ftl::FailedDie;
use onefold_nand::SlowCounts;
use onefold_ssd::HostStats;
use onefold_units::convert::u64_from;
use onefold_volume::Sent;

use crate::gathered::Gathered;
use crate::metrics::Metrics;
use crate::precondition::Preconditioned;
use crate::ran::Ran;
use crate::result::{
    Buffer, Checks, Device, Faults, Flash, Ftl, Host, LatencyByDelay, LatencyCcdf,
    LatencySummaries, LittlesLaw, PAGE_BYTES, Precondition, RunResult, SCHEMA, Stalls, Superblocks,
    TraceSource, Volume,
};
use crate::series::ratio;
use crate::setup::Setup;
use crate::tenant::{Pace, Tenant};
use crate::volume_run::VolumeRun;
use crate::{SimError, doubts};

/// What a result says of every run; the rest is that of a device without a buffer, which has
/// nothing else to tell. Checks Little's law.
pub(crate) fn common<C>(
    setup: &Setup,
    ran: &mut Ran<C>,
    gathered: &Gathered,
    host: &HostStats,
) -> Result<RunResult, SimError> {
    let littles_law = littles_law(&mut ran.tenants)?;
    let mut metrics = Metrics::new();
    for tenant in &ran.tenants {
        metrics.add(&tenant.metrics);
    }
    let unsteady = gathered.trace.is_some() && ran.passes.never_steady();
    let unsteady = unsteady
        .then(|| format!("{} passes over the trace did not become steady", ran.passes.done));
    let backlogs = ran.tenants.iter().filter_map(doubts::backlog);
    let last_done = ran.tenants.iter().map(|tenant| tenant.last_done).max().unwrap_or(0);
    let virtual_ns = last_done.saturating_sub(ran.at);
    let (config, read, write) = (&setup.config, &metrics.read, &metrics.write);
    Ok(RunResult {
        schema: SCHEMA.to_owned(),
        onefold: setup.program.clone(),
        seed: setup.seed,
        partial: ran.partial,
        config: config.to_json(),
        config_sha256: config.sha256(),
        trace: trace(gathered, ran),
        host: Host {
            failed_requests: ran.tenants.iter().map(|tenant| tenant.failed).sum(),
            ..host_result(host)
        },
        buffer: Buffer { policy: "none".to_owned(), ..Buffer::default() },
        flash: Flash::default(),
        ftl: Ftl::default(),
        waf: 0.0,
        latency_ns: latency(&metrics),
        virtual_ns,
        cpu_s: ran.cpu_s,
        page_ops: 0,
        workload: workload(setup),
        device: Device { name: config.name().to_owned(), ..Device::default() },
        latency_by_delay: LatencyByDelay { read: read.summaries(), write: write.summaries() },
        latency_ccdf: LatencyCcdf { read: read.total().ccdf(), write: write.total().ccdf() },
        series: ran.series.finish(),
        superblocks: Superblocks::default(),
        checks: Checks { littles_law: Some(littles_law) },
        tenants: tenant_results(&ran.tenants, "none", None),
        precondition: None,
        map_cache: None,
        faults: None,
        remap: None,
        recovery: None,
        volume: None,
        zoned: None,
        zoned_volume: None,
        stack: Vec::new(),
        bandwidth: bandwidth(host, virtual_ns),
        warnings: gathered.warnings.iter().cloned().chain(unsteady).chain(backlogs).collect(),
    })
}

/// The faults that were met, if any.
pub(crate) fn faults(
    media_failures: u64,
    slow: SlowCounts,
    relocated: u64,
    died: Option<FailedDie>,
) -> Option<Faults> {
    let found = Faults {
        media_failures,
        slow_reads: slow.reads,
        slow_programs: slow.programs,
        relocated_superblocks: relocated,
        failed_dies: u64::from(died.is_some()),
        lost_pages: died.map_or(0, |died| died.lost_pages),
    };
    (found != Faults::default()).then_some(found)
}

fn trace<C>(gathered: &Gathered, ran: &Ran<C>) -> Option<TraceSource> {
    let trace = gathered.trace.clone()?;
    let skipped = ran.tenants.iter().map(|tenant| tenant.source.skipped()).sum();
    Some(TraceSource { passes: ran.passes.done.max(1), skipped, ..trace })
}

/// What a volume did, on a device that programmed so many pages.
pub(crate) fn volume_result(run: &VolumeRun, device: &HostStats, programs: u64) -> Volume {
    let (stats, config) = (&run.stats, &run.config);
    let segment_pages = u64::from(config.geometry.segment_blocks);
    let sent = stats.sent_total();
    Volume {
        mode: config.mode.name().to_owned(),
        device: host_result(device),
        sent_pages: Sent::ALL.map(|cause| (cause.name().to_owned(), stats.sent(cause))).into(),
        waf_host: ratio(sent.into(), run.host.write_pages.into()),
        waf_device: ratio(programs.into(), sent.into()),
        absorbed_pages: stats.absorbed,
        batches: stats.batches,
        read_runs: stats.read_runs,
        clean_read_pages: stats.clean_read,
        clean_wasted_pages: stats.clean_wasted,
        filled_pages: stats.filled,
        remapped_pages: stats.remapped,
        failed_remaps: stats.failed_remaps,
        journal_copied_pages: stats.journal_copied,
        journal_segments: run.journal_segments.into(),
        journal_demotions: stats.journal_demotions,
        cleaned_segments: stats.cleaned_segments,
        freed_segments: stats.freed_segments,
        trim_pages: stats.trim_sent,
        zone_resets: stats.zone_resets,
        zone_finishes: stats.zone_finishes,
        flushes: stats.flushes_sent,
        checkpoints: stats.checkpoints,
        map_faults: stats.map_faults,
        map_evictions: stats.map_evictions,
        stalls: Stalls {
            requests: run.stalls.requests,
            total_ns: run.stalls.ns,
            max_ns: run.stalls.max_ns,
            max_paced_ns: run.stalls.max_paced_ns,
        },
        segment_pages,
        log_pages: run.space.log_blocks,
        live_pages: run.space.live_blocks,
        free_segments: run.space.free_blocks / segment_pages,
        map_bytes: run.space.map_bytes,
        map_probes: stats.map_probes,
        table_faults: stats.table_faults,
        stale_entries: run.space.memory.invalid_entries,
        map_bytes_peak: run.space.memory.peak_real_bytes,
        map_bytes_paper: run.space.memory.peak_paper_bytes,
    }
}

pub(crate) fn host_result(host: &HostStats) -> Host {
    Host {
        read_requests: host.read_requests,
        write_requests: host.write_requests,
        trim_requests: host.trim_requests,
        flush_requests: host.flush_requests,
        read_pages: host.read_pages,
        write_pages: host.write_pages,
        trim_pages: host.trim_pages,
        remap_requests: host.remap_requests,
        remap_pages: host.remap_pages,
        failed_requests: 0,
    }
}

/// Bytes per second that the host read, wrote and remapped.
pub(crate) fn bandwidth(host: &HostStats, virtual_ns: u64) -> f64 {
    let bytes = u128::from(host.pages() + host.remap_pages) * u128::from(PAGE_BYTES);
    ratio(bytes * 1_000_000_000, virtual_ns.into())
}

pub(crate) fn latency(metrics: &Metrics) -> LatencySummaries {
    LatencySummaries {
        read: metrics.read.total().summary(),
        write: metrics.write.total().summary(),
        trim: metrics.trim.total().summary(),
        flush: metrics.flush.total().summary(),
        remap: Some(metrics.remap.total().summary()).filter(|remap| remap.count > 0),
    }
}

pub(crate) fn workload(setup: &Setup) -> Option<String> {
    match setup.config.load_of_run() {
        Some(onefold_config::Load::Workload(text)) => Some(text),
        _ => None,
    }
}

/// One result for each of several tenants.
pub(crate) fn tenant_results(
    tenants: &[Tenant],
    policy: &str,
    stats: Option<&onefold_buffer::Stats>,
) -> Vec<crate::result::Tenant> {
    if tenants.len() < 2 {
        return Vec::new();
    }
    let each = tenants.iter().enumerate();
    each.map(|(at, tenant)| {
        let number = u8::try_from(at).unwrap_or(u8::MAX);
        let buffer = stats.map(|stats| Buffer::of_tenant(policy, &stats.tenant(number)));
        crate::result::Tenant {
            name: tenant.name.clone(),
            host: host_result(&tenant.host),
            latency_ns: latency(&tenant.metrics),
            buffer: buffer.unwrap_or_default(),
        }
    })
    .collect()
}

pub(crate) fn preconditioned(setup: &Setup, done: &Preconditioned) -> Option<Precondition> {
    let asked = setup.config.precondition();
    (asked.fill > 0.0 || done.overwrite_drive_writes > 0.0).then_some(Precondition {
        fill: asked.fill,
        overwrite_drive_writes: done.overwrite_drive_writes,
        waf_last: done.waf_last,
        cpu_s: done.cpu_s,
    })
}

/// What the volume sent by cause is what the device was asked to write.
pub(crate) fn check_sent(
    stats: &onefold_volume::Stats,
    device: &HostStats,
) -> Result<(), SimError> {
    let (sent, received) = (stats.sent_total(), device.write_pages);
    if sent == received {
        return Ok(());
    }
    Err(SimError::Law(format!(
        "the volume sent {sent} pages by cause, the device received {received}"
    )))
}

/// The mean number of requests in flight equals rate x mean latency. Both sides are counted apart.
pub(crate) fn littles_law(tenants: &mut [Tenant]) -> Result<LittlesLaw, SimError> {
    let first = tenants.iter().filter_map(|tenant| tenant.first_at).min().unwrap_or(0);
    let last = tenants.iter().map(|tenant| tenant.last_done).max().unwrap_or(0);
    let time = u128::from(last.saturating_sub(first)).max(1);
    let mut integral = 0;
    for tenant in &mut *tenants {
        let depth = match &tenant.pace {
            Pace::Closed(in_flight) => u64_from(in_flight.depth()),
            Pace::Open { .. } => 0,
        };
        // A closed loop shorter than its depth never filled it.
        integral += tenant.in_flight_integral(depth.min(tenant.issued));
    }
    let latencies: u128 = tenants.iter().map(|tenant| tenant.latency_sum).sum();
    let (in_flight_mean, rate_x_latency) = (ratio(integral, time), ratio(latencies, time));
    let relative_error = (in_flight_mean - rate_x_latency).abs() / rate_x_latency.max(1e-12);
    let short = tenants.iter().any(|tenant| match &tenant.pace {
        Pace::Closed(in_flight) => tenant.issued < u64_from(in_flight.depth()),
        Pace::Open { .. } => false,
    });
    if relative_error > 1e-6 && latencies > 0 && !short {
        return Err(SimError::Law(format!(
            "Little's law: {in_flight_mean} requests in flight, rate x latency = {rate_x_latency}"
        )));
    }
    Ok(LittlesLaw { in_flight_mean, rate_x_latency, relative_error })
}
