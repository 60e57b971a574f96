//! `/metrics`.

use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

use onefold_device::observed::{
    DeviceSnapshot, Frontend, ImageSnapshot, OpCounts, bucket_limit_ns,
};
use onefold_units::convert::float;
use onefold_units::{Op, PAGE_BYTES};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode as encode_text;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

use super::Snapshot;
use super::page::Page;
use crate::memory::ConnectionMemory;

/// The format that [`encode`] writes.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// All metrics of a snapshot.
pub(super) fn encode(snapshot: &Snapshot) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Once(Mutex::new(snapshot.clone()))));
    let mut text = String::new();
    // Writing into a string fails only if a metric is encoded wrongly, which the tests rule out.
    match encode_text(&mut text, &registry) {
        Ok(()) => text,
        Err(error) => format!("# {error}\n# EOF\n"),
    }
}

/// A snapshot as a collector; the lock is only for the trait's sake.
#[derive(Debug)]
struct Once(Mutex<Snapshot>);

impl Collector for Once {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let snapshot = self.0.lock().map_err(|_| fmt::Error)?;
        let mut page = Page(encoder);
        requests(&mut page, &snapshot)?;
        connections(&mut page, &snapshot)?;
        if let Some(device) = &snapshot.device {
            self::device(&mut page, device)?;
        }
        if let Some(recording) = snapshot.recording {
            page.count("record_dropped", "Requests that the recording lost", recording.dropped)?;
        }
        page.gauge(
            "uptime",
            "Time since the server started",
            Some(&Unit::Seconds),
            snapshot.uptime_s,
        )?;
        page.0
            .encode_descriptor("onefold_build", "The program", None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])
    }
}

/// Every pair of front end and operation with its labels.
fn pairs(
    snapshot: &Snapshot,
) -> impl Iterator<Item = ([(&'static str, &'static str); 2], &OpCounts)> {
    Frontend::ALL.into_iter().flat_map(move |frontend| {
        let counts = snapshot.observed.frontend(frontend);
        Op::ALL
            .into_iter()
            .map(move |op| ([("op", op.name()), ("frontend", frontend.name())], counts.op(op)))
    })
}

fn requests(page: &mut Page<'_>, snapshot: &Snapshot) -> fmt::Result {
    let each = |value: fn(&OpCounts) -> u64| pairs(snapshot).map(move |(l, c)| (l, value(c)));
    page.counts("requests", "Requests that ended", each(|c| c.requests))?;
    page.counts("request_bytes", "Bytes of requests that succeeded", each(|c| c.bytes))?;
    page.counts("request_errors", "Requests that failed", each(|c| c.errors))?;
    latencies(page, snapshot)?;
    let help = "Requests whose reply is not due yet";
    let mut family =
        page.0.encode_descriptor("onefold_inflight_requests", help, None, MetricType::Gauge)?;
    for (labels, counts) in pairs(snapshot) {
        family.encode_family(&labels)?.encode_gauge(&float(counts.inflight))?;
    }
    let unaligned = Frontend::ALL.map(|frontend| {
        let counts = snapshot.observed.frontend(frontend);
        ([("frontend", frontend.name()), ("kind", "page")], counts.unaligned)
    });
    let help = "Requests that do not cover whole 4 KiB pages";
    page.counts("unaligned_requests", help, unaligned)
}

fn latencies(page: &mut Page<'_>, snapshot: &Snapshot) -> fmt::Result {
    let mut family = page.0.encode_descriptor(
        "onefold_request",
        "Time from a request's arrival until its reply is due",
        Some(&Unit::Seconds),
        MetricType::Histogram,
    )?;
    for (labels, counts) in pairs(snapshot).filter(|(_, counts)| counts.requests > 0) {
        let buckets: Vec<(f64, u64)> = (0..)
            .zip(counts.buckets)
            .map(|(i, n)| (bucket_limit_ns(i).map_or(f64::MAX, |ns| float(ns) / 1e9), n))
            .collect();
        let total = counts.buckets.iter().sum();
        family.encode_family(&labels)?.encode_histogram(
            float(counts.nanos) / 1e9,
            total,
            &buckets,
            None::<&HashMap<usize, Exemplar<NoLabelSet, f64>>>,
        )?;
    }
    Ok(())
}

fn connections(page: &mut Page<'_>, snapshot: &Snapshot) -> fmt::Result {
    let mut family = page.0.encode_descriptor(
        "onefold_connections",
        "Connections now",
        None,
        MetricType::Gauge,
    )?;
    family
        .encode_family(&[("frontend", "nbd"), ("kind", "open")])?
        .encode_gauge(&float(snapshot.nbd_connections))?;
    let mut family = page.0.encode_descriptor(
        "onefold_connection_memory",
        "Memory of all connections together: now, and at most since the start",
        Some(&Unit::Bytes),
        MetricType::Gauge,
    )?;
    let ConnectionMemory { held, peak } = snapshot.nbd_memory;
    for (kind, bytes) in [("held", held), ("peak", peak)] {
        let bytes = float(onefold_units::convert::u64_from(bytes));
        family.encode_family(&[("frontend", "nbd"), ("kind", kind)])?.encode_gauge(&bytes)?;
    }
    let errors = snapshot.nbd_errors.iter();
    page.counts(
        "connection_errors",
        "Connections that ended badly",
        errors.map(|(kind, n)| ([("frontend", "nbd"), ("kind", kind.name())], *n)),
    )
}

