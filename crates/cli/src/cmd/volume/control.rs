//! What the control socket of a served volume answers.

use onefold_device::{BlockDevice, VolumeDetails, VolumeDevice};
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use serde_json::{Map, Value, json};

use crate::cmd::control::Command;
use crate::cmd::ssd::render;

/// All commands. What else is to be done with a served volume gets a line here.
pub(super) const COMMANDS: &[Command<VolumeDevice>] = &[("stats", stats), ("flush", flush)];

#[expect(clippy::unnecessary_wraps, reason = "the form of a command")]
fn stats(device: &VolumeDevice, _: &Value) -> Result<Value, String> {
    Ok(describe(&device.details()))
}

fn flush(device: &VolumeDevice, _: &Value) -> Result<Value, String> {
    device.flush().map(|_| Value::Null).map_err(|status| format!("flush: {status:?}"))
}

/// The keys of `volume info` that a served volume has, and `live` with what it counts.
fn describe(details: &VolumeDetails) -> Value {
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let (geometry, stats, recovery) = (&details.geometry, &details.stats, &details.recovery);
    let sent: Map<String, Value> =
        details.sent_bytes().map(|(cause, bytes)| (cause.to_owned(), bytes.into())).collect();
    json!({
        "uuid": render::uuid(&details.uuid),
        "mode": "log",
        "logical_bytes": bytes(geometry.logical_blocks),
        "backing_bytes": bytes(geometry.backing_blocks),
        "log_bytes": bytes(details.log_blocks),
        "segment_bytes": bytes(geometry.segment_blocks.into()),
        "unit_bytes": bytes(geometry.unit_blocks.into()),
        "segments": details.segments,
        "free_segments": details.free_segments,
        "live_bytes": bytes(details.live_blocks),
        "utilisation": float(details.live_blocks) / float(details.log_blocks),
        "live": {
            "io": details.io.to_string(),
            "engine": details.io.engine,
            "direct": details.io.direct,
            "frozen": details.frozen.map(|why| format!("{why:?}")),
            "written_bytes": bytes(stats.written),
            "read_bytes": bytes(stats.read),
            "trimmed_bytes": bytes(stats.trimmed),
            "sent_bytes": sent,
            "waf_host": stats.write_amplification(),
            "read_runs": stats.read_runs,
            "memory": {"map_bytes": details.map_bytes(), "process_bytes": process_bytes()},
            "recovery": {
                "closed": recovery.clean,
                "ms": details.recovery_time.as_secs_f64() * 1e3,
                "batches": recovery.batches,
                "headers": recovery.headers,
                "checked_bytes": bytes(recovery.checked_blocks),
            },
            "checkpoint": {
                "taken": stats.checkpoints,
                "log_since_bytes": bytes(details.blocks_since_checkpoint),
            },
            "unflushed_bytes": bytes(details.blocks_since_flush),
            "flush_ms": details.flush_time.as_secs_f64() * 1e3,
            "cleaned_segments": stats.cleaned_segments,
            "damaged_segments": stats.damaged_segments,
            "crc_errors": stats.crc_errors,
            "retried_batches": stats.retried_batches,
            "stalls": {
                "count": details.stalls.count,
                "total_ms": details.stalls.total.as_secs_f64() * 1e3,
                "longest_ms": details.stalls.longest.as_secs_f64() * 1e3,
            },
        },
    })
}

/// Resident memory of this process (`/proc/PID/status`).
fn process_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = resident.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1024)
}
