//! What the control socket of a served volume answers.

use onefold_device::observed::DeviceStats;
use onefold_device::{
    BlockDevice, LogDetails, VolumeDetails, VolumeDevice, VolumeError, VolumeResize,
};
use onefold_format::volume::VolumeName;
use onefold_journal::Found;
use onefold_units::PAGE_BYTES;
use onefold_units::convert::float;
use onefold_volume::{Frozen, IoFailed};
use serde_json::{Map, Value, json};

use crate::cmd::control::Command;
use crate::cmd::ssd::render;
use crate::cmd::written;

/// All commands. What else is to be done with a served volume gets a line here.
pub(super) const COMMANDS: &[Command<VolumeDevice>] = &[
    ("stats", stats),
    ("flush", flush),
    ("members", members),
    ("snapshot", snapshot),
    ("clone", make_clone),
    ("delete", delete),
    ("resize", resize),
    ("scrub", scrub),
    ("mark", mark),
];

#[expect(clippy::unnecessary_wraps, reason = "the form of a command")]
fn stats(device: &VolumeDevice, _: &Value) -> Result<Value, String> {
    let mut described = describe(&device.details());
    described["members"] = super::members::describe(&device.members());
    described["live"]["written"] = written::as_json(&device.snapshot().unwrap_or_default());
    Ok(described)
}

fn flush(device: &VolumeDevice, _: &Value) -> Result<Value, String> {
    device.flush().map(|_| Value::Null).map_err(|status| format!("the flush failed, as {status}"))
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a command")]
fn members(device: &VolumeDevice, _: &Value) -> Result<Value, String> {
    Ok(super::members::describe(&device.members()))
}

/// `name`, and `of`, the member that it is made of.
fn snapshot(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    make(device, request, VolumeDevice::make_snapshot)
}

fn make_clone(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    make(device, request, VolumeDevice::make_clone)
}

fn make(
    device: &VolumeDevice,
    request: &Value,
    make: fn(&VolumeDevice, &VolumeName) -> Result<(), VolumeError>,
) -> Result<Value, String> {
    let name = VolumeName::new(word(request, "name")?).map_err(|error| error.to_string())?;
    let done = match request["of"].as_str() {
        Some(of) => device.member(of).and_then(|member| make(&member, &name)),
        None => make(device, &name),
    };
    done.map(|()| Value::Null).map_err(|error| error.to_string())
}

fn delete(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    let deleted = device.delete_member(word(request, "name")?);
    deleted.map(|()| Value::Null).map_err(|error| error.to_string())
}

/// `bytes`, `backing_bytes` and `discard_tail`; what is absent stays as it is. `member`, a clone whose size is meant. The front
/// ends tell clients that connect later.
fn resize(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    let to = VolumeResize {
        bytes: number(request, "bytes")?,
        backing_bytes: number(request, "backing_bytes")?,
        discard_tail: request["discard_tail"] == true,
    };
    let done = match request["member"].as_str() {
        Some(name) => device.member(name).and_then(|member| member.resize(&to)),
        None => device.resize(&to),
    };
    done.map(|()| Value::Null).map_err(|error| error.to_string())
}

/// `action`: start, stop or status.
fn scrub(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    let done = match word(request, "action")? {
        "start" => device.start_scrub(),
        "stop" => device.stop_scrub(),
        "status" => Ok(()),
        other => return Err(format!("action is {other:?}, expected start, stop or status")),
    };
    let scrubbed = done.and_then(|()| device.scrubbed());
    scrubbed.map(|scrubbed| super::scrub::as_json(&scrubbed)).map_err(|error| error.to_string())
}

/// `text`, for the log of writes.
fn mark(device: &VolumeDevice, request: &Value) -> Result<Value, String> {
    device.mark(word(request, "text")?).map(|()| Value::Null).map_err(|error| error.to_string())
}

fn word<'a>(request: &'a Value, key: &str) -> Result<&'a str, String> {
    request[key].as_str().ok_or_else(|| format!("{key} is {}, expected a string", request[key]))
}

fn number(request: &Value, key: &str) -> Result<Option<u64>, String> {
    let value = &request[key];
    let wrong = || format!("{key} is {value}, expected a number of bytes");
    if value.is_null() { Ok(None) } else { value.as_u64().map(Some).ok_or_else(wrong) }
}

/// The keys of `volume info` that a served volume has, and `live` with what it counts.
pub(crate) fn describe(details: &VolumeDetails) -> Value {
    let mut described = live(details);
    if let Some(log) = &details.log {
        let bytes = |blocks: u64| blocks * PAGE_BYTES;
        described["logical_bytes"] = bytes(log.geometry.logical_blocks).into();
        described["backing_bytes"] = bytes(log.geometry.writable_blocks()).into();
        described["log_bytes"] = bytes(log.log_blocks).into();
        described["segment_bytes"] = bytes(log.geometry.segment_blocks.into()).into();
        described["unit_bytes"] = bytes(log.geometry.unit_blocks.into()).into();
        described["compress"] = super::info::compress(&log.geometry).into();
        described["segments"] = log.segments.into();
        described["free_segments"] = log.free_segments.into();
        described["live_bytes"] = bytes(log.live_blocks).into();
        described["data_bytes"] = bytes(log.usage.data_blocks).into();
        described["capacity_bytes"] = bytes(log.usage.capacity_blocks).into();
        described["thin"] = log.thin.into();
        described["faulty"] = super::faulty::as_json(log.faulty);
        described["utilisation"] = (float(log.live_blocks) / float(log.log_blocks)).into();
    }
    if let Some(set) = &details.journal {
        let found =
            Found { ranges: set.ranges.clone(), remarks: set.remarks.clone(), ..Found::default() };
        described["content"] = super::journals::as_json(&found);
        described["journal"] = json!({
            "mode": "set",
            "segments": set.segments,
            "copied_bytes": details.stats.journal_copied * PAGE_BYTES,
            "demotions": details.stats.journal_demotions,
        });
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
        "mode": details.mode.name(),
        "free_bytes": bytes(details.free_blocks),
        "live": {
            "io": details.io.to_string(),
            "engine": details.io.engine,
            "direct": details.io.direct,
            "frozen": details.frozen.map(why_frozen),
            "refuses_changes": details.stalled.map(why_stalled),
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
            "filled_bytes": bytes(stats.filled),
            "packed_bytes": bytes(stats.packed),
            "remapped_bytes": bytes(stats.remapped),
            "failed_remaps": stats.failed_remaps,
            "damaged_segments": stats.damaged_segments,
            "failed_requests": stats.failed_requests,
            "crc_errors": stats.crc_errors,
            "scrub": details.scrub.as_ref().map(super::scrub::as_json),
            "resumed_writes": stats.resumed_writes,
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

const fn why_stalled(why: IoFailed) -> &'static str {
    match why {
        IoFailed::Error => "the backing takes no writes",
        IoFailed::NoSpace => "the backing has no room",
    }
}

const fn why_frozen(why: Frozen) -> &'static str {
    match why {
        Frozen::Flush => "a flush of the backing failed, so what is durable is not known",
        Frozen::Writes => "writes to the backing failed, and no zone is left for them",
        Frozen::Checkpoint => "no checkpoint can be written",
        Frozen::Closed => "it is closed",
        Frozen::ReadOnly => "it is open for reading only",
    }
}
