//! From a finished run to its result, and the laws it has to obey (ssd.md 3.3).

use onefold_ftl::{FtlStats, RemapScheme, SpaceMap};
use onefold_ssd::HostStats;
use onefold_units::convert::u64_from;
use onefold_volume::Sent;

use crate::SimError;
use crate::engine::{Finished, Setup};
use crate::metrics::Metrics;
use crate::precondition::Preconditioned;
use crate::result::{
    Buffer, ByCause, Checks, Device, Flash, Ftl, Host, LatencyByDelay, LatencyCcdf,
    LatencySummaries, LittlesLaw, MapCache, PAGE_BYTES, Precondition, Remap, RunResult, SCHEMA,
    Stalls, Superblocks, VALID_BINS, Volume, Wear,
};
use crate::series::ratio;
use crate::tenant::{Pace, Tenant};
use crate::volume::VolumeRun;

/// Builds the result.
pub(crate) fn result(setup: &Setup, mut run: Finished) -> Result<RunResult, SimError> {
    let littles_law = littles_law(&mut run.tenants)?;
    check_laws(&run)?;
    let ftl = run.ssd.ftl().stats().since(&run.baseline.ftl);
    let device = run.ssd.host_stats().since(&run.baseline.host);
    let host = run.volume.as_ref().map_or(device, |volume| volume.host);
    let mut metrics = Metrics::new();
    for tenant in &run.tenants {
        metrics.add(&tenant.metrics);
    }
    let last_done = run.tenants.iter().map(|tenant| tenant.last_done).max().unwrap_or(0);
    let (space, config, programs) = (run.ssd.ftl().space(), &setup.config, ftl.programs.total());
    let virtual_ns = last_done.saturating_sub(run.baseline.at);
    Ok(RunResult {
        schema: SCHEMA.to_owned(),
        onefold: setup.program.clone(),
        seed: setup.seed,
        partial: run.partial,
        config: config.to_json(),
        config_sha256: config.sha256(),
        trace: run.trace.clone(),
        host: host_result(&host),
        buffer: buffer_result(&run),
        flash: flash_result(&run, &ftl),
        ftl: ftl_result(&run, &space),
        waf: ratio(u128::from(programs), u128::from(host.write_pages)),
        latency_ns: latency(&metrics),
        virtual_ns,
        cpu_s: run.cpu_s,
        page_ops: device.pages() + ftl.internal_pages(),
        workload: workload(setup),
        device: Device {
            preset: None,
            name: config.name().to_owned(),
            logical_bytes: host_bytes(&run),
            raw_bytes: run.ssd.config().geometry.raw_bytes(),
        },
        latency_by_delay: LatencyByDelay {
            read: metrics.read.summaries(),
            write: metrics.write.summaries(),
        },
        latency_ccdf: LatencyCcdf {
            read: metrics.read.total().ccdf(),
            write: metrics.write.total().ccdf(),
        },
        series: run.series.finish(),
        superblocks: Superblocks {
            valid_histogram: run.ssd.ftl().valid_histogram(VALID_BINS),
            slots: u64::from(space.data_slots),
        },
        checks: Checks { littles_law: Some(littles_law) },
        tenants: tenants(&run),
        precondition: preconditioned(setup, &run.preconditioned),
        map_cache: (ftl.map_hits + ftl.map_misses > 0)
            .then_some(MapCache { hits: ftl.map_hits, misses: ftl.map_misses }),
        remap: remap_result(&run, &host, programs),
        volume: run.volume.as_ref().map(|one| volume_result(one, &device, programs)),
        zoned: None,
        zoned_volume: None,
        bandwidth: bandwidth(&host, virtual_ns),
        warnings: run.warnings,
    })
}

fn host_bytes(run: &Finished) -> u64 {
    let volume = run.volume.as_ref();
    volume.map_or_else(|| run.ssd.capacity(), |volume| volume.config.logical_bytes())
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
    }
}

/// Bytes per second that the host read, wrote and remapped.
pub(crate) fn bandwidth(host: &HostStats, virtual_ns: u64) -> f64 {
    let bytes = u128::from(host.pages() + host.remap_pages) * u128::from(PAGE_BYTES);
    ratio(bytes * 1_000_000_000, virtual_ns.into())
}