fn device(page: &mut Page<'_>, device: &DeviceSnapshot) -> fmt::Result {
    page.count("host_written_bytes", "Bytes the host wrote", device.host_written_bytes)?;
    if let Some(volume) = &device.volume {
        super::volume::page(page, volume)?;
    }
    if device.flash {
        flash(page, device)?;
    }
    if let Some(image) = &device.image {
        host(page, image)?;
    }
    let unflushed = float(device.unflushed_bytes);
    let help = "Acknowledged and not durable yet";
    page.gauge("unflushed", help, Some(&Unit::Bytes), unflushed)?;
    let flush = float(device.flush_ns) / 1e9;
    page.gauge("flush", "Duration of the last flush", Some(&Unit::Seconds), flush)?;
    let recovery = float(device.recovery_ns) / 1e9;
    page.gauge("recovery", "Duration of the last recovery", Some(&Unit::Seconds), recovery)
}

/// How the host treats the file under a device.
fn host(page: &mut Page<'_>, image: &ImageSnapshot) -> fmt::Result {
    let takes = f64::from(u8::from(image.held.is_none()));
    page.gauge("image_takes_writes", "Whether the host takes writes to the image", None, takes)?;
    let waiting = float(image.waiting_bytes);
    page.gauge("image_waiting", "In memory until the host takes it", Some(&Unit::Bytes), waiting)?;
    let help = "Requests that were refused because the host takes no writes";
    page.count("image_refused_requests", help, image.refused_requests)?;
    let failures = [
        ("read", image.failed_reads),
        ("write", image.failed_writes),
        ("sync", image.failed_syncs),
    ];
    let help = "Accesses to the image that the host refused";
    page.counts("image_failures", help, failures.map(|(op, count)| ([("op", op)], count)))
}

/// What an SSD counts.
fn flash(page: &mut Page<'_>, device: &DeviceSnapshot) -> fmt::Result {
    page.counts(
        "nand_written_bytes",
        "Bytes written to the medium by cause; their sum is everything written",
        device.nand_written_pages.iter().map(|(c, n)| ([("cause", c.name())], n * PAGE_BYTES)),
    )?;
    if let Some(waf) = device.write_amplification {
        let help = "Pages programmed / pages the user wrote, since the start";
        page.gauge("write_amplification", help, None, waf)?;
    }
    let results = ["remapped", "copied", "skipped"].map(|result| [("result", result)]);
    let help = "Pages of remap commands by what became of them";
    page.counts("remap_pages", help, results.into_iter().zip(device.remap_pages))?;
    let help =
        "Pages the host wrote that were not programmed: copies of what was read or written, zeroes";
    let saved = device.saved_pages.iter().map(|(kind, pages)| ([("kind", kind)], pages));
    page.counts("saved_pages", help, saved)?;
    let free = float(device.free_superblocks);
    page.gauge("free_superblocks", "Superblocks that are erased and free", None, free)?;
    let active = f64::from(u8::from(device.gc_active));
    page.gauge("gc_active", "Whether garbage collection runs", None, active)?;
    page.count("erases", "Superblocks erased", device.erases)?;
    buffer(page, device)
}

fn buffer(page: &mut Page<'_>, device: &DeviceSnapshot) -> fmt::Result {
    let read = [("op", "read")];
    let write = [("op", "write")];
    page.counts(
        "buffer_hits",
        "Pages found in the buffer",
        [(read, device.buffer_read_hits), (write, device.buffer_write_hits)],
    )?;
    page.counts(
        "buffer_misses",
        "Pages not found in the buffer",
        [(read, device.buffer_read_misses), (write, device.buffer_write_misses)],
    )?;
    let Some(policy) = &device.buffer_policy else { return Ok(()) };
    page.0
        .encode_descriptor("onefold_buffer", "The buffer", None, MetricType::Info)?
        .encode_info(&[("policy", policy.as_str())])?;
    let areas = || device.buffer_areas.iter().map(|area| ([("area", area.name)], area));
    let help = "Pages that left an area of the buffer to make room";
    page.counts("buffer_evictions", help, areas().map(|(l, area)| (l, area.evictions())))?;
    let help = "Dirty pages of an area of the buffer that were programmed";
    page.counts("buffer_write_backs", help, areas().map(|(l, area)| (l, area.write_backs())))
}
