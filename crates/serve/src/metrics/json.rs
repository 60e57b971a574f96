//! `/api/v1/stats`.

use onefold_device::observed::{DeviceSnapshot, Frontend, FrontendCounts, ImageSnapshot};
use onefold_units::Op;
use serde_json::{Map, Value, json};

use super::Snapshot;

pub(super) fn encode(snapshot: &Snapshot) -> String {
    let frontends: Map<String, Value> = Frontend::ALL
        .into_iter()
        .map(|f| (f.name().to_owned(), frontend(snapshot.observed.frontend(f))))
        .collect();
    let errors: Map<String, Value> =
        snapshot.nbd_errors.iter().map(|(kind, n)| (kind.name().to_owned(), (*n).into())).collect();
    let value = json!({
        "schema": "onefold.stats/1",
        "version": env!("CARGO_PKG_VERSION"),
        "uptime_s": snapshot.uptime_s,
        "frontends": frontends,
        "nbd": {
            "connections": snapshot.nbd_connections,
            "connection_errors": errors,
            "memory_bytes": snapshot.nbd_memory.held,
            "memory_peak_bytes": snapshot.nbd_memory.peak,
        },
        "recording": snapshot.recording.map(|r| json!({
            "records": r.records,
            "dropped": r.dropped,
        })),
        "device": snapshot.device.as_ref().map(device),
    });
    format!("{value}\n")
}

fn frontend(counts: &FrontendCounts) -> Value {
    let mut value: Map<String, Value> = Op::ALL
        .into_iter()
        .map(|op| {
            let c = counts.op(op);
            let count = json!({
                "requests": c.requests,
                "bytes": c.bytes,
                "errors": c.errors,
                "inflight": c.inflight,
                "total_ns": c.nanos,
            });
            (op.name().to_owned(), count)
        })
        .collect();
    value.insert("unaligned".into(), counts.unaligned.into());
    Value::Object(value)
}

fn device(device: &DeviceSnapshot) -> Value {
    let causes: Map<String, Value> = device
        .nand_written_pages
        .iter()
        .map(|(cause, pages)| (cause.name().to_owned(), pages.into()))
        .collect();
    let areas: Map<String, Value> = device
        .buffer_areas
        .iter()
        .map(|area| {
            let counts = json!({"evictions": area.evictions(), "write_backs": area.write_backs()});
            (area.name.to_owned(), counts)
        })
        .collect();
    let [remapped, copied, skipped] = device.remap_pages;
    let saved: Map<String, Value> =
        device.saved_pages.iter().map(|(kind, pages)| (kind.to_owned(), pages.into())).collect();
    json!({
        "saved_pages": saved,
        "remap_pages": {"remapped": remapped, "copied": copied, "skipped": skipped},
        "host_written_bytes": device.host_written_bytes,
        "nand_written_pages": causes,
        "write_amplification": device.write_amplification,
        "free_superblocks": device.free_superblocks,
        "gc_active": device.gc_active,
        "erases": device.erases,
        "buffer": {
            "policy": device.buffer_policy,
            "areas": areas,
            "read_hits": device.buffer_read_hits,
            "read_misses": device.buffer_read_misses,
            "write_hits": device.buffer_write_hits,
            "write_misses": device.buffer_write_misses,
        },
        "unflushed_bytes": device.unflushed_bytes,
        "flush_ns": device.flush_ns,
        "recovery_ns": device.recovery_ns,
        "image": device.image.as_ref().map(image),
        "volume": device.volume.as_ref().map(super::volume::json),
    })
}

/// How the host treats the file under the device.
fn image(image: &ImageSnapshot) -> Value {
    json!({
        "state": image.state(),
        "waiting_bytes": image.waiting_bytes,
        "refused_requests": image.refused_requests,
        "failed_reads": image.failed_reads,
        "failed_writes": image.failed_writes,
        "failed_syncs": image.failed_syncs,
    })
}
