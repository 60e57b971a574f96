//! What a volume counts, on both pages.

use std::fmt;

use onefold_device::observed::VolumeSnapshot;
use onefold_units::convert::float;
use prometheus_client::registry::Unit;
use serde_json::{Map, Value, json};

use super::page::Page;

/// Its part of `/metrics`.
pub(super) fn page(page: &mut Page<'_>, volume: &VolumeSnapshot) -> fmt::Result {
    page.counts(
        "backing_written_bytes",
        "Bytes sent to the backing of the volume by cause; their sum is everything that was sent",
        volume.sent_bytes.iter().map(|(cause, bytes)| ([("cause", *cause)], *bytes)),
    )?;
    if let Some(waf) = volume.write_amplification {
        let help = "Bytes sent to the backing / bytes the host wrote, since the start";
        page.gauge("volume_write_amplification", help, None, waf)?;
    }
    page.count("clean_read_bytes", "Bytes that the cleaner read", volume.clean_read_bytes)?;
    let help = "Bytes of log segments trimmed on the backing";
    page.count("backing_trimmed_bytes", help, volume.trimmed_bytes)?;
    page.gauge("log_segments", "Log segments", None, float(volume.log_segments))?;
    let free = float(volume.free_log_segments);
    page.gauge("free_log_segments", "Log segments that are free", None, free)?;
    let faulty = float(volume.faulty_log_segments);
    let help = "Log segments in which the backing failed, until they are used again";
    page.gauge("faulty_log_segments", help, None, faulty)?;
    let journals = float(volume.journal_log_segments);
    page.gauge("journal_log_segments", "Log segments of journals", None, journals)?;
    let bytes = Some(&Unit::Bytes);
    let help = "Room that the volume has less for log segments in which the backing failed";
    page.gauge("faulty", help, bytes, float(volume.faulty_bytes))?;
    page.gauge("log_live", "Live part of the log", bytes, float(volume.live_bytes))?;
    page.gauge("data", "Data of all members", bytes, float(volume.data_bytes))?;
    let help = "Data that a thin volume, or one with snapshots, can hold";
    page.gauge("data_capacity", help, bytes, float(volume.capacity_bytes))?;
    page.gauge("log", "All log segments", bytes, float(volume.log_bytes))?;
    page.gauge("map", "Memory of the map", bytes, float(volume.map_bytes))?;
    let help = "Log since the last checkpoint, which recovery would look at";
    page.gauge("checkpoint_lag", help, bytes, float(volume.checkpoint_lag_bytes))?;
    let help = "Batches that the last recovery found";
    page.gauge("recovered_batches", help, None, float(volume.recovered_batches))?;
    let seconds = Some(&Unit::Seconds);
    let help = "How long calls waited for the volume, together";
    page.gauge("stalled", help, seconds, volume.stalled.as_secs_f64())?;
    let help = "How long a call waited for the volume at most";
    page.gauge("longest_stall", help, seconds, volume.longest_stall.as_secs_f64())?;
    let read_only = f64::from(u8::from(volume.read_only));
    page.gauge("read_only", "Whether the volume takes no more changes", None, read_only)?;
    let events = volume.events.iter().map(|(event, count)| ([("event", *event)], *count));
    page.counts("volume_events", "Events of the volume", events)
}

/// Its part of `/api/v1/stats`.
pub(super) fn json(volume: &VolumeSnapshot) -> Value {
    let counts = |list: &[(&'static str, u64)]| -> Map<String, Value> {
        list.iter().map(|(name, count)| ((*name).to_owned(), (*count).into())).collect()
    };
    json!({
        "sent_bytes": counts(&volume.sent_bytes),
        "write_amplification": volume.write_amplification,
        "clean_read_bytes": volume.clean_read_bytes,
        "trimmed_bytes": volume.trimmed_bytes,
        "log_segments": volume.log_segments,
        "free_log_segments": volume.free_log_segments,
        "faulty_log_segments": volume.faulty_log_segments,
        "faulty_bytes": volume.faulty_bytes,
        "journal_log_segments": volume.journal_log_segments,
        "live_bytes": volume.live_bytes,
        "data_bytes": volume.data_bytes,
        "capacity_bytes": volume.capacity_bytes,
        "log_bytes": volume.log_bytes,
        "map_bytes": volume.map_bytes,
        "checkpoint_lag_bytes": volume.checkpoint_lag_bytes,
        "recovered_batches": volume.recovered_batches,
        "stalled_s": volume.stalled.as_secs_f64(),
        "longest_stall_s": volume.longest_stall.as_secs_f64(),
        "read_only": volume.read_only,
        "events": counts(&volume.events),
    })
}