fn remap_result(run: &Finished, host: &HostStats, programs: u64) -> Option<Remap> {
    let scheme = run.ssd.config().ftl.remap.scheme;
    if scheme == RemapScheme::None {
        return None;
    }
    let remap = run.ssd.ftl().remap_stats().since(&run.baseline.remap);
    let dedup = run.ssd.dedup_stats().since(&run.baseline.dedup);
    Some(Remap {
        scheme: scheme.name().to_owned(),
        remapped: remap.remapped,
        deduplicated: remap.deduplicated,
        copied: remap.copied,
        skipped: remap.skipped,
        entries: remap.entries,
        moved_entries: remap.moved_entries,
        absorbed: remap.absorbed,
        compactions: remap.compactions,
        destages: remap.destages,
        log_collections: remap.log_collections,
        log_full: remap.log_full,
        lookup_ns: remap.lookup_ns,
        hashed_pages: dedup.hashed_pages,
        hash_busy_ns: dedup.busy.get(),
        waf_logical: ratio(programs.into(), (host.write_pages + host.remap_pages).into()),
    })
}

fn flash_result(run: &Finished, ftl: &FtlStats) -> Flash {
    Flash {
        program_pages: ByCause::from(&ftl.programs),
        read_pages: ByCause::from(&ftl.reads),
        erases: ftl.erases,
        wear: wear(run),
    }
}

fn ftl_result(run: &Finished, space: &SpaceMap) -> Ftl {
    Ftl {
        rho: space.rho,
        usable_pages: space.usable_pages,
        logical_pages: space.logical_pages,
        reserve_superblocks: u64::from(space.reserve_superblocks),
        metadata_slots: u64::from(space.slots - space.data_slots),
        superblocks: u64::from(space.superblocks),
        bad_superblocks: u64::from(space.bad_superblocks),
        data_slots: u64::from(space.data_slots),
        victim: run.ssd.config().ftl.victim.name().to_owned(),
    }
}

pub(crate) fn latency(metrics: &Metrics) -> LatencySummaries {
    LatencySummaries {
        read: metrics.read.total().summary(),
        write: metrics.write.total().summary(),
        trim: metrics.trim.total().summary(),
        flush: metrics.flush.total().summary(),
    }
}

fn buffer_result(run: &Finished) -> Buffer {
    let policy = run.ssd.config().buffer.policy.to_string();
    match run.buffer_stats() {
        Some(stats) => Buffer::of_run(&policy, &stats),
        None => Buffer { policy: "none".to_owned(), ..Buffer::default() },
    }
}

impl Finished {
    /// What the buffer counted since measuring began.
    fn buffer_stats(&self) -> Option<onefold_buffer::Stats> {
        let now = self.ssd.buffer_stats()?;
        Some(match &self.baseline.buffer {
            Some(before) => now.since(before),
            None => now,
        })
    }
}

fn wear(run: &Finished) -> Wear {
    let wear = run.ssd.ftl().wear();
    Wear { min: u64::from(wear.min), mean: wear.mean, max: u64::from(wear.max) }
}

pub(crate) fn workload(setup: &Setup) -> Option<String> {
    match setup.config.load_of_run() {
        Some(onefold_config::Load::Workload(text)) => Some(text),
        _ => None,
    }
}

fn tenants(run: &Finished) -> Vec<crate::result::Tenant> {
    let policy = run.ssd.config().buffer.policy.to_string();
    tenant_results(&run.tenants, &policy, run.buffer_stats().as_ref())
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

/// Conservation: requests in = requests out, programs = sum over causes, maps inverse, counts right.
fn check_laws(run: &Finished) -> Result<(), SimError> {
    let issued: u64 = run.tenants.iter().map(|tenant| tenant.issued).sum();
    let executed = match &run.volume {
        Some(volume) => volume.executed,
        None => run.ssd.host_stats().requests(),
    };
    if issued != executed {
        return Err(SimError::Law(format!("{issued} requests issued, {executed} executed")));
    }
    if let Some(volume) = &run.volume {
        check_sent(&volume.stats, &run.ssd.host_stats().since(&run.baseline.host))?;
    }
    run.ssd.ftl().check().map_err(|violation| SimError::Law(violation.to_string()))?;
    let ftl = run.ssd.ftl();
    let counted = ftl.programs().total();
    let programmed = ftl.nand().programmed_pages();
    if counted != programmed {
        return Err(SimError::Law(format!(
            "{counted} pages counted by cause, {programmed} programmed"
        )));
    }
    Ok(())
}
