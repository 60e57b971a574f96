//! What the control socket of a served volume answers.

use onefold_device::{BlockDevice, LogDetails, VolumeDetails, VolumeDevice};
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
    let mut described = live(details);
    if let Some(log) = &details.log {
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        described["logical_bytes"] = bytes(log.geometry.logical_blocks).into();
        described["backing_bytes"] = bytes(log.geometry.backing_blocks).into();
        described["log_bytes"] = bytes(log.log_blocks).into();
        described["segment_bytes"] = bytes(log.geometry.segment_blocks.into()).into();
        described["unit_bytes"] = bytes(log.geometry.unit_blocks.into()).into();
        described["segments"] = log.segments.into();
        described["free_segments"] = log.free_segments.into();
        described["live_bytes"] = bytes(log.live_blocks).into();
        described["utilisation"] = (float(log.live_blocks) / float(log.log_blocks)).into();
    }
    described
}

fn live(details: &VolumeDetails) -> Value {
    let bytes = |blocks: u64| blocks * PAGE_BYTES;
    let (stats, recovery) = (&details.stats, &details.recovery);
    let log = details.log.as_ref();
    let sent: Map<String, Value> =
        details.sent_bytes().map(|(cause, bytes)| (cause.to_owned(), bytes.into())).collect();
    json!({
        "uuid": render::uuid(&details.uuid),
        "mode": super::mode_name(details.mode),
        "free_bytes": bytes(details.free_blocks),
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
            "memory": {
                "map_bytes": log.map_or(details.memory.real_bytes, LogDetails::map_bytes),
                "process_bytes": process_bytes(),
            },
            "recovery": {
                "closed": recovery.clean,
                "ms": details.recovery_time.as_secs_f64() * 1e3,
                "batches": recovery.batches,
                "headers": recovery.headers,
                "checked_bytes": bytes(recovery.checked_blocks),
            },
            "checkpoint": {
                "taken": stats.checkpoints,
                "log_since_bytes": log.map(|log| bytes(log.blocks_since_checkpoint)),
            },
            "unflushed_bytes": log.map(|log| bytes(log.blocks_since_flush)),
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
